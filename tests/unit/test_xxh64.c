/* XXH64 against values of the reference implementation (the Python package xxhash 3.4.1), in one piece and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/xxh64.h"

#define SEED 2654435761u

static const struct vector {
    size_t length;
    uint64_t plain, seeded;
} vectors[] = {
    {0, 0xef46db3751d8e999, 0xac75fda2929b17ef},   {1, 0xf592c0c7639c4cb6, 0xe7fda85a72454615},
    {3, 0x22c08528601d4f27, 0x5cbb7f85404a1f73},   {4, 0xfb1e5cf2f1ae4d95, 0x9994339dd3cf0d91},
    {7, 0x5613ac510496c04e, 0xc53cce27ae03ad38},   {8, 0x3855719b7992e073, 0x6364434ca0351c86},
    {15, 0x39c3581ecbaeca30, 0x2151682c062f2b26},  {31, 0x1dc0df26850864d4, 0x47c3b94660ba90ad},
    {32, 0x3207e1454aca04af, 0xae865317a124d07e},  {33, 0x72d764e14938ec2e, 0x7e5604e8e377eadb},
    {63, 0x953e826fda11c2fc, 0xcd6f34885d3e7dc5},  {64, 0x3aa319987b92380a, 0x61972a36203cbacc},
    {100, 0x5299eb7592ca4649, 0x7a87d6c0410c9fb5}, {255, 0xf7b39f1cc080fbde, 0x26a8ced3ec9a391d},
    {300, 0xdc4c7ee6986a639c, 0x5748734b25471ed8},
};

static void test_vectors(void **state)
{
    (void)state;
    uint8_t data[300];
    for (int i = 0; i < 300; i++)
        data[i] = (uint8_t)((i * 37 + 11) % 251);
    assert_int_equal(mica_xxh64_of("abc", 3), 0x44bc2cf5ad770999);
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        assert_int_equal(mica_xxh64_of(data, vectors[v].length), vectors[v].plain);
        for (size_t step = 1; step <= 70; step++) {
            mica_xxh64 hash;
            mica_xxh64_start(&hash, SEED);
            for (size_t i = 0; i < vectors[v].length; i += step) {
                mica_xxh64_add(&hash, data + i, vectors[v].length - i < step ? vectors[v].length - i : step);
                mica_xxh64_add(&hash, NULL, 0);
                (void)mica_xxh64_value(&hash); /* asking in between changes nothing */
            }
            assert_int_equal(mica_xxh64_value(&hash), vectors[v].seeded);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
