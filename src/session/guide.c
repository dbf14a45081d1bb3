/* guide.c - masks and progress; guide_run.c has what is decided without a choice. */
#include "session/guide.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "session/engine.h"

/* ---- making ---- */

static void note_token(mica_guide *g, int32_t id)
{
    char byte;
    size_t n = mica_vocab_bytes(g->vocab, id, false, &byte, 1);
    g->longest = n > g->longest ? n : g->longest;
    if (mica_vocab_ends_generation(g->vocab, id))
        g->ends[g->n_ends++] = id;
    else if (n == 1 && g->byte_tokens[(unsigned char)byte] < 0)
        g->byte_tokens[(unsigned char)byte] = id;
}

mica_status mica_guide_new(const mica_vocab *vocab, mica_guide **out, mica_error *err)
{
    mica_guide *g = mica_new_array(1, sizeof *g);
    int32_t n = mica_vocab_size(vocab), n_ends = 0;
    *out = g;
    if (!g)
        return mica_fail_nomem(err, sizeof *g, "a constrained reply");
    for (int32_t i = 0; i < n; i++)
        n_ends += mica_vocab_ends_generation(vocab, i);
    g->vocab = vocab;
    g->n_words = MICA_MASK_WORDS(n);
    g->mask = mica_new_array(g->n_words, sizeof *g->mask);
    g->ends = mica_new_array((size_t)n_ends, sizeof *g->ends);
    if (!g->mask || !g->ends) {
        mica_guide_free(g);
        *out = NULL;
        return mica_fail_nomem(err, g->n_words * 4, "a constrained reply");
    }
    memset(g->byte_tokens, -1, sizeof g->byte_tokens);
    for (int32_t i = 0; i < n; i++)
        note_token(g, i);
    g->has_bytes = true;
    for (int b = 0; b < 256; b++)
        g->has_bytes = g->has_bytes && g->byte_tokens[b] >= 0;
    return MICA_OK;
}

void mica_guide_end(mica_guide *g)
{
    if (!g)
        return;
    mica_matcher_free(g->matcher);
    mica_matcher_free(g->trial);
    g->matcher = g->trial = NULL;
    g->constraint = NULL;
    g->n_healing = 0;
    g->queue.n = g->queue_at = 0;
}

void mica_guide_free(mica_guide *g)
{
    if (!g)
        return;
    mica_guide_end(g);
    free(g->queue.ids);
    free(g->scratch.ids);
    free(g->mask);
    free(g->ends);
    free(g);
}

mica_status mica_guide_start(mica_guide *g, const mica_guide_request *q, mica_error *err)
{
    mica_status status = MICA_OK;
    mica_guide_end(g);
    g->constraint = q->constraint;
    g->stop_tokens = q->stop_tokens;
    g->n_stop_tokens = q->n_stop_tokens;
    g->ignore_eos = q->ignore_eos;
    g->may_close = q->may_close && q->constraint;
    g->closing = false;
    g->forced_n = 0;
    if (q->healed >= 0)
        g->n_healing = mica_vocab_bytes(g->vocab, q->healed, false, g->healing, sizeof g->healing);
    if (g->n_healing > sizeof g->healing) /* nothing was written: too long to be healed */
        g->n_healing = 0;
    if (g->constraint)
        status = mica_matcher_new(g->constraint->automaton, &g->matcher, err);
    if (!status && g->constraint)
        status = mica_matcher_new(g->constraint->automaton, &g->trial, err);
    return status || !g->may_close ? status : mica_guide_check_room(g, q->room, err);
}

/* ---- where the text stands ---- */

bool mica_guide_restricts(const mica_guide *g) { return g->constraint || g->n_healing > 0; }

bool mica_guide_may_end(const mica_guide *g)
{
    return g->n_healing == 0 && g->constraint && !mica_guide_queued(g) && mica_matcher_may_end(g->matcher);
}

bool mica_guide_is_over(const mica_guide *g)
{
    if (g->n_healing > 0 || !g->constraint || mica_guide_queued(g))
        return false;
    return g->closing || mica_matcher_must_end(g->matcher);
}

mica_status mica_guide_accept(mica_guide *g, int32_t token, mica_error *err)
{
    size_t n = mica_vocab_bytes(g->vocab, token, false, g->piece, sizeof g->piece), taken = 0;
    size_t healed = n < g->n_healing ? n : g->n_healing;
    if (mica_guide_queued(g) && g->queue.ids[g->queue_at] == token) {
        g->queue_at++;
        g->forced_n++;
    }
    memmove(g->healing, g->healing + healed, g->n_healing - healed);
    g->n_healing -= healed;
    if (!g->constraint || n <= healed)
        return MICA_OK;
    mica_status status = mica_matcher_push(g->matcher, g->piece + healed, n - healed, &taken, err);
    if (!status && taken != n - healed)
        status = mica_fail(err, MICA_INVALID_ARGUMENT, "token %d cannot follow under the constraint", token);
    return status;
}

/* ---- masks ---- */

static void set_bit(uint32_t *mask, int32_t token, bool value)
{
    uint32_t bit = 1u << token % 32;
    mask[token / 32] = value ? mask[token / 32] | bit : mask[token / 32] & ~bit;
}

/* Tokens that end the reply are possible where the text may end, and nowhere else: even if they have bytes that would fit. */
static void mark_ends(mica_guide *g, bool may_end)
{
    for (int32_t i = 0; i < g->n_ends && !g->ignore_eos; i++)
        set_bit(g->mask, g->ends[i], may_end);
    for (size_t i = 0; i < g->n_stop_tokens; i++)
        set_bit(g->mask, g->stop_tokens[i], may_end);
}

/* The first bytes that the constraint allows: most tokens that begin with the healed bytes need no closer look. */
static mica_status find_first_bytes(mica_guide *g, bool first[256], mica_error *err)
{
    for (int b = 0; b < 256; b++) {
        char byte = (char)b;
        size_t taken = 1;
        mica_status status = mica_matcher_copy(g->trial, g->matcher, err);
        if (!status)
            status = mica_matcher_push(g->trial, &byte, 1, &taken, err);
        if (status)
            return status;
        first[b] = taken == 1;
    }
    return MICA_OK;
}

/* Whether the text of a token goes on over the healed bytes, and beyond them as the constraint wants. */
static mica_status heals(mica_guide *g, size_t n, const bool first[256], bool *allowed, mica_error *err)
{
    size_t common = n < g->n_healing ? n : g->n_healing, rest = n - common, taken = rest;
    mica_status status = MICA_OK;
    *allowed = n > 0 && memcmp(g->piece, g->healing, common) == 0;
    if (!*allowed || rest == 0 || !g->constraint)
        return MICA_OK;
    *allowed = first[(unsigned char)g->piece[common]];
    if (*allowed && !(status = mica_matcher_copy(g->trial, g->matcher, err)))
        status = mica_matcher_push(g->trial, g->piece + common, rest, &taken, err);
    *allowed = *allowed && taken == rest;
    return status;
}

/* The whole vocabulary is looked at, in milliseconds, as this happens at the start of a reply only. */
static mica_status fill_healing(mica_guide *g, mica_error *err)
{
    bool first[256];
    mica_status status = g->constraint ? find_first_bytes(g, first, err) : MICA_OK;
    memset(g->mask, 0, g->n_words * sizeof *g->mask);
    for (int32_t i = 0; i < mica_vocab_size(g->vocab) && !status; i++) {
        bool allowed = false;
        size_t n = mica_vocab_bytes(g->vocab, i, false, g->piece, sizeof g->piece);
        if (n <= sizeof g->piece)
            status = heals(g, n, first, &allowed, err);
        if (allowed)
            set_bit(g->mask, i, true);
    }
    return status;
}

mica_status mica_guide_mask(mica_guide *g, const uint32_t **mask, mica_error *err)
{
    *mask = g->mask;
    mica_status status = g->n_healing > 0 ? fill_healing(g, err)
                                          : mica_masks_fill(g->constraint->masks, g->matcher, g->mask, NULL, err);
    if (!status)
        mark_ends(g, mica_guide_may_end(g));
    return status;
}

/* ---- drafts ---- */

static bool is_end(const mica_guide *g, int32_t token)
{
    for (size_t i = 0; i < g->n_stop_tokens; i++)
        if (g->stop_tokens[i] == token)
            return true;
    return !g->ignore_eos && mica_vocab_ends_generation(g->vocab, token);
}

int32_t mica_guide_trim(mica_guide *g, const int32_t *tokens, int32_t n)
{
    if (g->n_healing > 0 || (g->constraint && mica_matcher_copy(g->trial, g->matcher, NULL)))
        return 0;
    for (int32_t i = 0; i < n && g->constraint; i++) {
        size_t bytes = mica_vocab_bytes(g->vocab, tokens[i], false, g->piece, sizeof g->piece), taken = 0;
        if (is_end(g, tokens[i]))
            return mica_matcher_may_end(g->trial) ? i + 1 : i;
        if (bytes == 0 || bytes > sizeof g->piece)
            return i;
        if (mica_matcher_push(g->trial, g->piece, bytes, &taken, NULL) || taken < bytes)
            return i;
    }
    return n;
}
