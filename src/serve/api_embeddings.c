#include "serve/api_embeddings.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "serve/fields.h"
#include "serve/http.h"

typedef struct embed_task {
    mica_side_task base; /* first */
    mica_prompt *inputs;
    size_t n_inputs;
    mica_pooling pooling;
    bool base64;
    float *vector; /* [n_embd] */
    mica_buf out;  /* "data", as far as it is made */
    int64_t n_tokens;
} embed_task;

/* ---- Requests ---- */

static void free_task(embed_task *t)
{
    for (size_t i = 0; i < t->n_inputs; i++)
        mica_free(t->inputs[i].tokens);
    free(t->inputs);
    free(t->vector);
    mica_buf_free(&t->out);
    mica_job_release(t->base.job);
    free(t);
}

static bool wrong_input(mica_fault *fault)
{
    return mica_fault_set(fault, 400, "invalid_type", "input",
                          "\"input\" must be a string, a list of strings, or of token ids");
}

static bool no_memory(mica_fault *fault)
{
    return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
}

static bool read_ids(const mica_serve_context *context, const json_t *ids, mica_prompt *p, mica_fault *fault)
{
    size_t n = json_array_size(ids);
    p->tokens = malloc((n + 1) * sizeof *p->tokens);
    if (!p->tokens)
        return no_memory(fault);
    for (; p->n < n; p->n++) {
        const json_t *id = json_array_get(ids, p->n);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id))
            return wrong_input(fault);
        if (value < 0 || value >= context->info.n_vocab)
            return mica_fault_bad(fault, "input", "token id %lld is not in the vocabulary, which ends at %d", (long long)value,
                                  context->info.n_vocab - 1);
        p->tokens[p->n] = (int32_t)value;
    }
    return true;
}

/* A text is data: what spells a control token in it stays text. */
static bool read_text(const mica_serve_context *context, const json_t *text, mica_prompt *p, mica_fault *fault)
{
    mica_error err;
    if (json_string_length(text) == 0)
        return mica_fault_bad(fault, "input", "\"input\" has an empty text: there is nothing to embed");
    if (mica_model_tokenize(context->model, json_string_value(text), json_string_length(text), MICA_TOKENIZE_ADD_BOS,
                            &p->tokens, &p->n, &err))
        return mica_fault_engine(fault, &err, "input");
    return true;
}

static bool read_input(embed_task *t, const json_t *input, mica_prompt *p, mica_fault *fault)
{
    const mica_serve_context *context = &t->base.server->context;
    if (!json_is_string(input) && !json_is_array(input))
        return wrong_input(fault);
    if (!(json_is_string(input) ? read_text : read_ids)(context, input, p, fault))
        return false;
    t->n_tokens += (int64_t)p->n;
    if (p->n == 0)
        return mica_fault_bad(fault, "input", "\"input\" has an empty list: there is no token to embed");
    if (p->n > (size_t)context->n_ctx)
        return mica_fault_set(fault, 400, "context_length_exceeded", "input",
                              "This model's maximum context length is %d tokens. However, an input has %zu tokens. Please "
                              "reduce its length.",
                              context->n_ctx, p->n);
    return true;
}

/* A number takes up to 16 bytes: sign, 9 digits, point, exponent, comma; in base64 5 1/3. */
static bool fits_reply(const embed_task *t, size_t n)
{
    return n * (size_t)t->base.server->context.info.n_embd < MICA_SERVE_REPLY_MAX / (t->base64 ? 6 : 17);
}

static bool read_inputs(embed_task *t, const json_t *body, mica_fault *fault)
{
    const json_t *input = mica_field(body, "input"), *first = json_array_get(input, 0);
    bool many = json_is_string(first) || json_is_array(first);
    size_t n = many ? json_array_size(input) : 1;
    if (!input)
        return mica_fault_set(fault, 400, "missing_required_parameter", "input", "\"input\" is missing");
    if (n > MICA_SERVE_INPUTS_MAX || !fits_reply(t, n))
        return mica_fault_bad(fault, "input",
                              "\"input\" has %zu texts, more than one answer can have: send fewer at a time", n);
    t->inputs = calloc(n, sizeof *t->inputs);
    if (!t->inputs)
        return no_memory(fault);
    t->n_inputs = n;
    for (size_t i = 0; i < n; i++)
        if (!read_input(t, many ? json_array_get(input, i) : input, &t->inputs[i], fault))
            return false;
    return true;
}

/* One of two words; absent: the first. */
static bool read_choice(const json_t *body, const char *name, const char *first, const char *second, bool *is_second,
                        mica_fault *fault)
{
    const char *text = first;
    if (!mica_field_text(body, name, &text, fault))
        return false;
    *is_second = strcmp(text, second) == 0;
    if (!*is_second && strcmp(text, first) != 0)
        return mica_fault_set(fault, 400, "invalid_value", name, "\"%s\" must be \"%s\" or \"%s\"", name, first, second);
    return true;
}

static bool read_body(embed_task *t, const json_t *body, mica_fault *fault)
{
    int64_t width = t->base.server->context.info.n_embd, dimensions = width;
    const char *unused = NULL;
    bool last;
    if (!mica_field_text(body, "model", &unused, fault) || !mica_field_text(body, "user", &unused, fault) ||
        !read_choice(body, "encoding_format", "float", "base64", &t->base64, fault) ||
        !read_choice(body, "pooling", "mean", "last", &last, fault) ||
        !mica_field_int(body, "dimensions", 1, INT32_MAX, &dimensions, fault))
        return false;
    t->pooling = last ? MICA_POOLING_LAST : MICA_POOLING_MEAN;
    if (dimensions != width)
        return mica_fault_set(fault, 400, "invalid_value", "dimensions",
                              "\"dimensions\" is %lld; this model's vectors have %lld",
                              (long long)dimensions, (long long)width);
    return read_inputs(t, body, fault);
}

/* ---- Answers ---- */

static void put_base64(mica_buf *out, const float *x, int32_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = (size_t)n * 4;
    for (size_t i = 0; i < length; i += 3) {
        uint32_t group = 0;
        char text[4];
        for (size_t k = 0; k < 3; k++) {
            uint32_t bits = 0;
            if (i + k < length)
                memcpy(&bits, &x[(i + k) / 4], 4);
            group = group << 8 | (bits >> (i + k) % 4 * 8 & 255); /* little-endian, whatever the machine */
        }
        for (size_t k = 0; k < 4; k++)
            text[k] = i + k > length ? '=' : digits[group >> (18 - 6 * k) & 63];
        mica_buf_append(out, text, 4);
    }
}

static void put_vector(embed_task *t, size_t index)
{
    int32_t n = t->base.server->context.info.n_embd;
    mica_buf *out = &t->out;
    mica_buf_printf(out, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", index > 0 ? "," : "", index);
    mica_buf_putc(out, t->base64 ? '"' : '[');
    if (t->base64)
        put_base64(out, t->vector, n);
    else
        for (int32_t i = 0; i < n; i++) /* 9 digits tell any two floats apart */
            mica_buf_printf(out, i ? ",%.9g" : "%.9g", (double)t->vector[i]);
    mica_buf_puts(out, t->base64 ? "\"}" : "]}");
}

/* What follows the vectors: {"model": ...} without its opening bracket. */
static void put_rest(embed_task *t)
{
    int64_t arrived = t->base.job->arrived_ns;
    json_int_t n = (json_int_t)t->n_tokens;
    json_t *rest = json_pack("{s:s, s:{s:I, s:I}, s:{s:f, s:f, s:I}}", "model", t->base.server->context.name, "usage",
                             "prompt_tokens", n, "total_tokens", n, "mica", "queue_ms",
                             (double)(t->base.started_ns - arrived) / 1e6, "total_ms", (double)(mica_now_ns() - arrived) / 1e6,
                             "prompt_n", n);
    char *text = rest ? mica_json_dumps(rest, MICA_JSON_FLAGS) : NULL;
    mica_buf_puts(&t->out, "],");
    if (!text || !mica_buf_puts(&t->out, text + 1))
        t->out.failed = true;
    free(text);
    json_decref(rest);
}

static void reply(embed_task *t)
{
    size_t length = 0;
    put_rest(t);
    char *text = mica_buf_take(&t->out, &length);
    mica_job_reply(t->base.job, 200, "application/json", text, length);
    free(text);
    atomic_fetch_add(&t->base.server->metrics.prompt_tokens, (uint64_t)t->n_tokens);
}

static mica_status compute(embed_task *t, mica_session *session, mica_error *err)
{
    mica_status status = MICA_OK;
    mica_buf_puts(&t->out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < t->n_inputs && !status; i++) {
        status = mica_session_embed(session, t->inputs[i].tokens, t->inputs[i].n, t->pooling, true, t->vector, err);
        if (!status)
            put_vector(t, i);
    }
    return status;
}

/* On the scheduler's thread. */
static void run(mica_schedule_task *task, bool stopping)
{
    embed_task *t = (embed_task *)task;
    mica_session *session = NULL;
    mica_error err;
    mica_fault fault;
    mica_status status = mica_side_begin(&t->base, stopping, &session, &err);
    if (!status)
        status = compute(t, session, &err);
    mica_side_end(&t->base);
    if (status) {
        mica_side_fault(&t->base, &err, "input", &fault);
        mica_job_fail(t->base.job, &fault);
    } else {
        reply(t);
    }
    free_task(t);
}

/* ---- The route ---- */

void mica_embeddings_answer(mica_server *s, mica_job *job)
{
    mica_fault fault;
    embed_task *t = mica_new_array(1, sizeof *t);
    json_t *body = mica_fields_parse(job->body, job->length, &fault);
    bool good = body != NULL;
    if (t) {
        t->base = (mica_side_task){.base = {.run = run}, .server = s, .job = mica_job_retain(job)};
        mica_buf_init(&t->out, MICA_SERVE_REPLY_MAX);
        t->vector = mica_new_array((size_t)s->context.info.n_embd, sizeof *t->vector);
    }
    if (good && (!t || !t->vector))
        good = no_memory(&fault);
    good = good && read_body(t, body, &fault);
    json_decref(body);
    if (good) {
        mica_schedule_add(s->schedule, &t->base.base);
        return;
    }
    mica_job_fail(job, &fault);
    if (t)
        free_task(t);
}
