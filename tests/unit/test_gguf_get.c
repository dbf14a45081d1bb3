/* test_gguf_get.c - access to a file that was opened: getters and their ranges, arrays, text, tensors, part of a file. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "gguf_build.h"
#include "gguf_touch.h"

typedef struct fixture {
    mica_buf bytes;
    mica_gguf *g;
} fixture;

static int open_sample(void **state)
{
    size_t header;
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->bytes = build_sample(&header);
    assert_int_equal(mica_gguf_open_memory(f->bytes.data, f->bytes.length, "sample.gguf", &f->g, NULL), MICA_OK);
    *state = f;
    return 0;
}

static int close_sample(void **state)
{
    fixture *f = *state;
    mica_gguf_close(f->g);
    mica_buf_free(&f->bytes);
    free(f);
    return 0;
}

static int64_t get(const mica_gguf *g, const char *key)
{
    int64_t value = 0;
    assert_int_equal(mica_gguf_get_i64(g, key, true, INT64_MIN, INT64_MAX, &value, NULL), MICA_OK);
    return value;
}

static void test_integers(void **state)
{
    const mica_gguf *g = ((fixture *)*state)->g;
    assert_int_equal(get(g, "t.u8"), 200);
    assert_int_equal(get(g, "t.i8"), -128);
    assert_int_equal(get(g, "t.u16"), 65535);
    assert_int_equal(get(g, "t.i16"), -32768);
    assert_int_equal(get(g, "t.u32"), 4294967295);
    assert_int_equal(get(g, "t.i32"), -2147483648LL);
    assert_int_equal(get(g, "t.i64"), INT64_MIN);
}

static void check_range(const mica_gguf *g, const char *key, int64_t min, int64_t max, const char *says)
{
    mica_error err;
    int64_t value = 42;
    assert_int_equal(mica_gguf_get_i64(g, key, false, min, max, &value, &err), MICA_BAD_FILE);
    assert_int_equal(value, 42);
    assert_non_null(strstr(err.message, says));
    assert_int_equal(err.position, mica_gguf_find(g, key)->offset);
}

static void test_integers_out_of_range(void **state)
{
    const mica_gguf *g = ((fixture *)*state)->g;
    int64_t value;
    check_range(g, "t.u8", 0, 199, "key t.u8 is 200 and must be 0 to 199");
    check_range(g, "t.u8", 201, 300, "key t.u8 is 200 and must be 201 to 300");
    check_range(g, "t.i8", -127, 0, "key t.i8 is -128");
    check_range(g, "t.u64", INT64_MIN, INT64_MAX, "key t.u64 is 18446744073709551615");
    check_range(g, "t.f32", 0, 1, "key t.f32 has the type f32 and must be an integer");
    check_range(g, "t.true", 0, 1, "key t.true has the type bool and must be an integer");
    check_range(g, "t.i16s", 0, 1, "key t.i16s has the type array of i16 and must be an integer");
    assert_int_equal(mica_gguf_get_i64(g, "t.u8", true, 200, 200, &value, NULL), MICA_OK);
}

static void test_absent(void **state)
{
    const mica_gguf *g = ((fixture *)*state)->g;
    mica_error err;
    int64_t i = 5;
    float f = 5;
    bool b = true;
    mica_str s = {"x", 1};
    assert_int_equal(mica_gguf_get_i64(g, "no", false, 0, 1, &i, &err), MICA_OK);
    assert_int_equal(mica_gguf_get_f32(g, "no", false, &f, &err), MICA_OK);
    assert_int_equal(mica_gguf_get_bool(g, "no", false, &b, &err), MICA_OK);
    assert_int_equal(mica_gguf_get_str(g, "no", false, &s, &err), MICA_OK);
    assert_true(i == 5 && f == 5 && b && s.length == 1);
    assert_int_equal(mica_gguf_get_i64(g, "no", true, 0, 1, &i, &err), MICA_BAD_FILE);
    assert_string_equal(err.message, "sample.gguf: key no is missing from the metadata");
    assert_int_equal(mica_gguf_get_f32(g, "no", true, &f, &err), MICA_BAD_FILE);
    assert_int_equal(mica_gguf_get_bool(g, "no", true, &b, &err), MICA_BAD_FILE);
    assert_int_equal(mica_gguf_get_str(g, "no", true, &s, &err), MICA_BAD_FILE);
    assert_true(i == 5 && f == 5 && b && s.length == 1);
    assert_null(mica_gguf_find(g, "t.u"));
    assert_null(mica_gguf_find(g, ""));
    assert_null(mica_gguf_tensor_find(g, "A.weight"));
}

static void test_other_kinds(void **state)
{
    const mica_gguf *g = ((fixture *)*state)->g;
    mica_error err;
    float f = 0;
    bool b = false;
    mica_str s;
    assert_int_equal(mica_gguf_get_f32(g, "t.f32", true, &f, NULL), MICA_OK);
    assert_true(f == 1e-5f);
    assert_int_equal(mica_gguf_get_f32(g, "t.f64", true, &f, NULL), MICA_OK);
    assert_true(f == 0.1f);
    assert_int_equal(mica_gguf_get_bool(g, "t.true", true, &b, NULL), MICA_OK);
    assert_true(b);
    assert_int_equal(mica_gguf_get_bool(g, "t.false", true, &b, NULL), MICA_OK);
    assert_false(b);
    assert_int_equal(mica_gguf_get_str(g, "general.architecture", true, &s, NULL), MICA_OK);
    assert_true(s.length == 5 && memcmp(s.data, "llama", 5) == 0);
    assert_int_equal(mica_gguf_get_f32(g, "t.u8", false, &f, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "key t.u8 has the type u8 and must be a float"));
    assert_int_equal(mica_gguf_get_bool(g, "t.u8", false, &b, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "must be a bool"));
    assert_int_equal(mica_gguf_get_str(g, "t.words", false, &s, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "has the type array of string and must be a string"));
}

static void test_floats_must_be_finite(void **state)
{
    (void)state;
    static const double bad[] = {1e39, -1e39, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica_buf b;
        mica_gguf *g;
        mica_error err;
        float f = 7;
        put_header(&b, 3, 0, 2);
        put_number(&b, "d", MICA_GGUF_F64, bits_of_double(bad[i]), 8);
        put_number(&b, "f", MICA_GGUF_F32, bits_of((float)INFINITY), 4);
        assert_int_equal(mica_gguf_open_memory(b.data, b.length, "x", &g, NULL), MICA_OK);
        assert_int_equal(mica_gguf_get_f32(g, "d", false, &f, &err), MICA_BAD_FILE);
        assert_int_equal(mica_gguf_get_f32(g, "f", false, &f, &err), MICA_BAD_FILE);
        assert_non_null(strstr(err.message, "key f is inf and must be a finite"));
        assert_true(f == 7);
        const mica_gguf_value *v = mica_gguf_find(g, "d"); /* as an integer: saturated */
        int64_t want = isnan(bad[i]) ? 0 : bad[i] > 0 ? INT64_MAX : INT64_MIN;
        assert_int_equal(mica_gguf_array_i64(v, 0), want);
        mica_gguf_close(g);
        mica_buf_free(&b);
    }
}

static void test_arrays(void **state)
{
    const mica_gguf *g = ((fixture *)*state)->g;
    const mica_gguf_value *v = mica_gguf_find(g, "t.i16s");
    assert_int_equal(v->count, 10);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(mica_gguf_array_i64(v, i), (int64_t)i - 5);
        assert_true(mica_gguf_array_f64(v, i) == (double)i - 5);
    }
    v = mica_gguf_find(g, "t.bools");
    assert_int_equal(mica_gguf_array_i64(v, 0), 0);
    assert_int_equal(mica_gguf_array_i64(v, 1), 1);
    assert_true(mica_gguf_array_f64(mica_gguf_find(g, "t.u64"), 0) == 18446744073709551616.0);
    assert_int_equal(mica_gguf_array_i64(mica_gguf_find(g, "t.u64"), 0), INT64_MAX);
    assert_int_equal(mica_gguf_find(g, "t.none")->count, 0);
    v = mica_gguf_find(g, "t.words");
    uint64_t cursor = 0;
    mica_str one = mica_gguf_array_str(v, &cursor), two = mica_gguf_array_str(v, &cursor);
    mica_str three = mica_gguf_array_str(v, &cursor);
    assert_true(one.length == 3 && memcmp(one.data, "one", 3) == 0);
    assert_int_equal(two.length, 0);
    assert_true(three.length == 2 && memcmp(three.data, "\xFF\n", 2) == 0); /* as in the file */
}

static void check_text(const mica_gguf *g, const char *key, const char *want)
{
    char *text = mica_gguf_value_text(mica_gguf_find(g, key));
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
}

static void test_text(void **state)
{
    const mica_gguf *g = ((fixture *)*state)->g;
    check_text(g, "general.architecture", "llama");
    check_text(g, "t.i8", "-128");
    check_text(g, "t.u64", "18446744073709551615");
    check_text(g, "t.i64", "-9223372036854775808");
    check_text(g, "t.f32", "1e-05");
    check_text(g, "t.f64", "0.1");
    check_text(g, "t.true", "true");
    check_text(g, "t.bools", "[false, true]");
    check_text(g, "t.none", "[]");
    check_text(g, "t.words", "[\"one\", \"\", \"\\xff\\n\"]");
    check_text(g, "t.i16s", "[-5, -4, -3, -2, -1, 0, 1, 2, ... (10 in all)]");
}

/* A file's bytes never reach a terminal as they are: gguf-24, badutf8.gguf. */
static void test_text_is_escaped(void **state)
{
    (void)state;
    mica_gguf *g;
    assert_int_equal(mica_gguf_open(MICA_TEST_DATA "/cases/gguf-24-bool-and-enum-bytes/badutf8.gguf", &g, NULL), MICA_OK);
    check_text(g, "general.name", "\\xff\\xfe");
    mica_gguf_close(g);
    mica_buf b;
    char big[200];
    memset(big, 'a', sizeof big);
    put_header(&b, 3, 0, 4);
    put_key(&b, "esc", MICA_GGUF_STRING), put_str(&b, "a\x1B[31m\tb\nc\r\x7F");
    put_key(&b, "uni", MICA_GGUF_STRING), put_str(&b, "\xC3\xA9\xC2\x9B\xE2\x80\xAE\xF0\x9F\x99\x82\xF0\x9F");
    put_array(&b, "long", MICA_GGUF_STRING, 1), put_bytes(&b, big, sizeof big);
    put_key(&b, "nul", MICA_GGUF_STRING), put_bytes(&b, "a\0b", 3);
    assert_int_equal(mica_gguf_open_memory(b.data, b.length, "x", &g, NULL), MICA_OK);
    check_text(g, "esc", "a\\x1b[31m\tb\nc\\x0d\\x7f");
    check_text(g, "uni", "\xC3\xA9\\xc2\\x9b\\xe2\\x80\\xae\xF0\x9F\x99\x82\\xf0\\x9f");
    check_text(g, "nul", "a\\x00b");
    char want[100];
    snprintf(want, sizeof want, "[\"%.64s... (200 bytes)\"]", big);
    check_text(g, "long", want);
    mica_gguf_close(g);
    mica_buf_free(&b);
}

static void test_tensors(void **state)
{
    const fixture *f = *state;
    assert_int_equal(mica_gguf_tensor_count(f->g), 3);
    const mica_gguf_tensor *a = mica_gguf_tensor_find(f->g, "a.weight"), *b = mica_gguf_tensor_find(f->g, "b.weight");
    const mica_gguf_tensor *c = mica_gguf_tensor_find(f->g, "c.weight");
    assert_true(a == mica_gguf_tensor_at(f->g, 0) && b == mica_gguf_tensor_at(f->g, 1) && c == mica_gguf_tensor_at(f->g, 2));
    assert_true(a->n_dims == 1 && a->dims[0] == 3 && a->dims[1] == 1 && a->dims[3] == 1 && a->n_bytes == 12);
    assert_string_equal(b->quant->name, "Q4_0");
    assert_true(b->n_dims == 2 && b->dims[0] == 32 && b->dims[1] == 2 && b->n_bytes == 36);
    assert_true(c->n_dims == 4 && c->dims[1] == 2 && c->dims[3] == 2 && c->n_bytes == 8);
    const char *data = f->bytes.data + f->bytes.length - 136;
    assert_true((const char *)a->data == data && (const char *)b->data == data + 64 && (const char *)c->data == data + 128);
    assert_int_equal(c->data[7], (135 * 7 + 1) & 0xFF); /* the last byte of the file */
    assert_int_equal(mica_gguf_file_bytes(f->g), f->bytes.length);
}

/* The sample at an odd place inside another file, as in an APK. */
static void test_part_of_a_file(void **state)
{
    const fixture *f = *state;
    mica_gguf *g;
    mica_error err;
    uint64_t offset = 4096 + 52, sum;
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = fileno(file);
    assert_int_equal(pwrite(fd, f->bytes.data, f->bytes.length, (off_t)offset), (ssize_t)f->bytes.length);
    assert_int_equal(pwrite(fd, "tail", 4, (off_t)(offset + f->bytes.length)), 4);
    for (int i = 0; i < 2; i++) { /* with its length; to the end of the file, where four more bytes follow */
        assert_int_equal(mica_gguf_open_fd(fd, offset, i ? 0 : f->bytes.length, &g, NULL), MICA_OK);
        assert_int_equal(mica_gguf_file_bytes(g), f->bytes.length + (i ? 4 : 0));
        assert_true(touch_all(g, &sum));
        assert_int_equal(mica_gguf_tensor_find(g, "c.weight")->data[7], (135 * 7 + 1) & 0xFF);
        mica_gguf_close(g);
    }
    assert_int_equal(mica_gguf_open_fd(fd, offset, f->bytes.length - 1, &g, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "from offset 4148: tensor c.weight of shape 1 x 2 x 1 x 2 does not fit"));
    assert_int_equal(mica_gguf_open_fd(fd, 0, 0, &g, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "zeros"));
    mica_gguf *kept; /* the descriptor is not needed any more */
    assert_int_equal(mica_gguf_open_fd(fd, offset, 0, &kept, NULL), MICA_OK);
    fclose(file);
    assert_true(touch_all(kept, &sum));
    mica_gguf_close(kept);
}

static void test_memory_must_be_aligned(void **state)
{
    const fixture *f = *state;
    mica_gguf *g = NULL;
    mica_error err;
    assert_int_equal(mica_gguf_open_memory(f->bytes.data + 1, f->bytes.length - 1, "odd", &g, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "multiple of 4"));
    mica_gguf_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_integers, open_sample, close_sample),
        cmocka_unit_test_setup_teardown(test_integers_out_of_range, open_sample, close_sample),
        cmocka_unit_test_setup_teardown(test_absent, open_sample, close_sample),
        cmocka_unit_test_setup_teardown(test_other_kinds, open_sample, close_sample),
        cmocka_unit_test(test_floats_must_be_finite),
        cmocka_unit_test_setup_teardown(test_arrays, open_sample, close_sample),
        cmocka_unit_test_setup_teardown(test_text, open_sample, close_sample),
        cmocka_unit_test(test_text_is_escaped),
        cmocka_unit_test_setup_teardown(test_tensors, open_sample, close_sample),
        cmocka_unit_test_setup_teardown(test_part_of_a_file, open_sample, close_sample),
        cmocka_unit_test_setup_teardown(test_memory_must_be_aligned, open_sample, close_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
