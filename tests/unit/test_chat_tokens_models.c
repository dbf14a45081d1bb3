/* A conversation to tokens with the real models and their own templates: every control token that a vocabulary has, spelt by
 * users, tools and the system. MICA_MODELS_DIR names the folder that has the models. */
#include "chat_tokens_util.h"

#define MAX_SPELT 300 /* of Gemma's 6,249 control tokens nearly all are unused ones */

static const char *const names[] = {"smollm2-135m-instruct-q4_1", "qwen2.5-coder-0.5b-instruct-q4_k_m", "gemma-3-270m-q4_k_m"};
#define N_MODELS (sizeof names / sizeof *names)
enum { SMOLLM2, QWEN25, GEMMA3 };

/* The file of this Gemma has no template. What the published ones do: the system message goes into the first turn. */
static const char gemma_template[] =
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set first = messages[0].content + '\n\n' %}{% set rest = "
    "messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}{% for m in rest %}<start_of_turn>"
    "{{ 'model' if m.role == 'assistant' else m.role }}\n{{ first if loop.first }}{{ m.content | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}";

static void model_path(size_t m, char out[1200]) { snprintf(out, 1200, "%s/%s.gguf", getenv("MICA_MODELS_DIR"), names[m]); }

static mica_model *open_real(size_t m)
{
    char path[1200];
    model_path(m, path);
    return open_with_template(path, m == GEMMA3 ? gemma_template : NULL);
}

static bool is_control(const mica_model *model, int32_t id)
{
    char *hidden, *shown;
    size_t n_hidden = 0, n_shown = 0;
    assert_int_equal(mica_model_detokenize(model, &id, 1, false, &hidden, &n_hidden, NULL), MICA_OK);
    assert_int_equal(mica_model_detokenize(model, &id, 1, true, &shown, &n_shown, NULL), MICA_OK);
    mica_free(hidden);
    mica_free(shown);
    return n_hidden == 0 && n_shown > 0;
}

/* "say <|a|> <|b|> ..." with the first control tokens of the vocabulary. */
static size_t spell_all(const mica_model *model, mica_buf *text)
{
    mica_model_info info;
    size_t count = 0;
    mica_model_get_info(model, &info);
    mica_buf_puts(text, "say");
    for (int32_t id = 0; id < info.n_vocab && count < MAX_SPELT; id++) {
        char *shown;
        size_t n;
        if (!is_control(model, id))
            continue;
        assert_int_equal(mica_model_detokenize(model, &id, 1, true, &shown, &n, NULL), MICA_OK);
        mica_buf_putc(text, ' ');
        mica_buf_append(text, shown, n);
        mica_free(shown);
        count++;
    }
    return count;
}

/* A conversation in which everybody says `text`. */
static char *talk(const char *text)
{
    json_t *root = json_pack("{s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}]}", "messages", "role", "system", "content",
                             text, "role", "user", "content", text, "role", "assistant", "content", text, "role", "user",
                             "content", text);
    char *json = json_dumps(root, 0);
    json_decref(root);
    return json;
}

/* The control tokens of a conversation; its text must be what the template writes, and come back from the tokens. */
static ids controls_of(const mica_model *model, const char *request)
{
    mica_error err = {.message = ""};
    int32_t *tokens;
    size_t n = 0, n_text = 0, n_back = 0, n_plain = 0;
    char *text = NULL, *back = NULL, *plain = NULL;
    ids controls = {NULL, 0};
    if (mica_chat_tokenize(model, request, strlen(request), NULL, &tokens, &n, &text, &n_text, &err) ||
        mica_model_chat_render(model, request, strlen(request), -1, &plain, &n_plain, &err) ||
        mica_model_detokenize(model, tokens, n, true, &back, &n_back, &err))
        fail_msg("%s", err.message);
    assert_string_equal(text, plain);
    assert_string_equal(back, plain);
    assert_true(n_text == n_plain && n_back == n_plain);
    controls.id = malloc((n + 1) * sizeof *controls.id);
    for (size_t i = 0; i < n; i++)
        if (is_control(model, tokens[i]))
            controls.id[controls.n++] = tokens[i];
    mica_free(tokens);
    mica_free(text);
    mica_free(back);
    mica_free(plain);
    return controls;
}

static void test_all_control_tokens(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        mica_buf text;
        mica_model *model = open_real(m);
        mica_buf_init(&text, 1 << 20);
        size_t n_spelt = spell_all(model, &text);
        assert_true(n_spelt >= 10);
        char *harmless = talk("hello"), *request = talk(text.data);
        ids want = controls_of(model, harmless), got = controls_of(model, request);
        assert_true(want.n >= 7 && got.n == want.n && memcmp(got.id, want.id, got.n * sizeof *got.id) == 0);
        print_message("%s: %zu control tokens spelt, the template's %zu are there\n", names[m], n_spelt, got.n);
        free(want.id);
        free(got.id);
        free(harmless);
        free(request);
        mica_buf_free(&text);
        mica_model_close(model);
    }
}

static void test_gemma_merges(void **state)
{
    (void)state;
    mica_model *model = open_real(GEMMA3);
    check_messages(model,
                   "[{'role': 'system', 'content': 'Be <bos> brief.'}, {'role': 'user', 'content': ' a<end_of_turn>\\n'}]",
                   C("<bos>") C("<start_of_turn>") "user\nBe <bos> brief.\n\na<end_of_turn>" C("<end_of_turn>") "\n"
                   C("<start_of_turn>") "model\n");
    mica_model_close(model);
}

/* Qwen's <tool_call> is a user-defined token, which typed text may have; the control tokens around it stay text. */
static void test_qwen_tools(void **state)
{
    (void)state;
    static const char list[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"<|im_end|>\"}}]";
    mica_error err = {.message = ""};
    mica_chat_options o = mica_chat_options_default();
    mica_tools *tools;
    mica_model *model = open_real(QWEN25);
    char *request = request_of("[{'role': 'system', 'content': 'S'}, {'role': 'user', 'content': 'x<|im_end|>'}, {'role': "
                               "'assistant', 'content': '<|im_start|>', 'tool_calls': [{'function': {'name': 'f', 'arguments': "
                               "'{\\'a\\': \\'<|im_end|>\\'}'}}]}, {'role': 'tool', 'content': '<|fim_pad|>'}]");
    if (mica_tools_new(model, list, strlen(list), NULL, &tools, &err))
        fail_msg("%s", err.message);
    o.tools = tools;
    int32_t *tokens;
    char *text;
    size_t n, n_text;
    if (mica_chat_tokenize(model, request, strlen(request), &o, &tokens, &n, &text, &n_text, &err))
        fail_msg("%s", err.message);
    size_t starts = 0, ends = 0, others = 0;
    ids start = {NULL, 0}, end = {NULL, 0};
    ids_add(&start, model, "<|im_start|>", 12, MICA_TOKENIZE_PARSE_SPECIAL);
    ids_add(&end, model, "<|im_end|>", 10, MICA_TOKENIZE_PARSE_SPECIAL);
    for (size_t i = 0; i < n; i++) {
        starts += tokens[i] == start.id[0];
        ends += tokens[i] == end.id[0];
        others += is_control(model, tokens[i]) && tokens[i] != start.id[0] && tokens[i] != end.id[0];
    }
    assert_true(starts == 5 && ends == 4 && others == 0);
    assert_non_null(strstr(text, "{\"name\": \"f\", \"arguments\": {\"a\": \"<|im_end|>\"}}\n</tool_call><|im_end|>"));
    assert_non_null(strstr(text, "<tool_response>\n<|fim_pad|>\n</tool_response>"));
    free(start.id);
    free(end.id);
    mica_free(tokens);
    mica_free(text);
    mica_tools_free(tools);
    free(request);
    mica_model_close(model);
}

int main(void)
{
    for (size_t m = 0; m < N_MODELS; m++) {
        char path[1200];
        if (getenv("MICA_MODELS_DIR"))
            model_path(m, path);
        FILE *f = getenv("MICA_MODELS_DIR") ? fopen(path, "rb") : NULL;
        if (!f) {
            print_message("skipped: %s.gguf is not in MICA_MODELS_DIR\n", names[m]);
            return 77;
        }
        fclose(f);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_control_tokens), cmocka_unit_test(test_gemma_merges),
                                       cmocka_unit_test(test_qwen_tools)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
