/* regular_nfa.c - from a pattern's tree to an automaton: first a non-deterministic one (K. Thompson, "Regular expression
 * search algorithm", 1968), made from its end to its start so that nothing is patched, then subsets of its states.
 *
 * ^ and $ are transitions that read nothing and that are open only before the first character and after the last. So subsets
 * are closed without them, except the start's, for which ^ is open; and a subset accepts if it does so with $ open as well.
 * This is exact wherever they stand, in repetitions too. */
#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_NFA_STATES (1 << 17) /* unrolled repetitions included */
/* Bounds the time of one pattern: visits of non-deterministic states; some 0.3 s. */
#define MAX_WORK 20000000
/* Entries of the lists below that could grow with the square of the pattern: 64 MiB each. */
#define MAX_LIST (1 << 24)

typedef enum nfa_kind { NFA_READ, NFA_FORK, NFA_START, NFA_END, NFA_MATCH } nfa_kind;

typedef struct nfa_state {
    nfa_kind kind;
    int32_t set;       /* NFA_READ: what it reads */
    int32_t out, out2; /* NFA_FORK has two */
} nfa_state;

typedef struct builder {
    const mica_regex *re;
    nfa_state *states;
    int32_t n_states, capacity;
    mica_status failed;
} builder;

/* ---- The non-deterministic automaton ---- */

static int32_t add_state(builder *b, nfa_kind kind, int32_t set, int32_t out, int32_t out2)
{
    if (b->failed)
        return 0;
    if (b->n_states == b->capacity) {
        int32_t capacity = b->capacity ? b->capacity * 2 : 64;
        nfa_state *states = capacity > MAX_NFA_STATES ? NULL : realloc(b->states, (size_t)capacity * sizeof *states);
        if (!states) {
            b->failed = capacity > MAX_NFA_STATES ? MICA_INVALID_ARGUMENT : MICA_OUT_OF_MEMORY;
            return 0;
        }
        b->states = states;
        b->capacity = capacity;
    }
    b->states[b->n_states] = (nfa_state){.kind = kind, .set = set, .out = out, .out2 = out2};
    return b->n_states++;
}

static int32_t build(builder *b, int32_t node, int32_t next);

/* x{min,max} before `next`: the optional copies from the last to the first, each of which may be left for `next`, then the
 * others. A copy that adds no state reads nothing, and neither do further ones. */
static int32_t build_repeat(builder *b, const mica_regex_node *re, int32_t next)
{
    int32_t entry = next;
    if (re->max == MICA_G_NO_LIMIT) {
        entry = add_state(b, NFA_FORK, 0, next, next);
        int32_t body = build(b, re->child, entry);
        if (!b->failed)
            b->states[entry].out = body;
    }
    for (int32_t i = re->min; i < re->max && !b->failed; i++) {
        int32_t body = build(b, re->child, entry);
        if (body == entry)
            break;
        entry = add_state(b, NFA_FORK, 0, body, next);
    }
    for (int32_t i = 0; i < re->min && !b->failed; i++) {
        int32_t body = build(b, re->child, entry);
        if (body == entry)
            break;
        entry = body;
    }
    return entry;
}

/* The state from which a node is read and then what `next` reads. Recursion: as deep as the tree, see MICA_RE_MAX_DEPTH. */
static int32_t build(builder *b, int32_t node, int32_t next)
{
    const mica_regex_node *re = &b->re->nodes[node];
    int32_t entry = -1;
    switch (re->kind) {
    case MICA_RE_EMPTY:
        return next;
    case MICA_RE_SET:
        return add_state(b, NFA_READ, re->set, next, next);
    case MICA_RE_SEQ:
        for (int32_t i = re->child; i >= 0; i = b->re->nodes[i].sibling)
            next = build(b, i, next);
        return next;
    case MICA_RE_ALT:
        for (int32_t i = re->child; i >= 0; i = b->re->nodes[i].sibling) {
            int32_t branch = build(b, i, next);
            entry = entry < 0 || entry == branch ? branch : add_state(b, NFA_FORK, 0, branch, entry);
        }
        return entry;
    case MICA_RE_REPEAT:
        return build_repeat(b, re, next);
    case MICA_RE_START:
        return add_state(b, NFA_START, 0, next, next);
    case MICA_RE_END:
        break;
    }
    return add_state(b, NFA_END, 0, next, next);
}

/* ---- Subsets ---- */

/* A subset is a sorted list of states that read, end or match: members[first[i] .. first[i + 1]). */
typedef struct subsets {
    const nfa_state *states;
    const mica_alphabet *alphabet;
    int32_t *classes_of, *first_class; /* set s has the classes classes_of[first_class[s] .. first_class[s + 1]) */
    int32_t *members, *first;
    size_t n_members, members_capacity;
    int32_t n, capacity;
    int32_t *table; /* of subsets by their members, open addressing: number + 1, or 0 */
    int32_t n_slots;
    int32_t *next;
    bool *accepts;
    uint32_t *stamp, now; /* states that the closure under way has met */
    int32_t *stack, *found;
    uint64_t *bits; /* one for each state; all 0 between calls of sort_found() */
    int32_t *bucket, *bucket_next, *bucket_head; /* transitions of the subset under way, a list for each class */
    int32_t n_bucket, bucket_capacity;
    int64_t work;
} subsets;

/* Adds to found[n..] what `from` reaches without reading. Returns the new n. */
static int32_t close_over(subsets *s, int32_t from, bool at_start, bool at_end, int32_t n)
{
    int32_t depth = 0;
    s->stack[depth++] = from;
    while (depth) {
        int32_t i = s->stack[--depth];
        if (s->stamp[i] == s->now)
            continue;
        s->stamp[i] = s->now;
        s->work++;
        const nfa_state *state = &s->states[i];
        if (state->kind == NFA_FORK)
            s->stack[depth++] = state->out2;
        if (state->kind == NFA_FORK || (state->kind == NFA_START && at_start) || (state->kind == NFA_END && at_end))
            s->stack[depth++] = state->out;
        if (state->kind == NFA_READ || state->kind == NFA_MATCH || state->kind == NFA_END)
            s->found[n++] = i;
    }
    return n;
}

/* Sorts found[0..n), which are different: through a bit for each state, because subsets may have thousands. */
static void sort_found(subsets *s, int32_t n)
{
    int32_t count = 0, low = INT32_MAX, high = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t word = s->found[i] / 64;
        s->bits[word] |= (uint64_t)1 << s->found[i] % 64;
        low = word < low ? word : low;
        high = word > high ? word : high;
    }
    for (int32_t word = low; word <= high; word++) {
        for (uint64_t bits = s->bits[word]; bits; bits &= bits - 1)
            s->found[count++] = word * 64 + __builtin_ctzll(bits);
        s->bits[word] = 0;
    }
    s->work += n ? (high - low) / 8 : 0;
}

static uint32_t hash_members(const int32_t *members, size_t n)
{
    uint64_t hash = n;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ (uint32_t)members[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 16);
}

static int32_t *find_slot(const subsets *s, const int32_t *members, size_t n)
{
    uint32_t mask = (uint32_t)s->n_slots - 1, i = hash_members(members, n) & mask;
    for (; s->table[i]; i = (i + 1) & mask) {
        int32_t other = s->table[i] - 1;
        if ((size_t)(s->first[other + 1] - s->first[other]) == n &&
            memcmp(s->members + s->first[other], members, n * sizeof *members) == 0)
            break;
    }
    return &s->table[i];
}

/* Room for one more subset and n members. The table stays at most half full. */
static mica_status make_room(subsets *s, size_t n, mica_error *err)
{
    size_t c = (size_t)s->alphabet->n_classes;
    if (s->n_members + n > s->members_capacity) {
        size_t capacity = s->members_capacity * 2 + n + 256;
        if (s->n_members + n > MAX_LIST)
            return mica_regular_too_large(err);
        int32_t *members = realloc(s->members, capacity * sizeof *members);
        if (!members)
            return mica_regular_nomem(err);
        s->members = members;
        s->members_capacity = capacity;
    }
    if (s->n < s->capacity)
        return MICA_OK;
    int32_t capacity = s->capacity ? s->capacity * 2 : 64;
    if (s->n >= MICA_REGULAR_MAX_RAW_STATES || (size_t)s->n * c > MICA_REGULAR_MAX_TABLE)
        return mica_regular_too_large(err);
    int32_t *first = realloc(s->first, ((size_t)capacity + 1) * sizeof *first);
    s->first = first ? first : s->first;
    int32_t *next = realloc(s->next, ((size_t)capacity * c + 1) * sizeof *next);
    s->next = next ? next : s->next;
    bool *accepts = realloc(s->accepts, (size_t)capacity * sizeof *accepts);
    s->accepts = accepts ? accepts : s->accepts;
    int32_t *table = mica_new_array((size_t)capacity * 2, sizeof *table);
    if (!first || !next || !accepts || !table) {
        free(table);
        return mica_regular_nomem(err);
    }
    free(s->table);
    s->table = table;
    s->capacity = capacity;
    s->n_slots = 2 * capacity;
    s->first[0] = 0;
    for (int32_t i = 1; i < s->n; i++) /* not the start: see number_of() */
        *find_slot(s, s->members + s->first[i], (size_t)(s->first[i + 1] - s->first[i])) = i + 1;
    return MICA_OK;
}

/* Whether a subset matches if the text ends here. */
static bool may_end(subsets *s, int32_t subset, bool at_start)
{
    int32_t n = 0;
    s->now++;
    for (int32_t i = s->first[subset]; i < s->first[subset + 1]; i++)
        n = close_over(s, s->members[i], at_start, true, n);
    for (int32_t i = 0; i < n; i++)
        if (s->states[s->found[i]].kind == NFA_MATCH)
            return true;
    return false;
}

/* The number of the subset found[0..n). That of the start gets number 0 and is not looked up: ^ is open in it and nowhere
 * else. */
static mica_status number_of(subsets *s, int32_t n, int32_t *number, mica_error *err)
{
    mica_status status = make_room(s, (size_t)n, err);
    if (status)
        return status;
    sort_found(s, n);
    int32_t *slot = find_slot(s, s->found, (size_t)n), subset = s->n;
    if (subset && *slot) {
        *number = *slot - 1;
        return MICA_OK;
    }
    memcpy(s->members + s->n_members, s->found, (size_t)n * sizeof *s->found);
    s->n_members += (size_t)n;
    s->first[++s->n] = (int32_t)s->n_members;
    if (subset)
        *slot = subset + 1;
    s->accepts[subset] = may_end(s, subset, subset == 0);
    *number = subset;
    return MICA_OK;
}

/* Lists for each class where the members of a subset go. */
static mica_status fill_buckets(subsets *s, int32_t subset, mica_error *err)
{
    memset(s->bucket_head, -1, (size_t)s->alphabet->n_classes * sizeof *s->bucket_head);
    s->n_bucket = 0;
    for (int32_t i = s->first[subset]; i < s->first[subset + 1]; i++) {
        const nfa_state *state = &s->states[s->members[i]];
        if (state->kind != NFA_READ)
            continue;
        int32_t from = s->first_class[state->set], to = s->first_class[state->set + 1];
        if (s->n_bucket + to - from > s->bucket_capacity) {
            if (s->n_bucket + to - from > MAX_LIST)
                return mica_regular_too_large(err);
            int32_t capacity = 2 * s->bucket_capacity + to - from + 256;
            int32_t *bucket = realloc(s->bucket, (size_t)capacity * sizeof *bucket);
            s->bucket = bucket ? bucket : s->bucket;
            int32_t *bucket_next = realloc(s->bucket_next, (size_t)capacity * sizeof *bucket_next);
            s->bucket_next = bucket_next ? bucket_next : s->bucket_next;
            if (!bucket || !bucket_next)
                return mica_regular_nomem(err);
            s->bucket_capacity = capacity;
        }
        for (int32_t k = from; k < to; k++) {
            s->bucket[s->n_bucket] = state->out;
            s->bucket_next[s->n_bucket] = s->bucket_head[s->classes_of[k]];
            s->bucket_head[s->classes_of[k]] = s->n_bucket++;
        }
        s->work += to - from;
    }
    return MICA_OK;
}

static mica_status explore(subsets *s, int32_t start, mica_error *err)
{
    int32_t number, n_classes = s->alphabet->n_classes;
    s->now++;
    mica_status status = number_of(s, close_over(s, start, true, false, 0), &number, err);
    for (int32_t i = 0; i < s->n && !status; i++) {
        status = fill_buckets(s, i, err);
        for (int32_t c = 0; c < n_classes && !status; c++) {
            int32_t n = 0;
            number = -1;
            s->now++;
            for (int32_t k = s->bucket_head[c]; k >= 0; k = s->bucket_next[k])
                n = close_over(s, s->bucket[k], false, false, n);
            if (n)
                status = number_of(s, n, &number, err);
            if (s->work > MAX_WORK)
                status = mica_regular_too_large(err);
            s->next[(size_t)i * (size_t)n_classes + (size_t)c] = number;
        }
    }
    return status;
}

/* ---- Both together ---- */

/* Appends the classes of one set, each once, to classes_of[total..). Both lists of ranges are sorted: one walk along the
 * alphabet. last_set[class] is the number of the last set that has the class. */
static size_t list_set(subsets *s, const mica_ranges *set, int32_t number, int32_t *last_set, size_t total)
{
    int32_t at = 0;
    for (size_t k = 0; k < set->n; k++) {
        while (s->alphabet->ranges[at].high < set->items[k].low)
            at++;
        for (; at < s->alphabet->n_ranges && s->alphabet->ranges[at].low <= set->items[k].high; at++) {
            int32_t class = s->alphabet->ranges[at].class;
            if (last_set[class] == number)
                continue;
            last_set[class] = number;
            s->classes_of[total++] = class;
        }
    }
    return total;
}

static mica_status list_classes(subsets *s, const mica_regex *re, mica_error *err)
{
    size_t n_classes = (size_t)s->alphabet->n_classes, total = 0, capacity = 0;
    int32_t *last_set = mica_new_array(n_classes, sizeof *last_set);
    s->first_class = mica_new_array((size_t)re->n_sets + 1, sizeof *s->first_class);
    mica_status status = last_set && s->first_class ? MICA_OK : mica_regular_nomem(err);
    for (int32_t i = 0; i < re->n_sets && !status; i++) {
        if (total + n_classes > capacity) {
            capacity = 2 * capacity + n_classes + 256;
            int32_t *bigger = total > MAX_LIST ? NULL : realloc(s->classes_of, capacity * sizeof *bigger);
            if (!bigger) {
                status = total > MAX_LIST ? mica_regular_too_large(err) : mica_regular_nomem(err);
                break;
            }
            s->classes_of = bigger;
        }
        total = list_set(s, &re->sets[i], i + 1, last_set, total);
        s->first_class[i + 1] = (int32_t)total;
    }
    free(last_set);
    return status;
}

static void subsets_free(subsets *s)
{
    free(s->classes_of);
    free(s->first_class);
    free(s->members);
    free(s->first);
    free(s->table);
    free(s->next);
    free(s->accepts);
    free(s->stamp);
    free(s->stack);
    free(s->found);
    free(s->bits);
    free(s->bucket);
    free(s->bucket_next);
    free(s->bucket_head);
}

static mica_status determinise(const builder *b, int32_t start, mica_regular *r, mica_error *err)
{
    size_t n = (size_t)b->n_states;
    subsets s = {.states = b->states, .alphabet = &r->alphabet};
    mica_status status = mica_alphabet_of_sets(b->re->sets, (size_t)b->re->n_sets, &r->alphabet, err);
    if (status)
        return status;
    s.stamp = mica_new_array(n, sizeof *s.stamp);
    s.stack = mica_new_array(2 * n + 2, sizeof *s.stack); /* a state is expanded once and adds two at most */
    s.found = mica_new_array(n, sizeof *s.found);
    s.bits = mica_new_array(n / 64 + 1, sizeof *s.bits);
    s.bucket_head = mica_new_array((size_t)r->alphabet.n_classes, sizeof *s.bucket_head);
    if (!s.stamp || !s.stack || !s.found || !s.bits || !s.bucket_head)
        status = mica_regular_nomem(err);
    if (!status)
        status = list_classes(&s, b->re, err);
    if (!status)
        status = explore(&s, start, err);
    if (!status) {
        r->n_states = s.n;
        r->next = s.next;
        r->accepts = s.accepts;
        s.next = NULL;
        s.accepts = NULL;
    }
    subsets_free(&s);
    return status;
}

/* Any number of any characters before `next`. */
static int32_t build_any(builder *b, int32_t any_set, int32_t next)
{
    int32_t fork = add_state(b, NFA_FORK, 0, next, next), read = add_state(b, NFA_READ, any_set, fork, fork);
    if (!b->failed)
        b->states[fork].out = read;
    return fork;
}

mica_status mica_regular_of_regex(const mica_regex *re, mica_pattern_scope scope, mica_regular **out, mica_error *err)
{
    builder b = {.re = re};
    mica_regular *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return mica_regular_nomem(err);
    int32_t entry = add_state(&b, NFA_MATCH, 0, -1, -1);
    if (scope == MICA_PATTERN_SEARCH)
        entry = build_any(&b, 0, entry); /* set 0 has all characters */
    entry = build(&b, re->root, entry);
    if (scope == MICA_PATTERN_SEARCH)
        entry = build_any(&b, 0, entry);
    mica_status status = b.failed == MICA_OUT_OF_MEMORY ? mica_regular_nomem(err)
                         : b.failed                     ? mica_regular_too_large(err)
                                                        : determinise(&b, entry, r, err);
    free(b.states);
    if (!status)
        return mica_regular_minimise(r, out, err);
    mica_regular_free(r);
    return status;
}
