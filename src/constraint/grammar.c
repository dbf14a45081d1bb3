#include "constraint/grammar_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The most items of the arrays beside the nodes: far more than any grammar that compiles needs, and counts stay in int32_t. */
#define MAX_CHILDREN (4 * MICA_G_MAX_NODES)
#define MAX_BYTES (16 * MICA_G_MAX_NODES)
#define FIRST_CAPACITY 16

mica_status mica_grammar_new(mica_grammar **out, mica_error *err)
{
    mica_grammar_builder *b = calloc(1, sizeof *b);
    *out = b ? &b->g : NULL;
    if (!b)
        return mica_fail_nomem(err, sizeof *b, "a grammar");
    b->g.root = -1;
    return MICA_OK;
}

void mica_grammar_free(mica_grammar *g)
{
    if (!g)
        return;
    for (int32_t i = 0; i < g->n_fsms; i++) {
        free(g->fsms[i].edges);
        free(g->fsms[i].accepts);
    }
    for (int32_t i = 0; i < g->n_rules; i++)
        free(g->rules[i].name);
    free(g->nodes);
    free(g->children);
    free(g->bytes);
    free(g->sets);
    free(g->fsms);
    free(g->rules);
    free(((mica_grammar_builder *)g)->by_name);
    free(g);
}

/* ---- Failure ---- */

mica_gnode mica_grammar_fail(mica_grammar *g, mica_status code, int64_t position, const char *format, ...)
{
    if (g->failure)
        return MICA_GNODE_FAILED;
    char message[sizeof g->error.message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    g->failure = mica_fail_at(&g->error, code, position, "%s", message);
    return MICA_GNODE_FAILED;
}

mica_gnode mica_grammar_nomem(mica_grammar *g, size_t bytes)
{
    return mica_grammar_fail(g, MICA_OUT_OF_MEMORY, -1, "out of memory: the system refused %zu bytes for a grammar", bytes);
}

int mica_grammar_clip(const char *name)
{
    size_t n = strnlen(name, 100);
    while (n && ((unsigned char)name[n] & 0xC0) == 0x80)
        n--;
    return (int)n;
}

static mica_gnode too_large(mica_grammar *g)
{
    return mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "the grammar is too large: it has more than %d elements",
                             MICA_G_MAX_NODES);
}

/* ---- Arrays ---- */

/* Of an array with `count` items. The same count always gives the same capacity, so it need not be kept. */
static size_t capacity_for(size_t count)
{
    size_t capacity = FIRST_CAPACITY;
    while (capacity < count)
        capacity *= 2;
    return count ? capacity : 0;
}

bool mica_grammar_reserve(mica_grammar *g, void *array, int32_t count, size_t extra, size_t size)
{
    void *data;
    size_t need = capacity_for((size_t)count + extra);
    if (g->failure)
        return false;
    if (need == capacity_for((size_t)count))
        return true;
    memcpy(&data, array, sizeof data); /* a pointer of any type, which a void ** must not alias */
    data = realloc(data, need * size);
    if (!data) {
        mica_grammar_nomem(g, need * size);
        return false;
    }
    memcpy(array, &data, sizeof data);
    return true;
}

/* ---- Nodes ---- */

mica_gnode mica_grammar_node(mica_grammar *g, mica_gnode_data data)
{
    if (g->n_nodes >= MICA_G_MAX_NODES)
        return too_large(g);
    if (!mica_grammar_reserve(g, &g->nodes, g->n_nodes, 1, sizeof *g->nodes))
        return MICA_GNODE_FAILED;
    g->nodes[g->n_nodes] = data;
    return g->n_nodes++;
}

mica_gnode mica_grammar_empty(mica_grammar *g) { return mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_EMPTY}); }

mica_gnode mica_grammar_never(mica_grammar *g) { return mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_NEVER}); }

mica_gnode mica_grammar_literal(mica_grammar *g, const void *bytes, size_t n)
{
    if (n == 0)
        return mica_grammar_empty(g);
    if (n > (size_t)(MAX_BYTES - g->n_bytes))
        return too_large(g);
    if (!mica_grammar_reserve(g, &g->bytes, g->n_bytes, n, 1))
        return MICA_GNODE_FAILED;
    int32_t first = g->n_bytes;
    memcpy(g->bytes + first, bytes, n);
    g->n_bytes += (int32_t)n;
    return mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_LITERAL, .first = first, .count = (int32_t)n});
}

mica_gnode mica_grammar_bytes(mica_grammar *g, const mica_byte_set *set)
{
    uint32_t any = 0;
    for (int i = 0; i < 8; i++)
        any |= set->bits[i];
    if (!any)
        return mica_grammar_never(g);
    if (!mica_grammar_reserve(g, &g->sets, g->n_sets, 1, sizeof *g->sets))
        return MICA_GNODE_FAILED;
    g->sets[g->n_sets] = *set;
    return mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_SET, .first = g->n_sets++});
}

/* A sequence or an alternative of n nodes. Those of kind `dropped` change nothing and are left out. One that is left is
 * itself the result; none are `dropped` itself. */
static mica_gnode combine(mica_grammar *g, mica_gkind kind, mica_gkind dropped, const mica_gnode *nodes, size_t n)
{
    if (n > (size_t)(MAX_CHILDREN - g->n_children))
        return too_large(g);
    if (!mica_grammar_reserve(g, &g->children, g->n_children, n, sizeof *g->children))
        return MICA_GNODE_FAILED;
    int32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (nodes[i] < 0 || nodes[i] >= g->n_nodes)
            return mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "a grammar has no node %d", nodes[i]);
        if (g->nodes[nodes[i]].kind != dropped)
            g->children[g->n_children + count++] = nodes[i];
    }
    if (count == 1)
        return g->children[g->n_children];
    if (count == 0)
        return mica_grammar_node(g, (mica_gnode_data){.kind = dropped});
    g->n_children += count;
    return mica_grammar_node(g, (mica_gnode_data){.kind = kind, .first = g->n_children - count, .count = count});
}

mica_gnode mica_grammar_seq(mica_grammar *g, const mica_gnode *nodes, size_t n)
{
    return combine(g, MICA_G_SEQ, MICA_G_EMPTY, nodes, n);
}

mica_gnode mica_grammar_alt(mica_grammar *g, const mica_gnode *nodes, size_t n)
{
    return combine(g, MICA_G_ALT, MICA_G_NEVER, nodes, n);
}

mica_gnode mica_grammar_repeat(mica_grammar *g, mica_gnode node, int32_t min, int32_t max)
{
    if (g->failure)
        return MICA_GNODE_FAILED;
    if (node < 0 || node >= g->n_nodes)
        return mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "a grammar has no node %d", node);
    if (min < 0 || (max != MICA_G_NO_LIMIT && max < min))
        return mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "a repetition of %d to %d times is not possible", min, max);
    mica_gkind kind = g->nodes[node].kind;
    if ((min == 1 && max == 1) || kind == MICA_G_EMPTY)
        return node;
    if (max == 0 || (kind == MICA_G_NEVER && min == 0))
        return mica_grammar_empty(g);
    if (kind == MICA_G_NEVER)
        return node;
    if (!mica_grammar_reserve(g, &g->children, g->n_children, 1, sizeof *g->children))
        return MICA_GNODE_FAILED;
    int32_t first = g->n_children++;
    g->children[first] = node;
    return mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_REPEAT, .first = first, .count = 1, .min = min, .max = max});
}

/* ---- Rules ---- */

/* FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo), 32 bits. */
static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

/* The slot of this name, or the free one where it belongs. The table is never full. */
static int32_t *find_slot(const mica_grammar_builder *b, const char *name)
{
    uint32_t mask = (uint32_t)b->n_slots - 1, i = hash_name(name) & mask;
    while (b->by_name[i] && strcmp(b->g.rules[b->by_name[i] - 1].name, name) != 0)
        i = (i + 1) & mask;
    return &b->by_name[i];
}

/* Keeps the table at most half full. */
static bool grow_table(mica_grammar_builder *b)
{
    if (b->n_named * 2 < b->n_slots)
        return true;
    int32_t n_slots = b->n_slots ? b->n_slots * 2 : FIRST_CAPACITY, n_old = b->n_slots, *old = b->by_name;
    int32_t *slots = mica_new_array((size_t)n_slots, sizeof *slots);
    if (!slots) {
        mica_grammar_nomem(&b->g, (size_t)n_slots * sizeof *slots);
        return false;
    }
    b->by_name = slots;
    b->n_slots = n_slots;
    for (int32_t i = 0; i < n_old; i++)
        if (old[i])
            *find_slot(b, b->g.rules[old[i] - 1].name) = old[i];
    free(old);
    return true;
}

int32_t mica_grammar_new_rule(mica_grammar *g, const char *name)
{
    if (g->n_rules >= MICA_G_MAX_NODES)
        return too_large(g);
    if (!mica_grammar_reserve(g, &g->rules, g->n_rules, 1, sizeof *g->rules))
        return MICA_GNODE_FAILED;
    char *copy = strdup(name);
    if (!copy)
        return mica_grammar_nomem(g, strlen(name) + 1);
    g->rules[g->n_rules] = (mica_grule){.name = copy, .body = MICA_GNODE_FAILED};
    return g->n_rules++;
}

int32_t mica_grammar_rule(mica_grammar *g, const char *name)
{
    mica_grammar_builder *b = (mica_grammar_builder *)g;
    if (g->failure || !grow_table(b))
        return MICA_GNODE_FAILED;
    int32_t *slot = find_slot(b, name);
    if (*slot)
        return *slot - 1;
    int32_t rule = mica_grammar_new_rule(g, name);
    if (rule >= 0) {
        *slot = rule + 1;
        b->n_named++;
    }
    return rule;
}

static bool check_rule(mica_grammar *g, int32_t rule)
{
    if (!g->failure && (rule < 0 || rule >= g->n_rules))
        mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "a grammar has no rule %d", rule);
    return !g->failure;
}

void mica_grammar_define(mica_grammar *g, int32_t rule, mica_gnode body)
{
    if (!check_rule(g, rule))
        return;
    if (body < 0 || body >= g->n_nodes)
        mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "a grammar has no node %d", body);
    else if (g->rules[rule].body != MICA_GNODE_FAILED)
        mica_grammar_fail(g, MICA_BAD_TEXT, -1, "rule \"%.*s\" is defined twice",
                          MICA_CLIPPED(g->rules[rule].name));
    else
        g->rules[rule].body = body;
}

mica_gnode mica_grammar_call(mica_grammar *g, int32_t rule)
{
    if (!check_rule(g, rule))
        return MICA_GNODE_FAILED;
    return mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_CALL, .first = rule});
}

mica_status mica_grammar_finish(mica_grammar *g, int32_t root, mica_error *err)
{
    if (check_rule(g, root))
        mica_grammar_check(g, root);
    if (g->failure)
        return mica_fail_at(err, g->failure, g->error.position, "%s", g->error.message);
    g->root = root;
    return MICA_OK;
}
