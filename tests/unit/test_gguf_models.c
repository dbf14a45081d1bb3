/* test_gguf_models.c - opens real models of MICA_MODELS_DIR; skipped (77) without it. The expected numbers were read with
 * gguf-py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "model/gguf.h"

typedef struct model_facts {
    const char *file, *architecture, *layers_key, *base_key;
    size_t n_keys, n_tensors;
    uint64_t n_tokens, file_bytes, weight_bytes;
    int64_t n_layers;
    float rope_base;
    const char *token_1000, *last_token;
    const char *last_tensor;
    uint64_t last_sum; /* of its bytes */
} model_facts;

static const model_facts models[] = {
    {"smollm2-135m-instruct-q4_1.gguf", "llama", "llama.block_count", "llama.rope.freq_base", 33, 272, 49152, 98362432,
     96576768, 30, 100000, "()", "ectable", "output_norm.weight", 156277},
    {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2", "qwen2.block_count", "qwen2.rope.freq_base", 26, 291, 151936,
     491400064, 485452288, 24, 1000000, "atus", "[PAD151935]", "output_norm.weight", 244651},
    {"gemma-3-270m-q4_k_m.gguf", "gemma3", "gemma3.block_count", "gemma3.rope.freq_base", 33, 236, 262144, 253113024,
     246587904, 18, 1000000, "put", "<unused6241>", "blk.17.post_ffw_norm.weight", 172460},
};

static void assert_str(mica_str s, const char *want)
{
    assert_int_equal(s.length, strlen(want));
    assert_memory_equal(s.data, want, s.length);
}

/* Best of five, in milliseconds: the first one may wait for the disk. */
static mica_gguf *open_timed(const char *path, double *ms)
{
    mica_gguf *g = NULL;
    mica_error err;
    *ms = 1e9;
    for (int i = 0; i < 5; i++) {
        mica_gguf_close(g);
        int64_t start = mica_now_ns();
        if (mica_gguf_open(path, &g, &err) != MICA_OK)
            fail_msg("%s", err.message);
        double took = (double)(mica_now_ns() - start) / 1e6;
        *ms = took < *ms ? took : *ms;
    }
    return g;
}

static void check_tokens(const mica_gguf *g, const model_facts *m)
{
    const mica_gguf_value *v = mica_gguf_find(g, "tokenizer.ggml.tokens");
    assert_non_null(v);
    assert_true(v->kind == MICA_GGUF_ARRAY && v->element == MICA_GGUF_STRING);
    assert_int_equal(v->count, m->n_tokens);
    mica_str s = {0};
    uint64_t cursor = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        s = mica_gguf_array_str(v, &cursor);
        if (i == 1000)
            assert_str(s, m->token_1000);
    }
    assert_str(s, m->last_token);
}

static void check_tensors(const mica_gguf *g, const model_facts *m)
{
    uint64_t bytes = 0, sum = 0;
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++)
        bytes += mica_gguf_tensor_at(g, i)->n_bytes;
    assert_int_equal(bytes, m->weight_bytes);
    const mica_gguf_tensor *t = mica_gguf_tensor_find(g, m->last_tensor);
    assert_ptr_equal(t, mica_gguf_tensor_at(g, m->n_tensors - 1));
    for (uint64_t i = 0; i < t->n_bytes; i++)
        sum += t->data[i];
    assert_int_equal(sum, m->last_sum);
}

static void check_model(const char *dir, const model_facts *m)
{
    char path[1024];
    mica_str architecture;
    int64_t n_layers = 0;
    float base = 0;
    double ms;
    snprintf(path, sizeof path, "%s/%s", dir, m->file);
    mica_gguf *g = open_timed(path, &ms);
    print_message("%s: opened in %.2f ms\n", m->file, ms);
    assert_true(ms < 250); /* ten times what a slow machine needs: it must not grow with the weights */
    assert_int_equal(mica_gguf_value_count(g), m->n_keys);
    assert_int_equal(mica_gguf_tensor_count(g), m->n_tensors);
    assert_int_equal(mica_gguf_file_bytes(g), m->file_bytes);
    assert_int_equal(mica_gguf_get_str(g, "general.architecture", true, &architecture, NULL), MICA_OK);
    assert_str(architecture, m->architecture);
    assert_int_equal(mica_gguf_get_i64(g, m->layers_key, true, 1, 1000, &n_layers, NULL), MICA_OK);
    assert_int_equal(n_layers, m->n_layers);
    assert_int_equal(mica_gguf_get_f32(g, m->base_key, true, &base, NULL), MICA_OK);
    assert_true(base == m->rope_base);
    check_tokens(g, m);
    check_tensors(g, m);
    mica_gguf_close(g);
}

static void test_models(void **state)
{
    const char *dir = *state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(dir, &models[i]);
}

int main(void)
{
    char *dir = getenv("MICA_MODELS_DIR");
    if (!dir || !*dir) {
        puts("skipped: MICA_MODELS_DIR is not set");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_models, dir)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
