/* The formats of published chat templates. They are not in the repository: MICA_SUITES_DIR names the folder that has
 * templates/. */
#include "tools_util.h"

#include <dirent.h>

/* All others are "generic": they have no tools, or write calls in a way that is not known here. */
static const struct {
    const char *template, *format;
} known[] = {
    {"Bielik-11B-v3.0-Instruct", "hermes"},
    {"MiMo-VL", "hermes"},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes"},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"},
    {"Qwen-QwQ-32B", "hermes"},
    {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
    {"Qwen-Qwen3-0.6B", "hermes"},
    {"Reka-Edge", "hermes"},
    {"ibm-granite-granite-4.0", "hermes"},
    {"ibm-granite-granite-4.1", "hermes"},
    {"meetkai-functionary-medium-v3.1", "functionary"},
    {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
    {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
    {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
    {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
};

static char *load_text(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/templates/%s", folder, name);
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0)
        fail_msg("cannot read %s", path);
    fclose(f);
    return text;
}

static const char *format_of(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(name) == strlen(known[i].template) + 6 && strncmp(name, known[i].template, strlen(known[i].template)) == 0)
            return known[i].format;
    return "generic";
}

static void test_formats(void **state)
{
    (void)state;
    char path[1024];
    int n = 0, n_known = 0;
    snprintf(path, sizeof path, "%s/templates", getenv("MICA_SUITES_DIR"));
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *e = readdir(folder); e; e = readdir(folder)) {
        const char *end = strrchr(e->d_name, '.');
        if (!end || strcmp(end, ".jinja") != 0)
            continue;
        char *text = load_text(getenv("MICA_SUITES_DIR"), e->d_name);
        mica_tools *tools = make_tools(text, TWO_TOOLS, MICA_TOOL_NONE, NULL);
        if (strcmp(mica_tools_format(tools), format_of(e->d_name)) != 0)
            fail_msg("%s has the format %s, not %s", e->d_name, mica_tools_format(tools), format_of(e->d_name));
        n++;
        n_known += strcmp(mica_tools_format(tools), "generic") != 0;
        mica_tools_free(tools);
        free(text);
    }
    closedir(folder);
    assert_true(n >= 60);
    assert_int_equal(n_known, sizeof known / sizeof *known);
}

/* A call and its result, as the API has them, come out of each template that is known. */
static void test_results_render(void **state)
{
    (void)state;
    static const char request[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"1+2?\"}, {\"role\": \"assistant\", \"content\": \"\", "
        "\"tool_calls\": [{\"id\": "
        "\"abcdefghi\", \"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1, \\\"b\\\": "
        "2}\"}}]}, "
        "{\"role\": \"tool\", \"tool_call_id\": \"abcdefghi\", \"name\": \"add\", \"content\": \"{\\\"sum\\\": 333}\"}]}";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char name[512], *json, *out;
        size_t n, n_out;
        mica_error err = {.message = ""};
        snprintf(name, sizeof name, "%s.jinja", known[i].template);
        char *text = load_text(getenv("MICA_SUITES_DIR"), name);
        mica_tools *tools = make_tools(text, TWO_TOOLS, MICA_TOOL_AUTO, NULL);
        assert_int_equal(mica_tools_request(tools, request, sizeof request - 1, &json, &n, &err), MICA_OK);
        if (mica_template_render(text, strlen(text), json, n, "<s>", "</s>", 0, &out, &n_out, &err))
            fail_msg("%s: %s", name, err.message);
        const char *call = strstr(out, strcmp(known[i].format, "functionary") == 0 ? "add>{\"a\": 1" : "{\"a\": 1, \"b\": 2}");
        if (!call || !strstr(call, "333") || !strstr(out, "get_weather"))
            fail_msg("%s gives\n%s", name, out);
        mica_free(out);
        mica_free(json);
        mica_tools_free(tools);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats), cmocka_unit_test(test_results_render)};
    if (!getenv("MICA_SUITES_DIR")) {
        puts("MICA_SUITES_DIR is not set: skipped");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
