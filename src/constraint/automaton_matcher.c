/* automaton_matcher.c - a text's place: an engine and the configuration in it. */
#include "constraint/automaton_engine.h"

mica_status mica_matcher_new(const mica_automaton *a, mica_matcher **out, mica_error *err)
{
    mica_matcher *m = mica_new_array(1, sizeof *m);
    *out = NULL;
    if (!m)
        return mica_fa_nomem(err);
    mica_status status = mica_fa_engine_init(&m->engine, a, 0, err);
    if (!status)
        status = mica_fa_start(&m->engine, &m->kept[0], err);
    m->kept[1] = m->kept[0];
    if (status)
        mica_matcher_free(m);
    else
        *out = m;
    return status;
}

void mica_matcher_free(mica_matcher *m)
{
    if (!m)
        return;
    mica_mask_memo_free(m->memo);
    mica_fa_engine_free(&m->engine);
    free(m);
}

void mica_matcher_reset(mica_matcher *m) { m->kept[0] = m->kept[1]; }

mica_status mica_matcher_copy(mica_matcher *to, const mica_matcher *from, mica_error *err)
{
    if (to == from)
        return MICA_OK;
    mica_status status = MICA_OK;
    if (mica_fa_engine_full(&to->engine))
        status = mica_fa_engine_flush(&to->engine, to->kept, 2, NULL, 0, err);
    return status ? status : mica_fa_engine_import(&to->engine, &from->engine, from->kept[0], &to->kept[0], err);
}

/* The configuration after one more byte, -1 if there is none. */
static mica_status advance(mica_matcher *m, int32_t *config, uint8_t byte, mica_error *err)
{
    mica_fa_engine *e = &m->engine;
    mica_fa_cell cell = e->rows[(size_t)*config * MICA_FA_ROW + byte];
    if (cell == MICA_FA_UNKNOWN) {
        mica_status status = MICA_OK;
        if (mica_fa_engine_full(e))
            status = mica_fa_engine_flush(e, m->kept, 2, config, 1, err);
        if (!status)
            status = mica_fa_step(e, *config, byte, &cell, err);
        if (status)
            return status;
    }
    *config = cell == MICA_FA_DEAD ? -1 : mica_fa_cell_config(cell);
    return MICA_OK;
}

mica_status mica_matcher_push(mica_matcher *m, const void *bytes, size_t n, size_t *taken, mica_error *err)
{
    int32_t config = m->kept[0];
    size_t i = 0;
    if (taken)
        *taken = 0;
    for (; i < n; i++) {
        mica_status status = advance(m, &config, ((const uint8_t *)bytes)[i], err);
        if (status)
            return status;
        if (config < 0)
            break;
    }
    if (i == n)
        m->kept[0] = config;
    if (taken)
        *taken = i;
    return MICA_OK;
}

bool mica_matcher_may_end(const mica_matcher *m) { return m->engine.configs[m->kept[0]].ended; }
bool mica_matcher_must_end(const mica_matcher *m) { return m->engine.configs[m->kept[0]].count == 0; }

static int single_byte(const mica_byte_set *set)
{
    int byte = -1;
    for (int w = 0; w < 8; w++) {
        uint32_t bits = set->bits[w];
        if (!bits)
            continue;
        if (byte >= 0 || (bits & (bits - 1)))
            return -1;
        byte = w * 32 + __builtin_ctz(bits);
    }
    return byte;
}

size_t mica_matcher_forced(mica_matcher *m, char *out, size_t capacity)
{
    int32_t config = m->kept[0];
    size_t n = 0;
    while (n < capacity && !m->engine.configs[config].ended) {
        mica_byte_set set;
        mica_fa_config_bytes(&m->engine, config, &set);
        int byte = single_byte(&set);
        if (byte < 0 || advance(m, &config, (uint8_t)byte, NULL) || config < 0)
            break;
        out[n++] = (char)byte;
    }
    return n;
}

/* The shortest completion's length, and the pair that it goes on from. */
static size_t shortest_from(const mica_fa_engine *e, int32_t config, int32_t *state)
{
    const mica_fa_config *c = &e->configs[config];
    size_t least = c->ended ? 0 : SIZE_MAX;
    for (int32_t i = 0; i < c->count; i++) {
        mica_fa_pair p = e->config_pairs[c->first + i];
        /* A final state's other half is another pair: here something is still read. */
        size_t length = mica_sum_lengths(e->a->going_on[p.state], e->nodes[p.node].up);
        if (length < least) {
            least = length;
            *state = p.state;
        }
    }
    return least;
}

/* The first byte of one of the shortest texts on from a state. Each turn enters a symbol of a higher rank. */
static uint8_t shortest_byte(const mica_automaton *a, int32_t s)
{
    for (;;) {
        size_t want = a->going_on[s];
        for (int32_t i = a->first_edge[s]; i < a->first_edge[s + 1]; i++)
            if (mica_sum_lengths(1, a->shortest[a->edges[i].to]) == want)
                return a->edges[i].low;
        for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++) {
            const mica_fa_symbol *sym = &a->symbols[a->calls[i].symbol];
            if (mica_sum_lengths(sym->length, a->shortest[a->calls[i].to]) == want) {
                s = sym->start;
                break;
            }
        }
    }
}

size_t mica_matcher_shortest_end(mica_matcher *m, char *out, size_t capacity)
{
    int32_t config = m->kept[0], state = 0;
    size_t length = shortest_from(&m->engine, config, &state);
    if (length > capacity)
        return length;
    for (size_t n = 0; n < length; n++) {
        uint8_t byte = shortest_byte(m->engine.a, state);
        if (advance(m, &config, byte, NULL) || config < 0)
            return MICA_FA_FAR; /* no memory */
        out[n] = (char)byte;
        shortest_from(&m->engine, config, &state);
    }
    return length;
}
