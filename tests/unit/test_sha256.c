/* SHA-256: the examples of FIPS 180-4, and lengths around the ends of blocks against Python's hashlib, in one piece and in
 * pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sha256.h"

static const struct vector {
    size_t length;
    const char *want;
} vectors[] = {
    {0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {1, "e7cf46a078fed4fafd0b5e3aff144802b853f8ae459a4f0c14add3314b7cc3a6"},
    {3, "b39fad1a1075f64570b3226d339ea818f9c66ecd2f1c59fd8b9c5a32b54c513f"},
    {55, "d643d8ca488d0db0668617a149d6fd5485e54f53726f9711b95c464ed252e43e"},
    {56, "c1c8aa7589f4b1f5f6c31798938334105600796f00c7a250eed9d21697307010"},
    {57, "db97915793582f05fbfbe0353807f15da4bb269b75e5514db0f951a617fdb483"},
    {63, "29aedc46471a4185c66f4dc4de21bb2ff1d7cc079e55acecd048df754c248ab6"},
    {64, "4eb13c2833fb1abb469f21b7e81763071474c2c2d0b8219c316c4c0af0ea587f"},
    {65, "4fc7aade0732624e8380f1c9c37d6a277269e9beab232b1b33108f5f5446fb04"},
    {119, "9dbba22928770b4671e0b690e46cb14145e55c437f34b349192a2cb2cd033045"},
    {120, "df5d619f15df34e94a8894ae6fe05ce71c5889646c3270a0c210dabeb55524bf"},
    {128, "bb5eb7b4ddfd6804dea38ff8d0fc7493d15cf875651edc3ef55c3350dc5b7d3c"},
    {300, "2f8c3711fac4e79867c93b9c5907ee23cb6d69b150200192aa0d52b86bdf07a7"},
};

static void expect(const void *data, size_t length, size_t step, const char *want)
{
    mica_sha256 hash;
    char text[MICA_SHA256_TEXT];
    mica_sha256_start(&hash);
    for (size_t i = 0; i < length; i += step)
        mica_sha256_add(&hash, (const uint8_t *)data + i, length - i < step ? length - i : step);
    mica_sha256_text(&hash, text);
    assert_string_equal(text, want);
}

static void test_lengths(void **state)
{
    uint8_t data[300];
    (void)state;
    for (int i = 0; i < 300; i++)
        data[i] = (uint8_t)((i * 37 + 11) % 251);
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
        for (size_t step = 1; step <= 130; step++)
            expect(data, vectors[v].length, step, vectors[v].want);
}

static void test_standard(void **state)
{
    char *million = malloc(1000000);
    (void)state;
    assert_non_null(million);
    memset(million, 'a', 1000000);
    expect("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect(million, 1000000, 997, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths), cmocka_unit_test(test_standard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
