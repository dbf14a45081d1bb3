/* guide_run.c - what a reply says without a choice: forced runs of the constraint, and the completion that a close keeps
 * room for. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "session/guide.h"
#include "text/utf8.h"

/* ---- text to tokens ---- */

static mica_status push(mica_guide_list *list, int32_t id, mica_error *err)
{
    if (list->n == list->room) {
        int32_t room = list->room * 2 + 64, *ids = realloc(list->ids, (size_t)room * sizeof *ids);
        if (!ids)
            return mica_fail_nomem(err, (size_t)room * sizeof *ids, "the tokens of a forced text");
        list->ids = ids;
        list->room = room;
    }
    list->ids[list->n++] = id;
    return MICA_OK;
}

/* Each byte as a token of its own; *done false: one has none. */
static mica_status push_bytes(mica_guide *g, const char *text, size_t n, mica_guide_list *list, bool *done, mica_error *err)
{
    mica_status status = MICA_OK;
    *done = true;
    for (size_t i = 0; i < n && *done && !status; i++) {
        int32_t id = g->byte_tokens[(unsigned char)text[i]];
        *done = id >= 0;
        status = *done ? push(list, id, err) : MICA_OK;
    }
    return status;
}

/* Whether tokens[0..n) spell exactly the text: a vocabulary may know a character only as "unknown". */
static bool spells(mica_guide *g, const int32_t *tokens, size_t n, const char *text, size_t length)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = mica_vocab_bytes(g->vocab, tokens[i], false, g->piece, sizeof g->piece);
        if (bytes > sizeof g->piece || bytes > length - at || memcmp(g->piece, text + at, bytes) != 0)
            return false;
        at += bytes;
    }
    return at == length;
}

/* Where a vocabulary puts a space before each text, that would be one too many here: the text is read behind a line feed,
 * and the tokens of " \n" are left out. *skip is their number, or n where they are not to be told from the rest. */
static void skip_lead(mica_guide *g, const int32_t *tokens, size_t n, size_t *skip)
{
    size_t bytes = 0;
    for (*skip = 0; *skip < n && bytes < 2; ++*skip)
        bytes += mica_vocab_bytes(g->vocab, tokens[*skip], false, NULL, 0);
    *skip = bytes == 2 ? *skip : n;
}

/* UTF-8 text as the tokenizer would have it. */
static mica_status push_canonical(mica_guide *g, const char *text, size_t n, mica_guide_list *list, bool *done, mica_error *err)
{
    size_t lead = mica_vocab_special_tokens(g->vocab)->add_space_prefix ? 1 : 0, n_tokens = 0, skip = 0;
    int32_t *tokens = NULL;
    char *copy = malloc(n + 1);
    if (!copy)
        return mica_fail_nomem(err, n + 1, "a forced text");
    copy[0] = '\n';
    memcpy(copy + lead, text, n);
    mica_status status = mica_vocab_tokenize(g->vocab, copy, n + lead, 0, &tokens, &n_tokens, err);
    free(copy);
    if (!status && lead)
        skip_lead(g, tokens, n_tokens, &skip);
    *done = !status && spells(g, tokens + skip, n_tokens - skip, text, n);
    for (size_t i = skip; i < n_tokens && *done && !status; i++)
        status = push(list, tokens[i], err);
    free(tokens);
    return status;
}

/* Canonical where the text is UTF-8; it may begin inside a character. *done is false if the vocabulary cannot spell it. */
static mica_status push_text(mica_guide *g, const char *text, size_t n, mica_guide_list *list, bool *done, mica_error *err)
{
    size_t inside = 0;
    while (inside < n && ((unsigned char)text[inside] & 0xC0) == 0x80)
        inside++;
    size_t whole = mica_utf8_check(text + inside, n - inside);
    mica_status status = push_bytes(g, text, inside, list, done, err);
    if (!status && *done && whole > 0) {
        status = push_canonical(g, text + inside, whole, list, done, err);
        if (!status && !*done)
            status = push_bytes(g, text + inside, whole, list, done, err);
    }
    if (!status && *done)
        status = push_bytes(g, text + inside + whole, n - inside - whole, list, done, err);
    return status;
}

/* ---- forced runs ---- */

/* Whether a token that may be chosen where `at` stands has more than `rest` bytes: all it has in the run, and something
 * behind it. */
static mica_status reaches_beyond(mica_guide *g, mica_matcher *at, size_t rest, bool *beyond, mica_error *err)
{
    *beyond = false;
    if (rest >= g->longest)
        return MICA_OK;
    mica_status status = mica_masks_fill(g->constraint->masks, at, g->mask, NULL, err);
    for (size_t w = 0; w < g->n_words && !status && !*beyond; w++)
        for (uint32_t left = g->mask[w]; left && !*beyond; left &= left - 1) {
            int32_t id = (int32_t)(w * 32) + __builtin_ctz(left);
            *beyond = mica_vocab_bytes(g->vocab, id, false, NULL, 0) > rest;
        }
    return status;
}

/* Cuts the queue, which spells the run, before the first token in whose place a longer one could reach beyond the run.
 * Leaves `trial` where the queue ends. */
static mica_status keep_back(mica_guide *g, size_t n, mica_error *err)
{
    size_t at = 0;
    bool beyond = false;
    mica_status status = mica_matcher_copy(g->trial, g->matcher, err);
    for (int32_t i = 0; i < g->queue.n && !status; i++) {
        status = reaches_beyond(g, g->trial, n - at, &beyond, err);
        if (beyond) {
            g->queue.n = i;
            break;
        }
        size_t bytes = mica_vocab_bytes(g->vocab, g->queue.ids[i], false, NULL, 0);
        if (!status)
            status = mica_matcher_push(g->trial, g->run + at, bytes, NULL, err);
        at += bytes;
    }
    return status;
}

/* ---- closing ---- */

/* The shortest completion from `at`, with healed bytes before it, as tokens. *bytes is its length; the list stays empty and
 * *done false where that is beyond all bounds. */
static mica_status complete(mica_guide *g, mica_matcher *at, const char *healing, size_t n_healing, mica_guide_list *list,
                            bool *done, mica_error *err)
{
    size_t length = mica_matcher_shortest_end(at, NULL, 0);
    list->n = 0;
    *done = length <= MICA_GUIDE_CLOSE;
    if (!*done)
        return MICA_OK;
    char *text = malloc(n_healing + length + 1);
    if (!text)
        return mica_fail_nomem(err, n_healing + length + 1, "the completion of a reply");
    if (n_healing > 0)
        memcpy(text, healing, n_healing);
    mica_status status = mica_matcher_shortest_end(at, text + n_healing, length) == length
                             ? MICA_OK
                             : mica_fail_nomem(err, length, "the completion of a reply");
    if (!status)
        status = push_text(g, text, n_healing + length, list, done, err);
    free(text);
    return status;
}

/* Whether `room` tokens complete the text from `at`. Where there is one for every byte of it, their number need not be
 * known. */
static mica_status fits(mica_guide *g, mica_matcher *at, const char *healing, size_t n_healing, int32_t room, bool *fit,
                        mica_error *err)
{
    size_t bytes = n_healing + mica_matcher_shortest_end(at, NULL, 0), most = room > 0 ? (size_t)room : 0;
    *fit = bytes <= most && (g->has_bytes || bytes == 0);
    if (*fit || bytes > most * g->longest)
        return MICA_OK;
    bool done;
    mica_status status = complete(g, at, healing, n_healing, &g->scratch, &done, err);
    *fit = done && (size_t)g->scratch.n <= most;
    return status;
}

static mica_status close_text(mica_guide *g, mica_error *err)
{
    bool done;
    g->queue_at = 0;
    g->closing = true;
    mica_status status = complete(g, g->matcher, g->healing, g->n_healing, &g->queue, &done, err);
    if (!status && !done)
        status = mica_fail(err, MICA_INVALID_ARGUMENT, "the vocabulary has no tokens that complete the text");
    return status;
}

mica_status mica_guide_check_room(mica_guide *g, int32_t room, mica_error *err)
{
    bool fit = false, done = false;
    mica_status status = fits(g, g->matcher, g->healing, g->n_healing, room, &fit, err);
    if (!status && !fit)
        status = complete(g, g->matcher, g->healing, g->n_healing, &g->scratch, &done, err);
    if (status || fit)
        return status;
    if (!done)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the shortest reply that the constraint allows is too long to be closed");
    return mica_fail(err, MICA_INVALID_ARGUMENT,
                     "the shortest reply that the constraint allows takes %d tokens, but there is only room for %d",
                     g->scratch.n, room);
}

mica_status mica_guide_reserve(mica_guide *g, int32_t token, int32_t room, mica_error *err)
{
    bool fit;
    if (!g->may_close || g->closing)
        return MICA_OK;
    size_t n = mica_vocab_bytes(g->vocab, token, false, g->piece, sizeof g->piece);
    size_t healed = n < g->n_healing ? n : g->n_healing;
    mica_status status = mica_matcher_copy(g->trial, g->matcher, err);
    if (!status)
        status = mica_matcher_push(g->trial, g->piece + healed, n - healed, NULL, err);
    if (!status)
        status = fits(g, g->trial, g->healing + healed, g->n_healing - healed, room - 1, &fit, err);
    return status || fit ? status : close_text(g, err);
}

mica_status mica_guide_force(mica_guide *g, int32_t room, mica_error *err)
{
    bool done = true, fit = true;
    if (mica_guide_queued(g) || g->closing || g->n_healing > 0 || !g->constraint)
        return MICA_OK;
    g->queue.n = g->queue_at = 0;
    size_t n = mica_utf8_check(g->run, mica_matcher_forced(g->matcher, g->run, sizeof g->run));
    mica_status status = n > 0 ? push_canonical(g, g->run, n, &g->queue, &done, err) : MICA_OK;
    if (!done)
        g->queue.n = 0; /* no such tokens: what there is is chosen, or there is an error */
    if (!status && g->queue.n > 0)
        status = keep_back(g, n, err);
    if (!status && g->queue.n > 0 && g->may_close)
        status = fits(g, g->trial, NULL, 0, room - g->queue.n, &fit, err);
    return status || fit ? status : close_text(g, err);
}
