/* Records: numbers come back as they were, hostile bytes are refused without taking memory, a run survives the store and the
 * archive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <zstd.h>

#include "../unit/fake_tree.h"
#include "base/rng.h"
#include "bench/archive.h"
#include "bench/store.h"

/* ---- Packing ---- */

static void round_trip(const int64_t *values, size_t n)
{
    void *bytes;
    int64_t *back;
    size_t length, n_back;
    mica_error err;
    assert_int_equal(mica_pack_ints(values, n, &bytes, &length, &err), MICA_OK);
    assert_int_equal(mica_unpack_ints(bytes, length, &back, &n_back, &err), MICA_OK);
    assert_int_equal(n_back, n);
    assert_true(n == 0 || memcmp(values, back, n * sizeof *values) == 0);
    free(back);
    free(bytes);
}

static void test_extremes(void **state)
{
    (void)state;
    const int64_t values[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MAX, INT64_MIN, 1LL << 62, -(1LL << 62)};
    round_trip(values, sizeof values / sizeof *values);
    round_trip(values, 1);
    round_trip(values, 0);
}

static void test_random(void **state)
{
    (void)state;
    enum { N = 2000 };
    int64_t values[N], at = 81200000000;
    mica_rng rng;
    mica_rng_seed(&rng, 7);
    for (int i = 0; i < N; i++)
        values[i] = (int64_t)mica_rng_next(&rng);
    round_trip(values, N);
    for (int i = 0; i < N; i++) /* times as they are: 8 ms apart, with jitter */
        values[i] = at += 8000000 + (int64_t)(mica_rng_next(&rng) % 200000);
    round_trip(values, N);
    void *bytes;
    size_t length;
    mica_error err;
    assert_int_equal(mica_pack_ints(values, N, &bytes, &length, &err), MICA_OK);
    assert_true(length < N * 4); /* instead of 8 bytes each */
    free(bytes);
}

/* Hand-made plain text, compressed. */
static mica_status unpack_plain(const uint8_t *plain, size_t n)
{
    uint8_t bytes[256];
    int64_t *values;
    size_t count;
    size_t packed = ZSTD_compress(bytes, sizeof bytes, plain, n, 1);
    mica_status status = mica_unpack_ints(bytes, packed, &values, &count, NULL);
    if (!status)
        free(values);
    return status;
}

static void test_hostile(void **state)
{
    (void)state;
    const uint8_t good[] = {2, 4, 6}, lying[] = {0xff, 0xff, 0xff, 0xff, 0x7f, 1}, cut[] = {2, 4}, long_tail[] = {1, 4, 6},
                  unended[] = {1, 0x80}, too_wide[] = {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
                  nothing[] = {0x80};
    uint8_t frame[64], claims[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 0, 0};
    int64_t *values;
    size_t n;
    assert_int_equal(unpack_plain(good, sizeof good), MICA_OK);
    assert_int_equal(unpack_plain(lying, sizeof lying), MICA_BAD_FILE);
    assert_int_equal(unpack_plain(cut, sizeof cut), MICA_BAD_FILE);
    assert_int_equal(unpack_plain(long_tail, sizeof long_tail), MICA_BAD_FILE);
    assert_int_equal(unpack_plain(unended, sizeof unended), MICA_BAD_FILE);
    assert_int_equal(unpack_plain(too_wide, sizeof too_wide), MICA_BAD_FILE);
    assert_int_equal(unpack_plain(nothing, sizeof nothing), MICA_BAD_FILE);
    assert_int_equal(mica_unpack_ints(claims, sizeof claims, &values, &n, NULL), MICA_BAD_FILE); /* a frame of 9 EB */
    assert_int_equal(mica_unpack_ints("not zstd", 8, &values, &n, NULL), MICA_BAD_FILE);
    size_t packed = ZSTD_compress(frame, sizeof frame, good, sizeof good, 1);
    for (size_t i = 0; i < packed; i++) { /* cut anywhere */
        mica_status status = mica_unpack_ints(frame, i, &values, &n, NULL);
        assert_int_equal(status, MICA_BAD_FILE);
    }
    for (size_t i = 0; i < packed * 8; i++) { /* any bit turned: an error, or numbers, but no crash */
        frame[i / 8] ^= (uint8_t)(1 << i % 8);
        if (mica_unpack_ints(frame, packed, &values, &n, NULL) == MICA_OK)
            free(values);
        frame[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

static void test_text(void **state)
{
    (void)state;
    void *bytes;
    char *back;
    size_t packed, length;
    mica_error err;
    assert_int_equal(mica_pack_text("[1,2]", 5, &bytes, &packed, &err), MICA_OK);
    assert_int_equal(mica_unpack_text(bytes, packed, &back, &length, &err), MICA_OK);
    assert_int_equal(length, 5);
    assert_string_equal(back, "[1,2]");
    free(back);
    assert_int_equal(mica_unpack_text(bytes, packed - 1, &back, &length, &err), MICA_BAD_FILE);
    free(bytes);
}

/* ---- Store and archive ---- */

static void add_reply(mica_record *r, const char *phase, int64_t start)
{
    int64_t times[] = {start + 5, start + 9, start + 9}, tokens[] = {7, -1, 100000};
    mica_series x = {.exact = true,
                     .prompt_asked = 32,
                     .n_asked = 3,
                     .seed = UINT64_MAX - 3,
                     .started_ns = start,
                     .done_ns = start + 10,
                     .prompt_n = 32,
                     .cached_n = -1,
                     .gen_n = 3,
                     .reason = "length",
                     .n = 3,
                     .times = times,
                     .tokens = tokens};
    snprintf(x.phase, sizeof x.phase, "%s", phase);
    assert_int_equal(mica_record_add(r, &x, NULL), MICA_OK);
}

static void make_record(mica_record *r)
{
    assert_int_equal(mica_record_init(r, NULL), MICA_OK);
    assert_true(mica_record_new_id(r->id));
    json_object_set_new(r->head, "id", json_string(r->id));
    json_object_set_new(r->head, "name", json_string("fake \"cpu\""));
    json_object_set_new(r->head, "created_unix", json_integer(1764500000));
    json_object_set_new(r->head, "state", json_string("running"));
}

static void same_record(const mica_record *a, const mica_record *b)
{
    assert_string_equal(a->id, b->id);
    assert_true(json_equal(a->head, b->head));
    assert_true(json_equal(a->samples, b->samples));
    assert_true(a->summary == b->summary || json_equal(a->summary, b->summary));
    assert_int_equal(a->n_series, b->n_series);
    for (size_t i = 0; i < a->n_series; i++) {
        const mica_series *x = &a->series[i], *y = &b->series[i];
        assert_string_equal(x->phase, y->phase);
        assert_string_equal(x->reason, y->reason);
        assert_true(x->seed == y->seed && x->exact == y->exact && x->cached_n == y->cached_n && x->started_ns == y->started_ns);
        assert_true(x->done_ns == y->done_ns && x->gen_n == y->gen_n && x->prompt_asked == y->prompt_asked && x->n == y->n);
        assert_memory_equal(x->times, y->times, x->n * sizeof *x->times);
        assert_memory_equal(x->tokens, y->tokens, x->n * sizeof *x->tokens);
    }
}

static void full_path(const fake_tree *t, char out[512])
{
    snprintf(out, 512, "%s/bench.db", t->root);
}

static void test_store(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char path[512];
    mica_store *s;
    mica_record r, back;
    mica_error err;
    full_path(&t, path);
    make_record(&r);
    assert_int_equal(mica_store_open(path, &s, &err), MICA_OK);
    assert_int_equal(mica_store_begin(s, &r, &err), MICA_OK);
    assert_int_equal(mica_store_begin(s, &r, &err), MICA_IO_ERROR); /* the same id twice */
    for (int i = 0; i < 3; i++) {
        add_reply(&r, i ? "decode" : "warmup", 1000 * i);
        assert_int_equal(mica_store_add_series(s, &r, &err), MICA_OK);
        json_t *samples = json_pack("[{s:i}, {s:i}]", "t_ns", 10 * i, "t_ns", 10 * i + 1);
        assert_int_equal(mica_store_add_samples(s, r.id, samples, &err), MICA_OK);
        json_array_extend(r.samples, samples);
        json_decref(samples);
    }
    r.summary = json_pack("{s:f}", "steady_tps", 12.345678901234567);
    json_object_set_new(r.head, "state", json_string("done"));
    assert_int_equal(mica_store_finish(s, &r, "done", &err), MICA_OK);
    mica_store_close(s);
    assert_int_equal(mica_store_open_readonly(path, &s, &err), MICA_OK);
    assert_int_equal(mica_store_read(s, r.id, &back, &err), MICA_OK);
    same_record(&r, &back);
    mica_record_free(&back);
    assert_int_equal(mica_store_read(s, "0123", &back, &err), MICA_INVALID_ARGUMENT);
    mica_store_close(s);
    mica_record_free(&r);
    tree_free(&t);
}

/* A writer that is killed loses nothing that it had handed over. */
static void test_killed_writer(void **state)
{
    (void)state;
    enum { REPLIES = 40 };
    fake_tree t = tree_new();
    char path[512], byte;
    int told[2];
    mica_record r, back;
    mica_store *s;
    mica_error err;
    full_path(&t, path);
    make_record(&r);
    assert_int_equal(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        mica_store_open(path, &s, &err);
        mica_store_begin(s, &r, &err);
        for (int i = 0; i < REPLIES; i++) {
            add_reply(&r, "decode", 1000 * i);
            mica_store_add_series(s, &r, &err);
            if (write(told[1], "x", 1) != 1)
                _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    assert_true(child > 0);
    close(told[1]);
    int n = 0;
    while (read(told[0], &byte, 1) == 1)
        n++;
    close(told[0]);
    waitpid(child, NULL, 0);
    assert_int_equal(n, REPLIES);
    assert_int_equal(mica_store_open(path, &s, &err), MICA_OK);
    assert_int_equal(mica_store_read(s, r.id, &back, &err), MICA_OK);
    assert_int_equal(back.n_series, REPLIES);
    assert_string_equal(json_string_value(json_object_get(back.head, "state")), "running");
    assert_null(back.summary);
    mica_record_free(&back);
    mica_store_close(s);
    mica_record_free(&r);
    tree_free(&t);
}

static void test_other_databases(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char path[512];
    sqlite3 *db;
    mica_store *s;
    mica_error err;
    full_path(&t, path);
    tree_line(&t, "bench.db",
              "this is a text file that is long enough to have a header of one hundred bytes, which no database begins with");
    assert_int_equal(mica_store_open(path, &s, &err), MICA_BAD_FILE);
    tree_remove(&t, "bench.db");
    sqlite3_open(path, &db);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE bookmarks (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(mica_store_open(path, &s, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "another program"));
    tree_remove(&t, "bench.db");
    assert_int_equal(mica_store_open(path, &s, &err), MICA_OK);
    mica_store_close(s);
    sqlite3_open(path, &db);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(mica_store_open(path, &s, &err), MICA_UNSUPPORTED);
    assert_int_equal(mica_store_open_readonly("/nonexistent/bench.db", &s, &err), MICA_IO_ERROR);
    tree_free(&t);
}

static void test_archive(void **state)
{
    (void)state;
    mica_record r, back;
    json_t *archive, *again;
    mica_error err;
    make_record(&r);
    add_reply(&r, "ttft_512", 100);
    add_reply(&r, "decode", 500);
    json_array_append_new(r.samples, json_pack("{s:i}", "t_ns", 5));
    r.summary = json_pack("{s:f}", "steady_tps", 1.0 / 3.0);
    assert_int_equal(mica_archive_write(&r, &archive, &err), MICA_OK);
    char *text = json_dumps(archive, JSON_COMPACT);
    again = json_loads(text, 0, NULL);
    assert_int_equal(mica_archive_read(again, &back, &err), MICA_OK);
    same_record(&r, &back);
    mica_record_free(&back);
    json_t *series = json_array_get(json_object_get(again, "series"), 0);
    static const char *const members[] = {"phase", "exact", "seed", "times", "tokens", "gen_n", "reason", "started_ns"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) { /* each one gone, or of another type */
        json_t *kept = json_incref(json_object_get(series, members[i]));
        json_object_del(series, members[i]);
        assert_int_equal(mica_archive_read(again, &back, &err), MICA_BAD_FILE);
        json_object_set_new(series, members[i], json_object());
        assert_int_equal(mica_archive_read(again, &back, &err), MICA_BAD_FILE);
        json_object_set_new(series, members[i], kept);
    }
    json_object_set_new(series, "times", json_string("AAAA"));
    assert_int_equal(mica_archive_read(again, &back, &err), MICA_BAD_FILE);
    json_object_set_new(again, "format", json_string("other"));
    assert_int_equal(mica_archive_read(again, &back, &err), MICA_BAD_FILE);
    json_object_set_new(again, "format", json_string(MICA_ARCHIVE_FORMAT));
    json_object_set_new(again, "version", json_integer(99));
    assert_int_equal(mica_archive_read(again, &back, &err), MICA_UNSUPPORTED);
    json_decref(again);
    json_decref(archive);
    free(text);
    mica_record_free(&r);
}

static void test_idle_readings(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char path[512];
    mica_store *s;
    mica_error err;
    mica_cooldown_rules rules = {.within_c = 2};
    mica_cooldown c;
    full_path(&t, path);
    assert_int_equal(mica_store_open(path, &s, &err), MICA_OK);
    const double readings[] = {41.5, 39.0, 44.0};
    for (int i = 0; i < 3; i++) {
        mica_cooldown_begin(&c, &rules);
        mica_cooldown_know(&c, "cpu#0", readings[i]);
        assert_int_equal(mica_store_keep_zones(s, "machine", &c, &err), MICA_OK);
    }
    mica_cooldown_begin(&c, &rules);
    assert_int_equal(mica_store_know_zones(s, "machine", &c, &err), MICA_OK);
    assert_int_equal(c.n_zones, 1);
    assert_true(c.zone[0].idle_c == 39.0); /* the lowest of all */
    mica_cooldown_begin(&c, &rules);
    assert_int_equal(mica_store_know_zones(s, "another", &c, &err), MICA_OK);
    assert_int_equal(c.n_zones, 0);
    mica_store_close(s);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extremes),        cmocka_unit_test(test_random),
        cmocka_unit_test(test_hostile),         cmocka_unit_test(test_text),
        cmocka_unit_test(test_store),           cmocka_unit_test(test_killed_writer),
        cmocka_unit_test(test_other_databases), cmocka_unit_test(test_archive),
        cmocka_unit_test(test_idle_readings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
