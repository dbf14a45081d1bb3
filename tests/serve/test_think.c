/* test_think.c - reasoning apart from what is said, however the text is cut; and API keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "serve/keys.h"
#include "serve/think.h"

typedef struct told {
    mica_buf part[2]; /* content, reasoning */
} told;

static void take(void *user, bool reasoning, const char *text, size_t length)
{
    told *t = user;
    assert_true(length > 0);
    assert_true((text[0] & 0xC0) != 0x80); /* never in the middle of a character */
    mica_buf_append(&t->part[reasoning], text, length);
}

static void expect(bool inside, const char *text, const char *reasoning, const char *content)
{
    size_t n = strlen(text);
    for (size_t cut = 0; cut <= n; cut++) {
        told t;
        mica_think think;
        if (cut < n && ((unsigned char)text[cut] & 0xC0) == 0x80)
            continue; /* the engine tells whole characters */
        mica_buf_init(&t.part[0], 100000);
        mica_buf_init(&t.part[1], 100000);
        mica_think_start(&think, inside, take, &t);
        mica_think_feed(&think, text, cut);
        mica_think_feed(&think, text + cut, n - cut);
        mica_think_finish(&think);
        assert_string_equal(t.part[0].length ? t.part[0].data : "", content);
        assert_string_equal(t.part[1].length ? t.part[1].data : "", reasoning);
        mica_buf_free(&t.part[0]);
        mica_buf_free(&t.part[1]);
    }
}

static void test_think(void **state)
{
    char many[300];
    (void)state;
    expect(false, "", "", "");
    expect(false, "plain <think>no</think>", "", "plain <think>no</think>");
    expect(false, "<think>hm</think>yes", "hm", "yes");
    expect(false, " \n<think>\n\nh\n\nm\n</think>\n\nyes\n", "h\n\nm", "yes\n");
    expect(false, "<think>a<b</thin</think>c", "a<b</thin", "c");
    expect(false, "<think>a<<//think></think></think>c", "a<<//think>", "</think>c");
    expect(false, "<think></think>c", "", "c");
    expect(false, "<think>never ends\n", "never ends\n", "");
    expect(false, "<think>ends in a mark</th", "ends in a mark</th", "");
    expect(false, "<thin", "", "<thin");
    expect(false, "  <thing>é", "", "  <thing>é");
    expect(false, "<think>é</think>é<think>", "é", "é<think>");
    expect(true, "hm</think> yes", "hm", "yes");
    expect(true, "\nhm\n", "hm\n", "");
    memset(many, '\n', sizeof many - 1); /* more line ends than can wait */
    many[sizeof many - 1] = '\0';
    expect(false, many, "", many);
    char *text = malloc(1000), *wanted = malloc(1000);
    snprintf(text, 1000, "<think>a%sb</think>c", many);
    snprintf(wanted, 1000, "a%sb", many);
    expect(false, text, wanted, "c");
    free(text);
    free(wanted);
}

/* ---- Keys ---- */

static mica_status load(mica_keys *keys, const char *text, mica_error *err)
{
    char path[] = "/tmp/mica-keys-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    mica_status status = mica_keys_load(keys, path, err);
    unlink(path);
    return status;
}

static void test_keys(void **state)
{
    mica_keys keys = {.n = 0};
    mica_error err;
    (void)state;
    assert_int_equal(load(&keys, "# comment\n\n one \r\ntwo", &err), MICA_OK);
    assert_int_equal(keys.n, 2);
    static const char *const good[] = {"Bearer one", "bearer two", "BEARER   one"};
    for (size_t i = 0; i < 3; i++)
        assert_true(mica_keys_allow(&keys, good[i]));
    static const char *const bad[] = {
        "", "one", "Bearer", "Bearer ", "Bearer on", "Bearer onex", "Bearer one two", "Bearer One", "Basic one"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(mica_keys_allow(&keys, bad[i]));
    assert_false(mica_keys_allow(&keys, NULL));
    assert_int_equal(load(&keys, "# none\n", &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(load(&keys, "two words\n", &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_keys_load(&keys, "/nonexistent/keys", &err), MICA_IO_ERROR);
    assert_true(mica_keys_allow(&keys, "Bearer one")); /* as it was */
    char longest[MICA_SERVE_KEY_BYTES + 8] = "Bearer ";
    memset(longest + 7, 'k', MICA_SERVE_KEY_BYTES);
    assert_int_equal(mica_keys_set(&keys, longest + 7, &err), MICA_INVALID_ARGUMENT);
    assert_false(mica_keys_allow(&keys, longest));
    longest[7 + MICA_SERVE_KEY_BYTES - 1] = '\0';
    assert_int_equal(mica_keys_set(&keys, longest + 7, &err), MICA_OK);
    assert_true(mica_keys_allow(&keys, longest));
}

static void test_too_many_keys(void **state)
{
    mica_keys keys = {.n = 0};
    mica_error err;
    mica_buf b;
    (void)state;
    mica_buf_init(&b, 10000);
    for (int i = 0; i < MICA_SERVE_KEYS_MAX; i++)
        mica_buf_printf(&b, "key%d\n", i);
    assert_int_equal(load(&keys, b.data, &err), MICA_OK);
    assert_true(mica_keys_allow(&keys, "Bearer key63"));
    mica_buf_puts(&b, "one more\n");
    assert_int_equal(load(&keys, b.data, &err), MICA_INVALID_ARGUMENT);
    mica_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_think), cmocka_unit_test(test_keys),
                                       cmocka_unit_test(test_too_many_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
