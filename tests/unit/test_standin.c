/* Stand-ins by themselves, with vocabularies of all kinds: user-defined tokens, control tokens without punctuation, tokens that
 * are inside of others, tokens that have stand-ins in them. */
#include "base/rng.h"
#include "text/standin.h"
#include "tokenizer_build.h"

/* The byte-level alphabet, then the added tokens: users' first. */
static built *make_added(const char *const *user, const char *const *control)
{
    recipe r = {.model = "gpt2", .pre = "gpt-2", .no_scores = true};
    add_alphabet(&r);
    for (; *user; user++)
        add_token(&r, *user, MICA_TOKEN_USER, 0);
    for (; *control; control++)
        add_token(&r, *control, MICA_TOKEN_CONTROL, 0);
    r.merges[r.n_merges++] = "a b"; /* a list that is not empty; without "ab" it is ignored */
    built *b = make_vocab(&r);
    if (b->status)
        fail_msg("%s", b->err.message);
    return b;
}

/* The text of a request that is one string, with stand-ins. */
static char *replaced(mica_standins *s, const mica_vocab *v, const char *text, bool all)
{
    json_t *request = json_string(text);
    mica_standins_init(s, v);
    assert_true(mica_standins_look(s, request));
    json_t *copy = mica_standins_replace(s, request, all);
    assert_non_null(copy);
    char *out = strdup(json_string_value(copy));
    json_decref(copy);
    json_decref(request);
    return out;
}

/* How many tokens other than the alphabet's a text has, after `before` + text + `after` was tokenised with stand-ins. */
static size_t added_of(const mica_standins *s, const char *before, const char *text, const char *after)
{
    mica_buf buf;
    int32_t *tokens;
    size_t n, added = 0;
    mica_error err = {.message = ""};
    mica_buf_init(&buf, 1 << 20);
    mica_buf_printf(&buf, "%s%s%s", before, text, after);
    if (mica_standins_tokenize(s, buf.data, buf.length, 0, &tokens, &n, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < n; i++)
        added += tokens[i] >= 256;
    free(tokens);
    mica_buf_free(&buf);
    return added;
}

static void check_restored(const mica_standins *s, const char *text, const char *want)
{
    mica_buf buf;
    mica_buf_init(&buf, 1 << 20);
    assert_true(mica_standins_restore(s, text, strlen(text), &buf));
    assert_string_equal(buf.data, want);
    mica_buf_free(&buf);
}

/* Replaced: few characters, and `all`; then the added tokens of the text between two control tokens. */
static void check_string(const mica_vocab *v, const char *text, size_t few, size_t all, size_t added, const char *control)
{
    for (int k = 0; k < 2; k++) {
        mica_standins s;
        char *with = replaced(&s, v, text, k);
        assert_int_equal((strlen(with) - strlen(text)) / 2, k ? all : few); /* one byte becomes three */
        assert_int_equal(mica_standins_any(&s, with, strlen(with)), (k ? all : few) > 0);
        check_restored(&s, with, text);
        if (added_of(&s, control, with, control) != added + 2)
            fail_msg("\"%s\" (%d): %zu added tokens, not %zu", text, k, added_of(&s, control, with, control), added + 2);
        free(with);
    }
}

/* A user-defined token is one in typed text too, also where its characters were replaced. */
static void test_user_tokens(void **state)
{
    (void)state;
    static const char *const user[] = {"<think>", "</think>", "<|end|>x", NULL}, *const control[] = {"<|end|>", "<s>", NULL};
    built *b = make_added(user, control);
    const mica_vocab *v = b->o.vocab;
    check_string(v, "<think>a</think>", 0, 2, 2, "<s>");
    check_string(v, "a<|end|>b<think>", 1, 2, 1, "<s>");
    check_string(v, "<s><|end|>x<", 1, 3, 1, "<s>"); /* the longest one is the user's */
    check_string(v, "", 0, 0, 0, "<s>");
    check_string(v, "plain", 0, 0, 0, "<s>");
    free_vocab(b);
}

/* Tokens without punctuation are kept out of single strings; letters are never replaced elsewhere. */
static void test_words(void **state)
{
    (void)state;
    static const char *const none[] = {NULL}, *const control[] = {"PAD", "_eop_", "<x>", "\xC3\xA9t", NULL};
    built *b = make_added(none, control);
    const mica_vocab *v = b->o.vocab;
    check_string(v, "PAD and PA D _eop_", 2, 2, 0, "<x>");
    check_string(v, "<PAD> _", 1, 2, 0, "PAD");
    mica_standins s;
    char *with = replaced(&s, v, "\xC3\xA9t\xC3\xA9", false);
    assert_int_equal(added_of(&s, "", with, "<x>"), 1);
    check_restored(&s, with, "\xC3\xA9t\xC3\xA9");
    free(with);
    free_vocab(b);
}

/* What is inside of a token may be one. */
static void test_inside(void **state)
{
    (void)state;
    static const char *const none[] = {NULL}, *const control[] = {"<<a>>", "<a>", "a", "{|", "|}", NULL};
    built *b = make_added(none, control);
    const mica_vocab *v = b->o.vocab;
    check_string(v, "<<a>>", 3, 3, 0, "{|");
    check_string(v, "<<<a>", 2, 4, 0, "{|");
    check_string(v, "{|}", 2, 2, 0, "<a>");
    check_string(v, "{ | }", 0, 1, 0, "<a>");
    free_vocab(b);
}

/* No stand-in is a character of an added token, nor of what is to be avoided. */
static void test_avoided(void **state)
{
    (void)state;
    static const char *const none[] = {NULL}, *const control[] = {"\xE2\xA0\x81|x", "<x", NULL};
    built *b = make_added(none, control);
    mica_standins s;
    mica_standins_init(&s, b->o.vocab);
    mica_standins_avoid(&s, "a\xE2\xA0\x82", 4);
    mica_standins_avoid(&s, "cut \xE2\xA0", 6);
    json_t *request = json_pack("{s:s, s:s}", "<x", "\xE2\xA0\x83<x", "y", "<x"), *copy;
    assert_true(mica_standins_look(&s, request) && s.spells && !s.tells);
    copy = mica_standins_replace(&s, request, false);
    assert_string_equal(json_string_value(json_object_get(copy, "\xE2\xA0\x84x")), "\xE2\xA0\x83\xE2\xA0\x84x");
    assert_string_equal(json_string_value(json_object_get(copy, "y")), "\xE2\xA0\x84x");
    assert_int_equal(json_object_size(copy), 2);
    json_decref(copy);
    json_decref(request);
    free_vocab(b);
}

/* More kinds of characters than pairs: refused, not let through. */
static void test_too_many_kinds(void **state)
{
    (void)state;
    static char names[MICA_STANDIN_MAX + 1][8];
    const char *none[] = {NULL}, *control[MICA_STANDIN_MAX + 2] = {NULL};
    mica_buf text;
    mica_buf_init(&text, 1000);
    for (uint32_t i = 0; i <= MICA_STANDIN_MAX; i++) {
        names[i][mica_utf8_write(0x4E00 + i, names[i])] = 'x';
        control[i] = names[i];
        mica_buf_puts(&text, names[i]);
    }
    built *b = make_added(none, control);
    for (size_t cut = 0; cut < 2; cut++) {
        mica_standins s;
        json_t *request = json_stringn(text.data + 4 * cut, text.length - 4 * cut), *copy;
        mica_standins_init(&s, b->o.vocab);
        assert_true(mica_standins_look(&s, request));
        copy = mica_standins_replace(&s, request, false);
        assert_true(cut ? copy && !s.exhausted : !copy && s.exhausted);
        json_decref(copy);
        json_decref(request);
    }
    mica_buf_free(&text);
    free_vocab(b);
}

static void test_same_controls(void **state)
{
    (void)state;
    static const char *const user[] = {"<u>", "<u><x>", NULL}, *const control[] = {"<x>", "<y>", NULL};
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {{"", "", true}, {"a", "bcd<u>", true}, {"<x>", "a<x>b", true}, {"<x><y>", "<x> <u><y>", true}, 
                {"<x>", "", false}, {"", "<y>", false}, {"<x>", "<y>", false}, {"<x><y>", "<y><x>", false},
                {"<x>", "<x><x>", false},
                {"<u><x>", "", true}, {"<x", "x>", true}};
    built *b = make_added(user, control);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *x = rows[i].a, *y = rows[i].b;
        assert_int_equal(mica_standins_same_controls(b->o.vocab, x, strlen(x), y, strlen(y)), rows[i].same);
        assert_int_equal(mica_standins_same_controls(b->o.vocab, y, strlen(y), x, strlen(x)), rows[i].same);
    }
    free_vocab(b);
}

/* Without stand-ins the tokens are mica_vocab_tokenize()'s. */
static void test_as_without(void **state)
{
    (void)state;
    static const char *const user[] = {"<u>", "  ", NULL}, *const control[] = {"<x>", "<y>", NULL};
    static const char *const pieces[] = {"<", "u>", "x>", "<x>", "<u>", " ", "a", "\xE2\xA0\x81", "<y"};
    built *b = make_added(user, control);
    mica_standins s;
    mica_rng rng;
    mica_rng_seed(&rng, 3);
    mica_standins_init(&s, b->o.vocab);
    for (int round = 0; round < 300; round++) {
        mica_buf text;
        int32_t *got;
        size_t n;
        mica_buf_init(&text, 1000);
        mica_buf_puts(&text, "");
        for (uint64_t k = mica_rng_next(&rng) % 12; k > 0; k--)
            mica_buf_puts(&text, pieces[mica_rng_next(&rng) % 9]);
        assert_int_equal(mica_standins_tokenize(&s, text.data, text.length, 0, &got, &n, NULL), MICA_OK);
        check_ids(b->o.vocab, text.data, text.length, MICA_TOKENIZE_PARSE_SPECIAL, got, n, "with no stand-ins");
        free(got);
        mica_buf_free(&text);
    }
    free_vocab(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_tokens), cmocka_unit_test(test_words), cmocka_unit_test(test_inside),
        cmocka_unit_test(test_avoided), cmocka_unit_test(test_too_many_kinds), cmocka_unit_test(test_same_controls),
        cmocka_unit_test(test_as_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
