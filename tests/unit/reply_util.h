/* reply_util.h - requests and records of their replies, for the tests that compare ways to generate: alone, in a batch, with
 * speculation. */
#ifndef MICA_TESTS_REPLY_UTIL_H
#define MICA_TESTS_REPLY_UTIL_H
#include <math.h>
#include <unistd.h>

#include "model_util.h"
#include "session/session.h"

#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

enum { REPLY_TOKENS = 512, REPLY_TEXT = 8192, TOP = 20 };

/* All that a reply says. */
typedef struct record {
    int32_t tokens[REPLY_TOKENS];
    char text[REPLY_TEXT];
    size_t length;
    int32_t n_tokens;
    uint64_t logprobs; /* hash of those of all tokens, bit by bit */
    uint64_t cache;    /* hash of keys and values of the history's computed part */
    mica_status status;
    mica_result result;
    char reason[16], message[512];
    bool done;
    int32_t cancel_at; /* > 0: on_token cancels the session at that token */
    int32_t veto_at;   /* > 0: on_token returns non-zero at that token */
    mica_session *session;
} record;

static inline int record_text(void *user, const char *text, size_t n)
{
    record *r = user;
    assert_true(r->length + n < sizeof r->text);
    memcpy(r->text + r->length, text, n);
    r->length += n;
    return 0;
}

static inline int record_token(void *user, const mica_token_event *e)
{
    record *r = user;
    assert_int_equal(e->index, r->n_tokens);
    assert_true(r->n_tokens < REPLY_TOKENS);
    r->tokens[r->n_tokens++] = e->token;
    r->logprobs = hash_bytes(r->logprobs, &e->logprob, sizeof e->logprob);
    r->logprobs = hash_bytes(r->logprobs, e->top_tokens, (size_t)e->n_top * sizeof *e->top_tokens);
    r->logprobs = hash_bytes(r->logprobs, e->top_logprobs, (size_t)e->n_top * sizeof *e->top_logprobs);
    if (r->cancel_at == r->n_tokens)
        mica_session_cancel(r->session);
    return r->veto_at == r->n_tokens;
}

/* Keys and values of positions [0, n) of every head, of windowed layers those that a token at n sees. */
static inline uint64_t cache_hash(const mica_session *s, int32_t n)
{
    uint64_t h = 0xCBF29CE484222325ull;
    const mica_hparams *p = &s->model->weights.h;
    int32_t first = n > p->window ? n - p->window + 1 : 0;
    for (int32_t layer = 0; layer < p->n_layers; layer++) {
        for (int32_t head = 0; head < p->n_kv_heads; head++) {
            mica_kv_range range;
            for (int32_t pos = mica_kv_first(p, layer, first); pos < n; pos += range.n) {
                range = mica_kv_head(&s->kv, layer, head, pos, 1); /* pieces of another size lie elsewhere */
                h = hash_bytes(h, range.k, range.k_bytes);
                h = hash_bytes(h, range.v, range.v_bytes);
            }
        }
    }
    return h;
}

static inline void record_end(record *r, const mica_session *s, mica_status status, const mica_result *result,
                              const char *message)
{
    r->status = status;
    r->result = *result;
    snprintf(r->reason, sizeof r->reason, "%s", result->stop_reason);
    snprintf(r->message, sizeof r->message, "%s", status ? message : "");
    r->cache = cache_hash(s, s->n_computed < s->n_tokens ? s->n_computed : s->n_tokens - 1); /* the last one may not be in it */
    r->done = true;
}

static inline void record_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    record *r = user;
    assert_false(r->done);
    record_end(r, r->session, status, result, error ? error->message : "");
}

/* A prompt and how to answer it. */
typedef struct request {
    int32_t prompt[400];
    size_t n;
    mica_generate_options o;
} request;

static inline void start_record(record *r, mica_session *s)
{
    int32_t cancel_at = r->cancel_at, veto_at = r->veto_at;
    memset(r, 0, sizeof *r);
    r->session = s;
    r->cancel_at = cancel_at;
    r->veto_at = veto_at;
}

static inline mica_generate_options recorded(const request *q, record *r)
{
    mica_generate_options o = q->o;
    o.top_logprobs = TOP;
    o.on_text = record_text;
    o.on_token = record_token;
    o.on_done = record_done;
    o.user = r;
    return o;
}

/* Runs the request on a session of its own kind, alone. */
static inline void run_alone(mica_session *s, const request *q, record *r)
{
    mica_error err = {.message = ""};
    mica_result result = {.stop_reason = "none"};
    start_record(r, s);
    mica_generate_options o = recorded(q, r);
    mica_status status = mica_session_sync(s, q->prompt, q->n, &err);
    if (!status)
        status = mica_session_generate(s, &o, &result, &err);
    record_end(r, s, status, &result, err.message);
}

static inline void expect_same(const record *a, const record *b, const char *what)
{
    if (a->n_tokens != b->n_tokens || memcmp(a->tokens, b->tokens, (size_t)a->n_tokens * sizeof *a->tokens) != 0)
        fail_msg("%s: other tokens (%d and %d of them)", what, a->n_tokens, b->n_tokens);
    if (a->length != b->length || memcmp(a->text, b->text, a->length) != 0)
        fail_msg("%s: other text", what);
    if (a->logprobs != b->logprobs)
        fail_msg("%s: other log-probabilities", what);
    if (a->cache != b->cache)
        fail_msg("%s: another KV cache", what);
    if (a->status != b->status || strcmp(a->reason, b->reason) != 0)
        fail_msg("%s: ends with %s (%s), not %s (%s)", what, mica_status_name(b->status), b->reason,
                 mica_status_name(a->status), a->reason);
    if (a->result.prompt_n != b->result.prompt_n || a->result.gen_n != b->result.gen_n ||
        a->result.dropped_n != b->result.dropped_n || a->result.needed_n != b->result.needed_n ||
        a->result.seed != b->result.seed)
        fail_msg("%s: other counts in the result", what);
}

/* Request number i of a fixed variety: lengths, samplers, limits, stops. */
static inline request make_request(int i)
{
    static const char *const stops[] = {"e", "th"};
    request q = {.n = (size_t)(1 + (i * 37) % 90), .o = mica_generate_options_default()};
    for (size_t j = 0; j < q.n; j++) /* the first tokens are common to all */
        q.prompt[j] = j < 8 ? 10 + (int32_t)j : 3 + (int32_t)((j * 7919 + j * j * 31 + (size_t)i * 1009) % 280);
    q.o.max_tokens = 5 + (i * 11) % 30;
    q.o.ignore_eos = i % 4 == 0;
    q.o.sampling.seed = 1000 + i;
    q.o.sampling.temperature = i % 3 == 0 ? 0.0f : 0.7f + 0.1f * (float)(i % 5);
    q.o.sampling.repeat_penalty = i % 2 ? 1.1f : 1.0f;
    q.o.sampling.dry_multiplier = i % 5 == 2 ? 0.5f : 0.0f;
    q.o.stop = stops;
    q.o.n_stop = i % 7 == 3 ? 2 : 0;
    return q;
}

/* The scripted model's tokens of a text, one a letter. */
static inline request scripted_request(mica_model *m, const char *text)
{
    request q = {.o = mica_generate_options_default()};
    int32_t *tokens;
    mica_error err;
    if (mica_model_tokenize(m, text, strlen(text), 0, &tokens, &q.n, &err))
        fail_msg("%s", err.message);
    memcpy(q.prompt, tokens, q.n * sizeof *tokens);
    mica_free(tokens);
    q.o.sampling.temperature = 0.0f;
    q.o.sampling.seed = 1;
    return q;
}

/* A copy of the scripted model in which the token `piece` has a NaN embedding. */
static inline mica_model *poisoned(const char *piece, char path[])
{
    size_t n;
    mica_error err;
    mica_gguf *g;
    char *bytes = load_bytes(SCRIPTED, &n);
    mica_model *model = open_model(SCRIPTED, NULL);
    int32_t token = mica_vocab_find(model->vocab, piece, strlen(piece));
    mica_model_close(model);
    assert_int_equal(mica_gguf_open_memory(bytes, n, "scripted.gguf", &g, &err), MICA_OK);
    const mica_gguf_tensor *t = mica_gguf_tensor_at(g, 0);
    assert_int_equal(t->name.length, strlen("token_embd.weight"));
    float nan = NAN;
    char *row = bytes + (t->data - (const uint8_t *)bytes) + (size_t)token * (size_t)t->dims[0] * sizeof nan;
    memcpy(row, &nan, sizeof nan);
    mica_gguf_close(g);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    free(bytes);
    return open_model(path, NULL);
}

#endif
