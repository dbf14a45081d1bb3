/* The file of a batch's prefixes: a new batch has what was saved, bit for bit; a damaged file changes nothing. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/xxh64.h"
#include "reply_util.h"
#include "session/snapshot.h"

enum { CTX = 256, SESSIONS = 3 };

static char folder[] = "/tmp/mica-prefixes-XXXXXX", path[64];

static mica_batch *open_batch(mica_model *model, int32_t kv_tokens, mica_kv_type kv)
{
    mica_batch_options o = mica_batch_options_default();
    mica_batch *b;
    mica_error err;
    o.max_sessions = SESSIONS;
    o.n_threads = 2;
    o.n_ctx = CTX;
    o.kv_tokens = kv_tokens;
    o.kv_k = o.kv_v = kv;
    if (mica_batch_new(model, &o, &b, &err))
        fail_msg("%s", err.message);
    return b;
}

/* Texts of which the first 100 tokens are the same. */
static request text_of(int i)
{
    request q = make_request(0);
    q.n = 150;
    for (int k = 0; k < 150; k++)
        q.prompt[k] = 20 + k % 90 + (k >= 100 ? i : 0);
    q.o.max_tokens = 20;
    return q;
}

/* Runs the texts one after another in one session. */
static void run_texts(mica_batch *b, record *out, int n)
{
    mica_session *s;
    mica_error err;
    assert_int_equal(mica_batch_session_new(b, NULL, &s, &err), MICA_OK);
    for (int i = 0; i < n; i++) {
        request q = text_of(i);
        start_record(&out[i], s);
        mica_generate_options o = recorded(&q, &out[i]);
        assert_int_equal(mica_batch_submit(s, q.prompt, q.n, &o, &err), MICA_OK);
        while (mica_batch_step(b) > 0)
            ;
    }
    mica_session_free(s);
}

static void save(mica_batch *b)
{
    mica_error err;
    if (mica_batch_save_prefixes(b, path, &err))
        fail_msg("%s", err.message);
}

static int64_t restore(mica_batch *b)
{
    mica_error err;
    int64_t n;
    if (mica_batch_restore_prefixes(b, path, &n, &err))
        fail_msg("%s", err.message);
    return n;
}

static int64_t cached_of(const mica_batch *b)
{
    mica_batch_info info;
    mica_batch_get_info(b, &info);
    return info.kv_cached;
}

static mica_model *open_tiny(const char *name)
{
    char file[512];
    snprintf(file, sizeof file, MICA_TEST_DATA "/tiny/%s.gguf", name);
    return open_model(file, NULL);
}

static void test_again(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "gemma3"};
    static record before[SESSIONS], after[SESSIONS];
    for (int i = 0; i < 4; i++) {
        mica_kv_type kv = i < 2 ? MICA_KV_F16 : MICA_KV_Q8_0;
        mica_model *model = open_tiny(names[i % 2]);
        if (kv != MICA_KV_F16 && model->weights.h.head_dim % 32 != 0) {
            mica_model_close(model);
            continue;
        }
        mica_batch *b = open_batch(model, 0, kv);
        run_texts(b, before, SESSIONS);
        int64_t cached = cached_of(b);
        save(b);
        mica_batch_free(b);
        b = open_batch(model, 0, kv);
        int64_t taken = restore(b);
        assert_true(taken > 200 && taken <= cached);
        assert_int_equal(cached_of(b), cached);
        assert_int_equal(restore(b), 0); /* all of it is there */
        assert_int_equal(cached_of(b), cached);
        run_texts(b, after, SESSIONS);
        for (int k = 0; k < SESSIONS; k++) {
            expect_same(&before[k], &after[k], names[i % 2]);
            assert_int_equal(after[k].result.cached_n, 149); /* all but the last token, for its logits */
        }
        save(b); /* over the old one */
        mica_batch_free(b);
        mica_model_close(model);
    }
}

/* Less memory takes what was used last. */
static void test_little_memory(void **state)
{
    (void)state;
    static record r[SESSIONS];
    mica_model *model = open_tiny("llama");
    mica_batch *b = open_batch(model, 0, MICA_KV_F16);
    run_texts(b, r, SESSIONS);
    save(b);
    mica_batch_free(b);
    b = open_batch(model, CTX, MICA_KV_F16);
    assert_true(restore(b) <= CTX);
    assert_int_equal(cached_of(b), CTX);
    run_texts(b, r + 2, 1); /* the first text: its end was given up, not its beginning */
    assert_true(r[2].result.cached_n >= 96);
    mica_batch_free(b);
    mica_model_close(model);
}

static void test_nothing(void **state)
{
    (void)state;
    mica_model *model = open_tiny("llama");
    mica_batch *b = open_batch(model, 0, MICA_KV_F16);
    save(b);
    assert_int_equal(restore(b), 0);
    mica_batch_free(b);
    mica_model_close(model);
}

/* ---- what does not fit, and damage ---- */

static void refused(mica_batch *b, mica_status status, const char *reason)
{
    mica_error err;
    int64_t n = 5, cached = cached_of(b);
    assert_int_equal(mica_batch_restore_prefixes(b, path, &n, &err), status);
    if (!strstr(err.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
    assert_int_equal(n, 0);
    assert_int_equal(cached_of(b), cached);
}

static void test_others(void **state)
{
    (void)state;
    static record r[1];
    mica_model *model = open_tiny("llama"), *other = open_tiny("qwen2");
    mica_batch *b = open_batch(model, 0, MICA_KV_F16), *c = open_batch(other, 0, MICA_KV_F16);
    mica_error err;
    run_texts(b, r, 1);
    save(b);
    refused(c, MICA_UNSUPPORTED, "another model");
    mica_session *s;
    assert_int_equal(mica_session_new(model, NULL, &s, &err), MICA_OK);
    assert_int_equal(mica_session_restore(s, path, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "is not a snapshot"));
    assert_int_equal(mica_session_save(s, path, &err), MICA_OK);
    refused(b, MICA_BAD_FILE, "is not a file of prefixes");
    mica_session_free(s);
    mica_batch_free(b);
    mica_batch_free(c);
    mica_model_close(model);
    mica_model_close(other);
}

static uint8_t *read_all(size_t *n)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    *n = (size_t)st.st_size;
    uint8_t *data = malloc(*n);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(data, 1, *n, f), *n);
    fclose(f);
    return data;
}

static void write_all(const uint8_t *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

/* Flipped bytes and cut files are refused; so are wrong nodes under right checksums. */
static void test_damage(void **state)
{
    (void)state;
    static record r[2];
    size_t n;
    mica_model *model = open_tiny("gemma3");
    mica_batch *b = open_batch(model, 0, MICA_KV_F16);
    mica_snapshot_header h;
    mica_error err;
    run_texts(b, r, 2);
    save(b);
    uint8_t *good = read_all(&n), *bad = malloc(n);
    for (size_t at = 0; at < n; at += at < 300 ? 1 : 997) {
        memcpy(bad, good, n);
        bad[at] ^= 0x40;
        write_all(bad, n);
        int64_t taken;
        mica_status status = mica_batch_restore_prefixes(b, path, &taken, &err);
        assert_true(status == MICA_BAD_FILE || (status == MICA_UNSUPPORTED && at < MICA_SNAPSHOT_HEADER));
    }
    for (size_t cut = 0; cut < n; cut += 1 + n / 50) {
        write_all(good, cut);
        refused(b, MICA_BAD_FILE, "");
    }
    assert_int_equal(mica_snapshot_decode(good, n, MICA_SNAPSHOT_PREFIXES, "it", &h, &err), MICA_OK);
    static const struct {
        int at; /* of a node's 35 numbers */
        int32_t value;
    } wrong[] = {{0, 7}, {0, -2}, {1, 0}, {1, 33}, {1, 31}, {2, 2}, {2, -1}, {3, -1}, {3, 1 << 30}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mica_snapshot_header sealed = h;
        mica_snapshot_section *nodes = &sealed.sections[MICA_SNAPSHOT_TOKENS];
        memcpy(bad, good, n);
        memcpy(bad + nodes->offset + 4 * wrong[i].at, &wrong[i].value, 4); /* of the first node, which has no parent */
        nodes->checksum = mica_xxh64_of(bad + nodes->offset, (size_t)mica_snapshot_padded(nodes->bytes));
        mica_snapshot_encode(&sealed, bad);
        write_all(bad, n);
        refused(b, MICA_BAD_FILE, "damaged");
    }
    free(good);
    free(bad);
    mica_batch_free(b);
    mica_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),  cmocka_unit_test(test_little_memory), cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_others), cmocka_unit_test(test_damage),
    };
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/prefixes", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
