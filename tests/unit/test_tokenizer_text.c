/* The parts under the tokenizer, against data from Python's Unicode machinery (tests/data/text/make.py): pre-tokenizers, NFC,
 * and the streaming decoder. */
#include "tokenizer_util.h"

#include "base/clock.h"
#include "text/nfc.h"
#include "text/pretok.h"
#include "text/utf8.h"

/* One representative of every row of pretok_list.h. */
static const char *const families[] = {"default",  "gpt-2",      "mpt",    "smollm", "command-r", "falcon",
                                       "llama-bpe", "dbrx",      "glm4",   "qwen2",  "stablelm2", "qwen35",
                                       "seed-coder", "bailingmoe", "gpt-4o", "tekken", "deepseek-llm", "deepseek-coder",
                                       "deepseek-v3"};
#define N_FAMILIES (sizeof(families) / sizeof(families[0]))

static json_t *load_lines(const char *name)
{
    char path[1000];
    size_t length;
    snprintf(path, sizeof(path), "%s/text/%s.jsonl", MICA_TEST_DATA, name);
    char *data = read_bytes(path, &length);
    json_t *rows = json_array();
    for (char *line = data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_error_t error;
        json_t *row = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, &error);
        if (!row) {
            fail_msg("%s: %s", path, error.text);
        }
        json_array_append_new(rows, row);
    }
    free(data);
    return rows;
}

static mica_pretok *make_pretok(const char *name, bool jit)
{
    mica_pretok *p;
    mica_error err;
    if (mica_pretok_new(name, strlen(name), jit, &p, &err)) {
        fail_msg("%s", err.message);
    }
    return p;
}

static void check_words(const mica_pretok *p, mica_pretok_run *run, const json_t *row)
{
    const json_t *text = json_object_get(row, "text"), *words = json_object_get(row, "words");
    const char *bytes = json_string_value(text), *name = json_string_value(json_object_get(row, "pre"));
    size_t n = 0, begin = 0;
    mica_error err = {0};
    if (mica_pretok_split(p, run, bytes, json_string_length(text), &n, &err)) {
        fail_msg("%s: %s", name, err.message);
    }
    for (size_t i = 0; i < n && i < json_array_size(words); i++) {
        const json_t *want = json_array_get(words, i);
        size_t length = run->ends[i] - begin;
        if (length != json_string_length(want) || memcmp(bytes + begin, json_string_value(want), length) != 0) {
            fail_msg("%s: word %zu of \"%s\" is \"%.*s\", wanted \"%s\"", name, i, bytes, (int)length, bytes + begin,
                     json_string_value(want));
        }
        begin = run->ends[i];
    }
    assert_int_equal(n, json_array_size(words));
    assert_int_equal(begin, json_string_length(text));
}

static void pretokenizers(void **state)
{
    (void)state;
    json_t *rows = load_lines("pretok"), *row;
    size_t i, checked = 0;
    for (size_t f = 0; f < N_FAMILIES; f++) {
        for (int jit = 0; jit < 2; jit++) { /* systems that forbid making code get the interpreter: the same words */
            mica_pretok *p = make_pretok(families[f], jit);
            mica_pretok_run run = {0};
            size_t before = checked;
            assert_false(!jit && mica_pretok_jitted(p));
            json_array_foreach(rows, i, row) {
                if (!strcmp(json_string_value(json_object_get(row, "pre")), families[f])) {
                    check_words(p, &run, row);
                    checked++;
                }
            }
            assert_true(checked > before);
            mica_pretok_run_free(&run);
            mica_pretok_free(p);
        }
    }
    assert_int_equal(checked, 2 * json_array_size(rows));
    json_decref(rows);
}

static void unknown_pretokenizers_are_named(void **state)
{
    (void)state;
    mica_pretok *p = (mica_pretok *)families;
    mica_error err = {0};
    assert_int_equal(mica_pretok_new("gpt-9", 5, true, &p, &err), MICA_UNSUPPORTED);
    assert_null(p);
    assert_non_null(strstr(err.message, "\"gpt-9\""));
    assert_int_equal(mica_pretok_new("", 0, true, &p, &err), MICA_UNSUPPORTED);
    assert_int_equal(mica_pretok_new("qwen", 4, true, &p, &err), MICA_UNSUPPORTED);        /* a beginning of a name is none */
    assert_int_equal(mica_pretok_new("gpt-2 phi-2", 11, true, &p, &err), MICA_UNSUPPORTED); /* nor are two names */
}

/* Every family over runs that would stall a pattern that looks at a run again from each position. */
static void pretokenizers_are_linear(void **state)
{
    (void)state;
    enum { N = 400000 };
    static const char *const units[] = {" ", "\n", "a", "A", "1", "!", " \n", "\t ",
                                        "\xE3\x80\x80", "\xE4\xB8\xAD", "aA", "'s"};
    const double limit = getenv("MICA_EMULATED") ? 30 : 2; /* quadratic time would be minutes */
    char *text = malloc(N + 8);
    assert_non_null(text);
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
        size_t unit = strlen(units[u]), n = 0;
        for (; n + unit <= N; n += unit) {
            memcpy(text + n, units[u], unit);
        }
        text[n++] = 'x';
        for (size_t f = 0; f < N_FAMILIES; f++) {
            for (int jit = 0; jit < 2; jit++) {
                mica_pretok *p = make_pretok(families[f], jit);
                mica_pretok_run run = {0};
                size_t words = 0;
                mica_error err = {0};
                int64_t start = mica_now_ns();
                if (mica_pretok_split(p, &run, text, n, &words, &err)) {
                    fail_msg("%s over \"%s\": %s", families[f], units[u], err.message);
                }
                double seconds = (double)(mica_now_ns() - start) / 1e9;
                if (seconds > limit) {
                    fail_msg("%s over \"%s\" takes %.1f s", families[f], units[u], seconds);
                }
                assert_true(words >= 1 && run.ends[words - 1] == n);
                mica_pretok_run_free(&run);
                mica_pretok_free(p);
            }
        }
    }
    free(text);
}

static void normalisation(void **state)
{
    (void)state;
    json_t *rows = load_lines("nfc"), *row;
    size_t i, changed = 0;
    json_array_foreach(rows, i, row) {
        const json_t *text = json_object_get(row, "text"), *want = json_object_get(row, "nfc");
        char *out;
        size_t n;
        assert_int_equal(mica_nfc(json_string_value(text), json_string_length(text), &out, &n, NULL), MICA_OK);
        const char *got = out ? out : json_string_value(text);
        assert_int_equal(n, json_string_length(want));
        assert_memory_equal(got, json_string_value(want), n);
        changed += out != NULL;
        free(out);
    }
    assert_true(changed > 200);
    json_decref(rows);
}

/* 300,000 marks in the worst order for sorting by exchange of neighbours. */
static void normalisation_is_linear(void **state)
{
    (void)state;
    enum { HALF = 150000 };
    char *text = malloc(4 * HALF + 1), *out;
    size_t n;
    assert_non_null(text);
    for (int i = 0; i < 2 * HALF; i++) {
        memcpy(text + 2 * i, i < HALF ? "\xCC\x81" : "\xCC\xA3", 2); /* U+0301 of class 230, U+0323 of class 220 */
    }
    int64_t start = mica_now_ns();
    assert_int_equal(mica_nfc(text, 4 * HALF, &out, &n, NULL), MICA_OK);
    assert_true(mica_now_ns() - start < 2000000000);
    assert_int_equal(n, 4 * HALF);
    assert_memory_equal(out, "\xCC\xA3", 2);
    assert_memory_equal(out + n - 2, "\xCC\x81", 2);
    free(out);
    free(text);
}

static size_t from_hex(const char *hex, char *out)
{
    size_t n = 0;
    for (; hex[0]; hex += 2) {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        out[n++] = (char)byte;
    }
    return n;
}

/* A small generator for the places where bytes are cut. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Any bytes, cut in any way, decode as Python decodes them in one piece. */
static void streaming_decoder(void **state)
{
    (void)state;
    json_t *rows = load_lines("utf8_replace"), *row;
    uint32_t random = 1;
    size_t i;
    json_array_foreach(rows, i, row) {
        char bytes[256], want[1024], out[2048];
        size_t n = from_hex(json_string_value(json_object_get(row, "bytes")), bytes);
        size_t n_want = from_hex(json_string_value(json_object_get(row, "text")), want);
        for (int cut = 0; cut < 12; cut++) {
            mica_detok d = {0};
            size_t length = 0;
            for (size_t at = 0; at < n;) {
                size_t step = cut == 0 ? n : cut == 1 ? 1 : next_random(&random) % 5;
                step = step < n - at ? step : n - at;
                char part[MICA_DETOK_ROOM(256)];
                size_t got = mica_detok_push(&d, bytes + at, step, part);
                assert_true(got <= MICA_DETOK_ROOM(step));
                assert_int_equal(mica_utf8_check(part, got), got); /* whole characters only */
                memcpy(out + length, part, got);
                length += got;
                at += step;
            }
            length += mica_detok_finish(&d, out + length);
            assert_int_equal(length, n_want);
            assert_memory_equal(out, want, n_want);
            assert_int_equal(mica_detok_finish(&d, out), 0);
        }
        assert_int_equal(mica_utf8_check(bytes, n) == n, n == n_want && !memcmp(bytes, want, n));
    }
    assert_true(json_array_size(rows) >= 300);
    json_decref(rows);
}

/* Every code point survives writing and reading; the checker takes exactly those that are not surrogates. */
static void code_points(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char bytes[4];
        uint32_t back;
        unsigned n = mica_utf8_write(code, bytes);
        bool surrogate = code >= 0xD800 && code < 0xE000;
        assert_int_equal(mica_utf8_check(bytes, n), surrogate ? 0 : n);
        assert_int_equal(mica_utf8_check(bytes, n - 1), 0);
        assert_int_equal(mica_utf8_read(bytes, &back), n);
        assert_int_equal(back, code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pretokenizers),       cmocka_unit_test(unknown_pretokenizers_are_named),
        cmocka_unit_test(pretokenizers_are_linear), cmocka_unit_test(normalisation),
        cmocka_unit_test(normalisation_is_linear), cmocka_unit_test(streaming_decoder),
        cmocka_unit_test(code_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
