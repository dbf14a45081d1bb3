/* sampler.c - the sampler: owns the memory of all stages, runs them in order. Called by session/generate.
 *
 * Invariants
 *  1. One block of memory, laid out by lay_out(); nothing is allocated after mica_sampler_new().
 *  2. `mark` is all zero between calls.
 *  3. A pick with a temperature takes exactly one number from the generator, a greedy one none: the n-th draw of a reply
 *     depends on the seed and n only, not on what the filters left.
 */
#include "text/sampler_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

/* Below, a difference of one unit in the last place of an ordinary logit (10, say) decides everything: greedy, and the
 * inverse stays harmless. */
#define COLDEST 1e-6f

struct mica_sampler {
    int32_t n_vocab;
    size_t n_ctx;
    mica_sampling options;
    mica_rng rng;
    mica_weights weights;
    mica_logit_bias *bias; /* [MICA_SAMPLER_MAX_BIAS] */
    double *block_mass;    /* [blocks] */
    mica_cand *cands;      /* [n_vocab] */
    float *edited;         /* [n_vocab] logits after bias and penalties; with a mask those that it allows, packed */
    int32_t *mark;         /* [n_vocab] */
    int32_t *block_max;    /* [blocks] */
    int32_t *z;            /* [n_ctx] */
};

/* ---- Memory ---------------------------------------------------------------------------------------------------------- */

/* Places an array of count * size bytes behind *offset; false on overflow. */
static bool place(size_t *offset, size_t count, size_t size, size_t *at)
{
    size_t bytes, end;
    if (!mica_mul_size(count, size, &bytes) || !mica_add_size(*offset, bytes, &end) || end > SIZE_MAX - 64)
        return false;
    *at = *offset;
    *offset = mica_round_up(end, 64); /* a cache line: arrays do not share one */
    return true;
}

typedef struct layout {
    size_t bias, block_mass, cands, edited, mark, block_max, z, total;
} layout;

static bool lay_out(int32_t n_vocab, int32_t n_ctx, layout *l)
{
    if (n_vocab < 1 || n_ctx < 0)
        return false;
    size_t n = (size_t)n_vocab, blocks = (n + MICA_BLOCK - 1) / MICA_BLOCK;
    l->total = mica_round_up(sizeof(mica_sampler), 64);
    return place(&l->total, MICA_SAMPLER_MAX_BIAS, sizeof(mica_logit_bias), &l->bias) &&
           place(&l->total, blocks, sizeof(double), &l->block_mass) && place(&l->total, n, sizeof(mica_cand), &l->cands) &&
           place(&l->total, n, sizeof(float), &l->edited) && place(&l->total, n, sizeof(int32_t), &l->mark) &&
           place(&l->total, blocks, sizeof(int32_t), &l->block_max) &&
           place(&l->total, (size_t)n_ctx, sizeof(int32_t), &l->z);
}

size_t mica_sampler_bytes(int32_t n_vocab, int32_t n_ctx)
{
    layout l;
    return lay_out(n_vocab, n_ctx, &l) ? l.total : 0;
}

mica_status mica_sampler_new(int32_t n_vocab, int32_t n_ctx, mica_sampler **out, mica_error *err)
{
    layout l;
    *out = NULL;
    if (!lay_out(n_vocab, n_ctx, &l))
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "cannot make a sampler for %" PRId32 " tokens and a context of %" PRId32
                         ": the vocabulary must have at least 1 token and the context at least 0",
                         n_vocab, n_ctx);
    char *base = mica_new_array(1, l.total);
    if (!base)
        return mica_fail_nomem(err, l.total, "the sampler");
    mica_sampler *s = (mica_sampler *)(void *)base;
    s->n_vocab = n_vocab;
    s->n_ctx = (size_t)n_ctx;
    s->bias = (mica_logit_bias *)(void *)(base + l.bias);
    s->block_mass = (double *)(void *)(base + l.block_mass);
    s->cands = (mica_cand *)(void *)(base + l.cands);
    s->edited = (float *)(void *)(base + l.edited);
    s->mark = (int32_t *)(void *)(base + l.mark);
    s->block_max = (int32_t *)(void *)(base + l.block_max);
    s->z = (int32_t *)(void *)(base + l.z);
    s->options = (mica_sampling){.top_p = 1.0f, .typical_p = 1.0f, .repeat_penalty = 1.0f, .dry_base = 1.0f}; /* greedy */
    mica_weights_init(&s->weights);
    *out = s;
    return MICA_OK;
}

void mica_sampler_free(mica_sampler *s) { free(s); }

/* ---- Start ----------------------------------------------------------------------------------------------------------- */

mica_status mica_sampler_start(mica_sampler *s, const mica_sampling *options, int64_t *seed, mica_error *err)
{
    mica_status status = mica_sampling_check(options, s->n_vocab, err);
    if (status != MICA_OK)
        return status;
    int64_t used = options->seed;
    if (used == -1 && !mica_rng_fresh_seed(&used))
        return mica_fail(err, MICA_IO_ERROR, "the system has no random numbers to give: set seed to a number of at least 0");
    s->options = *options;
    s->options.logit_bias = s->bias;
    if (options->n_logit_bias > 0)
        memcpy(s->bias, options->logit_bias, options->n_logit_bias * sizeof *s->bias);
    mica_rng_seed(&s->rng, (uint64_t)used);
    if (seed)
        *seed = used;
    return MICA_OK;
}

/* ---- Edits ----------------------------------------------------------------------------------------------------------- */

static bool penalises(const mica_sampling *o)
{
    return o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f || o->presence_penalty != 0.0f;
}

static size_t mask_words(const mica_sampler *s) { return ((size_t)s->n_vocab + 31) / 32; }

/* How many of the last tokens any stage will read. */
static size_t history_needed(const mica_sampling *o, size_t n)
{
    size_t penalties = penalises(o) ? mica_window(o->penalty_last_n, n) : 0;
    size_t dry = o->dry_multiplier > 0.0f ? mica_window(o->dry_last_n, n) : 0;
    return penalties > dry ? penalties : dry;
}

/* The logits to be edited: all of them, or those of the mask and those that the edits touch. */
static void copy_logits(mica_sampler *s, const float *logits, const uint32_t *mask, const int32_t *history, size_t n)
{
    if (!mask) {
        memcpy(s->edited, logits, (size_t)s->n_vocab * sizeof *logits);
        return;
    }
    for (size_t w = 0; w < mask_words(s); w++)
        for (uint32_t left = mask[w]; left; left &= left - 1) {
            size_t id = w * 32 + (size_t)__builtin_ctz(left);
            s->edited[id] = logits[id];
        }
    for (size_t i = 0; i < n; i++)
        s->edited[history[i]] = logits[history[i]];
    for (size_t i = 0; i < s->options.n_logit_bias; i++)
        s->edited[s->bias[i].token] = logits[s->bias[i].token];
}

static mica_status edit(mica_sampler *s, const float *logits, const uint32_t *mask, const int32_t *history, size_t n,
                        size_t needed, mica_error *err)
{
    const mica_sampling *o = &s->options;
    for (size_t i = n - needed; i < n; i++)
        if (history[i] < 0 || history[i] >= s->n_vocab)
            return mica_fail(err, MICA_INVALID_ARGUMENT,
                             "token %" PRId32 " at position %zu of the history is not in the vocabulary, [0, %" PRId32 "]",
                             history[i], i, s->n_vocab - 1);
    copy_logits(s, logits, mask, needed > 0 ? history + (n - needed) : history, needed);
    mica_bias_apply(o->logit_bias, o->n_logit_bias, s->edited);
    if (needed > 0 && penalises(o))
        mica_penalties_apply(o, history, n, s->mark, s->edited);
    if (needed > 0 && o->dry_multiplier > 0.0f)
        mica_dry_apply(o, history, n, s->mark, s->z, s->edited);
    return MICA_OK;
}

/* ---- Masks ----------------------------------------------------------------------------------------------------------- */

/* The allowed logits to the front of `edited`, in the order of their ids, so that all stages work on them as on a small
 * vocabulary and ties still go to the lowest id. `from` may be `edited` itself: none moves up. Returns their number. */
static size_t pack(mica_sampler *s, const float *from, const uint32_t *mask)
{
    size_t n = 0;
    for (size_t w = 0; w < mask_words(s); w++) {
        const float *x = from + w * 32;
        if (mask[w] == UINT32_MAX) { /* most of a vocabulary may stand inside a string */
            memmove(s->edited + n, x, 32 * sizeof *x);
            n += 32;
            continue;
        }
        for (uint32_t left = mask[w]; left; left &= left - 1)
            s->edited[n++] = x[__builtin_ctz(left)];
    }
    return n;
}

/* The id of packed logit number `index`. */
static int32_t unpack(const uint32_t *mask, int32_t index)
{
    size_t w = 0;
    for (int32_t count; (count = __builtin_popcount(mask[w])) <= index; w++)
        index -= count;
    uint32_t left = mask[w];
    while (index-- > 0)
        left &= left - 1;
    return (int32_t)(w * 32) + __builtin_ctz(left);
}

/* ---- Errors ---------------------------------------------------------------------------------------------------------- */

static bool is_masked(const uint32_t *mask, int32_t i) { return mask && !(mask[i / 32] >> i % 32 & 1); }

static mica_status fail_non_finite(const mica_sampler *s, const float *logits, const uint32_t *mask, mica_error *err)
{
    bool any_finite = false;
    for (int32_t i = 0; i < s->n_vocab; i++) {
        float x = logits[i];
        if (is_masked(mask, i))
            continue;
        if (x != x || x == INFINITY)
            return mica_fail(err, MICA_NON_FINITE,
                             "the model gave %g as the logit of token %" PRId32 ": it must be finite or -inf", (double)x, i);
        any_finite |= x != -INFINITY;
    }
    if (any_finite && mask)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "no token is left to choose: logit_bias bans every token that the constraint allows here; ban fewer");
    if (any_finite)
        return mica_fail(err, MICA_NON_FINITE,
                         "no token is left to choose: logit_bias bans every token that the model allows; ban fewer");
    if (mask)
        return mica_fail(err, MICA_NON_FINITE,
                         "no token is left to choose: the model gives -inf to all that the constraint allows here");
    return mica_fail(err, MICA_NON_FINITE, "no token is left to choose: all %" PRId32 " logits are -inf", s->n_vocab);
}

/* ---- Pick ------------------------------------------------------------------------------------------------------------ */

/* The stages in order, each if it is on; the first one makes the candidates from the whole vocabulary. 0: none is on. */
static size_t filter(mica_sampler *s, const mica_scan *scan)
{
    const mica_sampling *o = &s->options;
    const double top_p = (double)o->top_p, min_p = (double)o->min_p;
    size_t n = 0;
    if (o->top_k > 0 && o->top_k < s->n_vocab)
        n = mica_top_k(scan, (size_t)o->top_k, s->cands);
    if (o->typical_p < 1.0f) {
        if (n == 0)
            n = mica_mass_collect(scan, s->cands);
        n = mica_filter_typical(&s->weights, scan, (double)o->typical_p, s->cands, n);
    }
    if (o->top_p < 1.0f)
        n = n == 0 ? mica_mass_top_p(&s->weights, scan, top_p, s->cands)
                   : mica_filter_top_p(&s->weights, scan, top_p, s->cands, n);
    if (o->min_p > 0.0f)
        n = n == 0 ? mica_collect_min_p(scan, min_p, s->cands) : mica_filter_min_p(min_p, s->cands, n);
    return n;
}

static int32_t draw(mica_sampler *s, const mica_scan *scan)
{
    double u = mica_rng_unit(&s->rng), inverse_t = 1.0 / (double)s->options.temperature;
    size_t n = filter(s, scan);
    if (n > 0)
        return mica_draw(&s->weights, inverse_t, s->cands, n, u);
    double mass = mica_mass_total(&s->weights, scan, inverse_t, s->block_mass);
    return mica_mass_find(&s->weights, scan, inverse_t, s->block_mass, u * mass);
}

/* The history may be longer than the context that the scratch memory was sized for; then only its end counts. */
mica_status mica_sampler_pick_masked(mica_sampler *s, const float *logits, const uint32_t *mask, const int32_t *history,
                                     size_t n, int32_t *token, mica_error *err)
{
    const float *used = logits;
    size_t n_used = (size_t)s->n_vocab;
    if (n > s->n_ctx) {
        history += n - s->n_ctx;
        n = s->n_ctx;
    }
    size_t needed = history_needed(&s->options, n);
    if (needed > 0 || s->options.n_logit_bias > 0) {
        mica_status status = edit(s, logits, mask, history, n, needed, err);
        if (status != MICA_OK)
            return status;
        used = s->edited;
    }
    if (mask) {
        n_used = pack(s, used, mask);
        used = s->edited;
    }
    if (n_used == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "no token of this vocabulary continues the text as the constraint wants");
    mica_scan scan;
    if (!mica_scan_logits(used, n_used, s->block_max, &scan))
        return fail_non_finite(s, logits, mask, err);
    *token = s->options.temperature < COLDEST ? scan.best_id : draw(s, &scan);
    if (mask)
        *token = unpack(mask, *token);
    return MICA_OK;
}

mica_status mica_sampler_pick(mica_sampler *s, const float *logits, const int32_t *history, size_t n, int32_t *token,
                              mica_error *err)
{
    return mica_sampler_pick_masked(s, logits, NULL, history, n, token, err);
}

/* ---- Log-probabilities ----------------------------------------------------------------------------------------------- */

void mica_sampler_top_logprobs(mica_sampler *s, const float *logits, int32_t token, int32_t k, int32_t *tokens,
                               float *logprobs, float *token_logprob)
{
    mica_scan scan;
    bool usable = mica_scan_logits(logits, (size_t)s->n_vocab, s->block_max, &scan);
    size_t wanted = k < 0 ? 0 : k > s->n_vocab ? (size_t)s->n_vocab : (size_t)k;
    size_t n = usable ? mica_top_k(&scan, wanted, s->cands) : 0;
    double log_mass = usable ? mica_log(mica_mass_total(&s->weights, &scan, 1.0, s->block_mass)) : 0.0;
    for (int32_t i = 0; i < k; i++) {
        bool there = (size_t)i < n;
        tokens[i] = there ? s->cands[i].id : -1;
        logprobs[i] = there ? (float)((double)s->cands[i].key - (double)scan.best - log_mass) : -INFINITY;
    }
    if (token_logprob)
        *token_logprob = usable && token >= 0 && token < s->n_vocab
                             ? (float)((double)logits[token] - (double)scan.best - log_mass)
                             : -INFINITY;
}
