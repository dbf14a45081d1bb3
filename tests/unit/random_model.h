/* random_model.h - writes a small random llama model whose matrices are all of one weight type. */
#ifndef MICA_TESTS_RANDOM_MODEL_H
#define MICA_TESTS_RANDOM_MODEL_H
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "gguf_build.h"

enum { RM_EMBD = 256, RM_FF = 512, RM_VOCAB = 288, RM_HEADS = 4, RM_KV_HEADS = 2, RM_LAYERS = 2 };

typedef struct rm_tensor {
    char name[40];
    int64_t cols, rows;
    bool vector;
} rm_tensor;

static inline size_t rm_tensors(rm_tensor out[])
{
    static const struct {
        const char *name;
        int64_t cols, rows;
    } layer[] = {{"attn_norm", RM_EMBD, 0}, {"ffn_norm", RM_EMBD, 0}, {"attn_q", RM_EMBD, RM_EMBD}, {"attn_k", RM_EMBD, RM_EMBD / 2},
                 {"attn_v", RM_EMBD, RM_EMBD / 2}, {"attn_output", RM_EMBD, RM_EMBD}, {"ffn_gate", RM_EMBD, RM_FF},
                 {"ffn_up", RM_EMBD, RM_FF}, {"ffn_down", RM_FF, RM_EMBD}};
    size_t n = 0;
    out[n++] = (rm_tensor){"token_embd.weight", RM_EMBD, RM_VOCAB, false};
    out[n++] = (rm_tensor){"output_norm.weight", RM_EMBD, 1, true};
    for (int l = 0; l < RM_LAYERS; l++) {
        for (size_t i = 0; i < sizeof layer / sizeof *layer; i++, n++) {
            out[n] = (rm_tensor){"", layer[i].cols, layer[i].rows ? layer[i].rows : 1, layer[i].rows == 0};
            snprintf(out[n].name, sizeof out[n].name, "blk.%d.%s.weight", l, layer[i].name);
        }
    }
    return n;
}

static inline void rm_metadata(mica_buf *b, size_t n_tensors)
{
    put_header(b, 3, n_tensors, 12);
    put_key(b, "general.architecture", MICA_GGUF_STRING);
    put_str(b, "llama");
    put_number(b, "llama.block_count", MICA_GGUF_U32, RM_LAYERS, 4);
    put_number(b, "llama.context_length", MICA_GGUF_U32, 512, 4);
    put_number(b, "llama.embedding_length", MICA_GGUF_U32, RM_EMBD, 4);
    put_number(b, "llama.feed_forward_length", MICA_GGUF_U32, RM_FF, 4);
    put_number(b, "llama.attention.head_count", MICA_GGUF_U32, RM_HEADS, 4);
    put_number(b, "llama.attention.head_count_kv", MICA_GGUF_U32, RM_KV_HEADS, 4);
    put_number(b, "llama.attention.layer_norm_rms_epsilon", MICA_GGUF_F32, bits_of(1e-5f), 4);
    put_key(b, "tokenizer.ggml.model", MICA_GGUF_STRING);
    put_str(b, "llama");
    put_array(b, "tokenizer.ggml.tokens", MICA_GGUF_STRING, RM_VOCAB);
    for (int i = 0; i < RM_VOCAB; i++) {
        char piece[16];
        snprintf(piece, sizeof piece, i < 256 ? "<0x%02X>" : "t%d", i);
        put_str(b, piece);
    }
    put_array(b, "tokenizer.ggml.scores", MICA_GGUF_F32, RM_VOCAB);
    for (int i = 0; i < RM_VOCAB; i++)
        put_uint(b, bits_of((float)-i), 4);
    put_array(b, "tokenizer.ggml.token_type", MICA_GGUF_I32, RM_VOCAB);
    for (int i = 0; i < RM_VOCAB; i++)
        put_uint(b, i < 256 ? 6 : 1, 4);
}

static inline void rm_data(mica_buf *b, const rm_tensor *t, const mica_quant *quant, mica_rng *rng)
{
    size_t n = (size_t)(t->cols * t->rows), bytes = mica_quant_bytes(quant, n);
    float *f = malloc(n * sizeof *f);
    void *blocks = malloc(bytes);
    for (size_t i = 0; i < n; i++) /* about variance 1 / cols, so that activations keep their size */
        f[i] = t->vector ? 1.0f + (float)mica_rng_unit(rng) * 0.2f : ((float)mica_rng_unit(rng) - 0.5f) * 0.2f;
    quant->encode(f, NULL, blocks, n);
    put_data(b, 32, 0);
    mica_buf_append(b, blocks, bytes);
    free(f);
    free(blocks);
}

/* Writes the model of a seed; false if the file cannot be written. */
static inline bool write_random_model_of(const char *path, mica_type type, uint64_t seed)
{
    rm_tensor tensors[2 + 9 * RM_LAYERS];
    size_t n = rm_tensors(tensors), offset = 0;
    mica_buf b;
    mica_rng rng;
    mica_rng_seed(&rng, seed);
    rm_metadata(&b, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t dims[2] = {(uint64_t)tensors[i].cols, (uint64_t)tensors[i].rows};
        const mica_quant *quant = mica_quant_of(tensors[i].vector ? MICA_TYPE_F32 : type);
        put_tensor(&b, tensors[i].name, quant->type, tensors[i].vector ? 1 : 2, dims, offset);
        offset = mica_round_up(offset + mica_quant_bytes(quant, dims[0] * dims[1]), 32);
    }
    for (size_t i = 0; i < n; i++)
        rm_data(&b, &tensors[i], mica_quant_of(tensors[i].vector ? MICA_TYPE_F32 : type), &rng);
    FILE *f = fopen(path, "wb");
    bool written = f && !b.failed && fwrite(b.data, 1, b.length, f) == b.length;
    if (f && fclose(f))
        written = false;
    mica_buf_free(&b);
    return written;
}

static inline bool write_random_model(const char *path, mica_type type) { return write_random_model_of(path, type, 42); }

#endif
