/* automaton_chars.c - how many characters of a slice a state takes, whichever they are: the array mica_automaton.chars.
 *
 * Found as the greatest solution of: chars(state, piece of a character) = 0 where some byte of the slice leads nowhere, else
 * the least over all bytes of what comes after them, and one more for each whole character. Calls count with what their symbol
 * takes at its start. */
#include "constraint/automaton_impl.h"

#define MAX_ROUNDS 24 /* states are mostly numbered forwards, so that 2 or 3 do; else the symbol takes nothing */

#define SHORT_BODY 20 /* states: a character of a JSON string with all its escapes has 15 */

enum { STATES = MICA_SLICE_UTF8_STATES };
typedef uint8_t partial[STATES]; /* chars of a state, from each piece of a character on */

static uint8_t plus(uint8_t chars, bool whole)
{
    return chars >= MICA_SLICE_ENDLESS - 1 || !whole ? chars : (uint8_t)(chars + 1);
}

/* The least over the bytes low..high from state s. */
static uint8_t over_bytes(const mica_automaton *a, const partial *chars, int32_t s, mica_slice_piece p)
{
    int next = p.low; /* first byte that no edge was seen for */
    uint8_t least = MICA_SLICE_ENDLESS;
    for (int32_t i = a->first_edge[s]; i < a->first_edge[s + 1] && next <= p.high; i++) {
        const mica_fa_edge *e = &a->edges[i];
        if (e->high < next)
            continue;
        if (e->low > next)
            return 0;
        uint8_t after = plus(chars[e->to][p.to], p.to == 0);
        least = after < least ? after : least;
        next = e->high + 1;
    }
    return next > p.high ? least : 0;
}

static uint8_t state_chars(const mica_automaton *a, const partial *chars, int32_t s, int slice, int from)
{
    int n;
    uint8_t least = MICA_SLICE_ENDLESS;
    const mica_slice_piece *p = mica_slice_pieces(slice, &n);
    for (int i = 0; i < n && least > 0; i++)
        if (p[i].from == from) {
            uint8_t after = over_bytes(a, chars, s, p[i]);
            least = after < least ? after : least;
        }
    return least;
}

/* Edges that overlap would be counted one at a time, which is right for deterministic states only. */
static bool is_deterministic(const mica_automaton *a, int32_t s)
{
    for (int32_t i = a->first_edge[s] + 1; i < a->first_edge[s + 1]; i++)
        if (a->edges[i].low <= a->edges[i - 1].high)
            return false;
    return true;
}

static void find_edge_chars(mica_automaton *a, partial *chars, int slice)
{
    int n_from = slice == MICA_SLICE_TEXT ? STATES : 1, rounds = 0;
    bool changed = true;
    for (int32_t s = 0; s < a->n_states; s++)
        memset(chars[s], is_deterministic(a, s) && a->first_edge[s] < a->first_edge[s + 1] ? MICA_SLICE_ENDLESS : 0, STATES);
    for (; changed && rounds < MAX_ROUNDS; rounds++) {
        changed = false;
        for (int32_t s = a->n_states - 1; s >= 0; s--)
            for (int from = 0; from < n_from; from++) {
                uint8_t now = chars[s][from] ? state_chars(a, chars, s, slice, from) : 0;
                changed |= now != chars[s][from];
                chars[s][from] = now;
            }
    }
    for (int32_t s = 0; s < a->n_states; s++)
        a->chars[s][slice] = changed ? 0 : chars[s][0];
}

/* Whether every character of the slice is one whole text of the symbol that starts at `start`. *exact: and begins no longer
 * one. */
static bool takes_each(const mica_automaton *a, int32_t start, int slice, bool *exact)
{
    struct {
        int32_t state;
        int from;
    } stack[64];
    int n_pieces, n = 1;
    const mica_slice_piece *p = mica_slice_pieces(slice, &n_pieces);
    *exact = true;
    stack[0].state = start;
    stack[0].from = 0;
    while (n > 0) {
        int32_t s = stack[--n].state;
        int from = stack[n].from;
        if (!is_deterministic(a, s))
            return false;
        for (int i = 0; i < n_pieces; i++) {
            int next = p[i].low;
            if (p[i].from != from)
                continue;
            for (int32_t k = a->first_edge[s]; k < a->first_edge[s + 1] && next <= p[i].high; k++) {
                const mica_fa_edge *e = &a->edges[k];
                if (e->high < next)
                    continue;
                if (e->low > next || n >= 64 || (p[i].to == 0 && !a->final[e->to]))
                    return false;
                next = e->high + 1;
                *exact &= p[i].to != 0 || mica_fa_is_last(a, e->to);
                if (p[i].to != 0) {
                    stack[n].state = e->to;
                    stack[n++].from = p[i].to;
                }
            }
            if (next <= p[i].high)
                return false;
        }
    }
    return true;
}

/* Whether a character of the slice may come after the symbol. */
static bool may_follow(const mica_fa_symbol *sym, int slice)
{
    int n;
    const mica_slice_piece *p = mica_slice_pieces(slice, &n);
    for (int i = 0; i < n; i++)
        for (unsigned b = p[i].low; p[i].from == 0 && b <= p[i].high; b++)
            if (mica_set_has(&sym->follow, b))
                return true;
    return false;
}

static void find_symbol_chars(mica_automaton *a, mica_fa_symbol *sym)
{
    int32_t start = sym->start;
    for (int slice = 0; slice < MICA_SLICES && start >= 0; slice++) {
        uint8_t best = a->chars[start][slice];
        for (int32_t i = a->first_call[start]; i < a->first_call[start + 1]; i++) {
            uint8_t inner = a->symbols[a->calls[i].symbol].chars[slice];
            best = inner > best ? inner : best;
        }
        bool exact;
        if (sym->body >= 0 && takes_each(a, start, slice, &exact)) {
            uint8_t left = sym->left >= MICA_SLICE_ENDLESS ? MICA_SLICE_ENDLESS - 1 : (uint8_t)sym->left;
            left = sym->left == MICA_FA_NO_LIMIT ? MICA_SLICE_ENDLESS : left;
            best = left > best ? left : best;
            sym->counts |= (uint8_t)(1 << slice);
            if (exact && a->first_call[start] == a->first_call[start + 1] && !may_follow(sym, slice))
                sym->exact |= (uint8_t)(1 << slice);
        }
        sym->chars[slice] = best;
    }
}

static void find_short_bodies(mica_automaton *a)
{
    for (int32_t k = 0; k < a->n_symbols; k++) {
        mica_fa_symbol *sym = &a->symbols[k];
        int32_t n = 0, s = sym->start;
        if (sym->body < 0 || s < 0)
            continue;
        sym->is_short = true;
        while (s > 0 && a->owner[s - 1] == sym->body)
            s--;
        for (; sym->is_short && s < a->n_states && a->owner[s] == sym->body; s++, n++)
            sym->is_short = n < SHORT_BODY && a->first_call[s] == a->first_call[s + 1];
        a->symbols[sym->body].is_short = sym->is_short;
    }
}

mica_status mica_fa_find_chars(mica_automaton *a, mica_error *err)
{
    partial *chars = mica_new_array((size_t)a->n_states, sizeof *chars);
    a->chars = mica_new_array((size_t)a->n_states, sizeof *a->chars);
    if (!chars || !a->chars) {
        free(chars);
        return mica_fa_nomem(err);
    }
    for (int slice = 0; slice < MICA_SLICES; slice++)
        find_edge_chars(a, chars, slice);
    free(chars);
    find_short_bodies(a);
    for (int32_t k = a->n_symbols - 1; k >= 0; k--)
        find_symbol_chars(a, &a->symbols[a->by_rank[k]]);
    for (int32_t s = 0; s < a->n_states; s++)
        for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++)
            for (int slice = 0; slice < MICA_SLICES; slice++) {
                uint8_t inner = a->symbols[a->calls[i].symbol].chars[slice];
                a->chars[s][slice] = inner > a->chars[s][slice] ? inner : a->chars[s][slice];
            }
    return MICA_OK;
}
