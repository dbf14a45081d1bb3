/* Blocks of a batch's KV memory: what is shared, copied, found again and given up is always what the tokens say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "session/kv_lease.h"

enum { CTX = 400, BLOCKS = 60, WINDOW = 70, DIM = 8, LEASES = 4 };

/* A model of two layers, one of them windowed (or none), whose cache holds, instead of keys, a number that depends on all
 * tokens up to the position. */
typedef struct pool {
    mica_hparams h;
    mica_kv_blocks blocks;
    void *memory;
} pool;

typedef struct sequence {
    mica_kv kv;
    mica_kv_lease lease;
    int32_t tables[64], tokens[CTX], n_tokens, n_computed;
} sequence;

static void make_pool(pool *p, bool windows, int32_t n_blocks, int32_t n_windows)
{
    mica_error err;
    mica_kv kv;
    int32_t slots[MICA_KV_KINDS] = {n_blocks * MICA_KV_BLOCK, n_windows * MICA_KV_BLOCK};
    memset(p, 0, sizeof *p);
    p->h.n_layers = 2;
    p->h.n_kv_heads = 2;
    p->h.head_dim = DIM;
    p->h.window = windows ? WINDOW : 0;
    p->h.windowed[1] = windows;
    const mica_quant *f16 = mica_quant_of(MICA_TYPE_F16);
    size_t half = mica_kv_slot_bytes(&p->h, f16, slots);
    p->memory = calloc(2, half);
    mica_kv_lay_out(&kv, &p->h, slots, f16, f16, p->memory, (char *)p->memory + half);
    assert_int_equal(mica_kv_blocks_init(&p->blocks, &kv, &err), MICA_OK);
}

static void free_pool(pool *p)
{
    mica_kv_blocks_free(&p->blocks);
    free(p->memory);
}

static void make_sequence(pool *p, sequence *s)
{
    memset(s, 0, sizeof *s);
    assert_true(mica_kv_lease_tables(CTX) <= 64);
    mica_kv_lease_init(&s->lease, &p->blocks, &s->kv, CTX, s->tables);
}

static uint64_t mark_of(const int32_t *tokens, int32_t pos, int32_t layer, int32_t head)
{
    uint64_t h = UINT64_C(1469598103934665603) + (uint64_t)(layer * 16 + head);
    for (int32_t i = 0; i <= pos; i++)
        h = (h ^ (uint64_t)tokens[i]) * UINT64_C(1099511628211);
    return h;
}

/* The step: positions [n_computed, end). */
static void compute(sequence *s, int32_t end)
{
    for (int32_t pos = s->n_computed; pos < end; pos++)
        for (int32_t layer = 0; layer < 2; layer++)
            for (int32_t head = 0; head < 2; head++) {
                uint64_t mark = mark_of(s->tokens, pos, layer, head);
                size_t row = mica_kv_row(&s->kv, layer, head, pos);
                memcpy(mica_kv_key(&s->kv, row), &mark, sizeof mark);
                mark = ~mark;
                memcpy(mica_kv_value(&s->kv, row), &mark, sizeof mark);
            }
    s->n_computed = end;
    mica_kv_lease_publish(&s->lease, s->tokens, end);
}

/* What the next token sees is what the tokens say. */
static void check_cache(const sequence *s)
{
    for (int32_t layer = 0; layer < 2; layer++) {
        int32_t from = s->kv.h->windowed[layer] ? s->n_computed - WINDOW + 1 : 0;
        for (int32_t pos = from > 0 ? from : 0; pos < s->n_computed; pos++) {
            mica_kv_range in = mica_kv_head(&s->kv, layer, 1, pos, 1);
            uint64_t mark = mark_of(s->tokens, pos, layer, 1), other = ~mark;
            assert_memory_equal(in.k, &mark, sizeof mark);
            assert_memory_equal(in.v, &other, sizeof other);
        }
    }
}

/* Uses are what leases and nodes account for, and free is what has none. */
static void check_uses(const pool *p, sequence *all, int n)
{
    int32_t uses[MICA_KV_KINDS][BLOCKS] = {{0}};
    const mica_kv_blocks *b = &p->blocks;
    for (int k = 0; k < n; k++) {
        const mica_kv_lease *l = &all[k].lease;
        for (int32_t i = 0; i < l->n; i++)
            uses[MICA_KV_FULL][all[k].kv.table[MICA_KV_FULL][i]]++;
        for (int32_t i = l->window0; i < l->n && b->has_windows; i++)
            uses[MICA_KV_WINDOWED][all[k].kv.table[MICA_KV_WINDOWED][i]]++;
        assert_true(l->known <= l->n);
        for (int32_t i = 0; i < l->known; i++) {
            const mica_kv_block *node = &b->block[all[k].kv.table[MICA_KV_FULL][i]];
            assert_int_equal(node->n, MICA_KV_BLOCK);
            assert_int_equal(node->parent, i ? all[k].kv.table[MICA_KV_FULL][i - 1] : MICA_KV_NONE);
        }
    }
    int32_t nodes = 0;
    for (int32_t i = 0; i < b->n[MICA_KV_FULL]; i++) {
        const mica_kv_block *node = &b->block[i];
        nodes += node->n > 0;
        uses[MICA_KV_FULL][i] += node->n > 0;
        if (node->n > 0 && node->window != MICA_KV_NONE)
            uses[MICA_KV_WINDOWED][node->window]++;
        if (node->n > 0 && node->parent != MICA_KV_NONE)
            assert_int_equal(b->block[node->parent].n, MICA_KV_BLOCK);
    }
    assert_int_equal(nodes, b->n_nodes);
    for (int kind = 0; kind < MICA_KV_KINDS; kind++) {
        int32_t n_free = 0;
        for (int32_t i = 0; i < b->n[kind]; i++) {
            assert_int_equal(uses[kind][i], kind == MICA_KV_FULL ? b->block[i].uses : b->window_uses[i]);
            n_free += uses[kind][i] == 0;
        }
        assert_int_equal(n_free, b->n_free[kind]);
    }
}

static void start(sequence *s, const int32_t *tokens, int32_t n)
{
    if (mica_kv_can_resume(&s->kv, s->n_computed))
        mica_kv_lease_rest(&s->lease, s->tokens, s->n_computed);
    mica_kv_lease_release(&s->lease);
    memcpy(s->tokens, tokens, (size_t)n * sizeof *tokens);
    s->n_tokens = n;
    s->n_computed = mica_kv_lease_find(&s->lease, s->tokens, n - 1, 0);
}

static void give_up(sequence *s)
{
    mica_kv_lease_rest(&s->lease, s->tokens, s->n_computed);
    mica_kv_lease_release(&s->lease);
    s->n_computed = 0;
}

static void fill(int32_t *tokens, int32_t from, int32_t to, int32_t value)
{
    for (int32_t i = from; i < to; i++)
        tokens[i] = value + i;
}

/* ---- one by one ---- */

static void test_sharing(void **state)
{
    (void)state;
    pool p;
    sequence s[3];
    int32_t tokens[CTX];
    make_pool(&p, false, 16, 1);
    for (int i = 0; i < 3; i++)
        make_sequence(&p, &s[i]);
    fill(tokens, 0, 100, 1000);
    start(&s[0], tokens, 100);
    assert_int_equal(s[0].n_computed, 0);
    assert_true(mica_kv_lease_reserve(&s[0].lease, 0, 100));
    compute(&s[0], 100);
    assert_int_equal(p.blocks.n_free[MICA_KV_FULL], 12);

    fill(tokens, 80, 120, 5000); /* the same 80: two blocks are shared, of the third 16 positions are copied */
    start(&s[1], tokens, 120);
    assert_int_equal(s[1].n_computed, 80);
    check_cache(&s[1]);
    assert_int_equal(p.blocks.n_free[MICA_KV_FULL], 11);
    assert_int_equal(s[0].tables[0], s[1].tables[0]);
    assert_int_not_equal(s[0].tables[2], s[1].tables[2]);
    assert_true(mica_kv_lease_reserve(&s[1].lease, 80, 120));
    compute(&s[1], 120);
    check_cache(&s[0]);
    check_cache(&s[1]);

    start(&s[2], s[0].tokens, 100); /* 96 are in full blocks; the rest of s[0] is not in the tree yet */
    assert_int_equal(s[2].n_computed, 96);
    give_up(&s[0]);
    start(&s[2], s[0].tokens, 100);
    assert_int_equal(s[2].n_computed, 99); /* the last is computed for its logits */
    check_cache(&s[2]);
    check_uses(&p, s, 3);
    for (int i = 0; i < 3; i++)
        mica_kv_lease_release(&s[i].lease);
    check_uses(&p, s, 3);
    free_pool(&p);
}

/* A node is copied before something else is written into its block. */
static void test_copy_on_write(void **state)
{
    (void)state;
    for (int windows = 0; windows < 2; windows++) {
        pool p;
        sequence s[2];
        int32_t tokens[CTX];
        make_pool(&p, windows, 16, 16);
        make_sequence(&p, &s[0]);
        make_sequence(&p, &s[1]);
        fill(tokens, 0, 64, 7);
        start(&s[0], tokens, 64);
        assert_true(mica_kv_lease_reserve(&s[0].lease, 0, 64));
        compute(&s[0], 64);
        start(&s[1], tokens, 65);
        s[1].tokens[64] = 9;
        assert_int_equal(s[1].n_computed, 64);
        s[0].tokens[50] = 99; /* the first one's history is cut back to 50 tokens and goes on differently */
        s[0].n_computed = 50;
        assert_true(mica_kv_lease_reserve(&s[0].lease, 50, 64));
        compute(&s[0], 64);
        check_cache(&s[0]);
        check_cache(&s[1]);
        check_uses(&p, s, 2);
        free_pool(&p);
    }
}

/* Two compute the same at once: afterwards it is there once. */
static void test_same_twice(void **state)
{
    (void)state;
    for (int windows = 0; windows < 2; windows++) {
        pool p;
        sequence s[2];
        int32_t tokens[CTX];
        make_pool(&p, windows, 16, 16);
        fill(tokens, 0, 70, 7);
        for (int i = 0; i < 2; i++) {
            make_sequence(&p, &s[i]);
            start(&s[i], tokens, 70);
            assert_true(mica_kv_lease_reserve(&s[i].lease, 0, 70));
        }
        compute(&s[0], 70);
        compute(&s[1], 70);
        assert_int_equal(p.blocks.n_free[MICA_KV_FULL], 16 - 4); /* two shared, and the rest of each */
        assert_int_equal(s[0].tables[1], s[1].tables[1]);
        check_cache(&s[1]);
        check_uses(&p, s, 2);
        free_pool(&p);
    }
}

/* What was unused longest goes first, its end before its beginning; what is held stays. */
static void test_eviction(void **state)
{
    (void)state;
    pool p;
    sequence s;
    int32_t tokens[CTX];
    make_pool(&p, false, 8, 1);
    make_sequence(&p, &s);
    for (int text = 0; text < 2; text++) {
        fill(tokens, 0, 100, 1000 * text);
        start(&s, tokens, 97);
        assert_true(mica_kv_lease_reserve(&s.lease, 0, 96));
        compute(&s, 96);
        give_up(&s);
    }
    fill(tokens, 0, 100, 0);
    start(&s, tokens, 97); /* the first text is the last one used now */
    assert_int_equal(s.n_computed, 96);
    give_up(&s);
    fill(tokens, 0, 128, 5000);
    start(&s, tokens, 128); /* four blocks: two are free, two are the end of the second text */
    assert_true(mica_kv_lease_reserve(&s.lease, 0, 128));
    compute(&s, 128);
    assert_int_equal(p.blocks.evictions, 2);
    give_up(&s);
    fill(tokens, 0, 100, 1000);
    start(&s, tokens, 97);
    assert_int_equal(s.n_computed, 32);
    fill(tokens, 0, 100, 0);
    start(&s, tokens, 97);
    assert_int_equal(s.n_computed, 96);
    fill(tokens, 0, 300, 9000);
    start(&s, tokens, 257);
    assert_false(mica_kv_lease_reserve(&s.lease, 0, 257)); /* nine blocks of eight */
    assert_int_equal(p.blocks.n_nodes, 0);
    assert_true(mica_kv_lease_reserve(&s.lease, 0, 256));
    check_uses(&p, &s, 1);
    free_pool(&p);
}

/* Windowed layers keep the window; a text whose window is gone is not continued in its middle. */
static void test_windows(void **state)
{
    (void)state;
    pool p;
    sequence s;
    int32_t tokens[CTX];
    make_pool(&p, true, 30, 6);
    make_sequence(&p, &s);
    fill(tokens, 0, CTX, 3);
    start(&s, tokens, 321);
    for (int32_t pos = 0; pos < 320; pos += 40) {
        assert_true(mica_kv_lease_reserve(&s.lease, pos, pos + 40));
        compute(&s, pos + 40);
        check_cache(&s);
    }
    give_up(&s);
    start(&s, tokens, 321);
    assert_int_equal(s.n_computed, 320);
    check_cache(&s);
    start(&s, tokens, 129); /* the blocks are there, the window is not */
    assert_int_equal(s.n_computed, 0);
    check_uses(&p, &s, 1);
    free_pool(&p);
}

/* ---- at random ---- */

static uint64_t rng = 1;

static int32_t below(int32_t n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (int32_t)((rng >> 33) % (uint64_t)n);
}

/* Texts that share beginnings: of every 20 tokens one differs with a chance of 1 in 3. */
static int32_t make_text(int32_t *tokens)
{
    int32_t n = 1 + below(CTX - 1);
    for (int32_t i = 0; i < n; i++)
        tokens[i] = i % 20 == 0 && below(3) == 0 ? 100 + below(2) : i;
    return n;
}

static bool make_room(sequence *all, int me, int32_t end)
{
    while (!mica_kv_lease_reserve(&all[me].lease, all[me].n_computed, end)) {
        int k = LEASES - 1;
        while (k >= 0 && (k == me || all[k].lease.n == 0))
            k--;
        if (k < 0)
            return false;
        give_up(&all[k]);
    }
    return true;
}

static void test_random(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        pool p;
        sequence all[LEASES];
        int32_t tokens[CTX];
        make_pool(&p, round & 1, round & 2 ? BLOCKS : 14, round & 4 ? 10 : 24);
        for (int i = 0; i < LEASES; i++) {
            make_sequence(&p, &all[i]);
            start(&all[i], tokens, make_text(tokens));
        }
        for (int turn = 0; turn < 1500; turn++) {
            int me = below(LEASES);
            sequence *s = &all[me];
            if (below(12) == 0 || s->n_computed >= s->n_tokens - 1)
                start(s, tokens, make_text(tokens));
            if (below(15) == 0 && s->n_computed > 3) { /* cut back, and goes on with other tokens */
                s->n_computed -= 1 + below(s->n_computed - 2);
                s->tokens[s->n_computed] = 300 + below(2);
            }
            if (!mica_kv_can_resume(&s->kv, s->n_computed))
                s->n_computed = 0;
            s->n_computed = mica_kv_lease_find(&s->lease, s->tokens, s->n_tokens - 1, s->n_computed);
            int32_t end = s->n_computed + 1 + below(60);
            end = end < s->n_tokens ? end : s->n_tokens;
            assert_true(make_room(all, me, end));
            compute(s, end);
            for (int i = 0; i < LEASES; i++)
                check_cache(&all[i]);
            check_uses(&p, all, LEASES);
        }
        assert_true(round & 2 || p.blocks.evictions > 0);
        for (int i = 0; i < LEASES; i++)
            mica_kv_lease_release(&all[i].lease);
        check_uses(&p, all, LEASES);
        free_pool(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sharing),  cmocka_unit_test(test_copy_on_write), cmocka_unit_test(test_same_twice),
        cmocka_unit_test(test_eviction), cmocka_unit_test(test_windows),       cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
