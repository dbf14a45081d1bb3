/* Snapshots of real models (MICA_MODELS_DIR): restored from a file they go on with the same bits, and no model takes another's.
 */
#include "snapshot_util.h"

#define PROMPT 48
#define MORE 4

static const char *const names[] = {"smollm2-135m-instruct-q4_1", "qwen2.5-coder-0.5b-instruct-q4_k_m", "gemma-3-270m-q4_k_m"};
#define N_MODELS 3

static void next_logits(mica_session *s, const int32_t *tokens, size_t n_vocab, uint64_t *hash)
{
    for (size_t i = 0; i <= MORE; i++) {
        sync_tokens(s, tokens, PROMPT + i);
        *hash = hash_bytes(*hash, mica_session_logits(s), n_vocab * sizeof(float));
    }
}

static void check_model(mica_model *model, const char *file)
{
    int32_t tokens[PROMPT + MORE];
    mica_model_info info;
    mica_error err;
    uint64_t before = 0, after = 0;
    mica_session *a = open_session(model, 128, 1, 64), *b = open_session(model, 80, 2, 32);
    mica_model_get_info(model, &info);
    some_tokens(tokens, PROMPT + MORE);
    sync_tokens(a, tokens, PROMPT);
    if (mica_session_save(a, file, &err) || mica_session_restore(b, file, &err))
        fail_msg("%s", err.message);
    next_logits(a, tokens, (size_t)info.n_vocab, &before);
    next_logits(b, tokens, (size_t)info.n_vocab, &after);
    assert_int_equal(before, after);
    mica_session_free(a);
    mica_session_free(b);
}

static void test_models(void **state)
{
    folder f;
    mica_model *models[N_MODELS];
    mica_error err;
    char path[512];
    folder_make(&f);
    for (int i = 0; i < N_MODELS; i++) {
        snprintf(path, sizeof path, "%s/%s.gguf", (const char *)*state, names[i]);
        models[i] = open_model(path, NULL);
    }
    for (int i = 0; i < N_MODELS; i++) {
        check_model(models[i], f.file);
        mica_session *s = open_session(models[(i + 1) % N_MODELS], 64, 1, 8);
        assert_int_equal(mica_session_restore(s, f.file, &err), MICA_UNSUPPORTED);
        assert_non_null(strstr(err.message, "another model"));
        mica_session_free(s);
    }
    for (int i = 0; i < N_MODELS; i++)
        mica_model_close(models[i]);
    folder_remove(&f);
}

int main(void)
{
    char *dir = getenv("MICA_MODELS_DIR");
    if (!dir) {
        printf("skipped: MICA_MODELS_DIR is not set\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_models, dir)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
