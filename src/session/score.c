/* score.c - the logits of many positions: for perplexity and tests. */
#include <sys/mman.h>

#include "base/mem.h"
#include "session/session.h"

#define SCORE_ROWS 32 /* positions whose logits are computed together */

/* The positions before the first whose logits are wanted. */
static mica_status compute_prefix(mica_session *s, int32_t first, mica_error *err)
{
    mica_status status = MICA_OK;
    while (s->n_computed < first && !(status = mica_session_interrupted(s, s->n_computed, s->n_tokens, err))) {
        int32_t n = first - s->n_computed < s->exec.chunk ? first - s->n_computed : s->exec.chunk;
        mica_span span = {&s->kv, s->tokens + s->n_computed, n, s->n_computed, 0};
        mica_forward(&s->exec, &span, 1);
        s->n_computed += n;
    }
    return status;
}

/* Hands out the logits of positions [from, from + n). */
static mica_status score_rows(mica_session *s, mica_exec *e, int32_t from, int32_t n,
                              int (*on_logits)(void *user, size_t position, const float *logits), void *user, mica_error *err)
{
    mica_span span = {&s->kv, s->tokens + from, n, from, n};
    mica_forward(e, &span, 1);
    s->n_computed = from + n;
    for (int32_t i = 0; i < n; i++)
        if (on_logits(user, (size_t)(from + i), e->logits + (size_t)i * (size_t)s->model->weights.h.n_vocab))
            return mica_fail(err, MICA_CANCELLED, "scoring was stopped at position %d", from + i);
    return MICA_OK;
}

/* The rest of the history. */
static mica_status score_rest(mica_session *s, mica_exec *e,
                              int (*on_logits)(void *user, size_t position, const float *logits), void *user, mica_error *err)
{
    mica_status status = MICA_OK;
    while (!status && s->n_computed < s->n_tokens) {
        int32_t left = s->n_tokens - s->n_computed;
        status = mica_session_interrupted(s, s->n_computed, s->n_tokens, err);
        if (!status)
            status = score_rows(s, e, s->n_computed, left < SCORE_ROWS ? left : SCORE_ROWS, on_logits, user, err);
    }
    if (!status && s->options.on_prefill)
        s->options.on_prefill(s->options.user, s->n_tokens, s->n_tokens);
    return status;
}

mica_status mica_session_score(mica_session *s, const int32_t *tokens, size_t n, size_t first,
                               int (*on_logits)(void *user, size_t position, const float *logits), void *user, mica_error *err)
{
    if (s->batch)
        return mica_session_in_batch(err);
    if (n == 0 || n > (size_t)s->options.n_ctx || first >= n)
        return mica_fail(err, n ? MICA_CONTEXT_FULL : MICA_INVALID_ARGUMENT,
                         "%zu tokens scored from position %zu do not fit a context of %d", n, first, s->options.n_ctx);
    mica_status status = mica_session_check_tokens(s, tokens, n, err);
    if (status)
        return status;

    size_t bytes = mica_exec_bytes(&s->model->weights, SCORE_ROWS, SCORE_ROWS, 0);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return mica_fail_nomem(err, bytes, "the logits of a scored text");
    mica_exec e = {.w = s->exec.w, .kern = s->exec.kern, .pool = s->pool, .chunk = SCORE_ROWS, .logits_max = SCORE_ROWS};
    mica_exec_layout(&e, memory, 0, s->options.n_ctx);
    e.own = s->exec.own;

    atomic_store(&s->cancelled, false);
    for (size_t i = 0; i < n; i++)
        s->tokens[i] = tokens[i];
    s->n_tokens = (int32_t)n;
    s->n_computed = 0;
    s->logits_valid = false;
    s->reply.gen_n = 0; /* what is computed from now on is prompt */
    status = compute_prefix(s, (int32_t)first, err);
    if (!status)
        status = score_rest(s, &e, on_logits, user, err);
    munmap(memory, bytes);
    return status;
}
