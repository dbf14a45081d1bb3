/* regular_bytes.c - writes automata over code points as automata over bytes: UTF-8, plain or inside a JSON string.
 *
 * The states of the language keep their numbers; between two of them stand inner states, one for each different set of
 * continuations (they are looked up by their edges), so that the result is deterministic and about as small as can be. */
#include "constraint/grammar_impl.h"
#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/utf8.h"

/* Where the edges of an inner state are. */
typedef struct inner {
    int32_t state, first, n;
} inner;

typedef struct writer {
    const mica_regular *r;
    int32_t from; /* the state of r that is being written */
    mica_fsm_edge *edges;
    int32_t n_edges, edges_capacity, n_states;
    inner *inners;
    int32_t n_inners, inners_capacity;
    int32_t *table; /* of inners by their edges, open addressing: index + 1, or 0 */
    int32_t n_slots;
    bool failed;
} writer;

/* Bytes that follow one place: targets[i] is where first + i leads, -1 nowhere. */
typedef struct fan {
    int32_t targets[128];
    int n;
    uint8_t first;
} fan;

static void fan_init(fan *f, uint8_t first, int n)
{
    f->first = first;
    f->n = n;
    for (int i = 0; i < n; i++)
        f->targets[i] = -1;
}

/* ---- Edges and inner states ---- */

static void *grow(writer *w, void *array, int32_t n, int32_t *capacity, size_t size)
{
    if (n < *capacity)
        return array;
    void *bigger = n > INT32_MAX / 4 ? NULL : realloc(array, (size_t)(n ? n * 2 : 64) * size);
    if (!bigger) {
        w->failed = true;
        return array;
    }
    *capacity = n ? n * 2 : 64;
    return bigger;
}

static void add_edge(writer *w, int32_t from, int32_t to, int low, int high)
{
    w->edges = grow(w, w->edges, w->n_edges, &w->edges_capacity, sizeof *w->edges);
    if (!w->failed)
        w->edges[w->n_edges++] = (mica_fsm_edge){.from = from, .to = to, .low = (uint8_t)low, .high = (uint8_t)high};
}

/* One edge for each run of bytes with the same target. */
static void add_fan(writer *w, int32_t from, const fan *f)
{
    for (int i = 0, end; i < f->n; i = end) {
        for (end = i + 1; end < f->n && f->targets[end] == f->targets[i]; end++) {
        }
        if (f->targets[i] >= 0)
            add_edge(w, from, f->targets[i], f->first + i, f->first + end - 1);
    }
}

static uint32_t hash_edges(const mica_fsm_edge *edges, int32_t n)
{
    uint32_t hash = 2166136261u; /* FNV-1a over words */
    for (int32_t i = 0; i < n; i++) {
        hash = (hash ^ (uint32_t)edges[i].to) * 16777619u;
        hash = (hash ^ (uint32_t)(edges[i].low << 8 | edges[i].high)) * 16777619u;
        hash ^= hash >> 15;
    }
    return hash;
}

static bool same_edges(const mica_fsm_edge *a, const mica_fsm_edge *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i].to != b[i].to || a[i].low != b[i].low || a[i].high != b[i].high)
            return false;
    return true;
}

/* The slot of the inner state with these edges, or the free one where it belongs. The table is never full. */
static int32_t *find_slot(const writer *w, const mica_fsm_edge *edges, int32_t n)
{
    uint32_t mask = (uint32_t)w->n_slots - 1, i = hash_edges(edges, n) & mask;
    for (; w->table[i]; i = (i + 1) & mask) {
        const inner *other = &w->inners[w->table[i] - 1];
        if (other->n == n && same_edges(w->edges + other->first, edges, n))
            break;
    }
    return &w->table[i];
}

static void grow_table(writer *w)
{
    if (w->n_inners * 2 < w->n_slots)
        return;
    int32_t n_slots = w->n_slots ? w->n_slots * 2 : 64;
    int32_t *table = mica_new_array((size_t)n_slots, sizeof *table);
    if (!table) {
        w->failed = true;
        return;
    }
    free(w->table);
    w->table = table;
    w->n_slots = n_slots;
    for (int32_t i = 0; i < w->n_inners; i++)
        *find_slot(w, w->edges + w->inners[i].first, w->inners[i].n) = i + 1;
}

/* The inner state with this fan; -1 if it leads nowhere. */
static int32_t inner_state(writer *w, const fan *f)
{
    int32_t first = w->n_edges;
    grow_table(w);
    w->inners = grow(w, w->inners, w->n_inners, &w->inners_capacity, sizeof *w->inners);
    add_fan(w, w->n_states, f);
    if (w->failed || w->n_edges == first)
        return -1;
    int32_t n = w->n_edges - first, *slot = find_slot(w, w->edges + first, n);
    if (*slot) {
        w->n_edges = first;
        return w->inners[*slot - 1].state;
    }
    w->inners[w->n_inners++] = (inner){.state = w->n_states, .first = first, .n = n};
    *slot = w->n_inners;
    return w->n_states++;
}

/* ---- UTF-8 ---- */

/* The first range of the alphabet that ends at or after `code`. */
static int32_t range_at(const mica_alphabet *a, uint32_t code)
{
    int32_t low = 0, high = a->n_ranges;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (a->ranges[middle].high < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t target_of(const writer *w, int32_t range)
{
    return w->r->next[(size_t)w->from * (size_t)w->r->alphabet.n_classes + (size_t)w->r->alphabet.ranges[range].class];
}

static int32_t block_state(writer *w, uint32_t base, uint32_t low, uint32_t high, int shift);

/* Sets targets[] for the code points low..high, 1 << shift of them a byte; `base` is what the byte at index 0 stands for. */
static void fill(writer *w, fan *f, uint32_t base, uint32_t low, uint32_t high, int shift)
{
    const mica_alphabet *a = &w->r->alphabet;
    for (int32_t i = range_at(a, low); i < a->n_ranges && a->ranges[i].low <= high && low <= high;) {
        mica_class_range r = a->ranges[i];
        uint32_t from = r.low > low ? r.low : low, to = r.high < high ? r.high : high, block = from & ~((1u << shift) - 1);
        uint32_t blocks = from == block ? (to + 1 - from) >> shift : 0; /* that the range covers */
        int32_t target = shift == 0 ? target_of(w, i) : block_state(w, block, low, high, shift - 6);
        for (uint32_t k = 0; k < (blocks ? blocks : 1); k++)
            f->targets[((block - base) >> shift) + k] = target;
        low = block + ((blocks ? blocks : 1) << shift);
        while (i < a->n_ranges && a->ranges[i].high < low)
            i++;
    }
}

/* The state whose continuation bytes tell the 64 << shift code points from `base` on apart, as far as they are in low..high. */
static int32_t block_state(writer *w, uint32_t base, uint32_t low, uint32_t high, int shift)
{
    uint32_t last = base + (64u << shift) - 1;
    fan f;
    fan_init(&f, 0x80, 64);
    fill(w, &f, base, low > base ? low : base, high < last ? high : last, shift);
    return inner_state(w, &f);
}

/* All characters of more than one byte that the current state goes on with. */
static void write_multibyte(writer *w)
{
    static const struct lead {
        uint8_t first, n; /* lead bytes */
        uint32_t low, high;
        int shift;
    } leads[] = {{0xC0, 32, 0x80, 0x7FF, 6}, {0xE0, 16, 0x800, 0xFFFF, 12}, {0xF0, 5, 0x10000, MICA_MAX_CODE, 18}};
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
        fan f;
        fan_init(&f, leads[i].first, leads[i].n);
        fill(w, &f, 0, leads[i].low, leads[i].high, leads[i].shift);
        add_fan(w, w->from, &f);
    }
}

/* ---- JSON strings ---- */

/* The state behind "u00" or the like: reads `digit` and goes to `to`. */
static int32_t one_byte(writer *w, uint8_t byte, int32_t to)
{
    fan f;
    fan_init(&f, byte, 1);
    f.targets[0] = to;
    return inner_state(w, &f);
}

/* The state that reads the last digit of \u00X?, for controls first..first + 15. `controls` has those without a short form. */
static int32_t last_digit(writer *w, const int32_t *controls)
{
    fan f;
    fan_init(&f, '0', 'f' - '0' + 1);
    for (int i = 0; i < 16; i++)
        f.targets[i < 10 ? i : 'a' - '0' + i - 10] = controls[i];
    return inner_state(w, &f);
}

/* Takes the characters that JSON escapes out of `ascii`, and makes the state behind the backslash: -1 if there are none. */
static int32_t write_escapes(writer *w, fan *ascii)
{
    static const char shorts[][2] = {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
    fan escapes, digit;
    fan_init(&escapes, 0, 128);
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++) {
        escapes.targets[(uint8_t)shorts[i][1]] = ascii->targets[(uint8_t)shorts[i][0]];
        ascii->targets[(uint8_t)shorts[i][0]] = -1;
    }
    fan_init(&digit, '0', 2);
    digit.targets[0] = last_digit(w, ascii->targets);
    digit.targets[1] = last_digit(w, ascii->targets + 16);
    for (int i = 0; i < 32; i++)
        ascii->targets[i] = -1;
    int32_t behind_zeros = inner_state(w, &digit);
    if (behind_zeros >= 0)
        escapes.targets['u'] = one_byte(w, '0', one_byte(w, '0', behind_zeros));
    return inner_state(w, &escapes);
}

/* ---- Automata ---- */

static void write_state(writer *w, int32_t from, mica_encoding encoding)
{
    fan ascii;
    w->from = from;
    fan_init(&ascii, 0, 128);
    fill(w, &ascii, 0, 0, 0x7F, 0);
    if (encoding == MICA_ENCODE_JSON_STRING)
        ascii.targets['\\'] = write_escapes(w, &ascii);
    add_fan(w, from, &ascii);
    write_multibyte(w);
}

mica_gnode mica_grammar_regular(mica_grammar *g, const mica_regular *r, mica_encoding encoding)
{
    writer w = {.r = r, .n_states = r->n_states};
    if (g->failure)
        return MICA_GNODE_FAILED;
    for (int32_t s = 0; s < r->n_states && !w.failed; s++)
        write_state(&w, s, encoding);
    bool *accepts = mica_new_array((size_t)w.n_states, sizeof *accepts);
    mica_gnode node;
    if (accepts && !w.failed) {
        memcpy(accepts, r->accepts, (size_t)r->n_states * sizeof *accepts);
        mica_fsm fsm = {.n_states = w.n_states, .n_edges = w.n_edges, .edges = w.edges, .accepts = accepts};
        node = mica_grammar_fsm(g, &fsm);
    } else
        node = mica_grammar_nomem(g, (size_t)w.n_edges * sizeof *w.edges);
    free(accepts);
    free(w.edges);
    free(w.inners);
    free(w.table);
    return node;
}

/* ---- Single characters ---- */

/* The set's characters as an automaton of two states. */
static mica_gnode chars_automaton(mica_grammar *g, const mica_ranges *set)
{
    mica_class_range *ranges = mica_new_array(set->n, sizeof *ranges);
    int32_t next[2] = {1, -1};
    bool accepts[2] = {false, true};
    if (!ranges)
        return mica_grammar_nomem(g, set->n * sizeof *ranges);
    for (size_t i = 0; i < set->n; i++)
        ranges[i] = (mica_class_range){.low = set->items[i].low, .high = set->items[i].high};
    mica_regular r = {.alphabet = {.ranges = ranges, .n_ranges = (int32_t)set->n, .n_classes = 1},
                      .n_states = 2, .next = next, .accepts = accepts};
    mica_gnode node = mica_grammar_regular(g, &r, MICA_ENCODE_UTF8);
    free(ranges);
    return node;
}

static mica_gnode chars_bytes(mica_grammar *g, const mica_ranges *set)
{
    mica_byte_set bytes = {{0}};
    for (size_t i = 0; i < set->n; i++)
        for (uint32_t b = set->items[i].low; b <= set->items[i].high; b++)
            bytes.bits[b / 32] |= 1u << b % 32;
    return mica_grammar_bytes(g, &bytes);
}

mica_gnode mica_grammar_chars(mica_grammar *g, const mica_char_range *ranges, size_t n, bool negate)
{
    mica_ranges set = {0};
    mica_gnode node;
    if (g->failure)
        return MICA_GNODE_FAILED;
    if (!mica_ranges_add_all(&set, ranges, n) || !(negate ? mica_ranges_negate(&set) : mica_ranges_normalise(&set)))
        node = mica_grammar_nomem(g, n * sizeof *ranges);
    else if (set.n == 0 || set.items[set.n - 1].high < 0x80)
        node = chars_bytes(g, &set);
    else if (set.n == 1 && set.items[0].low == set.items[0].high) {
        char text[4];
        node = mica_grammar_literal(g, text, mica_utf8_write(set.items[0].low, text));
    } else
        node = chars_automaton(g, &set);
    mica_ranges_free(&set);
    return node;
}
