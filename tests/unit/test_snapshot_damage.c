/* Snapshots that must be refused: damaged, truncated, forged, or of another model. Each leaves the session as it was. */
#include <limits.h>

#include "base/endian.h"
#include "base/xxh64.h"
#include "session/snapshot.h"
#include "snapshot_util.h"

#define PROMPT 9

/* A snapshot of the scripted model with 9 tokens, and a session with another history that refuses what is wrong. */
typedef struct fixture {
    mica_model *model;
    mica_session *s;
    bytes good;
    mica_snapshot_header h;
} fixture;

static bytes copy_of(bytes b, size_t n)
{
    bytes c = {malloc(n + 1), n};
    memcpy(c.data, b.data, n < b.n ? n : b.n);
    if (n > b.n)
        memset((char *)c.data + b.n, 0, n - b.n);
    return c;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    int32_t tokens[PROMPT];
    mica_error err;
    f->model = open_model(SCRIPTED, NULL);
    f->s = open_session(f->model, 64, 1, 8);
    some_tokens(tokens, PROMPT);
    sync_tokens(f->s, tokens, PROMPT);
    f->good = snapshot(f->s);
    sync_tokens(f->s, tokens + 1, 4);
    if (mica_snapshot_decode(f->good.data, f->good.n, MICA_SNAPSHOT_SESSION, "it", &f->h, &err))
        fail_msg("%s", err.message);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    restore(f->s, f->good); /* after all that was refused, the good one is still taken */
    free(f->good.data);
    mica_session_free(f->s);
    mica_model_close(f->model);
    free(f);
    return 0;
}

static void test_header_bytes(void **state)
{
    fixture *f = *state;
    bytes bad = copy_of(f->good, f->good.n);
    for (int i = 0; i < MICA_SNAPSHOT_HEADER; i++)
        for (int bit = 0; bit < 8; bit++) {
            bool format = i >= 8 && i < 12;
            ((uint8_t *)bad.data)[i] ^= (uint8_t)(1 << bit);
            check_refused(f->s, bad, format ? MICA_UNSUPPORTED : MICA_BAD_FILE,
                          i < 8 ? "not a snapshot" : format ? "snapshot format" : "the checksum of its header is wrong");
            ((uint8_t *)bad.data)[i] ^= (uint8_t)(1 << bit);
        }
    free(bad.data);
}

/* Every byte behind the header, padding included: the message names the section. */
static void test_section_bytes(void **state)
{
    fixture *f = *state;
    bytes bad = copy_of(f->good, f->good.n);
    int part = 0;
    for (size_t i = MICA_SNAPSHOT_HEADER; i < bad.n; i++) {
        char says[64];
        while (part + 1 < MICA_SNAPSHOT_PARTS && i >= f->h.sections[part + 1].offset)
            part++;
        snprintf(says, sizeof says, "the checksum of its %s is wrong", mica_snapshot_part_name(part));
        ((uint8_t *)bad.data)[i] ^= 0x10;
        check_refused(f->s, bad, MICA_BAD_FILE, says);
        ((uint8_t *)bad.data)[i] ^= 0x10;
    }
    assert_int_equal(part, MICA_SNAPSHOT_VALUES);
    free(bad.data);
}

static void check_length(fixture *f, size_t n)
{
    bytes bad = copy_of(f->good, n); /* its own block: reading beyond the end would be seen */
    bad.data = realloc(bad.data, n ? n : 1);
    check_refused(f->s, bad, MICA_BAD_FILE, n == 0 ? "empty" : n > f->good.n ? "too long" : "truncated");
    free(bad.data);
}

static void test_truncated(void **state)
{
    fixture *f = *state;
    for (size_t n = 0; n <= MICA_SNAPSHOT_HEADER; n++)
        check_length(f, n);
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        size_t at = (size_t)f->h.sections[i].offset, end = at + (size_t)f->h.sections[i].bytes;
        size_t around[] = {at, at + 1, end - 1, end, end + 1, at - 1};
        for (int k = 0; k < 6; k++)
            if (around[k] < f->good.n)
                check_length(f, around[k]);
    }
    check_length(f, f->good.n - 1);
    check_length(f, f->good.n + 1);
    check_length(f, 2 * f->good.n);
    mica_error err;
    assert_int_equal(mica_session_restore_memory(f->s, NULL, 0, &err), MICA_BAD_FILE);
}

/* The good snapshot with another header, whose own checksum is right. */
static void check_forged(const fixture *f, const mica_snapshot_header *h, mica_status status, const char *says)
{
    bytes bad = copy_of(f->good, f->good.n);
    mica_snapshot_encode(h, bad.data);
    check_refused(f->s, bad, status, says);
    free(bad.data);
}

static void test_foreign(void **state)
{
    const fixture *f = *state;
    mica_snapshot_header h = f->h;
    check_forged(f, &(mica_snapshot_header){.format = 7}, MICA_UNSUPPORTED, "snapshot format 7");
    h.numerics++;
    check_forged(f, &h, MICA_UNSUPPORTED, "numerics version 2 and this build has version 1");
    h = f->h;
    h.model ^= 1;
    strcpy(h.name, "some other");
    check_forged(f, &h, MICA_UNSUPPORTED, "another model: \"some other\"");
    h.name[2] = '\n'; /* names in messages are printable */
    check_forged(f, &h, MICA_UNSUPPORTED, "another model: \"so?e other\"");
    h = f->h;
    h.k_type = MICA_TYPE_Q8_0;
    check_forged(f, &h, MICA_UNSUPPORTED, "keys in Q8_0 and values in F16, and this session's KV cache has F16 and F16");
    h.v_type = -5;
    check_forged(f, &h, MICA_UNSUPPORTED, "values in unknown");
    h = f->h;
    h.rope ^= 1;
    check_forged(f, &h, MICA_UNSUPPORTED, "rotates positions differently");
    for (int i = 0; i < 4; i++) {
        h = f->h;
        *(int32_t *[]){&h.n_layers, &h.n_kv_heads, &h.head_dim, &h.n_vocab}[i] += 1;
        check_forged(f, &h, MICA_UNSUPPORTED, "another model");
    }
}

static void test_forged_counts(void **state)
{
    static const int32_t counts[][2] = {{-1, -1}, {9, -1}, {-1, 9}, {9, 10}, {INT_MIN, INT_MIN}, {0, INT_MAX}};
    const fixture *f = *state;
    mica_snapshot_header h = f->h;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        h.n_tokens = counts[i][0];
        h.n_computed = counts[i][1];
        check_forged(f, &h, MICA_BAD_FILE, "tokens are computed");
    }
    h.n_tokens = h.n_computed = INT_MAX;
    check_forged(f, &h, MICA_CONTEXT_FULL, "2147483647 tokens");
    h.n_tokens = h.n_computed = 65;
    check_forged(f, &h, MICA_CONTEXT_FULL, "65 tokens and the session's context holds 64");
    h.n_tokens = h.n_computed = 10;
    check_forged(f, &h, MICA_BAD_FILE, "its tokens are 36 bytes");
    h.n_tokens = 9;
    h.n_computed = 8;
    check_forged(f, &h, MICA_BAD_FILE, "its logits are");
    h.n_tokens = h.n_computed = 0;
    check_forged(f, &h, MICA_BAD_FILE, "its tokens are");
    for (int i = 0; i < 4; i++) { /* this model has no windowed layers */
        h = f->h;
        h.first = (int32_t[]){-1, 1, 10, INT_MIN}[i];
        check_forged(f, &h, MICA_BAD_FILE, "windowed layers begin at position");
    }
}

static void test_forged_layout(void **state)
{
    static const uint64_t values[] = {0, 1, 63, 64, UINT64_MAX, UINT64_MAX - 63, INT64_MAX, (uint64_t)1 << 32};
    const fixture *f = *state;
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            mica_snapshot_header h = f->h;
            h.sections[i].offset = values[k];
            check_forged(f, &h, MICA_BAD_FILE, mica_snapshot_part_name(i));
            h = f->h;
            h.sections[i].bytes = values[k];
            check_forged(f, &h, MICA_BAD_FILE, mica_snapshot_part_name(i));
        }
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        mica_snapshot_header h = f->h;
        h.total_bytes = values[k];
        check_forged(f, &h, MICA_BAD_FILE, values[k] < f->good.n ? "too long" : "truncated");
    }
    /* 64 zero bytes more, which the header admits */
    mica_snapshot_header h = f->h;
    bytes bad = copy_of(f->good, f->good.n + 64);
    h.total_bytes = bad.n;
    mica_snapshot_encode(&h, bad.data);
    check_refused(f->s, bad, MICA_BAD_FILE, "bytes where");
    free(bad.data);
}

/* Bytes that must be zero, under a right checksum. */
static void test_reserved(void **state)
{
    const fixture *f = *state;
    static const int at[] = {12, 13, 228, 247};
    for (int i = 0; i < 4; i++) {
        bytes bad = copy_of(f->good, f->good.n);
        uint8_t *p = bad.data;
        p[at[i]] ^= 1;
        mica_store_le64(p + 248, mica_xxh64_of(p, 248));
        check_refused(f->s, bad, MICA_BAD_FILE, "values where none may be");
        free(bad.data);
    }
}

static void test_forged_tokens(void **state)
{
    static const int32_t ids[] = {-1, INT_MIN, INT_MAX, 0};
    const fixture *f = *state;
    for (int i = 0; i < 4; i++)
        for (int at = 0; at < PROMPT; at += PROMPT - 1) {
            bytes bad = copy_of(f->good, f->good.n);
            mica_snapshot_header h = f->h;
            mica_snapshot_section *section = &h.sections[MICA_SNAPSHOT_TOKENS];
            uint8_t *tokens = (uint8_t *)bad.data + section->offset;
            int32_t id = ids[i] ? ids[i] : h.n_vocab;
            char says[64];
            snprintf(says, sizeof says, "its token %d is %d, which", at, id);
            memcpy(tokens + 4 * at, &id, sizeof id);
            section->checksum = mica_xxh64_of(tokens, (size_t)mica_snapshot_padded(section->bytes));
            mica_snapshot_encode(&h, bad.data);
            check_refused(f->s, bad, MICA_BAD_FILE, says);
            free(bad.data);
        }
}

/* ---- models ---- */

static bytes snapshot_of(const char *path)
{
    mica_model *model = open_model(path, NULL);
    mica_session *s = open_session(model, 64, 1, 8);
    int32_t tokens[PROMPT];
    some_tokens(tokens, PROMPT);
    sync_tokens(s, tokens, PROMPT);
    bytes b = snapshot(s);
    mica_session_free(s);
    mica_model_close(model);
    return b;
}

/* A copy of a model with one byte of `what` (found in the file), or of the last tensor, changed. */
static void copy_changed(const char *path, const char *what, const char *to)
{
    bytes b;
    b.data = load_bytes(path, &b.n);
    uint8_t *at = what ? memmem(b.data, b.n, what, strlen(what)) : (uint8_t *)b.data + b.n - 7;
    assert_non_null(at);
    at[what ? strlen(what) - 1 : 0] ^= 1;
    FILE *out = fopen(to, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(b.data, 1, b.n, out), b.n);
    fclose(out);
    free(b.data);
}

static void check_other_model(const char *path, bytes b, bool accepted)
{
    mica_model *model = open_model(path, NULL);
    mica_session *s = open_session(model, 64, 1, 8);
    if (accepted)
        restore(s, b);
    else
        check_refused(s, b, MICA_UNSUPPORTED, "another model");
    mica_session_free(s);
    mica_model_close(model);
}

/* Another architecture; the same shapes with one weight, one hyperparameter or one token changed; the same with other names. */
static void test_models(void **state)
{
    const char *llama = MICA_TEST_DATA "/tiny/llama.gguf";
    folder f;
    (void)state;
    bytes b = snapshot_of(llama);
    folder_make(&f);
    check_other_model(llama, b, true);
    check_other_model(MICA_TEST_DATA "/tiny/qwen2.gguf", b, false);
    check_other_model(MICA_TEST_DATA "/tiny/mistral.gguf", b, false);
    check_other_model(SCRIPTED, b, false);
    copy_changed(llama, NULL, f.file);
    check_other_model(f.file, b, false);
    copy_changed(llama, "llama.context_length\x04", f.file); /* the value's type: u32 -> i32 */
    check_other_model(f.file, b, false);
    copy_changed(llama, "<unk>", f.file);
    check_other_model(f.file, b, false);
    copy_changed(llama, "tiny llama", f.file); /* general.name says nothing about the cache */
    check_other_model(f.file, b, true);
    free(b.data);
    folder_remove(&f);
}

static void check_file(mica_session *s, const char *path, mica_status status, const char *says)
{
    mica_error err;
    if (mica_session_restore(s, path, &err) != status || !strstr(err.message, says))
        fail_msg("%s", err.message);
}

static void test_files(void **state)
{
    fixture *fx = *state;
    folder f;
    char path[256];
    folder_make(&f);
    check_file(fx->s, f.file, MICA_IO_ERROR, "no such file");
    check_file(fx->s, f.dir, MICA_IO_ERROR, "is a directory");
    check_file(fx->s, "/dev/null", MICA_IO_ERROR, "not a regular file");
    check_file(fx->s, SCRIPTED, MICA_BAD_FILE, "not a snapshot");
    snprintf(path, sizeof path, "%s/half", f.dir);
    for (int i = 0; i < 2; i++) {
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        fwrite(fx->good.data, 1, i ? fx->good.n / 2 : 0, out);
        fclose(out);
        check_file(fx->s, path, MICA_BAD_FILE, i ? "half is truncated" : "is empty");
    }
    folder_remove(&f);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_header_bytes),  TEST(test_section_bytes), TEST(test_truncated),     TEST(test_foreign),
        TEST(test_forged_counts), TEST(test_forged_layout), TEST(test_reserved),      TEST(test_forged_tokens),
        TEST(test_models),        TEST(test_files),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
