/* test_quant.c - the table of formats, decoding and the encoders without choice, against data that gguf-py computed
 * (tests/data/quant/make.py). Results are compared bit for bit; only which NaN it is may differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "quant/blocks.h"
#include "quant/formats.h"
#include "quant/quant.h"

static const char *const all_names[] = {"F32",  "F16",  "Q4_0", "Q4_1", "Q5_0",   "Q5_1",   "Q8_0", "Q2_K",
                                        "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "BF16"};
enum { N_NAMES = sizeof all_names / sizeof *all_names };

/* The bytes of a data file, in memory of exactly its size, so that a sanitizer sees a read beyond it. Freed by the caller. */
static void *read_data(const char *name, const char *suffix, size_t *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/quant/%s.%s", MICA_TEST_DATA, name, suffix);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_true(size > 0);
    rewind(file);
    void *data = malloc((size_t)size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    *bytes = (size_t)size;
    return data;
}

static int is_nan_bits(uint32_t u) { return (u & 0x7FFFFFFFu) > 0x7F800000u; }

static void assert_same_floats(const char *name, const void *expected, const float *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t want, have;
        memcpy(&want, (const uint8_t *)expected + 4 * i, 4);
        memcpy(&have, &got[i], 4);
        if (want != have && !(is_nan_bits(want) && is_nan_bits(have)))
            fail_msg("%s: weight %zu is %08x, expected %08x", name, i, have, want);
    }
}

static void decode_equals_reference(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_NAMES; k++) {
        const mica_quant *quant = mica_quant_by_name(all_names[k]);
        assert_non_null(quant);
        size_t block_bytes, float_bytes;
        void *blocks = read_data(all_names[k], "blocks", &block_bytes);
        void *expected = read_data(all_names[k], "floats", &float_bytes);
        size_t n = float_bytes / 4;
        assert_int_equal(mica_quant_bytes(quant, n), block_bytes);
        float *out = malloc(float_bytes);
        assert_non_null(out);
        quant->decode(quant, blocks, out, n);
        assert_same_floats(all_names[k], expected, out, n);
        free(out);
        free(blocks);
        free(expected);
    }
}

/* Without importance these encoders follow the reference rule to the bit. */
static void encode_equals_reference(void **state)
{
    (void)state;
    static const char *const names[] = {"F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"};
    size_t input_bytes, expected_bytes;
    float *input = read_data("input", "floats", &input_bytes);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const mica_quant *quant = mica_quant_by_name(names[k]);
        uint8_t *expected = read_data(names[k], "encoded", &expected_bytes), *got = malloc(expected_bytes);
        assert_non_null(got);
        assert_int_equal(mica_quant_bytes(quant, input_bytes / 4), expected_bytes);
        quant->encode(input, NULL, got, input_bytes / 4);
        size_t row = mica_quant_bytes(quant, 32);
        for (size_t i = 0; i < expected_bytes; i++)
            if (got[i] != expected[i])
                fail_msg("%s: byte %zu of row %zu is %02x, expected %02x", names[k], i % row, i / row, got[i], expected[i]);
        free(expected);
        free(got);
    }
    free(input);
}

/* The IEEE bits of random floats: NaN becomes quiet in BF16, F32 keeps every bit. */
static void float_formats_keep_bits(void **state)
{
    (void)state;
    size_t bytes;
    float *input = read_data("F32", "blocks", &bytes);
    size_t n = bytes / 4;
    float *copy = malloc(bytes);
    uint16_t *halves = malloc(2 * n);
    assert_true(copy && halves);
    const mica_quant *f32 = mica_quant_of(MICA_TYPE_F32), *bf16 = mica_quant_of(MICA_TYPE_BF16);
    f32->encode(input, NULL, copy, n);
    assert_memory_equal(input, copy, bytes);
    f32->decode(f32, input, copy, 0);
    bf16->encode(input, NULL, halves, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(halves[i], mica_f32_to_bf16(input[i]));
    free(input);
    free(copy);
    free(halves);
}

static void lookups(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
        int weights, bytes, mins;
    } rows[] = {
        {0, "F32", 1, 4, 0},        {1, "F16", 1, 2, 0},        {2, "Q4_0", 32, 18, 0},    {3, "Q4_1", 32, 20, 1},
        {6, "Q5_0", 32, 22, 0},     {7, "Q5_1", 32, 24, 1},     {8, "Q8_0", 32, 34, 0},    {10, "Q2_K", 256, 84, 1},
        {11, "Q3_K", 256, 110, 0},  {12, "Q4_K", 256, 144, 1},  {13, "Q5_K", 256, 176, 1}, {14, "Q6_K", 256, 210, 0},
        {20, "IQ4_NL", 32, 18, 0},  {23, "IQ4_XS", 256, 136, 0}, {30, "BF16", 1, 2, 0},
    };
    size_t known = 0;
    for (uint32_t type = 0; type < 300; type++) {
        const mica_quant *quant = mica_quant_of(type);
        if (known == sizeof rows / sizeof *rows || type != rows[known].type) {
            assert_null(quant);
            continue;
        }
        assert_non_null(quant);
        assert_int_equal(quant->type, type);
        assert_string_equal(quant->name, rows[known].name);
        assert_int_equal(quant->block_weights, rows[known].weights);
        assert_int_equal(quant->block_bytes, rows[known].bytes);
        assert_int_equal(quant->has_min, rows[known].mins);
        assert_true((quant->unpack == NULL) == (rows[known].weights == 1));
        assert_true(quant->decode && quant->encode);
        assert_ptr_equal(mica_quant_by_name(rows[known].name), quant);
        known++;
    }
    assert_int_equal(known, sizeof rows / sizeof *rows);
    assert_null(mica_quant_of(UINT32_MAX));
    assert_null(mica_quant_of(0x80000002u));
}

static void names(void **state)
{
    (void)state;
    assert_int_equal(mica_quant_by_name("q4_k")->type, MICA_TYPE_Q4_K);
    assert_int_equal(mica_quant_by_name("iQ4_xS")->type, MICA_TYPE_IQ4_XS);
    static const char *const unknown[] = {"", "Q4", "Q4_", "Q4_K_M", "Q4_0 ", " Q4_0", "Q8_1", "F64", "IQ4"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(mica_quant_by_name(unknown[i]));
    assert_null(mica_quant_by_name(NULL));
    assert_string_equal(mica_quant_names(), "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, "
                                            "IQ4_NL, IQ4_XS, BF16");
}

/* What the kernels rely on: the ranges of q, scale and min, and the dot product's bound of int32. */
static void unpacked_ranges(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_NAMES; k++) {
        const mica_quant *quant = mica_quant_by_name(all_names[k]);
        if (!quant->unpack)
            continue;
        size_t bytes;
        uint8_t *blocks = read_data(all_names[k], "blocks", &bytes);
        for (size_t at = 0; at < bytes; at += (size_t)quant->block_bytes) {
            mica_block_ints ints;
            memset(&ints, 0x5A, sizeof ints);
            quant->unpack(blocks + at, &ints);
            int64_t sum = 0;
            for (int i = 0; i < quant->block_weights; i++)
                sum += 128 * abs(ints.scale[i / 16] * ints.q[i]);
            assert_true(sum <= INT32_MAX);
            if (!quant->has_min)
                assert_true(ints.m == 0.0f);
            for (int g = 0; g < quant->block_weights / 16; g++) {
                assert_in_range(ints.min[g], 0, quant->has_min ? 63 : 0);
                assert_true(ints.scale[g] >= -128 && ints.scale[g] <= 127);
                if (quant->block_weights == 32)
                    assert_true(ints.scale[g] == 1 && ints.min[g] == (quant->has_min ? 1 : 0));
            }
        }
        free(blocks);
    }
}

/* Every one of the 2^12 combinations of a scale and a min, in every group, comes back. */
static void packed_scales(void **state)
{
    (void)state;
    uint8_t scale[8], min[8], packed[12], scale_again[8], min_again[8];
    for (int i = 0; i < 64 * 64; i++) {
        for (int g = 0; g < 8; g++) {
            scale[g] = (uint8_t)((i + 9 * g) % 64);
            min[g] = (uint8_t)((i / 64 + 23 * g) % 64);
        }
        mica_q4_k_pack_scales(scale, min, packed);
        mica_q4_k_unpack_scales(packed, scale_again, min_again);
        assert_memory_equal(scale, scale_again, 8);
        assert_memory_equal(min, min_again, 8);
    }
}

static void iq4_index(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++)
        assert_int_equal(mica_iq4_index(mica_iq4_levels[i]), i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups),
        cmocka_unit_test(names),
        cmocka_unit_test(decode_equals_reference),
        cmocka_unit_test(encode_equals_reference),
        cmocka_unit_test(float_formats_keep_bits),
        cmocka_unit_test(unpacked_ranges),
        cmocka_unit_test(packed_scales),
        cmocka_unit_test(iq4_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
