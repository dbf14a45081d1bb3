/* test_task_text.c - what the tasks do with texts: spans found, sentences ended, long texts cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "task/task.h"
#include "text/utf8.h"

/* ---- Spans ---- */

static void expect_find(const char *text, const char *needle, mica_match match, const char *found)
{
    size_t start = 0, end = 0;
    assert_int_equal(mica_text_find(text, strlen(text), 0, needle, strlen(needle), &start, &end), match);
    if (match == MICA_MATCH_NONE)
        return;
    assert_int_equal(end - start, strlen(found));
    assert_memory_equal(text + start, found, end - start);
}

static void test_find(void **state)
{
    (void)state;
    expect_find("an ant and an Anton", "Anton", MICA_MATCH_EXACT, "Anton");
    expect_find("an ant and an Anton", "anton", MICA_MATCH_LOOSE, "Anton");
    expect_find("Hall  B,\nof the\n university", "hall b, of the university", MICA_MATCH_LOOSE,
                "Hall  B,\nof the\n university");
    expect_find("STRAẞE und ÄRGER", "ärger", MICA_MATCH_LOOSE, "ÄRGER");
    expect_find("a\xC2\xA0"
                "b",
                "a b", MICA_MATCH_LOOSE,
                "a\xC2\xA0"
                "b");
    expect_find("abc", "abd", MICA_MATCH_NONE, "");
    expect_find("abc", "", MICA_MATCH_NONE, "");
    expect_find("abc", "  ", MICA_MATCH_NONE, "");
    expect_find("", "a", MICA_MATCH_NONE, "");
    expect_find("x abc", " abc ", MICA_MATCH_EXACT, "abc");
    expect_find("ab", "abc", MICA_MATCH_NONE, "");
}

static void test_find_whole_words_first(void **state)
{
    size_t start, end;
    const char *text = "Annex, Ann";
    (void)state;
    assert_int_equal(mica_text_find(text, strlen(text), 0, "Ann", 3, &start, &end), MICA_MATCH_EXACT);
    assert_int_equal(start, 7);
    assert_int_equal(mica_text_find(text, 5, 0, "Ann", 3, &start, &end), MICA_MATCH_EXACT); /* a part is better than nothing */
    assert_int_equal(start, 0);
    assert_false(mica_text_find_words(text, 5, 0, "Ann", 3, &start, &end));
    assert_true(mica_text_find_words("ANN ann", 7, 0, "Ann", 3, &start, &end));
    assert_int_equal(start, 0);
    assert_true(mica_text_find_words("ANN ann", 7, end, "Ann", 3, &start, &end));
    assert_int_equal(start, 4);
    assert_false(mica_text_find_words("ANN ann", 7, end, "Ann", 3, &start, &end));
}

static void test_offsets(void **state)
{
    mica_char_counter counter = {0, 0};
    const char *text = "äöü日a";
    json_t *o = json_object();
    (void)state;
    assert_true(mica_set_span(o, text, 6, 9, &counter));
    assert_int_equal(json_integer_value(json_object_get(o, "char_start")), 3);
    assert_int_equal(json_integer_value(json_object_get(o, "char_end")), 4);
    assert_true(mica_set_span(o, text, 2, 10, &counter)); /* back again */
    assert_int_equal(json_integer_value(json_object_get(o, "char_start")), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "char_end")), 5);
    json_decref(o);
}

/* ---- Sentences ---- */

static void expect_sentences(const char *text, const char *const *wanted, size_t n)
{
    size_t at = 0, count = 0, length = strlen(text);
    while (at < length) {
        bool ended;
        size_t end = mica_sentence_end(text, length, at, &ended);
        assert_true(end > at);
        if (count >= n || strlen(wanted[count]) != end - at || memcmp(wanted[count], text + at, end - at) != 0)
            fail_msg("sentence %zu of \"%s\" is \"%.*s\"", count, text, (int)(end - at), text + at);
        count++;
        at = end;
    }
    assert_int_equal(count, n);
}

#define SENTENCES(text, ...)                                                                                                   \
    do {                                                                                                                       \
        static const char *const wanted[] = {__VA_ARGS__};                                                                     \
        expect_sentences(text, wanted, sizeof wanted / sizeof *wanted);                                                        \
    } while (0)

static void test_sentences(void **state)
{
    bool ended;
    (void)state;
    SENTENCES("One. Two! Three?", "One.", " Two!", " Three?");
    SENTENCES("Dr. Lee paid 3.50 at J. Smith's. \"Good.\" He left", "Dr. Lee paid 3.50 at J. Smith's.", " \"Good.\"",
              " He left");
    SENTENCES("Wait... what?! No.", "Wait...", " what?!", " No.");
    SENTENCES("你好。再见。", "你好。", "再见。");
    SENTENCES("no end", "no end");
    assert_int_equal(mica_sentence_end("no end", 6, 0, &ended), 6);
    assert_false(ended);
    assert_int_equal(mica_sentence_end("an end.", 7, 0, &ended), 7);
    assert_true(ended);
}

/* ---- Cuts ---- */

static void expect_cut(const char *text, size_t limit, size_t wanted)
{
    size_t end = mica_text_split(text, strlen(text), limit);
    if (end != wanted)
        fail_msg("\"%s\" at %zu: cut at %zu, not %zu", text, limit, end, wanted);
}

static void test_cuts(void **state)
{
    (void)state;
    expect_cut("short", 5, 5);
    expect_cut("short", 100, 5);
    expect_cut("one two three four", 10, 8);         /* a word */
    expect_cut("It is. We are here now", 12, 7);     /* a sentence before a word */
    expect_cut("It is.\nWe are here now", 13, 7);    /* a line */
    expect_cut("a b\n\nc d. e f\ng h i", 16, 14);    /* what is in the first half does not count */
    expect_cut("aaaa bb\n\nc d. e f\ng h i", 14, 9); /* a paragraph before a sentence */
    expect_cut("aaaaaaaaaaaaaaaa", 7, 7);            /* no blank at all */
    expect_cut("日本語日本語", 7, 6);                /* whole characters */
    expect_cut("日本語", 1, 3);                      /* at least one */
    expect_cut("日本語", 0, 3);
}

/* Parts of any text at any limit: not empty, whole characters, together the text. */
static void test_cuts_of_random_texts(void **state)
{
    static const char *const words[] = {"word ", "a",     ". ", "\n",         "\n\n", "日",  "é ",
                                        "Mr. ",  "end! ", " ",  "longerword", "\t",   "1.5 "};
    char text[2048];
    mica_rng rng;
    (void)state;
    mica_rng_seed(&rng, 11);
    for (int round = 0; round < 2000; round++) {
        size_t n = 0, count = mica_rng_next(&rng) % 120, limit = 1 + mica_rng_next(&rng) % 90;
        for (size_t i = 0; i < count; i++) {
            const char *w = words[mica_rng_next(&rng) % (sizeof words / sizeof *words)];
            memcpy(text + n, w, strlen(w));
            n += strlen(w);
        }
        char *exact = malloc(n + 1);
        memcpy(exact, text, n);
        for (size_t at = 0, part; at < n; at += part) {
            part = mica_text_split(exact + at, n - at, limit);
            assert_true(part > 0 && part <= n - at && (part <= limit || part <= 4));
            assert_int_equal(mica_utf8_check(exact + at, part), part);
        }
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),    cmocka_unit_test(test_find_whole_words_first),
        cmocka_unit_test(test_offsets), cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_cuts),    cmocka_unit_test(test_cuts_of_random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
