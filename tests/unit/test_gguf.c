/* test_gguf.c - the reader against broken files: the public cases by id, cuts and flips of a valid file. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "gguf_build.h"
#include "gguf_touch.h"

#define CASES MICA_TEST_DATA "/cases/"

typedef struct case_file {
    const char *id, *file;
    mica_status status;
    const char *says, *says_too; /* of a refusal; NULL: nothing more */
} case_file;

/* Every file of every case that the reader decides; test_every_case_file_is_listed() keeps it complete. */
static const case_file case_files[] = {
    {"gguf-01-truncated-header", "ok.gguf", MICA_OK, NULL, NULL},
    {"gguf-01-truncated-header", "cut000.gguf", MICA_BAD_FILE, "empty", "download it again"},
    {"gguf-01-truncated-header", "cut003.gguf", MICA_BAD_FILE, "3 bytes", "magic"},
    {"gguf-01-truncated-header", "cut004.gguf", MICA_BAD_FILE, "ends inside its version", "(byte 4)"},
    {"gguf-01-truncated-header", "cut007.gguf", MICA_BAD_FILE, "ends inside its version", "(byte 4)"},
    {"gguf-01-truncated-header", "cut008.gguf", MICA_BAD_FILE, "ends inside its number of tensors", "(byte 8)"},
    {"gguf-01-truncated-header", "cut015.gguf", MICA_BAD_FILE, "ends inside its number of tensors", "(byte 8)"},
    {"gguf-01-truncated-header", "cut023.gguf", MICA_BAD_FILE, "ends inside its number of keys", "(byte 16)"},
    {"gguf-01-truncated-header", "cut024.gguf", MICA_BAD_FILE, "promises 1 tensors", "(byte 8)"},
    {"gguf-01-truncated-header", "cut031.gguf", MICA_BAD_FILE, "promises 1 tensors", "(byte 8)"},
    {"gguf-01-truncated-header", "cut047.gguf", MICA_BAD_FILE, "promises 1 tensors", "(byte 8)"},
    {"gguf-01-truncated-header", "cut060.gguf", MICA_BAD_FILE, "key general.architecture ends inside its value", "(byte 56)"},
    {"gguf-01-truncated-header", "cut116.gguf", MICA_BAD_FILE, "tensor w ends inside its number of dimensions", "(byte 114)"},
    {"gguf-01-truncated-header", "cut160.gguf", MICA_BAD_FILE, "tensor w of shape 32 x 2 does not fit",
     "needs a file of 416 bytes"},
    {"gguf-02-not-a-gguf", "ggml.gguf", MICA_BAD_FILE, "old GGML container", "download it again"},
    {"gguf-02-not-a-gguf", "lfs.gguf", MICA_BAD_FILE, "Git LFS pointer", "download it again"},
    {"gguf-02-not-a-gguf", "redirect.gguf", MICA_BAD_FILE, "web page (HTML)", "download it again"},
    {"gguf-02-not-a-gguf", "safetensors.gguf", MICA_BAD_FILE, "safetensors", "download it again"},
    {"gguf-02-not-a-gguf", "zeros.gguf", MICA_BAD_FILE, "begins with zeros", "download it again"},
    {"gguf-03-huge-kv-count", "nkv_1e9.gguf", MICA_BAD_FILE, "promises 1000000000 keys", "(byte 16)"},
    {"gguf-03-huge-kv-count", "nkv_2e61.gguf", MICA_BAD_FILE, "promises 2305843009213693952 keys", "(byte 16)"},
    {"gguf-03-huge-kv-count", "nkv_max.gguf", MICA_BAD_FILE, "promises 18446744073709551615 keys", "(byte 16)"},
    {"gguf-05-huge-string", "key_2e63.gguf", MICA_BAD_FILE, "ends inside its name: 9223372036854775808 bytes", "key"},
    {"gguf-05-huge-string", "key_max.gguf", MICA_BAD_FILE, "ends inside its name", "key"},
    {"gguf-05-huge-string", "tname_2e40.gguf", MICA_BAD_FILE, "ends inside its name: 1099511627776 bytes", "tensor"},
    {"gguf-05-huge-string", "val_1gib.gguf", MICA_BAD_FILE, "ends inside its value (a string): 1073741824 bytes", "key"},
    {"gguf-05-huge-string", "val_max.gguf", MICA_BAD_FILE, "ends inside its value (a string)", "key"},
    {"gguf-07-too-many-dims", "nd0.gguf", MICA_BAD_FILE, "tensor w has 0 dimensions", NULL},
    {"gguf-07-too-many-dims", "nd4294967295.gguf", MICA_BAD_FILE, "tensor w has 4294967295 dimensions", NULL},
    {"gguf-07-too-many-dims", "nd5.gguf", MICA_BAD_FILE, "tensor w has 5 dimensions", "1 to 4"},
    {"gguf-07-too-many-dims", "nd64.gguf", MICA_BAD_FILE, "tensor w has 64 dimensions", NULL},
    {"gguf-07-too-many-dims", "nd8.gguf", MICA_BAD_FILE, "tensor w has 8 dimensions", NULL},
    {"gguf-07-too-many-dims", "nd9.gguf", MICA_BAD_FILE, "tensor w has 9 dimensions", NULL},
    {"gguf-08-dim-product-wrap", "d_2e32x4.gguf", MICA_BAD_FILE, "tensor w", "4294967296 x 4294967296 x 1 x 1"},
    {"gguf-08-dim-product-wrap", "d_2e42.gguf", MICA_BAD_FILE, "tensor w of shape 4096 x 4398046511105 does not fit", NULL},
    {"gguf-08-dim-product-wrap", "d_2e63x2.gguf", MICA_BAD_FILE, "tensor w", "9223372036854775808 x 2"},
    {"gguf-08-dim-product-wrap", "d_neg.gguf", MICA_BAD_FILE, "tensor w", "18446744073709551584 x 2"},
    {"gguf-08-dim-product-wrap", "d_zero.gguf", MICA_BAD_FILE, "tensor w", "32 x 0"},
    {"gguf-09-bad-alignment", "al_0.gguf", MICA_BAD_FILE, "key general.alignment is 0", "power of two"},
    {"gguf-09-bad-alignment", "al_1.gguf", MICA_BAD_FILE, "key general.alignment is 1", "power of two"},
    {"gguf-09-bad-alignment", "al_2e30.gguf", MICA_BAD_FILE, "tensor w of shape 32 x 2 does not fit", "1073742080 bytes"},
    {"gguf-09-bad-alignment", "al_2e31.gguf", MICA_BAD_FILE, "tensor w of shape 32 x 2 does not fit", "2147483904 bytes"},
    {"gguf-09-bad-alignment", "al_3.gguf", MICA_BAD_FILE, "key general.alignment is 3", "power of two"},
    {"gguf-09-bad-alignment", "al_4.gguf", MICA_BAD_FILE, "key general.alignment is 4", "8 or more"},
    {"gguf-09-bad-alignment", "al_i32_neg.gguf", MICA_BAD_FILE, "general.alignment has the type i32", "must have u32"},
    {"gguf-09-bad-alignment", "al_max.gguf", MICA_BAD_FILE, "key general.alignment is 4294967295", "power of two"},
    {"gguf-09-bad-alignment", "al_str.gguf", MICA_BAD_FILE, "general.alignment has the type string", "must have u32"},
    {"gguf-09-bad-alignment", "al_u64_32.gguf", MICA_BAD_FILE, "general.alignment has the type u64", "must have u32"},
    {"gguf-10-offset-out-of-file", "i64max.gguf", MICA_BAD_FILE, "tensor w of shape 32 x 2 does not fit", "384"},
    {"gguf-10-offset-out-of-file", "last_byte.gguf", MICA_BAD_FILE, "tensor w of shape 32 x 2 does not fit",
     "a file of 416 bytes"},
    {"gguf-10-offset-out-of-file", "past_end.gguf", MICA_BAD_FILE, "tensor w of shape 32 x 2 does not fit",
     "a file of 4480 bytes"},
    {"gguf-10-offset-out-of-file", "wrap_back.gguf", MICA_BAD_FILE, "tensor w has the impossible offset",
     "18446744073709551552"},
    {"gguf-11-offset-unaligned", "hole.gguf", MICA_OK, NULL, NULL},
    {"gguf-11-offset-unaligned", "off_33.gguf", MICA_BAD_FILE, "tensor w is misaligned", "offset 33"},
    {"gguf-11-offset-unaligned", "off_8.gguf", MICA_BAD_FILE, "tensor w is misaligned", "offset 8"},
    {"gguf-11-offset-unaligned", "overlap.gguf", MICA_BAD_FILE, "tensor b overlaps tensor a", NULL},
    {"gguf-13-duplicate-tensor", "case_differs.gguf", MICA_OK, NULL, NULL},
    {"gguf-13-duplicate-tensor", "dup.gguf", MICA_BAD_FILE, "tensor w is there twice", NULL},
    {"gguf-15-big-endian", "be.gguf", MICA_UNSUPPORTED, "big-endian", "0x03000000"},
    {"gguf-15-big-endian", "fugg.gguf", MICA_UNSUPPORTED, "big-endian", "reversed"},
    {"gguf-16-versions", "v0.gguf", MICA_UNSUPPORTED, "unknown version 0;", NULL},
    {"gguf-16-versions", "v1.gguf", MICA_UNSUPPORTED, "version 1, an old version", NULL},
    {"gguf-16-versions", "v2.gguf", MICA_OK, NULL, NULL},
    {"gguf-16-versions", "v2147483648.gguf", MICA_UNSUPPORTED, "unknown version 2147483648", NULL},
    {"gguf-16-versions", "v3.gguf", MICA_OK, NULL, NULL},
    {"gguf-16-versions", "v4.gguf", MICA_UNSUPPORTED, "unknown version 4;", NULL},
    {"gguf-16-versions", "v99.gguf", MICA_UNSUPPORTED, "unknown version 99", NULL},
#define BAD_TYPE(n)                                                                                                           \
    {                                                                                                                         \
        "gguf-17-removed-or-unknown-type", "type" #n ".gguf", MICA_UNSUPPORTED,                                               \
            "tensor blk.0.ffn_down.weight has type id " #n ", which this build cannot read", "Q4_K"                           \
    }
    BAD_TYPE(4), BAD_TYPE(5), BAD_TYPE(31), BAD_TYPE(32), BAD_TYPE(33), BAD_TYPE(36), BAD_TYPE(37), BAD_TYPE(38),
    BAD_TYPE(250), BAD_TYPE(2147483648), BAD_TYPE(4294967295),
    {"gguf-24-bool-and-enum-bytes", "badutf8.gguf", MICA_OK, NULL, NULL},
    {"gguf-24-bool-and-enum-bytes", "bool2.gguf", MICA_BAD_FILE, "key x has the bool byte 2", NULL},
    {"gguf-24-bool-and-enum-bytes", "bool255.gguf", MICA_BAD_FILE, "key tokenizer.ggml.add_bos_token has the bool byte 255",
     NULL},
    {"gguf-24-bool-and-enum-bytes", "emptykey.gguf", MICA_BAD_FILE, "key 2 of 2 has an empty name", NULL},
    {"gguf-24-bool-and-enum-bytes", "kvtype13.gguf", MICA_BAD_FILE, "has the value type 13", NULL},
    {"gguf-24-bool-and-enum-bytes", "kvtype_max.gguf", MICA_BAD_FILE, "has the value type 4294967295", NULL},
    {"gguf-25-split-files/good", "m-00001-of-00002.gguf", MICA_OK, NULL, NULL},
    {"gguf-25-split-files/good", "m-00002-of-00002.gguf", MICA_OK, NULL, NULL},
    {"gguf-25-split-files/missing", "m-00001-of-00002.gguf", MICA_IO_ERROR, "m-00002-of-00002.gguf", "no such file"},
    {"gguf-25-split-files/swapped", "m-00001-of-00002.gguf", MICA_BAD_FILE, "m-00002-of-00002.gguf: key split.no is 0",
     "must be 1"},
    {"gguf-25-split-files/swapped", "m-00002-of-00002.gguf", MICA_BAD_FILE, "key split.no is 0", "must be 1"},
    {"gguf-25-split-files/count", "m-00001-of-00002.gguf", MICA_BAD_FILE, "m-00002-of-00002.gguf: key split.count is 3",
     "must be 2"},
    {"gguf-25-split-files/count", "m-00002-of-00002.gguf", MICA_BAD_FILE, "key split.count is 3", "must be 2"},
    {"gguf-25-split-files/short", "m-00001-of-00002.gguf", MICA_BAD_FILE, "key split.tensors.count is 2", "must be 1"},
    {"gguf-25-split-files/short", "m-00002-of-00002.gguf", MICA_BAD_FILE, "m-00001-of-00002.gguf: key split.tensors.count",
     NULL},
    {"gguf-25-split-files/dup", "m-00001-of-00002.gguf", MICA_BAD_FILE, "m-00002-of-00002.gguf: tensor a is there twice",
     "part 1 has it too"},
    {"gguf-25-split-files/dup", "m-00002-of-00002.gguf", MICA_BAD_FILE, "tensor a is there twice", NULL},
    {"gguf-25-split-files/renamed", "model.gguf", MICA_BAD_FILE, "part 1 of 2", ": model-00001-of-00002.gguf is expected"},
    {"gguf-25-split-files/renamed", "m-00002-of-00002.gguf", MICA_IO_ERROR, "m-00001-of-00002.gguf", "no such file"},
};
#define N_CASE_FILES (sizeof case_files / sizeof *case_files)

/* ---- Checks ---------------------------------------------------------------------------------------------------------- */

#define assert_says(err, text)                                                                                                \
    do {                                                                                                                      \
        if (!strstr((err).message, text))                                                                                     \
            fail_msg("expected \"%s\" in: %s", text, (err).message);                                                          \
    } while (0)

/* What holds for every refusal: one sentence on one line that names the file; the byte in it and in `position`. */
static void check_refusal(const mica_error *err, mica_status status, const char *name)
{
    assert_int_equal(err->code, status);
    assert_says(*err, name);
    assert_null(strchr(err->message, '\n'));
    assert_true(strlen(err->message) < sizeof err->message - 1); /* not cut */
    assert_true(err->position >= 0);
    char byte[40];
    snprintf(byte, sizeof byte, "(byte %lld)", (long long)err->position);
    if (!strstr(err->message, "empty (0 bytes)"))
        assert_says(*err, byte);
}

static void check_open(const mica_gguf *g)
{
    uint64_t sum;
    assert_true(touch_all(g, &sum));
}

static long max_rss_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void check_case(const case_file *c)
{
    char path[512];
    mica_gguf *g = NULL;
    mica_error err = {.code = MICA_OK, .position = -7};
    snprintf(path, sizeof path, CASES "%s/%s", c->id, c->file);
    long rss = max_rss_kib();
    int64_t start = mica_now_ns();
    mica_status status = mica_gguf_open(path, &g, &err);
    assert_true(mica_now_ns() - start < 1000000000);
    assert_true(max_rss_kib() - rss < 64 * 1024);
    if (status != c->status)
        fail_msg("%s/%s: status %s: %s", c->id, c->file, mica_status_name(status), err.message);
    if (status == MICA_OK) {
        assert_int_equal(err.position, -7); /* untouched */
        check_open(g);
        mica_gguf_close(g);
        return;
    }
    assert_null(g);
    const char *shown = strstr(c->says, "-of-") ? "m-0000" : c->file; /* another part of the set may be the bad one */
    check_refusal(&err, c->status, shown);
    assert_says(err, c->says);
    if (c->says_too)
        assert_says(err, c->says_too);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASE_FILES; i++)
        check_case(&case_files[i]);
}

static bool is_listed(const char *id, const char *file)
{
    for (size_t i = 0; i < N_CASE_FILES; i++)
        if (strcmp(case_files[i].id, id) == 0 && strcmp(case_files[i].file, file) == 0)
            return true;
    return false;
}

static size_t check_listed(const char *id)
{
    char path[512];
    size_t n = 0;
    snprintf(path, sizeof path, CASES "%s", id);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".gguf") != 0)
            continue;
        if (!is_listed(id, entry->d_name))
            fail_msg("%s/%s is not in case_files", id, entry->d_name);
        n++;
    }
    closedir(dir);
    return n;
}

static void test_every_case_file_is_listed(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < N_CASE_FILES; i++)
        if (i == 0 || strcmp(case_files[i].id, case_files[i - 1].id) != 0)
            n += check_listed(case_files[i].id);
    assert_int_equal(n, N_CASE_FILES);
}

/* ---- Cases that need more than one open ------------------------------------------------------------------------------ */

static char *read_file(const char *path, size_t *length)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &st), 0);
    char *data = malloc((size_t)st.st_size + 1);
    assert_non_null(data);
    *length = fread(data, 1, (size_t)st.st_size + 1, file);
    assert_int_equal(*length, st.st_size);
    fclose(file);
    return data;
}

static void test_gguf_12_truncated_data(void **state)
{
    (void)state;
    size_t length;
    mica_gguf *g = NULL;
    mica_error err;
    char needs[64], has[64], *data = read_file(CASES "_common/scripted.gguf", &length); /* one byte more than the file */
    data[length] = 0;
    snprintf(needs, sizeof needs, "needs a file of %zu bytes", length);
    assert_int_equal(mica_gguf_open_memory(data, length - 1, "cut1.gguf", &g, &err), MICA_BAD_FILE);
    check_refusal(&err, MICA_BAD_FILE, "cut1.gguf");
    assert_says(err, "tensor output.weight of shape 128 x 374 does not fit");
    assert_says(err, needs);
    snprintf(has, sizeof has, "this one has %zu", length - 1);
    assert_says(err, has);
    assert_int_equal(mica_gguf_open_memory(data, length / 2, "cuthalf.gguf", &g, &err), MICA_BAD_FILE);
    check_refusal(&err, MICA_BAD_FILE, "cuthalf.gguf");
    snprintf(has, sizeof has, "this one has %zu", length / 2);
    assert_says(err, "tensor blk.0.attn_output.weight of shape 128 x 128 does not fit"); /* the first across byte 426432 */
    assert_says(err, has);
    for (size_t extra = 0; extra < 2; extra++) {
        assert_int_equal(mica_gguf_open_memory(data, length + extra, "plus1.gguf", &g, &err), MICA_OK);
        assert_int_equal(mica_gguf_tensor_count(g), 12);
        check_open(g);
        mica_gguf_close(g);
    }
    free(data);
}

static void test_gguf_25_split_good(void **state)
{
    (void)state;
    static const char *const paths[] = {CASES "gguf-25-split-files/good/m-00001-of-00002.gguf",
                                        CASES "gguf-25-split-files/good/m-00002-of-00002.gguf"};
    for (int i = 0; i < 2; i++) {
        mica_gguf *g;
        mica_str arch;
        assert_int_equal(mica_gguf_open(paths[i], &g, NULL), MICA_OK);
        assert_int_equal(mica_gguf_tensor_count(g), 2);
        assert_memory_equal(mica_gguf_tensor_at(g, 0)->name.data, "a", 1);
        assert_memory_equal(mica_gguf_tensor_at(g, 1)->name.data, "b", 1);
        assert_int_equal(mica_gguf_tensor_find(g, "b")->part, 1);
        assert_int_equal(mica_gguf_file_bytes(g), 448 + 416);
        assert_string_equal(mica_gguf_path(g), paths[0]);
        assert_int_equal(mica_gguf_get_str(g, "general.architecture", true, &arch, NULL), MICA_OK); /* the first part's */
        mica_gguf_close(g);
    }
}

static void test_split_by_descriptor_is_refused(void **state)
{
    (void)state;
    size_t length;
    mica_gguf *g = NULL;
    mica_error err;
    char *data = read_file(CASES "gguf-25-split-files/good/m-00002-of-00002.gguf", &length);
    assert_int_equal(mica_gguf_open_memory(data, length, "m", &g, &err), MICA_UNSUPPORTED);
    assert_says(err, "part 2 of 2");
    free(data);
}

/* ---- Cuts and flips of a valid file ---------------------------------------------------------------------------------- */

static void test_sample_cut_at_every_byte(void **state)
{
    (void)state;
    size_t header;
    mica_buf b = build_sample(&header);
    for (size_t length = 0; length <= b.length; length++) {
        void *copy;
        mica_gguf *g = NULL;
        mica_error err;
        mica_status status = open_copy(b.data, length, &copy, &g, &err);
        if (length == b.length) {
            assert_int_equal(status, MICA_OK);
            check_open(g);
        } else {
            assert_int_equal(status, MICA_BAD_FILE);
            check_refusal(&err, MICA_BAD_FILE, "sample.gguf");
            assert_true((uint64_t)err.position <= length);
        }
        mica_gguf_close(g);
        free(copy);
    }
    mica_buf_free(&b);
}

/* Every byte of header and metadata takes every single-bit change, 0x00 and 0xFF. Whatever is still accepted must be safe
 * to read in full. */
static void test_sample_flipped_at_every_byte(void **state)
{
    (void)state;
    size_t header, accepted = 0, refused = 0;
    mica_buf b = build_sample(&header);
    for (size_t at = 0; at < header; at++)
        for (int k = 0; k < 10; k++) {
            void *copy;
            mica_gguf *g = NULL;
            mica_error err;
            char old = b.data[at];
            b.data[at] = (char)(k < 8 ? old ^ (1 << k) : k == 8 ? 0 : 0xFF);
            mica_status status = open_copy(b.data, b.length, &copy, &g, &err);
            b.data[at] = old;
            if (status == MICA_OK) {
                accepted++;
                check_open(g);
            } else {
                refused++;
                assert_true(status == MICA_BAD_FILE || status == MICA_UNSUPPORTED);
                check_refusal(&err, status, "sample.gguf");
            }
            mica_gguf_close(g);
            free(copy);
        }
    assert_true(accepted > 100 && refused > 100); /* values and letters may change, structure may not */
    mica_buf_free(&b);
}

/* ---- Rules that no case file has ------------------------------------------------------------------------------------- */

static void check_bytes(mica_buf *b, mica_status want, const char *says)
{
    void *copy;
    mica_gguf *g = NULL;
    mica_error err;
    mica_status status = open_copy(b->data, b->length, &copy, &g, &err);
    if (status != want)
        fail_msg("status %s instead of %s (%s)", mica_status_name(status), mica_status_name(want), status ? err.message : "");
    if (status == MICA_OK) {
        check_open(g);
    } else {
        check_refusal(&err, want, "sample.gguf");
        assert_says(err, says);
    }
    mica_gguf_close(g);
    free(copy);
    mica_buf_free(b);
}

static void test_keys(void **state)
{
    (void)state;
    mica_buf b;
    put_header(&b, 3, 0, 2);
    put_number(&b, "k", MICA_GGUF_U8, 1, 1), put_number(&b, "k", MICA_GGUF_U8, 2, 1);
    check_bytes(&b, MICA_BAD_FILE, "key k is there twice (byte 46)");
    put_header(&b, 3, 0, 1);
    put_number(&b, "caf\xE9", MICA_GGUF_U8, 1, 1);
    check_bytes(&b, MICA_BAD_FILE, "key caf\\xe9 has a name that is not valid UTF-8 (byte 32)");
    put_header(&b, 3, 0, 1);
    put_number(&b, "esc\x1B[2J", MICA_GGUF_BOOL, 7, 1);
    check_bytes(&b, MICA_BAD_FILE, "key esc\\x1b[2J has the bool byte 7");
    char *key = malloc(65537);
    memset(key, 'k', 65537);
    for (size_t length = 65535; length <= 65536; length++) {
        put_header(&b, 3, 0, 1);
        put_bytes(&b, key, length), put_uint(&b, MICA_GGUF_U8, 4), put_uint(&b, 1, 1);
        check_bytes(&b, length == 65535 ? MICA_OK : MICA_BAD_FILE, "has a name of 65536 bytes");
    }
    free(key);
}

static void test_arrays(void **state)
{
    (void)state;
    mica_buf b;
    put_header(&b, 3, 0, 1);
    put_array(&b, "k", MICA_GGUF_ARRAY, 1), put_uint(&b, MICA_GGUF_U8, 4), put_uint(&b, 0, 8);
    check_bytes(&b, MICA_UNSUPPORTED, "key k is an array of arrays");
    put_header(&b, 3, 0, 1);
    put_array(&b, "k", 13, 1), put_uint(&b, 0, 8);
    check_bytes(&b, MICA_BAD_FILE, "key k has the element type 13");
    static const uint64_t counts[] = {2, (uint64_t)1 << 61, UINT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        put_header(&b, 3, 0, 1);
        put_array(&b, "k", MICA_GGUF_F64, counts[i]), put_uint(&b, 0, 8), put_uint(&b, 0, 7);
        check_bytes(&b, MICA_BAD_FILE, "elements of type f64, but the 15 bytes after it do not hold them");
    }
    put_header(&b, 3, 0, 1);
    put_array(&b, "k", MICA_GGUF_STRING, 2), put_str(&b, "ab"), put_uint(&b, 3, 8), put_uint(&b, 0, 2);
    check_bytes(&b, MICA_BAD_FILE, "key k ends inside its value (a string): 3 bytes are needed and 2 left");
    put_header(&b, 3, 0, 1);
    put_array(&b, "k", MICA_GGUF_STRING, 2), put_str(&b, "0123456789"), put_uint(&b, 0, 7);
    check_bytes(&b, MICA_BAD_FILE, "key k ends inside its value (a string's length)");
    put_header(&b, 3, 0, 1);
    put_array(&b, "k", MICA_GGUF_BOOL, 3), put_uint(&b, 0x020001, 3);
    check_bytes(&b, MICA_BAD_FILE, "key k has the bool byte 2");
}

static void test_tensor_names(void **state)
{
    (void)state;
    mica_buf b;
    char name[66] = {0};
    memset(name, 'n', 65);
    put_header(&b, 3, 1, 0);
    put_tensor(&b, name, MICA_TYPE_F32, 1, (uint64_t[]){8}, 0), put_data(&b, 32, 32);
    check_bytes(&b, MICA_BAD_FILE, "tensor 1 of 1 has a name of 65 bytes, and 64 are allowed");
    name[64] = '\0';
    put_header(&b, 3, 1, 0);
    put_tensor(&b, name, MICA_TYPE_F32, 1, (uint64_t[]){8}, 0), put_data(&b, 32, 32);
    check_bytes(&b, MICA_OK, NULL);
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "", MICA_TYPE_F32, 1, (uint64_t[]){8}, 0), put_data(&b, 32, 32);
    check_bytes(&b, MICA_BAD_FILE, "tensor 1 of 1 has an empty name");
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "\xC0\x80", MICA_TYPE_F32, 1, (uint64_t[]){8}, 0), put_data(&b, 32, 32);
    check_bytes(&b, MICA_BAD_FILE, "tensor \\xc0\\x80 has a name that is not valid UTF-8");
}

static void test_tensor_layout(void **state)
{
    (void)state;
    mica_buf b;
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "w", MICA_TYPE_Q4_K, 2, (uint64_t[]){128, 2}, 0), put_data(&b, 32, 256);
    check_bytes(&b, MICA_BAD_FILE,
                "tensor w has the shape 128 x 2, whose first dimension is not a multiple of 256 as Q4_K needs");
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "w", MICA_TYPE_F32, 1, (uint64_t[]){(uint64_t)1 << 62}, 0), put_data(&b, 32, 256);
    check_bytes(&b, MICA_BAD_FILE, "tensor w has the impossible shape 4611686018427387904: its size exceeds 2^64 bytes");
    put_header(&b, 3, 1, UINT64_MAX / 2);
    check_bytes(&b, MICA_BAD_FILE, "promises 1 tensors");
    put_header(&b, 3, 2, 0); /* not in the order of their offsets; the second one starts inside the first */
    put_tensor(&b, "late", MICA_TYPE_F32, 1, (uint64_t[]){16}, 32);
    put_tensor(&b, "early", MICA_TYPE_F32, 1, (uint64_t[]){9}, 0);
    put_data(&b, 32, 96);
    check_bytes(&b, MICA_BAD_FILE, "tensor late overlaps tensor early");
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "late", MICA_TYPE_F32, 1, (uint64_t[]){16}, 32);
    put_tensor(&b, "early", MICA_TYPE_F32, 1, (uint64_t[]){8}, 0);
    put_data(&b, 32, 96);
    check_bytes(&b, MICA_OK, NULL);
    put_header(&b, 3, 2, 0); /* both are too far: the first in the data is named */
    put_tensor(&b, "late", MICA_TYPE_F32, 1, (uint64_t[]){16}, 32);
    put_tensor(&b, "early", MICA_TYPE_F32, 1, (uint64_t[]){8}, 0);
    put_data(&b, 32, 20);
    check_bytes(&b, MICA_BAD_FILE, "tensor early of shape 8 does not fit");
    put_header(&b, 3, 0, 0); /* nothing in it is still a file */
    check_bytes(&b, MICA_OK, NULL);
}

/* The index's hash (FNV-1a, folded), to find names that share its low bits. */
static uint32_t name_hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (const char *p = name; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h ^ h >> 15;
}

static void test_colliding_keys_are_refused(void **state)
{
    (void)state;
    mica_buf b;
    char key[16];
    int n = 0;
    put_header(&b, 3, 0, 300); /* 300 keys: 1024 slots */
    for (int i = 0; n < 300; i++) {
        snprintf(key, sizeof key, "k%d", i);
        if ((name_hash(key) & 1023) == 5)
            put_number(&b, key, MICA_GGUF_U8, 1, 1), n++;
    }
    check_bytes(&b, MICA_BAD_FILE, "too many that collide");
}

static void test_first_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *says;
    } files[] = {
        {"PK\3\4rest", 8, "ZIP archive"},
        {"lmgg\1\0\0\0", 8, "old GGML container"},
        {"tjgg\3\0\0\0", 8, "old GGML container"},
        {"fmgg\1\0\0\0", 8, "old GGML container"},
        {"\xEF\xBB\xBF \r\n<HTML>", 13, "web page (HTML)"},
        {"<?xml version", 13, "web page (HTML)"},
        {"\x1F\x8B\x08\0", 4, "gzip"},
        {"{\"error\":1}", 11, "JSON"},
        {"\0\0", 2, "zeros"},
        {"GGU", 3, "3 bytes"},
        {"GGUG\3\0\0\0", 8, "47 47 55 47"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        mica_buf b;
        mica_buf_init(&b, 1000);
        mica_buf_append(&b, files[i].bytes, files[i].length);
        check_bytes(&b, MICA_BAD_FILE, files[i].says);
    }
}

/* The longest path, name and list in one message still leave room for its end. */
static void test_long_names_keep_the_message_whole(void **state)
{
    (void)state;
    mica_buf b;
    char name[65] = {0}, path[2000] = {0};
    mica_gguf *g = NULL;
    mica_error err;
    memset(name, 'n', 64);
    memset(path, 'p', sizeof path - 1);
    put_header(&b, 3, 1, 0);
    put_tensor(&b, name, 4294967295u, 1, (uint64_t[]){8}, 0), put_data(&b, 32, 32);
    assert_int_equal(mica_gguf_open_memory(b.data, b.length, path, &g, &err), MICA_UNSUPPORTED);
    check_refusal(&err, MICA_UNSUPPORTED, "pppp");
    mica_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_every_case_file_is_listed),
        cmocka_unit_test(test_gguf_12_truncated_data),
        cmocka_unit_test(test_gguf_25_split_good),
        cmocka_unit_test(test_split_by_descriptor_is_refused),
        cmocka_unit_test(test_sample_cut_at_every_byte),
        cmocka_unit_test(test_sample_flipped_at_every_byte),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_tensor_names),
        cmocka_unit_test(test_tensor_layout),
        cmocka_unit_test(test_colliding_keys_are_refused),
        cmocka_unit_test(test_first_bytes),
        cmocka_unit_test(test_long_names_keep_the_message_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
