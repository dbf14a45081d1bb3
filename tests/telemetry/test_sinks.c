/* Sinks: what arrives, what is dropped and counted when one is stuck, that adding never waits, and that no text of a reply gets
 * into any of them unless it is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <cmocka.h>

#include "fake_tree.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/rng.h"
#include "router/telemetry.h"
#include "router/telemetry_otlp.h"

static mica_telemetry *open_sinks(const char *a, const char *b, int32_t queue, int32_t close_ms, bool text)
{
    const char *sinks[] = {a, b};
    mica_telemetry_options o = mica_telemetry_options_default();
    mica_telemetry *t;
    mica_error err;
    o.sinks = sinks;
    o.n_sinks = b ? 2 : 1;
    o.queue = queue;
    o.close_ms = close_ms;
    o.text = text;
    if (mica_telemetry_new(&o, &t, &err))
        fail_msg("%s", err.message);
    return t;
}

static mica_telemetry_event event_of(int i)
{
    mica_telemetry_event e = mica_telemetry_event_default();
    e.operation = "chat";
    e.model = "some-model";
    e.stop_reason = "eos";
    e.prompt_n = i;
    e.gen_n = 10;
    e.duration_ms = 1234.5;
    e.ttft_ms = 100;
    e.tpot_ms = e.tpot_p50_ms = e.tpot_p95_ms = 20;
    e.throttled = MICA_NO;
    e.joules = 2.5;
    e.energy_source = "rapl:package";
    return e;
}

/* All of a file, terminated; free(). */
static char *read_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *data = calloc(1, 4 << 20);
    assert_non_null(data);
    *length = fread(data, 1, (4 << 20) - 1, f);
    fclose(f);
    return data;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void test_every_event_arrives(void **state)
{
    fake_tree tree = tree_new();
    char lines[300], db[300];
    size_t length;
    (void)state;
    snprintf(lines, sizeof lines, "%s/t.jsonl", tree.root);
    snprintf(db, sizeof db, "%s/t.db", tree.root);
    mica_telemetry *t = open_sinks(lines, db, 1024, 10000, false);
    for (int i = 0; i < 300; i++) {
        mica_telemetry_event e = event_of(i);
        assert_true(mica_telemetry_add(t, &e));
    }
    mica_telemetry_close(t);
    for (size_t i = 0; i < 2; i++) {
        mica_telemetry_sink_info s;
        mica_telemetry_sink(t, i, &s);
        assert_string_equal(s.kind, i == 0 ? "jsonl" : "sqlite");
        assert_int_equal(s.taken, 300);
        assert_int_equal(s.written, 300);
        assert_int_equal(s.lost + s.dropped, 0);
        assert_string_equal(s.error, "");
    }
    mica_telemetry_free(t);
    char *text = read_file(lines, &length);
    assert_int_equal(count_lines(text), 300);
    json_t *first = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_int_equal(json_integer_value(json_object_get(first, "gen_n")), 10);
    assert_true(json_is_false(json_object_get(first, "throttled_flag")));
    assert_true(json_is_null(json_object_get(first, "rung")));
    assert_true(json_is_null(json_object_get(first, "peak_rss_bytes")));
    json_decref(first);
    free(text);
    tree_free(&tree);
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A pipe that nobody reads takes 64 KiB and then nothing. Adding goes on as fast as before, and every event is accounted for.
 */
static void test_stuck_sink(void **state)
{
    enum { N = 20000 };
    static int64_t times[N];
    fake_tree tree = tree_new();
    char pipe[300];
    mica_telemetry_sink_info s;
    int added = 0;
    (void)state;
    snprintf(pipe, sizeof pipe, "%s/pipe", tree.root);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    mica_telemetry *t = open_sinks(pipe, NULL, 256, 100, false);
    for (int i = 0; i < N; i++) {
        mica_telemetry_event e = event_of(i);
        int64_t begun = mica_now_ns();
        added += mica_telemetry_add(t, &e);
        times[i] = mica_now_ns() - begun;
    }
    mica_telemetry_sink(t, 0, &s);
    assert_int_equal(s.taken + s.dropped, N);
    assert_int_equal(s.taken, added);
    assert_true(s.dropped > N / 2);
    qsort(times, N, sizeof *times, compare_times);
    printf("adding an event while the sink is stuck: median %.2f us, 99 %% below %.2f us\n", (double)times[N / 2] / 1e3,
           (double)times[N - N / 100] / 1e3);
    assert_true(times[N / 2] < 200000); /* a machine that is busy; a wait for the sink would be at least 50 ms */
    int64_t begun = mica_now_ns();
    mica_telemetry_close(t);
    assert_true(mica_now_ns() - begun < 5000000000);
    mica_telemetry_sink(t, 0, &s);
    assert_int_equal(s.written + s.lost, s.taken);
    assert_true(s.lost > 0);
    assert_true(*s.error);
    mica_telemetry_free(t);
    close(reader);
    tree_free(&tree);
}

/* Text of others must fit the memory that telemetry may take, or the event is dropped. */
static void test_bounded_memory(void **state)
{
    fake_tree tree = tree_new();
    char pipe[300], *long_text = malloc(100000);
    mica_telemetry_sink_info s;
    (void)state;
    assert_non_null(long_text);
    memset(long_text, 'x', 100000);
    snprintf(pipe, sizeof pipe, "%s/pipe", tree.root);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK);
    mica_telemetry *t = open_sinks(pipe, NULL, 65536, 0, true);
    int added = 0;
    for (int i = 0; i < 1000; i++) {
        mica_telemetry_event e = event_of(i);
        e.prompt = long_text;
        e.prompt_length = 100000;
        added += mica_telemetry_add(t, &e);
    }
    assert_in_range(added, 100, 16 * 1024 * 1024 / 65536); /* 16 MiB of 64 KiB each */
    mica_telemetry_sink(t, 0, &s);
    assert_int_equal(s.dropped, 1000 - added);
    mica_telemetry_free(t);
    close(reader);
    free(long_text);
    tree_free(&tree);
}

/* ---- Limits of files ---- */

enum { LIMIT = 65536 };

static mica_telemetry *open_limited(const char *path)
{
    mica_telemetry_options o = mica_telemetry_options_default();
    mica_telemetry *t;
    mica_error err;
    o.sinks = &path;
    o.n_sinks = 1;
    o.queue = 4096;
    o.close_ms = 20000;
    o.max_bytes = LIMIT;
    if (mica_telemetry_new(&o, &t, &err))
        fail_msg("%s", err.message);
    return t;
}

static void add_events(mica_telemetry *t, int from, int to)
{
    for (int i = from; i < to; i++) {
        mica_telemetry_event e = event_of(i);
        assert_true(mica_telemetry_add(t, &e));
    }
}

static void expect_none_lost(mica_telemetry *t, uint64_t n)
{
    mica_telemetry_sink_info s;
    mica_telemetry_close(t);
    mica_telemetry_sink(t, 0, &s);
    if (s.written != n)
        fail_msg("%llu of %llu: %s", (unsigned long long)s.written, (unsigned long long)n, s.error);
}

/* "prompt_n" of the first and the last line; the number of lines. */
static int read_numbers(const char *path, int *first, int *last)
{
    size_t length;
    int n = 0;
    char *text = read_file(path, &length), *line = text;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        *last = (int)json_integer_value(json_object_get(o, "prompt_n"));
        *first = n++ == 0 ? *last : *first;
        json_decref(o);
    }
    assert_int_equal(*line, '\0');
    free(text);
    return n;
}

static void test_lines_are_bounded(void **state)
{
    fake_tree tree = tree_new();
    char path[300], older[310];
    struct stat now, before;
    int first = -1, last = -1, first_older = -1, last_older = -1;
    (void)state;
    snprintf(path, sizeof path, "%s/t.jsonl", tree.root);
    snprintf(older, sizeof older, "%s.1", path);
    mica_telemetry *t = open_limited(path);
    add_events(t, 0, 2000);
    expect_none_lost(t, 2000);
    mica_telemetry_free(t);
    assert_int_equal(stat(path, &now) + stat(older, &before), 0);
    assert_true(now.st_size > 0 && now.st_size <= LIMIT);
    assert_true(before.st_size > LIMIT - 2000 && before.st_size <= LIMIT);
    assert_int_equal(now.st_mode & 0777, 0600);
    int n = read_numbers(older, &first_older, &last_older) + read_numbers(path, &first, &last);
    assert_int_equal(last, 1999);
    assert_int_equal(first, last_older + 1); /* the newest, without a gap */
    assert_int_equal(last - first_older + 1, n);
    tree_free(&tree);
}

/* Two that write to one file, as two processes would: who finds that the other one began a new file goes there, too. */
static void test_lines_of_two(void **state)
{
    fake_tree tree = tree_new();
    char path[300], older[310];
    struct stat now;
    int first, last, all = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/t.jsonl", tree.root);
    snprintf(older, sizeof older, "%s.1", path);
    mica_telemetry *a = open_limited(path), *b = open_limited(path);
    for (int i = 0; i < 1000; i++) {
        add_events(a, i, i + 1);
        add_events(b, i, i + 1);
    }
    expect_none_lost(a, 1000);
    expect_none_lost(b, 1000);
    mica_telemetry_free(a);
    mica_telemetry_free(b);
    const char *files[] = {path, older};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stat(files[i], &now), 0);
        assert_true(now.st_size <= LIMIT + 2000); /* a line that was on its way */
        all += read_numbers(files[i], &first, &last);
    }
    assert_true(all > 100);
    tree_free(&tree);
}

static void test_full_and_stuck(void **state)
{
    fake_tree tree = tree_new();
    char path[300], older[310];
    struct stat now;
    mica_telemetry_sink_info s;
    (void)state;
    snprintf(path, sizeof path, "%s/t.jsonl", tree.root);
    snprintf(older, sizeof older, "%s.1", path);
    assert_int_equal(mkdir(older, 0700), 0); /* no file can get this name */
    mica_telemetry *t = open_limited(path);
    add_events(t, 0, 1000);
    mica_telemetry_close(t);
    mica_telemetry_sink(t, 0, &s);
    assert_true(s.lost > 500 && s.lost < 1000);
    assert_non_null(strstr(s.error, "is full"));
    assert_int_equal(stat(path, &now), 0);
    assert_true(now.st_size <= LIMIT);
    mica_telemetry_free(t);
    assert_int_equal(rmdir(older), 0);
    tree_free(&tree);
}

/* ---- and of databases ---- */

typedef struct rows {
    int n, first, last;
} rows;

static rows read_rows(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*), min(prompt_n), max(prompt_n) FROM replies", -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    rows r = {sqlite3_column_int(s, 0), sqlite3_column_int(s, 1), sqlite3_column_int(s, 2)};
    sqlite3_finalize(s);
    sqlite3_close(db);
    return r;
}

static void test_rows_are_bounded(void **state)
{
    fake_tree tree = tree_new();
    char path[300], older[310];
    struct stat now, before;
    (void)state;
    snprintf(path, sizeof path, "%s/t.db", tree.root);
    snprintf(older, sizeof older, "%s.1", path);
    mica_telemetry *t = open_limited(path);
    add_events(t, 0, 3000);
    expect_none_lost(t, 3000);
    mica_telemetry_free(t);
    assert_int_equal(stat(path, &now) + stat(older, &before), 0);
    assert_true(now.st_size <= 2 * LIMIT && before.st_size <= 2 * LIMIT); /* the limit, and what came at once */
    rows new = read_rows(path), old = read_rows(older);
    assert_int_equal(new.last, 2999);
    assert_int_equal(new.first, old.last + 1);
    assert_int_equal(new.last - old.first + 1, new.n + old.n);
    tree_free(&tree);
}

/* ---- Texts ---- */

#define SECRET "xylophone-4711"

/* Random events, all of which carry the secret in prompt and reply. */
static mica_telemetry_event random_event(mica_rng *rng, char text[512])
{
    static const char *const words[] = {"", "a", "model \xff", "\xc3\xa4", "eos", "length", "\"quoted\"", NULL};
    mica_telemetry_event e = event_of((int)(mica_rng_unit(rng) * 1000));
    const char **fields[] = {&e.operation, &e.model, &e.id, &e.rung, &e.reason, &e.stop_reason, &e.error};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        *fields[i] = words[(size_t)(mica_rng_unit(rng) * 8)];
    size_t before = (size_t)(mica_rng_unit(rng) * 400);
    memset(text, 'y', before);
    snprintf(text + before, 512 - before, "%s", SECRET);
    e.prompt = e.reply = text;
    e.prompt_length = e.reply_length = strlen(text);
    if (mica_rng_unit(rng) < 0.3)
        e.ttft_ms = e.joules = NAN;
    return e;
}

static bool holds_secret(const char *data, size_t length) { return memmem(data, length, SECRET, strlen(SECRET)) != NULL; }

static void check_otlp(mica_event *const *events, size_t n, bool want)
{
    mica_otlp_metrics *m = mica_otlp_metrics_new(1);
    for (size_t i = 0; i < n; i++)
        mica_otlp_metrics_add(m, &events[i]->e);
    json_t *traces = mica_otlp_traces("mica", "00112233445566778899aabbccddeeff", events, n);
    json_t *metrics = mica_otlp_metrics_json(m, "mica", "00112233445566778899aabbccddeeff", 0);
    char *a = json_dumps(traces, 0), *b = json_dumps(metrics, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(holds_secret(a, strlen(a)), want);
    assert_false(holds_secret(b, strlen(b)));
    free(a);
    free(b);
    json_decref(traces);
    json_decref(metrics);
    mica_otlp_metrics_free(m);
}

static void check_texts(bool text)
{
    fake_tree tree = tree_new();
    char lines[300], db[300], wal[310], buffer[512];
    size_t length;
    mica_rng rng;
    _Atomic int64_t in_flight = 0;
    mica_event *copies[50];
    snprintf(lines, sizeof lines, "%s/t.jsonl", tree.root);
    snprintf(db, sizeof db, "%s/t.db", tree.root);
    snprintf(wal, sizeof wal, "%s-wal", db);
    mica_rng_seed(&rng, 7);
    mica_telemetry *t = open_sinks(lines, db, 1024, 10000, text);
    for (int i = 0; i < 50; i++) {
        mica_telemetry_event e = random_event(&rng, buffer);
        assert_true(mica_telemetry_add(t, &e));
        copies[i] = mica_event_copy(&e, text, &in_flight);
        assert_non_null(copies[i]);
    }
    mica_telemetry_free(t);
    check_otlp(copies, 50, text);
    for (int i = 0; i < 50; i++)
        mica_event_release(copies[i]);
    assert_int_equal(atomic_load(&in_flight), 0);
    const char *files[] = {lines, db};
    for (size_t i = 0; i < 2; i++) {
        char *data = read_file(files[i], &length);
        assert_true(length > 1000);
        assert_int_equal(holds_secret(data, length), text);
        free(data);
    }
    assert_int_not_equal(access(wal, F_OK), 0); /* closed properly: all of it is in the database */
    tree_free(&tree);
}

static void test_no_text_unless_asked(void **state)
{
    (void)state;
    check_texts(false);
    check_texts(true);
}

static void test_long_text_is_cut_between_characters(void **state)
{
    _Atomic int64_t in_flight = 0;
    mica_telemetry_event e = event_of(1);
    size_t n = 70000;
    char *text = malloc(n + 1);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i + 1 < n; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    e.prompt = text;
    e.prompt_length = n;
    e.reply = "a";
    e.reply_length = 1;
    mica_event *copy = mica_event_copy(&e, true, &in_flight);
    assert_int_equal(copy->e.prompt_length, 65536);
    json_t *o = mica_event_json(copy);
    assert_true(json_is_string(json_object_get(o, "prompt")));
    assert_true(json_is_true(json_object_get(o, "text_cut")));
    json_decref(o);
    mica_event_release(copy);
    memmove(text + 1, text, n - 2);
    text[0] = 'a'; /* now the bound is in the middle of a character */
    copy = mica_event_copy(&e, true, &in_flight);
    assert_int_equal(copy->e.prompt_length, 65535);
    mica_event_release(copy);
    free(text);
}

/* ---- OTLP's metrics ---- */

static json_t *metric(json_t *body, const char *name)
{
    json_t *list = json_object_get(
        json_array_get(json_object_get(json_array_get(json_object_get(body, "resourceMetrics"), 0), "scopeMetrics"), 0),
        "metrics");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

static void test_histograms(void **state)
{
    mica_otlp_metrics *m = mica_otlp_metrics_new(1);
    (void)state;
    for (int i = 0; i < 100; i++) {
        mica_telemetry_event e = event_of(i);
        char model[20];
        snprintf(model, sizeof model, "m%d", i % 50);
        e.model = model;
        e.id = e.rung = e.reason = e.error = e.receipt = "";
        e.ttft_ms = i * 10.0;
        mica_otlp_metrics_add(m, &e);
    }
    json_t *body = mica_otlp_metrics_json(m, "mica", "00112233445566778899aabbccddeeff", 3);
    json_t *points =
        json_object_get(json_object_get(metric(body, "gen_ai.server.time_to_first_token"), "histogram"), "dataPoints");
    assert_int_equal(json_array_size(points), 32); /* bounded: the 31 first models, and all the others together */
    int64_t total = 0;
    double sum = 0;
    for (size_t i = 0; i < json_array_size(points); i++) {
        json_t *p = json_array_get(points, i), *counts = json_object_get(p, "bucketCounts");
        int64_t n = atoll(json_string_value(json_object_get(p, "count"))), in_buckets = 0;
        assert_int_equal(json_array_size(counts), json_array_size(json_object_get(p, "explicitBounds")) + 1);
        for (size_t k = 0; k < json_array_size(counts); k++)
            in_buckets += atoll(json_string_value(json_array_get(counts, k)));
        assert_int_equal(in_buckets, n);
        total += n;
        sum += json_real_value(json_object_get(p, "sum"));
    }
    assert_int_equal(total, 100);
    assert_float_equal(sum, 99 * 100 / 2 * 0.01, 1e-9);
    assert_non_null(metric(body, "gen_ai.client.token.usage"));
    assert_non_null(metric(body, "gen_ai.client.operation.duration"));
    assert_non_null(metric(body, "gen_ai.server.time_per_output_token"));
    assert_non_null(metric(body, "mica.energy"));
    json_decref(body);
    mica_otlp_metrics_free(m);
}

/* ---- Options ---- */

static void test_bad_options(void **state)
{
    const char *many[MICA_TELEMETRY_SINKS + 1];
    mica_telemetry_options o = mica_telemetry_options_default();
    mica_telemetry *t;
    mica_error err;
    (void)state;
    for (size_t i = 0; i < MICA_TELEMETRY_SINKS + 1; i++)
        many[i] = "http://127.0.0.1:1";
    o.sinks = many;
    o.n_sinks = MICA_TELEMETRY_SINKS + 1;
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_INVALID_ARGUMENT);
    o.n_sinks = 1;
    o.queue = 0;
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_INVALID_ARGUMENT);
    o.queue = 16;
    o.max_bytes = 1000;
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_INVALID_ARGUMENT);
    o.max_bytes = 0;
    o.headers = "no equals sign";
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_INVALID_ARGUMENT);
    o.headers = "a=b\r\nEvil: yes";
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_INVALID_ARGUMENT);
    o.headers = NULL;
    many[0] = "";
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_INVALID_ARGUMENT);
    many[0] = "/proc/nowhere/t.jsonl";
    assert_int_equal(mica_telemetry_new(&o, &t, &err), MICA_IO_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_event_arrives),
        cmocka_unit_test(test_stuck_sink),
        cmocka_unit_test(test_bounded_memory),
        cmocka_unit_test(test_lines_are_bounded),
        cmocka_unit_test(test_lines_of_two),
        cmocka_unit_test(test_full_and_stuck),
        cmocka_unit_test(test_rows_are_bounded),
        cmocka_unit_test(test_no_text_unless_asked),
        cmocka_unit_test(test_long_text_is_cut_between_characters),
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
