/* The real models with float32 weights: every matrix of the file is decoded to F32 and the logits compared with those of an
 * independent float32 forward pass (tests/data/reference, made by tests/data/tiny/make_reference.py). Without the activations'
 * quantisation the difference stays under 1e-3 of the logits' range. */
#include <math.h>

#include "base/mem.h"
#include "model_util.h"
#include "session/engine.h"

static void *decoded[4096];
static size_t n_decoded;

/* Replaces the tensor by its float32 values; a tensor that serves twice (tied output) is decoded twice. */
static void to_float(mica_weight *w)
{
    const mica_quant *f32 = mica_quant_of(MICA_TYPE_F32);
    float *rows = malloc((size_t)w->rows * (size_t)w->cols * sizeof *rows);
    assert_non_null(rows);
    for (int64_t r = 0; r < w->rows; r++)
        w->quant->decode(w->quant, w->data + (size_t)r * w->row_bytes, rows + r * w->cols, (size_t)w->cols);
    *w = (mica_weight){f32, (const uint8_t *)rows, w->rows, w->cols, (size_t)w->cols * sizeof *rows};
    decoded[n_decoded++] = rows;
}

static void all_to_float(mica_weights *w)
{
    bool tied = w->embd.data == w->output.data;
    to_float(&w->embd);
    if (tied)
        w->output = w->embd;
    else
        to_float(&w->output);
    for (int32_t i = 0; i < w->h.n_layers; i++) {
        mica_layer *l = &w->layers[i];
        mica_weight *all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            to_float(all[j]);
    }
}

static void check_top(const float *logits, const json_t *reference, const char *name)
{
    const json_t *range = json_object_get(reference, "range"), *pair;
    double width = json_number_value(json_array_get(range, 1)) - json_number_value(json_array_get(range, 0)), worst = 0.0;
    size_t i;
    json_array_foreach(json_object_get(reference, "top"), i, pair) {
        double d = fabs((double)logits[json_integer_value(json_array_get(pair, 0))] - json_number_value(json_array_get(pair, 1)));
        worst = d > worst || isnan(d) ? d : worst;
    }
    print_message("%s: worst difference of the top %zu logits %.2g of their range\n", name, i, worst / width);
    assert_true(i >= 50);
    assert_true(worst <= 1e-3 * width);
}

static void check_model(const char *folder, const char *name)
{
    char path[512], file[128];
    mica_error err;
    snprintf(file, sizeof file, "%s.json", name);
    json_t *reference = load_json(test_path(path, MICA_TEST_DATA "/reference", file));
    snprintf(file, sizeof file, "%s.gguf", name);
    mica_model *model = open_model(test_path(path, folder, file), NULL);
    int32_t *tokens;
    size_t n = int_array(json_object_get(reference, "tokens"), &tokens);
    all_to_float(&model->weights);
    mica_session *s = open_session(model, 128, 2, 64);
    if (mica_session_sync(s, tokens, n, &err))
        fail_msg("%s", err.message);
    check_top(mica_session_logits(s), reference, name);
    mica_session_free(s);
    mica_model_close(model);
    while (n_decoded > 0)
        free(decoded[--n_decoded]);
    free(tokens);
    json_decref(reference);
}

static void test_models(void **state)
{
    check_model(*state, "smollm2-135m-instruct-q4_1");
    check_model(*state, "gemma-3-270m-q4_k_m");
    check_model(*state, "qwen2.5-coder-0.5b-instruct-q4_k_m");
}

int main(void)
{
    char *folder = getenv("MICA_MODELS_DIR"), path[512];
    FILE *f = folder ? fopen(test_path(path, folder, "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), "rb") : NULL;
    if (!f) {
        print_message("skipped: MICA_MODELS_DIR has no models\n");
        return 77;
    }
    fclose(f);
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_models, folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
