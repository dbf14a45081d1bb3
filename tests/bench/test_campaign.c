/* Campaigns without a model: manifests, items and shards, the store's promises, sums, targets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>

#include "../unit/fake_tree.h"
#include "bench/campaign_run.h"
#include "bench/campaign_status.h"
#include "bench/store_sql.h"

#define SHA "6ad61b572bd8faac5ae1faf4aeff090a491547e7fa0f3cd0aa0569e69b5471f9"

static void tree_file(const fake_tree *t, const char *path, const char *text)
{
    tree_bytes(t, path, text, strlen(text));
}

/* A manifest: the members that all have, and those of a test. */
static mica_status read_with(const char *lengths, const char *more, mica_campaign *c, mica_error *err)
{
    char json[2000];
    snprintf(
        json, sizeof json,
        "{\"version\": 1, \"name\": \"t\", \"model\": {\"file\": \"m.gguf\"}, \"prompts\": {\"file\": \"p\", \"sha256\": \"" SHA
        "\"}, \"lengths\": %s, %s}",
        lengths, more);
    return mica_campaign_read(json, strlen(json), c, err);
}

#define LENGTHS                                                                                                                \
    "{\"prompt\": {\"min\": 3, \"max\": 90}, \"reply\": [{\"tokens\": 5}, {\"min\": 20, \"max\": 40, \"weight\": 3}]}"

/* ---- The manifest ---- */

static void test_manifest(void **state)
{
    (void)state;
    mica_campaign c;
    mica_error err;
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 12345, \"batch\": 3", &c, &err), MICA_OK);
    assert_string_equal(c.runtime, "mica");
    assert_string_equal(c.backend, "default");
    assert_int_equal(c.tokens, 12345);
    assert_int_equal(c.batch, 3);
    assert_int_equal(c.n_ctx, 1024);
    assert_true(c.greedy && c.ignore_eos);
    assert_true(c.shard_s == 300.0);
    assert_int_equal(c.prompt.n, 1);
    assert_int_equal(c.prompt.longest, 90);
    assert_int_equal(c.reply.n, 2);
    assert_int_equal(c.reply.total, 4);
    assert_int_equal(c.reply.low[0], 5);
    assert_int_equal(c.reply.high[0], 5);
    mica_campaign_free(&c);
}

static void test_manifest_faults(void **state)
{
    (void)state;
    static const struct {
        const char *lengths, *more, *wanted;
    } bad[] = {
        {LENGTHS, "\"batch\": 1", "\"tokens\""},
        {LENGTHS, "\"tokens\": 1", "\"tokens\""},
        {LENGTHS, "\"tokens\": 1e9", "\"tokens\""},
        {LENGTHS, "\"tokens\": 100, \"colour\": 1", "\"colour\""},
        {LENGTHS, "\"tokens\": 100, \"n_ctx\": 130",
         "\"n_ctx\" is 130, but the longest prompt and reply with one token more need 131"},
        {LENGTHS, "\"tokens\": 100, \"backend\": \"tpu\"", "\"backend\""},
        {LENGTHS, "\"tokens\": 100, \"runtime\": \"\"", "\"runtime\""},
        {LENGTHS, "\"tokens\": 100, \"shards\": {\"seconds\": 601}", "\"seconds\""},
        {LENGTHS, "\"tokens\": 100, \"sampling\": {\"temperature\": 0}", "\"temperature\""},
        {LENGTHS, "\"tokens\": 100, \"ignore_eos\": 1", "\"ignore_eos\""},
        {LENGTHS, "\"tokens\": 100, \"tokens\": 200", "not JSON"},
        {"{\"prompt\": {\"tokens\": 5}}", "\"tokens\": 100", "\"reply\""},
        {"{\"prompt\": {\"tokens\": 0}, \"reply\": {\"tokens\": 1}}", "\"tokens\": 100", "\"tokens\""},
        {"{\"prompt\": {\"min\": 9, \"max\": 8}, \"reply\": {\"tokens\": 1}}", "\"tokens\": 100", "\"max\""},
        {"{\"prompt\": {\"tokens\": 9, \"max\": 9}, \"reply\": {\"tokens\": 1}}", "\"tokens\": 100", "\"tokens\""},
        {"{\"prompt\": [], \"reply\": {\"tokens\": 1}}", "\"tokens\": 100", "\"prompt\""},
        {"{\"prompt\": [{\"tokens\": 1, \"weight\": 0}], \"reply\": {\"tokens\": 1}}", "\"tokens\": 100", "\"weight\""},
        {"7", "\"tokens\": 100", "\"lengths\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica_campaign c;
        mica_error err;
        assert_int_equal(read_with(bad[i].lengths, bad[i].more, &c, &err), MICA_BAD_TEXT);
        if (!strstr(err.message, bad[i].wanted))
            fail_msg("\"%s\" does not say %s", err.message, bad[i].wanted);
    }
    mica_campaign c;
    mica_error err;
    assert_int_equal(mica_campaign_read("[]", 2, &c, &err), MICA_BAD_TEXT);
    assert_int_equal(mica_campaign_read("", 0, &c, &err), MICA_BAD_TEXT);
}

static void test_id(void **state)
{
    (void)state;
    mica_campaign a, b, c;
    mica_error err;
    char ids[4][65];
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 100, \"seed\": 1", &a, &err), MICA_OK);
    assert_int_equal(read_with(LENGTHS, "\"seed\":   1, \"tokens\": 100", &b, &err), MICA_OK); /* the same, written otherwise */
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 100, \"seed\": 2", &c, &err), MICA_OK);
    assert_int_equal(mica_campaign_id(&a, SHA, ids[0], &err), MICA_OK);
    assert_int_equal(mica_campaign_id(&b, SHA, ids[1], &err), MICA_OK);
    assert_int_equal(mica_campaign_id(&c, SHA, ids[2], &err), MICA_OK);
    assert_int_equal(mica_campaign_id(&a, "another model", ids[3], &err), MICA_OK);
    assert_string_equal(ids[0], ids[1]);
    assert_string_not_equal(ids[0], ids[2]);
    assert_string_not_equal(ids[0], ids[3]);
    assert_int_equal(strlen(ids[0]), 64);
    mica_campaign_free(&a);
    mica_campaign_free(&b);
    mica_campaign_free(&c);
}

/* ---- Prompts ---- */

static void test_prompts(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char path[300], hex[65];
    mica_prompts p;
    mica_error err;
    const char *good = "{\"text\": \"first\"}\n\r\n\n{\"prompt\": \"second \\u00e9\"}";
    static const char *const bad[] = {
        "", "\n\n", "{\"text\": \"\"}\n", "{\"text\": 1}", "[\"text\"]", "{\"text\": \"a\"}\n{", "\"text\""};
    snprintf(path, sizeof path, "%s/p.jsonl", t.root);
    tree_file(&t, "p.jsonl", good);
    assert_int_equal(mica_campaign_model_sha256(path, NULL, NULL, hex, &err), MICA_OK);
    assert_int_equal(mica_prompts_open(path, hex, &p, &err), MICA_OK);
    assert_int_equal(p.n, 2);
    assert_string_equal(p.text[0], "first");
    assert_string_equal(p.text[1], "second \xc3\xa9");
    assert_int_equal(p.length[1], 9);

    mica_buf text;
    mica_item item = {.index = 41, .prompt = 1, .prompt_n = 1, .reply_n = 1};
    mica_buf_init(&text, 1000);
    assert_int_equal(mica_item_text(&item, &p, 20, &text, &err), MICA_OK);
    assert_int_equal(text.length, strlen("42. second \xc3\xa9\n\nfirst\n\n"));
    assert_memory_equal(text.data, "42. second \xc3\xa9\n\nfirst\n\n", text.length);
    mica_buf_free(&text);
    mica_prompts_free(&p);

    assert_int_equal(mica_prompts_open(path, SHA, &p, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, hex)); /* what to write into the manifest */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tree_file(&t, "p.jsonl", bad[i]);
        if (mica_campaign_model_sha256(path, NULL, NULL, hex, &err))
            continue;
        assert_int_not_equal(mica_prompts_open(path, hex, &p, &err), MICA_OK);
    }
    tree_free(&t);
}

static void test_model_folder(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char a[65], b[65];
    mica_error err;
    tree_file(&t, "weights.bin", "1234");
    tree_file(&t, "config.json", "{}");
    tree_file(&t, ".lock", "x");
    assert_int_equal(mica_campaign_model_sha256(t.root, NULL, NULL, a, &err), MICA_OK);
    tree_file(&t, ".lock", "y");
    assert_int_equal(mica_campaign_model_sha256(t.root, NULL, NULL, b, &err), MICA_OK);
    assert_string_equal(a, b);
    tree_file(&t, "weights.bin", "1235");
    assert_int_equal(mica_campaign_model_sha256(t.root, NULL, NULL, b, &err), MICA_OK);
    assert_string_not_equal(a, b);
    tree_file(&t, "more/file", "");
    assert_int_equal(mica_campaign_model_sha256(t.root, NULL, NULL, b, &err), MICA_UNSUPPORTED);
    tree_free(&t);
}

/* ---- Items and shards ---- */

/* The next shard of a campaign, behind `last`. */
static mica_shard cut_after(const mica_campaign *c, const mica_shard *last, int64_t target)
{
    mica_shard begin = {.seq = 0}, out;
    mica_error err;
    if (last)
        begin = (mica_shard){
            .seq = last->seq + 1, .first_item = last->first_item + last->n_items, .before = last->before + last->tokens};
    assert_int_equal(mica_shard_cut(c, "id", 7, &begin, target, &out, &err), MICA_OK);
    return out;
}

/* Whatever the lengths and the cut: the items are the same, and all tokens are given out, none twice. */
static void check_plan(const mica_campaign *c, int64_t target, int64_t *n_items, int64_t *check)
{
    mica_shard last = {.seq = -1};
    int64_t tokens = 0, items = 0, sum = 0;
    while (tokens < c->tokens) {
        mica_shard s = cut_after(c, last.seq < 0 ? NULL : &last, target);
        assert_int_equal(s.before, tokens);
        assert_int_equal(s.first_item, items);
        for (int64_t i = 0; i < s.n_items; i++) {
            assert_int_equal(s.items[i].index, items++);
            assert_true(s.items[i].prompt < 7);
            assert_true(s.items[i].prompt_n >= 1 && s.items[i].prompt_n <= c->prompt.longest);
            assert_true(s.items[i].reply_n >= 1 && s.items[i].reply_n <= c->reply.longest + 1);
            tokens += s.items[i].prompt_n + s.items[i].reply_n;
            sum = (int64_t)((uint64_t)sum * 31 + (uint64_t)s.items[i].prompt_n * 1000 + (uint64_t)s.items[i].reply_n);
        }
        assert_true(s.n_items == 1 || s.tokens <= target);
        assert_true(s.n_items > 0);
        mica_shard_free(&s);
        last = s;
    }
    assert_int_equal(tokens, c->tokens);
    *n_items = items;
    *check = sum;
}

static void test_plan_gives_out_every_token(void **state)
{
    (void)state;
    static const char *const lengths[] = {LENGTHS, "{\"prompt\": {\"tokens\": 1}, \"reply\": {\"tokens\": 1}}",
                                          "{\"prompt\": {\"tokens\": 100}, \"reply\": {\"tokens\": 1}}",
                                          "{\"prompt\": {\"min\": 1, \"max\": 400}, \"reply\": {\"min\": 1, \"max\": 400}}"};
    static const int64_t tokens[] = {2, 3, 4, 5, 99, 100, 101, 102, 103, 5000, 5001, 100001};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
            mica_campaign c;
            mica_error err;
            char more[64];
            int64_t n[3], sum[3];
            snprintf(more, sizeof more, "\"tokens\": %lld, \"seed\": %zu", (long long)tokens[i], i);
            assert_int_equal(read_with(lengths[l], more, &c, &err), MICA_OK);
            check_plan(&c, 2, &n[0], &sum[0]);
            check_plan(&c, 777, &n[1], &sum[1]);
            check_plan(&c, INT64_MAX, &n[2], &sum[2]);
            assert_true(n[0] == n[1] && n[1] == n[2] && sum[0] == sum[1] && sum[1] == sum[2]);
            mica_campaign_free(&c);
        }
}

/* The hash is that of campaign_plan.py, which draws them too: every machine must draw the same. */
static void test_items_are_fixed(void **state)
{
    (void)state;
    mica_campaign c;
    mica_error err;
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 100000, \"seed\": 5", &c, &err), MICA_OK);
    mica_shard s = cut_after(&c, NULL, 1000), again = cut_after(&c, NULL, 1000), exact;
    mica_shard begin = {.n_items = s.n_items};
    assert_string_equal(s.id, again.id);
    assert_string_equal(s.input, again.input);
    assert_int_equal(mica_shard_cut(&c, "id", 7, &begin, 1, &exact, &err), MICA_OK); /* as a stored one is cut again */
    assert_string_equal(s.input, exact.input);
    mica_shard_free(&exact);
    assert_int_equal(mica_shard_cut(&c, "id2", 7, &begin, 1, &exact, &err), MICA_OK);
    assert_string_not_equal(s.input, exact.input);
    assert_string_not_equal(s.id, exact.id);
    assert_string_equal(s.input, "41b7b4264a23d9003acc95c1c4a87f1997a91c0e316a10176783b592c5e08653");
    mica_shard_free(&exact);
    mica_shard_free(&s);
    mica_shard_free(&again);
    begin = (mica_shard){.before = 100000};
    assert_int_equal(mica_shard_cut(&c, "id", 7, &begin, 1000, &s, &err), MICA_BAD_FILE);
    mica_campaign_free(&c);
}

/* Weights are what they say: of 3:1 a part of 0.75, within five standard deviations. */
static void test_distribution(void **state)
{
    (void)state;
    mica_campaign c;
    mica_error err;
    double mean = 0, longs = 0;
    enum { N = 20000 };
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 1000000000", &c, &err), MICA_OK);
    for (int64_t i = 0; i < N; i++) {
        mica_item item = mica_campaign_item(&c, 7, i, 1000000);
        mean += item.prompt_n / (double)N;
        longs += item.reply_n >= 20 ? 1.0 / N : 0;
    }
    assert_true(fabs(mean - 46.5) < 5 * 25.4 / sqrt(N));
    assert_true(fabs(longs - 0.75) < 5 * sqrt(0.75 * 0.25 / N));
    mica_campaign_free(&c);
}

static void test_target(void **state)
{
    (void)state;
    mica_campaign c;
    mica_error err;
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 100000, \"batch\": 8", &c, &err), MICA_OK);
    mica_shard_row last = {
        .shard = {.n_items = 10}, .wall_ns = 2000000000, .sums = {.prompt_tokens = 600, .reply_tokens = 400}};
    assert_int_equal(mica_campaign_target(&c, NULL, 0), 8 * 130);
    assert_int_equal(mica_campaign_target(&c, &last, 0), 8000);   /* 240 s at 500/s would be more than eight times */
    assert_int_equal(mica_campaign_target(&c, &last, 10), 5000);  /* no more than fits what is left */
    assert_int_equal(mica_campaign_target(&c, &last, 0.01), 130); /* but an item */
    last.wall_ns = 200000000000;
    assert_int_equal(mica_campaign_target(&c, &last, 0), 1200); /* 240 s at 5/s */
    c.shard_tokens = 77;
    assert_int_equal(mica_campaign_target(&c, &last, 0), 77);
    mica_campaign_free(&c);
}

/* ---- The store ---- */

typedef struct world {
    fake_tree tree;
    char path[300];
    mica_store *store;
    mica_campaign c;
} world;

static world world_new(void)
{
    world w = {.tree = tree_new()};
    mica_error err;
    snprintf(w.path, sizeof w.path, "%s/c.db", w.tree.root);
    assert_int_equal(mica_store_open(w.path, &w.store, &err), MICA_OK);
    assert_int_equal(read_with(LENGTHS, "\"tokens\": 2000", &w.c, &err), MICA_OK);
    assert_int_equal(mica_campaign_store_begin(w.store, &w.c, "id", "sha", &err), MICA_OK);
    assert_int_equal(mica_campaign_store_begin(w.store, &w.c, "id", "sha", &err), MICA_OK); /* again: it stays one */
    return w;
}

static void world_free(world *w)
{
    mica_store_close(w->store);
    mica_campaign_free(&w->c);
    tree_free(&w->tree);
}

/* A result as a runtime would leave it, the last reply cut by an end token. */
static mica_shard_result answer(const mica_shard *s)
{
    mica_shard_result r;
    mica_error err;
    assert_int_equal(mica_shard_result_init(s, &r, &err), MICA_OK);
    for (size_t i = 0; i < r.n; i++) {
        mica_answer *a = &r.answers[i];
        a->prompt_n = s->items[i].prompt_n;
        a->cached_n = i == 0 ? -1 : (int64_t)i;
        a->gen_n = s->items[i].reply_n;
        a->n = (size_t)a->gen_n - (i + 1 == r.n);
        a->reason = i + 1 == r.n ? MICA_REASON_EOS : MICA_REASON_LENGTH;
        a->started_ns = (int64_t)i * 1000;
        a->done_ns = a->started_ns + 999;
        for (size_t k = 0; k < a->n; k++) {
            r.times[a->first + k] = a->started_ns + (int64_t)k;
            r.tokens[a->first + k] = (int64_t)(i * 100 + k);
        }
    }
    r.wall_ns = 4000000000;
    json_array_append_new(r.samples,
                          json_pack("{s:i, s:[i], s:[i]}", "t_ns", 1, "energy_uj", 900000, "energy_range_uj", 1000000));
    json_array_append_new(r.samples,
                          json_pack("{s:i, s:[i], s:[i]}", "t_ns", 2, "energy_uj", 100000, "energy_range_uj", 1000000));
    return r;
}

static mica_shard cut_next(world *w, bool *pending)
{
    mica_shard begin, s;
    mica_error err;
    assert_int_equal(mica_campaign_store_next(w->store, "id", &begin, pending, &err), MICA_OK);
    assert_int_equal(mica_shard_cut(&w->c, "id", 7, &begin, 700, &s, &err), MICA_OK);
    if (!*pending)
        assert_int_equal(mica_campaign_store_cut(w->store, "id", &s, &err), MICA_OK);
    else
        assert_string_equal(begin.input, s.input);
    return s;
}

static mica_status store_result(void *user, const mica_shard_row *row, mica_error *err)
{
    world *w = user;
    mica_shard_result r;
    mica_status status = mica_campaign_store_result(w->store, "id", row, &r, err);
    if (!status) {
        assert_int_equal(r.answers[r.n - 1].reason, MICA_REASON_EOS);
        assert_int_equal(r.answers[0].cached_n, -1);
        assert_int_equal(r.tokens[r.answers[1].first], 100);
        assert_int_equal(r.times[r.answers[1].first + 1], 1001);
        json_t *json = mica_campaign_shard_json(row, &r);
        assert_int_equal(json_array_size(json_object_get(json, "answers")), r.n);
        assert_true(json_is_null(json_object_get(json_array_get(json_object_get(json, "answers"), 0), "cached_n")));
        json_decref(json);
        mica_shard_result_free(&r);
    }
    return status;
}

static void test_a_shard_counts_once(void **state)
{
    (void)state;
    world w = world_new();
    mica_error err;
    bool pending;
    mica_campaign_totals t;
    json_t *head = json_pack("{s:s}", "runtime", "test");
    mica_shard s = cut_next(&w, &pending);
    assert_false(pending);
    assert_int_not_equal(mica_campaign_store_cut(w.store, "id", &s, &err), MICA_OK); /* not cut twice */
    mica_shard_free(&s);
    s = cut_next(&w, &pending); /* after a crash it is there again, the same */
    assert_true(pending);
    assert_int_equal(mica_campaign_store_totals(w.store, "id", &t, &err), MICA_OK);
    assert_int_equal(t.shards, 0);
    assert_true(isnan(t.joules));

    mica_shard_result r = answer(&s);
    mica_shard other = s;
    other.input[0] = other.input[0] == 'x' ? 'y' : 'x';
    assert_int_equal(mica_campaign_store_done(w.store, "id", &other, &r, head, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_campaign_store_done(w.store, "id", &s, &r, head, &err), MICA_OK);
    assert_int_equal(mica_campaign_store_done(w.store, "id", &s, &r, head, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "counts once"));
    assert_int_equal(mica_campaign_store_totals(w.store, "id", &t, &err), MICA_OK);
    assert_int_equal(t.shards, 1);
    assert_int_equal(t.planned, s.tokens);
    assert_int_equal(t.prompt_tokens + t.reply_tokens, s.tokens);
    assert_int_equal(t.cached_tokens, (s.n_items - 1) * s.n_items / 2);
    assert_true(fabs(t.joules - 0.2) < 1e-12); /* the counter wrapped around */
    assert_int_equal(t.measured_tokens, s.tokens);
    assert_int_equal(mica_campaign_store_shards(w.store, "id", store_result, &w, &err), MICA_OK);
    mica_shard_result_free(&r);
    mica_shard_free(&s);
    json_decref(head);
    world_free(&w);
}

/* A shard with everything in it, done. */
static void run_one(world *w)
{
    mica_error err;
    bool pending;
    json_t *head = json_pack("{s:s}", "runtime", "test");
    mica_shard s = cut_next(w, &pending);
    mica_shard_result r = answer(&s);
    assert_int_equal(mica_campaign_store_done(w->store, "id", &s, &r, head, &err), MICA_OK);
    mica_shard_result_free(&r);
    mica_shard_free(&s);
    json_decref(head);
}

static void test_forged_rows_are_found(void **state)
{
    (void)state;
    static const char *const forgeries[] = {
        "UPDATE shard SET reply_tokens = reply_tokens + 1",
        "UPDATE shard SET joules = 1000",
        "UPDATE shard SET joules = NULL",
        "UPDATE shard SET times = tokens || x'00'",
        "UPDATE shard SET answers = times",
        "UPDATE shard SET tokens = x''",
        "UPDATE shard SET samples = answers",
        "UPDATE shard SET n_items = n_items + 1",
        "UPDATE shard SET n_items = 1000000000",
    };
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        world w = world_new();
        mica_error err;
        run_one(&w);
        assert_int_equal(sqlite3_exec(mica_store_connection(w.store), forgeries[i], NULL, NULL, NULL), SQLITE_OK);
        if (mica_campaign_store_shards(w.store, "id", store_result, &w, &err) != MICA_BAD_FILE)
            fail_msg("not found: %s", forgeries[i]);
        world_free(&w);
    }
}

static bool count_row(void *user, const mica_campaign_row *row)
{
    int *n = user;
    assert_string_equal(row->id, "id");
    assert_string_equal(row->name, "t");
    assert_int_equal(row->tokens, 2000);
    ++*n;
    return true;
}

static bool read_state(void *user, const mica_campaign_row *row)
{
    world *w = user;
    mica_error err;
    mica_campaign_state s;
    mica_device_cost_input price = {
        .power.v = NAN, .electricity.v = 0.5, .life.v = 3, .duty.v = 1, .battery.v = NAN, .measured_energy.v = NAN};
    assert_int_equal(mica_campaign_state_read(w->store, row, &price, &s, &err), MICA_OK);
    double planned = (double)s.totals.planned;
    assert_true(s.part == planned / 2000);
    assert_string_equal(mica_campaign_state_name(&s, true), s.part < 1 ? "running" : "done");
    if (s.totals.shards == 0) {
        assert_true(isnan(s.tps) && isnan(s.left_s) && isnan(s.usd) && isnan(s.energy_wh));
        return true;
    }
    double seconds = 4.0 * (double)s.totals.shards, wh = 0.2 * (double)s.totals.shards / 3600;
    assert_true(fabs(s.tps - planned / seconds) < 1e-9);
    /* Four seconds each that were stored within one: as if machines had computed them side by side. */
    assert_true(s.totals.machines >= 1 && s.totals.machines <= (double)s.totals.shards);
    assert_true(fabs(s.left_s - (2000 - planned) / (s.recent_tps * s.totals.machines)) < 1e-9);
    assert_true(fabs(s.energy_wh - wh) < 1e-12);
    assert_true(fabs(s.energy_usd - wh / 1000 * 0.5) < 1e-15); /* measured energy, at the price */
    assert_true(s.hardware_usd == 0 && s.usd == s.energy_usd);
    price = (mica_device_cost_input){.power.v = 10,
                                     .electricity.v = 0.5,
                                     .device.v = 100,
                                     .life.v = 1,
                                     .duty.v = 1,
                                     .battery.v = NAN,
                                     .measured_energy.v = NAN};
    assert_int_equal(mica_campaign_state_read(w->store, row, &price, &s, &err), MICA_OK);
    assert_true(fabs(s.energy_usd - wh / 1000 * 0.5) < 1e-15); /* what was measured goes before what was said */
    assert_true(fabs(s.hardware_usd - 100 * seconds / MICA_SECONDS_PER_YEAR) < 1e-9);
    return true;
}

static void test_a_campaign_to_its_end(void **state)
{
    (void)state;
    world w = world_new();
    mica_error err;
    mica_shard begin;
    bool pending;
    int n = 0;
    do {
        assert_int_equal(mica_campaign_store_list(w.store, read_state, &w, &err), MICA_OK);
        run_one(&w);
        assert_int_equal(mica_campaign_store_next(w.store, "id", &begin, &pending, &err), MICA_OK);
    } while (begin.before < w.c.tokens);
    assert_false(pending);
    assert_int_equal(begin.before, 2000);
    assert_true(begin.seq > 2);
    assert_int_equal(mica_campaign_store_list(w.store, read_state, &w, &err), MICA_OK);
    assert_int_equal(mica_campaign_store_list(w.store, count_row, &n, &err), MICA_OK);
    assert_int_equal(n, 1);
    world_free(&w);
}

static void test_lock(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char path[300];
    int first, second;
    mica_error err;
    snprintf(path, sizeof path, "%s/c.db", t.root);
    assert_false(mica_campaign_locked(path));
    assert_int_equal(mica_campaign_lock(path, &first, &err), MICA_OK);
    assert_true(mica_campaign_locked(path));
    assert_int_equal(mica_campaign_lock(path, &second, &err), MICA_INVALID_ARGUMENT);
    assert_true(mica_campaign_locked(path)); /* looking and failing does not take it away */
    close(first);
    assert_false(mica_campaign_locked(path));
    assert_int_equal(mica_campaign_lock(path, &second, &err), MICA_OK);
    close(second);
    tree_free(&t);
}

/* A database of before there were campaigns. */
static void test_an_older_database(void **state)
{
    (void)state;
    world w = world_new();
    mica_error err;
    int n = 0;
    assert_int_equal(sqlite3_exec(mica_store_connection(w.store), "DROP TABLE shard; DROP TABLE campaign", NULL, NULL, NULL),
                     SQLITE_OK);
    mica_store_close(w.store);
    assert_int_equal(mica_store_open_readonly(w.path, &w.store, &err), MICA_OK);
    assert_int_equal(mica_campaign_store_list(w.store, count_row, &n, &err), MICA_OK);
    assert_int_equal(n, 0);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_manifest_faults),
        cmocka_unit_test(test_id),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_model_folder),
        cmocka_unit_test(test_plan_gives_out_every_token),
        cmocka_unit_test(test_items_are_fixed),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_a_shard_counts_once),
        cmocka_unit_test(test_forged_rows_are_found),
        cmocka_unit_test(test_a_campaign_to_its_end),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_an_older_database),
    };
    return cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
}
