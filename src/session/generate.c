/* generate.c - the token loop: pick, tell, append, compute. Allocates nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/memory.h"
#include "session/session.h"

#define MAX_TOP_LOGPROBS 20
#define MAX_STOP_TOKENS 64

mica_generate_options mica_generate_options_default(void)
{
    return (mica_generate_options){
        .struct_size = sizeof(mica_generate_options),
        .max_tokens = -1,
        .sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .typical_p = 1.0f, .repeat_penalty = 1.0f,
                     .penalty_last_n = 64, .dry_base = 1.75f, .dry_allowed_length = 2, .dry_last_n = -1, .seed = -1},
    };
}

/* One reply under way. */
typedef struct reply {
    mica_session *s;
    const mica_generate_options *o;
    mica_detok detok;
    const char *stop_reason; /* NULL: goes on */
    int32_t gen_n;
    int64_t seed, first_ns, last_ns;
    int32_t n_itl; /* entries of itl_ns; the oldest are overwritten beyond n_ctx */
    char bytes[MICA_SESSION_PIECE];
    char text[MICA_DETOK_ROOM(MICA_SESSION_PIECE)];
} reply;

static mica_status check_options(const mica_session *s, const mica_generate_options *o, mica_error *err)
{
    if (o->max_tokens < -1)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "max_tokens is %d; it must be -1 (no limit) or more", o->max_tokens);
    if (o->top_logprobs < 0 || o->top_logprobs > MAX_TOP_LOGPROBS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "top_logprobs is %d; it must be between 0 and %d", o->top_logprobs,
                         MAX_TOP_LOGPROBS);
    if (o->n_stop_tokens > MAX_STOP_TOKENS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%zu stop tokens; at most %d are possible", o->n_stop_tokens, MAX_STOP_TOKENS);
    for (size_t i = 0; i < o->n_stop_tokens; i++)
        if (o->stop_tokens[i] < 0 || o->stop_tokens[i] >= s->model->weights.h.n_vocab)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "stop token %d is not in the vocabulary", o->stop_tokens[i]);
    if (s->n_tokens == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no prompt: call mica_session_prompt() or mica_session_sync() first");
    return MICA_OK;
}

static bool ends(const reply *r, int32_t token)
{
    for (size_t i = 0; i < r->o->n_stop_tokens; i++)
        if (r->o->stop_tokens[i] == token)
            return true;
    return !r->o->ignore_eos && mica_vocab_ends_generation(r->s->model->vocab, token);
}

static void tell_token(reply *r, int32_t token)
{
    int32_t tops[MAX_TOP_LOGPROBS];
    float logprobs[MAX_TOP_LOGPROBS];
    mica_token_event event = {.token = token, .index = r->gen_n, .time_ns = r->last_ns};
    if (!r->o->on_token)
        return;
    if (r->o->top_logprobs > 0) {
        event.n_top = r->o->top_logprobs < r->s->model->weights.h.n_vocab ? r->o->top_logprobs : r->s->model->weights.h.n_vocab;
        event.top_tokens = tops;
        event.top_logprobs = logprobs;
        mica_sampler_top_logprobs(r->s->sampler, r->s->exec.logits, token, event.n_top, tops, logprobs, &event.logprob);
    }
    if (r->o->on_token(r->o->user, &event))
        r->stop_reason = "cancelled";
}

static void tell_text(reply *r, const char *text, size_t n)
{
    if (n > 0 && r->o->on_text && r->o->on_text(r->o->user, text, n))
        r->stop_reason = "cancelled";
}

/* Whole characters on to the stop strings and from there to the caller. */
static void push_text(reply *r, const char *text, size_t n)
{
    for (size_t i = 0; i < n && !r->stop_reason;) {
        size_t part = n - i < MICA_STOP_MAX_BYTES ? n - i : MICA_STOP_MAX_BYTES;
        const char *out;
        bool hit = false;
        size_t ready = mica_stop_push(r->s->stop, text + i, part, &out, &hit);
        tell_text(r, out, ready);
        if (hit)
            r->stop_reason = "stop";
        i += part;
    }
}

static void push_token(reply *r, int32_t token)
{
    size_t n = mica_vocab_bytes(r->s->model->vocab, token, false, r->bytes, sizeof r->bytes);
    if (n <= sizeof r->bytes)
        push_text(r, r->text, mica_detok_push(&r->detok, r->bytes, n, r->text));
}

/* What the detokenizer and the stop strings still hold back. */
static void flush_text(reply *r)
{
    const char *reason = r->stop_reason, *out;
    if (strcmp(reason, "stop") == 0 || strcmp(reason, "cancelled") == 0)
        return;
    r->stop_reason = NULL;
    push_text(r, r->text, mica_detok_finish(&r->detok, r->text));
    if (!r->stop_reason)
        tell_text(r, out, mica_stop_finish(r->s->stop, &out));
    if (!r->stop_reason || strcmp(r->stop_reason, "cancelled") == 0)
        r->stop_reason = reason; /* the reply was over: a late veto changes nothing */
}

static void note_time(reply *r)
{
    int64_t now = mica_now_ns();
    if (r->gen_n == 0)
        r->first_ns = now;
    else
        r->s->itl_ns[r->n_itl++ % r->s->options.n_ctx] = now - r->last_ns;
    r->last_ns = now;
}

/* The chosen token becomes the last of the history; at the context's end the policy decides. */
static mica_status append(reply *r, int32_t token, mica_error *err)
{
    mica_session *s = r->s;
    s->tokens[s->n_tokens++] = token;
    s->logits_valid = false;
    if (r->stop_reason || s->n_tokens < s->options.n_ctx)
        return MICA_OK;
    if (s->options.full_policy == MICA_FULL_STOP || (r->o->max_tokens >= 0 && r->gen_n >= r->o->max_tokens)) {
        r->stop_reason = s->options.full_policy == MICA_FULL_STOP ? "context" : "length";
        return MICA_OK;
    }
    mica_status status = mica_session_shrink(s, s->tokens, (size_t)s->n_tokens, err);
    if (status)
        r->stop_reason = "context";
    return status;
}

static mica_status one_token(reply *r, mica_error *err)
{
    mica_session *s = r->s;
    int32_t token;
    mica_status status = mica_session_compute(s, err);
    if (!status)
        status = mica_sampler_pick(s->sampler, s->exec.logits, s->tokens, (size_t)s->n_tokens, &token, err);
    if (status)
        return status;
    note_time(r);
    tell_token(r, token);
    r->gen_n++;
    if (ends(r, token)) {
        r->stop_reason = r->stop_reason ? r->stop_reason : "eos";
    } else {
        push_token(r, token);
        if (!r->stop_reason && r->gen_n == r->o->max_tokens)
            r->stop_reason = "length";
    }
    return append(r, token, err);
}

static mica_status run(reply *r, mica_error *err)
{
    /* The first compute, if any, is still prefill; the loop's own steps are decode and must not count as such. */
    mica_status status = mica_session_compute(r->s, err);
    int64_t prefill_ns = r->s->prefill_ns;
    int32_t prefill_n = r->s->prefill_n;
    if (!status && r->o->max_tokens == 0)
        r->stop_reason = "length";
    while (!status && !r->stop_reason)
        status = one_token(r, err);
    r->s->prefill_ns = prefill_ns;
    r->s->prefill_n = prefill_n;
    if (status == MICA_CANCELLED)
        r->stop_reason = "cancelled";
    else if (status && !r->stop_reason)
        r->stop_reason = "error";
    flush_text(r);
    if (!status && strcmp(r->stop_reason, "cancelled") == 0)
        status = mica_fail(err, MICA_CANCELLED, "a callback stopped the reply after %d tokens", r->gen_n);
    return status;
}

/* ---- figures ---- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Linear interpolation between the closest ranks of sorted[0..n), in ms. */
static double percentile_ms(const int64_t *sorted, int32_t n, double p)
{
    if (n == 0)
        return 0.0;
    double rank = p * (n - 1);
    int32_t low = (int32_t)rank, high = low + 1 < n ? low + 1 : low;
    double a = (double)sorted[low], b = (double)sorted[high];
    return (a + (b - a) * (rank - low)) / 1e6;
}

static void fill_result(const reply *r, int32_t prompt_n, mica_result *out)
{
    mica_session *s = r->s;
    int32_t n = r->n_itl < s->options.n_ctx ? r->n_itl : s->options.n_ctx;
    double decode_ns = (double)(r->last_ns - r->first_ns), prefill_s = (double)s->prefill_ns / 1e9;
    memcpy(s->sorted, s->itl_ns, (size_t)n * sizeof *s->sorted);
    qsort(s->sorted, (size_t)n, sizeof *s->sorted, compare_i64);
    *out = (mica_result){
        .stop_reason = r->stop_reason, .prompt_n = prompt_n, .cached_n = s->cached_n, .gen_n = r->gen_n, .dropped_n = s->dropped_n,
        .needed_n = strcmp(r->stop_reason, "context") == 0 ? s->n_tokens + 1 : 0, .load_ms = s->model->load_ms,
        .ttft_ms = r->gen_n > 0 && s->request_ns ? (double)(r->first_ns - s->request_ns) / 1e6 : 0.0,
        .tpot_ms = r->gen_n > 1 ? decode_ns / 1e6 / (r->gen_n - 1) : 0.0, .tpot_p50_ms = percentile_ms(s->sorted, n, 0.5),
        .tpot_p95_ms = percentile_ms(s->sorted, n, 0.95), .prefill_ms = prefill_s * 1e3,
        .prefill_tps = prefill_s > 0.0 ? s->prefill_n / prefill_s : 0.0,
        .decode_tps = decode_ns > 0.0 ? (r->gen_n - 1) / (decode_ns / 1e9) : 0.0,
        .peak_rss_bytes = mica_memory_peak_rss(s->options.sysroot), .seed = r->seed, .kernels = s->model->kernels.name,
        .n_threads = s->threads.n_threads};
}

mica_status mica_session_generate(mica_session *s, const mica_generate_options *options, mica_result *result, mica_error *err)
{
    mica_generate_options defaults = mica_generate_options_default();
    reply r = {.s = s, .o = options ? options : &defaults, .stop_reason = NULL};
    mica_status status = check_options(s, r.o, err);
    if (!status)
        status = mica_sampler_start(s->sampler, &r.o->sampling, &r.seed, err);
    if (!status)
        status = mica_stop_start(s->stop, r.o->stop, r.o->n_stop, err);
    if (!s->request_ns)
        s->request_ns = mica_now_ns();
    int32_t prompt_n = s->n_tokens;
    if (status)
        r.stop_reason = "error";
    else
        status = run(&r, err);
    if (result)
        fill_result(&r, prompt_n, result);
    s->request_ns = 0;
    s->prefill_ns = 0;
    s->prefill_n = s->cached_n = s->dropped_n = 0;
    return status;
}
