/* weights.h - the tensors of a model bound to their roles, in place in the mapping. Immutable; borrows from the mica_gguf. */
#ifndef MICA_MODEL_WEIGHTS_H
#define MICA_MODEL_WEIGHTS_H
#include <stdatomic.h>

#include "model/arch.h"

/** A matrix: `rows` outputs of `cols` inputs. Data NULL: absent. */
typedef struct mica_weight {
    const mica_quant *quant;
    const uint8_t *data;
    int64_t rows, cols;
    size_t row_bytes;
} mica_weight;

typedef struct mica_layer {
    const float *attn_norm, *q_norm, *k_norm, *post_attn_norm, *ffn_norm, *post_ffn_norm; /* NULL: none */
    const float *q_bias, *k_bias, *v_bias;
    mica_weight q, k, v, o, gate, up, down;
} mica_layer;

typedef struct mica_weights {
    const mica_arch *arch;
    mica_hparams h;
    mica_weight embd, output; /* [n_vocab][n_embd]; the same tensor in tied models */
    const float *output_norm;
    mica_layer *layers;
    int64_t n_params, n_bytes;
    int64_t n_read;     /* of the bytes: those that every step reads; the embeddings only where the output has them too */
    bool rows_apart;    /* the embeddings are a matrix of their own, in a mapped file: only rows of it are read */
    atomic_int *wanted; /* [2] layers that mica_weights_want() has asked the system for, and rows of the embeddings that were read
                         * since they were let go: the one thing here that changes */
} mica_weights;

/** Binds every tensor that the architecture names and checks its shape; a missing one is MICA_BAD_FILE "tensor X not found". A
 * tensor that nothing uses is reported through on_warning (may be NULL). `n_vocab` is the vocabulary's size. */
mica_status mica_weights_bind(const mica_gguf *g, int32_t n_vocab, void (*on_warning)(void *user, const char *message),
                              void *user, mica_weights *out, mica_error *err);
void mica_weights_free(mica_weights *w);

/** Asks the system to read layers 0..layer from the file, so that they are there when they are computed with; layer n_layers
 * is the output matrix. Does not wait. Only the first request for a layer costs anything; from any thread. */
void mica_weights_want(const mica_weights *w, int32_t layer);

/** n more rows of the embeddings have been read. Where nothing else reads that matrix, every MICA_ROWS_KEPT rows it is let go
 * again: else a text would collect 64 KiB (what Linux maps at a time) for each of its different tokens, up to all of the matrix. */
void mica_weights_rows_read(const mica_weights *w, int32_t n);

#define MICA_ROWS_KEPT 64

#endif
