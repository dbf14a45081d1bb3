/* The tokenizers of three real models against ids from independent tools: gold prompts, and the public cases tok-01 ... tok-12.
 * The models' folder comes from MICA_MODELS_DIR; without it the program reports that it was skipped (77). */
#include "tokenizer_util.h"

#include <unistd.h>

#include "base/clock.h"
#include "text/utf8.h"

enum { SMOLLM2, QWEN25, GEMMA3, N_MODELS };
static const char *const names[N_MODELS] = {"smollm2-135m-instruct-q4_1", "qwen2.5-coder-0.5b-instruct-q4_k_m",
                                            "gemma-3-270m-q4_k_m"};
static opened models[N_MODELS];

static void model_path(int m, char *out, size_t room)
{
    snprintf(out, room, "%s/%s.gguf", getenv("MICA_MODELS_DIR"), names[m]);
}

static const mica_vocab *vocab(int m)
{
    if (!models[m].vocab) {
        char path[1200];
        model_path(m, path, sizeof(path));
        models[m] = open_vocab(path);
    }
    return models[m].vocab;
}

/* Calls check() with every line of a JSON-lines file; returns how many there were. */
static int each_line(const char *path, void (*check)(const json_t *row, void *user), void *user)
{
    size_t length;
    char *data = read_bytes(path, &length), *line = data;
    int rows = 0;
    while (*line) {
        char *end = strchr(line, '\n');
        size_t n = end ? (size_t)(end - line) : strlen(line);
        json_error_t error;
        json_t *row = json_loadb(line, n, JSON_ALLOW_NUL, &error);
        if (!row) {
            fail_msg("%s: %s", path, error.text);
        }
        check(row, user);
        json_decref(row);
        rows++;
        line += n + (end != NULL);
    }
    free(data);
    return rows;
}

static void check_gold_row(const json_t *row, void *user)
{
    const mica_vocab *v = user;
    const json_t *prompt = json_object_get(row, "prompt"), *back = json_object_get(row, "detokenized_plain");
    const char *name = json_string_value(json_object_get(row, "name"));
    size_t n_plain, n_special;
    int32_t *plain = json_ids(json_object_get(row, "ids_plain"), &n_plain);
    int32_t *special = json_ids(json_object_get(row, "ids_parse_special"), &n_special);
    assert_true((n_plain > 0) == (json_string_length(prompt) > 0));
    check_ids(v, json_string_value(prompt), json_string_length(prompt), 0, plain, n_plain, name);
    check_ids(v, json_string_value(prompt), json_string_length(prompt), MICA_TOKENIZE_PARSE_SPECIAL, special, n_special, name);
    check_text(v, plain, n_plain, false, json_string_value(back), json_string_length(back), name);
    check_text(v, special, n_special, true, json_string_value(prompt), json_string_length(prompt), name);
    free(plain);
    free(special);
}

static void gold_prompts(void **state)
{
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        char path[1200];
        snprintf(path, sizeof(path), "%s/gold/tokens-%s.jsonl", MICA_TEST_DATA, names[m]);
        assert_int_equal(each_line(path, check_gold_row, (void *)vocab(m)), 20);
    }
}

static void check_case_row(const json_t *row, void *user)
{
    const char *model = json_string_value(json_object_get(row, "model"));
    const json_t *text = json_object_get(row, "text");
    unsigned flags = json_is_true(json_object_get(row, "parse_special")) ? MICA_TOKENIZE_PARSE_SPECIAL : 0;
    flags |= json_is_true(json_object_get(row, "add_bos")) ? MICA_TOKENIZE_ADD_BOS : 0;
    int m = 0;
    while (m < N_MODELS && strncmp(model, names[m], strlen(names[m])) != 0) {
        m++;
    }
    assert_true(m < N_MODELS);
    size_t n;
    int32_t *ids = json_ids(json_object_get(row, "ids"), &n);
    check_ids(vocab(m), json_string_value(text), json_string_length(text), flags, ids, n, user);
    check_text(vocab(m), ids, n, true, json_string_value(text), json_string_length(text), user);
    for (size_t i = 0; i < n && !flags; i++) { /* text that a user types never becomes a control token */
        assert_int_not_equal(mica_vocab_type(vocab(m), ids[i]), MICA_TOKEN_CONTROL);
    }
    free(ids);
}

static void check_case(const char *id, int rows)
{
    char path[1200];
    snprintf(path, sizeof(path), "%s/cases/%s/cases.jsonl", MICA_TEST_DATA, id);
    assert_int_equal(each_line(path, check_case_row, (void *)id), rows);
}

static void tok_01_qwen_pretokenizer(void **state)
{
    (void)state;
    check_case("tok-01-qwen-pretokenizer", 14);
}

static void tok_03_gemma_space_runs(void **state)
{
    (void)state;
    check_case("tok-03-gemma-space-runs", 14);
}

static void tok_05_special_text_not_parsed(void **state)
{
    (void)state;
    check_case("tok-05-special-text-not-parsed", 36);
}

static void tok_06_unicode_zoo(void **state)
{
    (void)state;
    check_case("tok-06-unicode-zoo", 57);
}

/* Decomposed text comes out as the composed text does where the model's own tokenizer normalises, and is kept elsewhere. */
static void qwen2_text_is_normalised(void **state)
{
    (void)state;
    const char *composed = "r\xC3\xA9sum\xC3\xA9", *decomposed = "re\xCC\x81sume\xCC\x81";
    int32_t *want;
    size_t n;
    assert_int_equal(mica_vocab_tokenize(vocab(QWEN25), composed, strlen(composed), 0, &want, &n, NULL), MICA_OK);
    check_ids(vocab(QWEN25), decomposed, strlen(decomposed), 0, want, n, "qwen2 NFC");
    free(want);
    assert_int_equal(mica_vocab_tokenize(vocab(SMOLLM2), decomposed, strlen(decomposed), 0, &want, &n, NULL), MICA_OK);
    check_text(vocab(SMOLLM2), want, n, false, decomposed, strlen(decomposed), "smollm2 keeps it");
    free(want);
}

static void tok_08_invalid_utf8_input(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int64_t position;
    } bad[] = {{"above", 0}, {"cut3", 3}, {"ff", 0}, {"lonely", 1}, {"mix", 0}, {"overlong", 0}, {"surrogate", 0}};
    static const int32_t nul[N_MODELS][3] = {{81, 190, 82}, {64, 188, 65}, {236746, 238, 236763}};
    char path[1200];
    size_t length, n;
    int32_t *ids;
    for (int m = 0; m < N_MODELS; m++) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            mica_error err = {0};
            snprintf(path, sizeof(path), "%s/cases/tok-08-invalid-utf8-input/%s.bin", MICA_TEST_DATA, bad[i].file);
            char *text = read_bytes(path, &length);
            assert_int_equal(mica_vocab_tokenize(vocab(m), text, length, 0, &ids, &n, &err), MICA_BAD_TEXT);
            assert_null(ids);
            assert_int_equal(err.position, bad[i].position);
            assert_non_null(strstr(err.message, "invalid UTF-8 at byte"));
            free(text);
        }
        snprintf(path, sizeof(path), "%s/cases/tok-08-invalid-utf8-input/nul.bin", MICA_TEST_DATA);
        char *text = read_bytes(path, &length);
        check_ids(vocab(m), text, length, 0, nul[m], 3, "nul.bin");
        check_text(vocab(m), nul[m], 3, false, text, length, "nul.bin");
        free(text);
    }
}

static void tok_09_double_bos(void **state)
{
    (void)state;
    const int32_t gemma[] = {2, 1005};
    const unsigned bos = MICA_TOKENIZE_ADD_BOS, special = MICA_TOKENIZE_PARSE_SPECIAL;
    check_ids(vocab(GEMMA3), "<bos>text", 9, bos | special, gemma, 2, "tok-09");
    check_ids(vocab(GEMMA3), "<bos>text", 9, special, gemma, 2, "tok-09");
    check_ids(vocab(GEMMA3), "text", 4, bos, gemma, 2, "tok-09");
    check_ids(vocab(GEMMA3), "text", 4, bos | special, gemma, 2, "tok-09");
    check_ids(vocab(GEMMA3), "", 0, bos, gemma, 1, "tok-09");
    int32_t *ids;
    size_t n;
    assert_int_equal(mica_vocab_tokenize(vocab(GEMMA3), "<bos>text", 9, bos, &ids, &n, NULL), MICA_OK);
    assert_true(n > 3 && ids[0] == 2 && ids[1] != 2); /* typed, not special: a BOS of its own and the text's pieces */
    free(ids);
    assert_int_equal(mica_vocab_tokenize(vocab(SMOLLM2), "text", 4, bos | special, &ids, &n, NULL), MICA_OK);
    assert_true(n == 1 && ids[0] != 1);
    free(ids);
}

static void check_every_id(int m)
{
    const mica_vocab *v = vocab(m);
    for (int32_t id = 0; id < mica_vocab_size(v); id++) {
        char small[2], *text;
        size_t length, bytes;
        assert_int_equal(mica_vocab_detokenize(v, &id, 1, false, &text, &length, NULL), MICA_OK);
        bytes = mica_vocab_bytes(v, id, false, NULL, 0);
        assert_int_equal(bytes, length);
        memset(small, 'x', sizeof(small));
        bytes = mica_vocab_bytes(v, id, false, small, sizeof(small));
        assert_int_equal(bytes, length);
        if (length > sizeof(small)) { /* does not fit: nothing is written */
            assert_memory_equal(small, "xx", 2);
        } else {
            assert_memory_equal(small, text, length);
        }
        mica_token_type type = mica_vocab_type(v, id);
        if (memmem(text, length, "\xE2\x96\x81", 3)) {
            assert_int_equal(type, MICA_TOKEN_USER);
        }
        if (type == MICA_TOKEN_CONTROL) {
            assert_int_equal(length, 0);
            assert_true(mica_vocab_bytes(v, id, true, NULL, 0) == mica_vocab_piece(v, id).length);
        }
        free(text);
    }
}

static void tok_11_every_id_decodes(void **state)
{
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        const int32_t n = mica_vocab_size(vocab(m)), bad[] = {-1, n, INT32_MAX, INT32_MIN};
        check_every_id(m);
        for (size_t i = 0; i < 4; i++) {
            char *text, number[16];
            size_t length;
            mica_error err = {0};
            assert_int_equal(mica_vocab_detokenize(vocab(m), &bad[i], 1, false, &text, &length, &err), MICA_INVALID_ARGUMENT);
            snprintf(number, sizeof(number), "%d", bad[i]);
            assert_non_null(strstr(err.message, number));
            assert_int_equal(mica_vocab_bytes(vocab(m), bad[i], true, NULL, 0), 0);
            assert_int_equal(mica_vocab_piece(vocab(m), bad[i]).length, 0);
        }
    }
    for (int32_t b = 0; b < 256; b++) {
        const int32_t id = 238 + b;
        const char byte = (char)b;
        check_text(vocab(GEMMA3), &id, 1, false, &byte, 1, "tok-11 gemma byte");
    }
    const int32_t newline = 198;
    check_text(vocab(SMOLLM2), &newline, 1, false, "\n", 1, "tok-11 smollm2");
}

/* n times `unit`. */
static char *repeat(const char *unit, size_t n)
{
    size_t length = strlen(unit);
    char *text = malloc(n * length + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + i * length, unit, length);
    }
    text[n * length] = 0;
    return text;
}

static long peak_rss_kb(void)
{
    size_t length = 0;
    char line[200];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) && length == 0) {
        length = sscanf(line, "VmHWM: %ld", &kb) == 1;
    }
    fclose(f);
    return kb;
}

/* The counts of the case for two models; that Gemma finishes too, with every byte covered, is checked by its round trip. */
static void tok_12_long_runs(void **state)
{
    (void)state;
    static const struct {
        const char *name, *unit;
        size_t times;
    } runs[] = {{"a", "a", 1000000}, {"space", " ", 1000000}, {"nl", "\n", 200000}, {"abc", "abcdefghij ", 90000}};
    static const char *const keys[N_MODELS] = {"smollm2", "qwen2.5", NULL};
    json_error_t error;
    json_t *counts = json_load_file(MICA_TEST_DATA "/cases/tok-12-long-runs/counts.json", 0, &error);
    assert_non_null(counts);
    for (int m = 0; m < N_MODELS; m++) {
        for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
            char *text = repeat(runs[i].unit, runs[i].times);
            int32_t *ids;
            size_t n, length = strlen(text);
            vocab(m);
            int64_t start = mica_now_ns();
            assert_int_equal(mica_vocab_tokenize(vocab(m), text, length, 0, &ids, &n, NULL), MICA_OK);
            double seconds = (double)(mica_now_ns() - start) / 1e9;
            printf("%s %s: %zu tokens, %.3f s\n", names[m], runs[i].name, n, seconds);
            if (keys[m]) {
                assert_int_equal(n, json_integer_value(json_object_get(json_object_get(counts, keys[m]), runs[i].name)));
            }
            assert_true(seconds < 3);
            check_text(vocab(m), ids, n, false, text, length, runs[i].name);
            free(ids);
            free(text);
        }
    }
    json_decref(counts);
    printf("peak memory %ld MB\n", peak_rss_kb() / 1024);
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(peak_rss_kb() < 500 * 1024); /* a sanitizer's shadow and quarantine are not the tokenizer's */
#endif
}

static void special_tokens_of_the_models(void **state)
{
    (void)state;
    const mica_vocab_special *s = mica_vocab_special_tokens(vocab(SMOLLM2));
    assert_true(s->bos == 1 && s->eos == 2 && s->pad == 2 && s->unk == 0 && !s->add_bos && !s->add_eos);
    assert_true(mica_vocab_ends_generation(vocab(SMOLLM2), 2) && mica_vocab_ends_generation(vocab(SMOLLM2), 0));
    assert_false(mica_vocab_ends_generation(vocab(SMOLLM2), 1));
    s = mica_vocab_special_tokens(vocab(QWEN25));
    assert_true(s->bos == 151643 && s->eos == 151645 && s->eot == 151645 && !s->add_bos);
    assert_true(s->fim_prefix == 151659 && s->fim_middle == 151660 && s->fim_suffix == 151661);
    assert_true(mica_vocab_ends_generation(vocab(QWEN25), 151643) && mica_vocab_ends_generation(vocab(QWEN25), 151645));
    assert_false(mica_vocab_ends_generation(vocab(QWEN25), 151644));
    s = mica_vocab_special_tokens(vocab(GEMMA3));
    assert_true(s->bos == 2 && s->eos == 1 && s->unk == 3 && s->pad == 0 && s->add_bos && !s->add_eos && !s->add_space_prefix);
    int32_t turn = mica_vocab_find(vocab(GEMMA3), "<end_of_turn>", 13);
    assert_true(turn == 106 && s->eot == turn && mica_vocab_ends_generation(vocab(GEMMA3), turn));
    assert_false(mica_vocab_ends_generation(vocab(GEMMA3), -1));
    assert_int_equal(mica_vocab_find(vocab(GEMMA3), "no such piece", 13), -1);
}

static int close_models(void **state)
{
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        close_vocab(&models[m]);
    }
    return 0;
}

int main(void)
{
    for (int m = 0; m < N_MODELS; m++) {
        char path[1200] = "";
        if (getenv("MICA_MODELS_DIR")) {
            model_path(m, path, sizeof(path));
        }
        if (access(path, R_OK) != 0) {
            printf("skipped: MICA_MODELS_DIR does not name a folder with %s.gguf\n", names[m]);
            return 77;
        }
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gold_prompts),
        cmocka_unit_test(tok_01_qwen_pretokenizer),
        cmocka_unit_test(tok_03_gemma_space_runs),
        cmocka_unit_test(tok_05_special_text_not_parsed),
        cmocka_unit_test(tok_06_unicode_zoo),
        cmocka_unit_test(qwen2_text_is_normalised),
        cmocka_unit_test(tok_08_invalid_utf8_input),
        cmocka_unit_test(tok_09_double_bos),
        cmocka_unit_test(tok_11_every_id_decodes),
        cmocka_unit_test(tok_12_long_runs),
        cmocka_unit_test(special_tokens_of_the_models),
    };
    return cmocka_run_group_tests(tests, NULL, close_models);
}
