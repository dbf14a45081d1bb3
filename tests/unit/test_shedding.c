/* Lack of memory while running: which step the machine's state calls for, and what a step gives back. */
#include "model_util.h"

#include <math.h>
#include <unistd.h>

#include "device/memory.h"
#include "mica/mica_memory.h"

#define SECOND   INT64_C(1000000000)
#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

/* ---- Levels ------------------------------------------------------------------------------------------------------------ */

static mica_device_state calm_at(double seconds)
{
    mica_device_state s;
    memset(&s, 0, sizeof s);
    s.time_ns = 1000 * SECOND + (int64_t)(seconds * 1e9);
    s.trim = MICA_TRIM_UNKNOWN;
    s.psi_memory_some10 = s.psi_memory_full10 = 0.0;
    return s;
}

static mica_shed_level at(mica_shedding *p, double seconds, double some, double full)
{
    mica_device_state s = calm_at(seconds);
    char reason[120];
    s.psi_memory_some10 = some;
    s.psi_memory_full10 = full;
    mica_shed_level level = mica_shedding_update(p, &s, -1, INT64_MAX, INT64_MAX, reason);
    assert_true((level > MICA_SHED_NOTHING) == (strncmp(reason, "memory pressure: ", 17) == 0));
    return level;
}

/* Each step has five seconds to help; down it goes a step for every ten quiet seconds. */
static void stalls_go_up_and_down(void **state)
{
    (void)state;
    mica_shedding p = {0};
    assert_int_equal(at(&p, 0, 9.9, 4.9), MICA_SHED_NOTHING);
    assert_int_equal(at(&p, 1, 12.5, 4.1), MICA_SHED_PREFIXES);
    assert_int_equal(at(&p, 5.9, 12.5, 4.1), MICA_SHED_PREFIXES);
    assert_int_equal(at(&p, 6, 12.5, 4.1), MICA_SHED_IDLE);
    assert_int_equal(at(&p, 10, 12.5, 4.1), MICA_SHED_IDLE);
    assert_int_equal(at(&p, 11, 12.5, 4.1), MICA_SHED_REFUSE);
    assert_int_equal(at(&p, 60, 12.5, 4.1), MICA_SHED_REFUSE);
    assert_int_equal(at(&p, 61, 7.0, 0), MICA_SHED_REFUSE); /* below the rise, not yet calm */
    assert_int_equal(at(&p, 62, 4.0, 0), MICA_SHED_REFUSE);
    assert_int_equal(at(&p, 71.9, 4.0, 0), MICA_SHED_REFUSE);
    assert_int_equal(at(&p, 72, 4.0, 0), MICA_SHED_IDLE);
    assert_int_equal(at(&p, 77, 6.0, 0), MICA_SHED_IDLE); /* the quiet begins anew */
    assert_int_equal(at(&p, 78, 0, 0), MICA_SHED_IDLE);
    assert_int_equal(at(&p, 88, 0, 0), MICA_SHED_PREFIXES);
    assert_int_equal(at(&p, 97.9, 0, 0), MICA_SHED_PREFIXES);
    assert_int_equal(at(&p, 98, 0, 0), MICA_SHED_NOTHING);
}

static void urgent_and_unknown(void **state)
{
    (void)state;
    mica_shedding p = {0}, q = {0}, r = {0};
    assert_int_equal(at(&p, 0, 45.0, 0), MICA_SHED_REFUSE);
    assert_int_equal(at(&q, 0, 0, 25.0), MICA_SHED_REFUSE);
    assert_int_equal(at(&r, 0, NAN, NAN), MICA_SHED_NOTHING);
    assert_int_equal(at(&r, 1, 11, NAN), MICA_SHED_PREFIXES);
    assert_int_equal(at(&r, 2, NAN, NAN), MICA_SHED_PREFIXES);
    assert_int_equal(at(&r, 12, NAN, NAN), MICA_SHED_NOTHING);
}

/* A load that swings around the threshold does not make the level swing. */
static void no_oscillation(void **state)
{
    (void)state;
    mica_shedding p = {0};
    int changes = 0;
    mica_shed_level before = MICA_SHED_NOTHING;
    for (int i = 0; i < 120; i++) {
        mica_shed_level now = at(&p, i, i % 4 < 2 ? 11.0 : 6.0, 0);
        changes += now != before;
        before = now;
    }
    assert_int_equal(changes, 3); /* up to the last step, and there it stays */
}

static void warnings_of_the_system(void **state)
{
    (void)state;
    static const struct {
        mica_trim_level trim;
        mica_shed_level level;
    } cases[] = {{MICA_TRIM_UNKNOWN, MICA_SHED_NOTHING},
                 {MICA_TRIM_NONE, MICA_SHED_NOTHING},
                 {MICA_TRIM_MODERATE, MICA_SHED_PREFIXES},
                 {MICA_TRIM_LOW, MICA_SHED_IDLE},
                 {MICA_TRIM_CRITICAL, MICA_SHED_REFUSE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_shedding p = {0};
        mica_device_state s = calm_at(0);
        s.trim = cases[i].trim;
        s.reported_ns = s.time_ns - 5 * SECOND;
        assert_int_equal(mica_shedding_update(&p, &s, -1, INT64_MAX, INT64_MAX, NULL), cases[i].level);
        s.time_ns += 30 * SECOND; /* it still holds */
        assert_int_equal(mica_shedding_update(&p, &s, -1, INT64_MAX, INT64_MAX, NULL), cases[i].level);
        for (int k = 0; k < 8; k++) { /* nobody says that it is over: a minute later it is */
            s.time_ns += 11 * SECOND;
            mica_shedding_update(&p, &s, -1, INT64_MAX, INT64_MAX, NULL);
        }
        assert_int_equal(p.level, MICA_SHED_NOTHING);
    }
}

static void own_size(void **state)
{
    (void)state;
    mica_shedding p = {0};
    mica_device_state s = calm_at(0);
    char reason[120];
    assert_int_equal(mica_shedding_update(&p, &s, 100 << 20, 200 << 20, 300 << 20, reason), MICA_SHED_NOTHING);
    assert_int_equal(mica_shedding_update(&p, &s, 201 << 20, 200 << 20, 300 << 20, reason), MICA_SHED_IDLE);
    assert_non_null(strstr(reason, "budget of 200.0 MiB"));
    assert_int_equal(mica_shedding_update(&p, &s, 301 << 20, 200 << 20, 300 << 20, reason), MICA_SHED_REFUSE);
    assert_non_null(strstr(reason, "limit of 300.0 MiB"));
    assert_string_equal(mica_shed_level_name(MICA_SHED_REFUSE), "refuse");
    assert_string_equal(mica_shed_level_name((mica_shed_level)9), "nothing");
}

/* ---- What is given back ------------------------------------------------------------------------------------------------- */

typedef struct seen {
    int32_t tokens[64];
    int n, done;
    int32_t cached;
} seen;

static int on_token(void *user, const mica_token_event *event)
{
    seen *s = user;
    if (s->n < 64)
        s->tokens[s->n++] = event->token;
    return 0;
}

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    seen *s = user;
    (void)error;
    assert_int_equal(status, MICA_OK);
    s->cached = result->cached_n;
    s->done++;
}

static seen reply_of(mica_batch *b, mica_session *s, const int32_t *tokens, size_t n)
{
    seen got = {.n = 0};
    mica_generate_options g = mica_generate_options_default();
    mica_error err;
    g.max_tokens = 12;
    g.ignore_eos = true;
    g.sampling.seed = 7;
    g.on_token = on_token;
    g.on_done = on_done;
    g.user = &got;
    if (mica_batch_submit(s, tokens, n, &g, &err))
        fail_msg("%s", err.message);
    while (mica_batch_step(b) > 0)
        ;
    assert_int_equal(got.done, 1);
    return got;
}

static int64_t anonymous_bytes(void)
{
    mica_memory_usage usage;
    assert_int_equal(mica_memory_usage_read(NULL, &usage, NULL), MICA_OK);
    return usage.anon_bytes;
}

static void fill_tokens(int32_t *tokens, size_t n, int32_t first)
{
    for (size_t i = 0; i < n; i++)
        tokens[i] = 3 + (first + (int32_t)i * 7) % 200;
}

enum { LONG = 6000 };

/* The memory of 6,000 tokens goes back to the system, and what is computed anew is the same. */
static void a_batch_sheds(void **state)
{
    (void)state;
    static int32_t tokens[LONG];
    char path[] = P_tmpdir "/mica-shed-XXXXXX";
    mica_model *m = open_model(SCRIPTED, NULL);
    mica_batch_options o = mica_batch_options_default();
    mica_batch_info info;
    mica_batch *b;
    mica_session *s = NULL;
    mica_error err;
    int64_t n;
    fill_tokens(tokens, LONG, 1);
    o.max_sessions = 1;
    o.n_ctx = 8192;
    o.step_tokens = 1024;
    o.n_threads = 1;
    if (mica_batch_new(m, &o, &b, &err) || mica_batch_session_new(b, NULL, &s, &err))
        fail_msg("%s", err.message);
    seen first = reply_of(b, s, tokens, LONG);
    int64_t full = anonymous_bytes();
    assert_int_equal(mica_batch_shed(b, MICA_SHED_NOTHING, NULL, &n, &err), MICA_OK);
    assert_int_equal(n, 0);
    assert_int_equal(mica_batch_shed(b, MICA_SHED_PREFIXES, NULL, &n, &err), MICA_OK);
    assert_int_equal(n, 0); /* the session holds them */
    seen cached = reply_of(b, s, tokens, LONG);
    assert_in_range(cached.cached, LONG - 64, LONG);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(mica_batch_shed(b, MICA_SHED_IDLE, path, &n, &err), MICA_OK);
    assert_in_range(n, LONG, LONG + 64);
    mica_batch_get_info(b, &info);
    assert_int_equal(info.kv_held + info.kv_cached, 0);
    int64_t freed = full - anonymous_bytes(), kv = (int64_t)LONG * 2 * 4 * 32 * 2;
    if (freed < kv * 9 / 10)
        fail_msg("of %lld bytes %lld were given back", (long long)kv, (long long)freed);
    assert_int_equal(mica_batch_restore_prefixes(b, path, &n, &err), MICA_OK);
    assert_in_range(n, LONG, LONG + 64);
    seen restored = reply_of(b, s, tokens, LONG);
    assert_in_range(restored.cached, LONG - 64, LONG);
    assert_int_equal(mica_batch_shed(b, MICA_SHED_IDLE, NULL, NULL, &err), MICA_OK);
    seen again = reply_of(b, s, tokens, LONG);
    assert_int_equal(again.cached, 0);
    assert_memory_equal(cached.tokens, first.tokens, sizeof first.tokens); /* wherever the beginning came from */
    assert_memory_equal(restored.tokens, first.tokens, sizeof first.tokens);
    assert_memory_equal(again.tokens, first.tokens, sizeof first.tokens);
    assert_int_equal(mica_batch_shed(b, MICA_SHED_IDLE, "/nowhere/prefixes", &n, &err), MICA_IO_ERROR);
    assert_true(n > 0); /* the memory is given back all the same */
    unlink(path);
    mica_batch_free(b);
    mica_model_close(m);
}

/* Replies that run are left alone. */
static void a_running_reply_stays(void **state)
{
    (void)state;
    int32_t tokens[300];
    mica_model *m = open_model(SCRIPTED, NULL);
    mica_batch_options o = mica_batch_options_default();
    mica_session *s = NULL;
    mica_batch *b;
    mica_error err;
    fill_tokens(tokens, 300, 5);
    o.n_ctx = 512;
    o.max_sessions = 2;
    o.n_threads = 1;
    if (mica_batch_new(m, &o, &b, &err) || mica_batch_session_new(b, NULL, &s, &err))
        fail_msg("%s", err.message);
    seen expected = reply_of(b, s, tokens, 300), got = {.n = 0};
    assert_int_equal(mica_batch_shed(b, MICA_SHED_IDLE, NULL, NULL, &err), MICA_OK);
    mica_generate_options g = mica_generate_options_default();
    g.max_tokens = 12;
    g.ignore_eos = true;
    g.sampling.seed = 7;
    g.on_token = on_token;
    g.on_done = on_done;
    g.user = &got;
    assert_int_equal(mica_batch_submit(s, tokens, 300, &g, &err), MICA_OK);
    while (mica_batch_step(b) > 0)
        assert_int_equal(mica_batch_shed(b, MICA_SHED_REFUSE, NULL, NULL, &err), MICA_OK);
    assert_memory_equal(got.tokens, expected.tokens, sizeof expected.tokens);
    mica_batch_free(b);
    mica_model_close(m);
}

/* A session gives back what its history does not fill, and goes on as if nothing were. */
static void a_session_sheds(void **state)
{
    (void)state;
    static int32_t tokens[LONG];
    mica_model *m = open_model(SCRIPTED, NULL);
    mica_session *s = open_session(m, 8192, 1, 1024);
    mica_error err;
    fill_tokens(tokens, LONG, 1);
    mica_model_info info;
    mica_model_get_info(m, &info);
    size_t n_vocab = (size_t)info.n_vocab;
    float *before = malloc(n_vocab * sizeof *before);
    assert_int_equal(mica_session_sync(s, tokens, 2000, &err), MICA_OK);
    memcpy(before, mica_session_logits(s), n_vocab * sizeof *before);
    assert_int_equal(mica_session_sync(s, tokens, LONG, &err), MICA_OK);
    int64_t full = anonymous_bytes(), kv = (int64_t)LONG * 2 * 4 * 32 * 2;
    assert_int_equal(mica_session_sync(s, tokens, 1999, &err), MICA_OK);
    mica_session_shed(s);
    int64_t freed = full - anonymous_bytes();
    if (freed < (kv - kv / LONG * 2000) * 9 / 10)
        fail_msg("of %lld bytes %lld were given back", (long long)kv, (long long)freed);
    assert_int_equal(mica_session_sync(s, tokens, 2000, &err), MICA_OK); /* one token after what was kept */
    assert_memory_equal(mica_session_logits(s), before, n_vocab * sizeof *before);
    assert_int_equal(mica_session_reset(s, &err), MICA_OK);
    mica_session_shed(s);
    assert_true(full - anonymous_bytes() >= kv * 9 / 10);
    assert_int_equal(mica_session_sync(s, tokens, 2000, &err), MICA_OK);
    assert_memory_equal(mica_session_logits(s), before, n_vocab * sizeof *before);
    free(before);
    mica_session_free(s);
    mica_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stalls_go_up_and_down),  cmocka_unit_test(urgent_and_unknown), cmocka_unit_test(no_oscillation),
        cmocka_unit_test(warnings_of_the_system), cmocka_unit_test(own_size),           cmocka_unit_test(a_batch_sheds),
        cmocka_unit_test(a_running_reply_stays),  cmocka_unit_test(a_session_sheds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
