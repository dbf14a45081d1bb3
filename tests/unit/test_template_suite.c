/* Published chat templates against jinja2: each of them with every conversation, compared by length and hash. The templates are
 * not in the repository: MICA_SUITES_DIR names the folder that has templates/. See tests/data/templates/make.py. */
#include "tmpl_data.h"

#include "text/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t fnv(const char *data, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)data[i]) * 0x100000001B3u;
    return h;
}

static bool same_hash(json_t *text, uint64_t hash)
{
    const char *s = json_string_value(text);
    return s && strtoull(s, NULL, 16) == hash;
}

/* expected: [length, hash], or null where jinja2 raises. */
static bool check_one(const char *name, const mica_template *t, json_t *conversation, json_t *expected)
{
    mica_error err = {0};
    char *out = NULL, *json = json_dumps(json_object_get(conversation, "request"), 0);
    size_t n = 0;
    mica_chat_request request = {.json = json, .length = strlen(json), .bos_token = "<s>", .eos_token = "</s>",
                                 .now_unix = CLOCK};
    mica_status status = mica_template_run(t, &request, &out, &n, &err);
    bool ok;
    if (json_is_null(expected))
        ok = status == MICA_BAD_TEMPLATE;
    else
        ok = status == MICA_OK && (json_int_t)n == json_integer_value(json_array_get(expected, 0)) &&
             same_hash(json_array_get(expected, 1), fnv(out, n));
    if (!ok)
        fprintf(stderr, "%s with %s: %s %s\n", name, json_string_value(json_object_get(conversation, "name")),
                status == MICA_OK ? json_is_null(expected) ? "rendered, but jinja2 raises" : "differs from jinja2" : "failed:",
                err.message);
    free(out);
    free(json);
    return ok;
}

/* All conversations with one template. */
static void check_template(const char *directory, json_t *row, json_t *conversations, int *n, int *failed)
{
    char path[1024];
    size_t length, i;
    const char *name = json_string_value(json_object_get(row, "template"));
    mica_error err = {0};
    mica_template *t;
    json_t *conversation;
    snprintf(path, sizeof path, "%s/templates/%s", directory, name);
    char *text = data_read(path, &length);
    if (!text || !same_hash(json_object_get(row, "hash"), fnv(text, length))) {
        fprintf(stderr, "%s is missing, or is another version than make.py saw\n", path);
        ++*failed;
        free(text);
        return;
    }
    if (mica_template_compile(text, length, &t, &err) != MICA_OK) {
        fprintf(stderr, "%s: %s\n", name, err.message);
        ++*failed;
        free(text);
        return;
    }
    json_array_foreach(conversations, i, conversation)
    {
        *failed += !check_one(name, t, conversation, json_array_get(json_object_get(row, "results"), i));
        ++*n;
    }
    mica_template_free(t);
    free(text);
}

static void test_published_templates(void **state)
{
    (void)state;
    const char *directory = getenv("MICA_SUITES_DIR");
    json_t *conversations = data_json(MICA_TEST_DATA "/templates/conversations.json");
    FILE *f = fopen(MICA_TEST_DATA "/templates/expected.jsonl", "r");
    static char line[65536];
    int templates = 0, n = 0, failed = 0;
    assert_non_null(f);
    assert_non_null(conversations);
    while (fgets(line, sizeof line, f)) {
        json_t *row = json_loads(line, 0, NULL);
        assert_non_null(row);
        check_template(directory, row, conversations, &n, &failed);
        templates++;
        json_decref(row);
    }
    fclose(f);
    json_decref(conversations);
    printf("%d templates, %d renderings, %d failed\n", templates, n, failed);
    assert_true(templates >= 60);
    assert_int_equal(failed, 0);
}

/* tpl-20: the template inside of qwen2.5-coder-0.5b-instruct is that of Qwen2.5-7B-Instruct, byte for byte. */
static void test_tpl_20_qwen_template(void **state)
{
    (void)state;
    char path[1024];
    size_t length;
    int n = 0;
    snprintf(path, sizeof path, "%s/templates/Qwen-Qwen2.5-7B-Instruct.jinja", getenv("MICA_SUITES_DIR"));
    char *text = data_read(path, &length);
    assert_non_null(text);
    assert_int_equal(data_cases(MICA_TEST_DATA "/cases/tpl-20-qwen-template-in-model/cases.json", text, length, &n), 0);
    assert_int_equal(n, 5);
    free(text);
}

int main(void)
{
    const char *directory = getenv("MICA_SUITES_DIR");
    if (!directory || !directory[0]) {
        fprintf(stderr, "skipped: MICA_SUITES_DIR is not set\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_templates),
        cmocka_unit_test(test_tpl_20_qwen_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
