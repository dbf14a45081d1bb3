/* embed.c - a text as one vector: the states after the last norm, pooled. */
#include "session/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- memory ---- */

void mica_embedder_free(mica_embedder *m)
{
    if (!m)
        return;
    free(m->sum);
    free(m->prefix_sum);
    free(m->prefix);
    free(m);
}

static mica_status make_embedder(mica_session *s, mica_error *err)
{
    size_t n_embd = (size_t)s->model->weights.h.n_embd, n_ctx = (size_t)s->options.n_ctx;
    mica_embedder *m = mica_new_array(1, sizeof *m);
    if (m) {
        m->sum = mica_new_array(n_embd, sizeof *m->sum);
        m->prefix_sum = mica_new_array(n_embd, sizeof *m->prefix_sum);
        m->prefix = mica_new_array(n_ctx, sizeof *m->prefix);
    }
    if (!m || !m->sum || !m->prefix_sum || !m->prefix) {
        mica_embedder_free(m);
        return mica_fail_nomem(err, 2 * n_embd * sizeof *m->sum + n_ctx * sizeof *m->prefix, "an embedding");
    }
    s->embedder = m;
    return MICA_OK;
}

/* ---- where to begin ---- */

static bool knows_prefix(const mica_embedder *m, const mica_session *s)
{
    return m->prefix_n > 0 && m->prefix_n <= s->n_computed &&
           memcmp(m->prefix, s->tokens, (size_t)m->prefix_n * sizeof *m->prefix) == 0;
}

/* Goes back to where the sum is known. Returns the position at which it is to be kept for later texts, where it is not kept
 * already; -1: nowhere. Words that two texts share by chance are not worth another prefix, so it grows by doubling only. */
static int32_t begin_mean(mica_session *s)
{
    mica_embedder *m = s->embedder;
    size_t bytes = (size_t)s->model->weights.h.n_embd * sizeof *m->sum;
    int32_t common = s->n_computed;
    bool known = knows_prefix(m, s) && mica_kv_can_resume(&s->kv, m->prefix_n);
    s->n_computed = known ? m->prefix_n : 0;
    if (known)
        memcpy(m->sum, m->prefix_sum, bytes);
    else
        memset(m->sum, 0, bytes);
    return common >= 2 * s->n_computed && common > 0 ? common : -1;
}

/* ---- computing ---- */

static void add_states(mica_session *s, const float *states, int32_t n, int32_t keep_at)
{
    mica_embedder *m = s->embedder;
    int32_t n_embd = s->model->weights.h.n_embd;
    for (int32_t t = 0; t < n; t++, states += n_embd) {
        if (s->n_computed + t == keep_at) {
            memcpy(m->prefix_sum, m->sum, (size_t)n_embd * sizeof *m->sum);
            memcpy(m->prefix, s->tokens, (size_t)keep_at * sizeof *m->prefix);
            m->prefix_n = keep_at;
        }
        for (int32_t i = 0; i < n_embd; i++)
            m->sum[i] += (double)states[i];
    }
}

static void take_last(mica_session *s, const float *states, int32_t n)
{
    int32_t n_embd = s->model->weights.h.n_embd;
    states += (int64_t)(n - 1) * n_embd;
    for (int32_t i = 0; i < n_embd; i++)
        s->embedder->sum[i] = (double)states[i];
}

/* Computes the rest of the history; leaves in the embedder's sum the states of all tokens, or the last one's alone. */
static mica_status compute(mica_session *s, mica_pooling pooling, mica_error *err)
{
    int32_t chunk = s->options.prefill_chunk;
    int32_t keep_at = pooling == MICA_POOLING_MEAN ? begin_mean(s) : -1, start = s->n_computed, total = s->n_tokens - start;
    mica_status status = MICA_OK;
    while (s->n_computed < s->n_tokens && !(status = mica_session_interrupted(s, s->n_computed - start, total, err))) {
        int32_t n = s->n_tokens - s->n_computed < chunk ? s->n_tokens - s->n_computed : chunk;
        mica_span span = {&s->kv, s->tokens + s->n_computed, n, s->n_computed, 0};
        const float *states = mica_forward_states(&s->exec, &span, 1);
        if (pooling == MICA_POOLING_MEAN)
            add_states(s, states, n, keep_at);
        else
            take_last(s, states, n);
        s->n_computed += n;
    }
    if (!status && s->options.on_prefill)
        s->options.on_prefill(s->options.user, total, total);
    return status;
}

/* ---- the vector ---- */

static mica_status check_finite(const double *sum, int32_t n, mica_error *err)
{
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(sum[i]))
            return mica_fail(err, MICA_NON_FINITE,
                             "the embedding is not finite at element %d: the model gives NaN or infinite states", i);
    return MICA_OK;
}

static void pool(const double *sum, int32_t n, double count, bool normalise, float *out)
{
    double squares = 0.0;
    for (int32_t i = 0; i < n; i++) {
        out[i] = (float)(sum[i] / count);
        squares += (double)out[i] * (double)out[i];
    }
    double length = sqrt(squares);
    for (int32_t i = 0; normalise && length > 0.0 && i < n; i++)
        out[i] = (float)((double)out[i] / length);
}

static mica_status check_request(const mica_session *s, const int32_t *tokens, size_t n, mica_pooling pooling, mica_error *err)
{
    if (s->batch)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "this session belongs to a batch: embeddings need one of their own, from mica_session_new()");
    if (pooling != MICA_POOLING_MEAN && pooling != MICA_POOLING_LAST)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "pooling is %d; it must be MICA_POOLING_MEAN or MICA_POOLING_LAST",
                         (int)pooling);
    if (n > (size_t)s->options.n_ctx)
        return mica_fail(err, MICA_CONTEXT_FULL, "a text of %zu tokens does not fit the context of %d", n, s->options.n_ctx);
    return mica_session_check_tokens(s, tokens, n, err);
}

mica_status mica_session_embed(mica_session *s, const int32_t *tokens, size_t n, mica_pooling pooling, bool normalise,
                               float *out, mica_error *err)
{
    int32_t n_embd = s->model->weights.h.n_embd;
    mica_status status = check_request(s, tokens, n, pooling, err);
    if (!status && !s->embedder)
        status = make_embedder(s, err);
    if (status)
        return status;
    atomic_store(&s->cancelled, false);
    mica_session_adopt(s, tokens, (int32_t)n);
    s->logits_valid = false;
    s->reply.gen_n = 0; /* what is computed from now on is prompt */
    if (s->n_computed == s->n_tokens)
        s->n_computed--; /* its state is wanted */
    mica_session_settle(s);
    status = compute(s, pooling, err);
    if (!status)
        status = check_finite(s->embedder->sum, n_embd, err);
    if (!status)
        pool(s->embedder->sum, n_embd, pooling == MICA_POOLING_MEAN ? (double)n : 1.0, normalise, out);
    return status;
}
