/* arch.h - what tells one architecture of the llama family from another. A descriptor is data: switches that the forward pass and
 * the loader read, and one optional function for what is not a plain key. Adding one: arch/NAME.c and a line in arch_list.h.
 */
#ifndef MICA_MODEL_ARCH_H
#define MICA_MODEL_ARCH_H
#include "base/error.h"
#include "model/gguf.h"

#define MICA_MAX_LAYERS 512

typedef enum mica_activation { MICA_ACT_SILU, MICA_ACT_GELU } mica_activation;

/** How the rotary frequencies of one kind of layer come about: theta_i = base^(-2i/dim) * scale / factor_i. */
typedef struct mica_rope {
    float base;
    float scale;        /* 1 / linear scaling factor */
    float magnitude;    /* factor on sine and cosine; 1 but for longrope */
    const float *factors; /* dim / 2 divisors in the mapping, or NULL */
} mica_rope;

/** Shape and constants of a model, from its metadata. */
typedef struct mica_hparams {
    int32_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab, n_ctx_train;
    int32_t rope_dim;    /* leading elements of a head that are rotated */
    int32_t window;      /* width of windowed layers in tokens, 0: none */
    uint8_t windowed[MICA_MAX_LAYERS];
    float norm_eps;
    float attn_scale;    /* multiplies q . k */
    float attn_softcap, final_softcap; /* 0: none */
    float embd_scale;    /* multiplies token embeddings */
    mica_rope rope;      /* of full-attention layers */
    mica_rope rope_window; /* of windowed layers, where it is their own (has_rope_window) */
    bool has_rope_window;
    /* longrope: two sets of factors; the session's context length chooses */
    const float *rope_long, *rope_short;
    int32_t rope_original_ctx;
} mica_hparams;

typedef struct mica_arch {
    const char *name;         /* general.architecture */
    bool rope_neox;           /* pairs (i, i + n/2); else (2i, 2i + 1) */
    bool qkv_bias;            /* blk.N.attn_{q,k,v}.bias */
    bool qk_norm;             /* blk.N.attn_{q,k}_norm.weight, one norm a head, before RoPE */
    bool post_norms;          /* blk.N.post_attention_norm, blk.N.post_ffw_norm: on the branch, before the residual add */
    bool fused_qkv;           /* blk.N.attn_qkv.weight: rows of q, k, v one after another */
    bool fused_gate_up;       /* blk.N.ffn_up.weight: rows of gate, then up */
    mica_activation activation;
    /** What no switch says; the common keys are already in *h. May be NULL. */
    mica_status (*configure)(const mica_gguf *g, mica_hparams *h, mica_error *err);
} mica_arch;

/** NULL if unknown. */
const mica_arch *mica_arch_find(mica_str name);
/** The error for a file at `path` with an architecture that mica_arch_find() does not find: unknown, or left out of this build. */
mica_status mica_arch_refuse(const char *path, mica_str name, mica_error *err);
/** "llama, qwen2, ... and nothing else", for messages. Static. */
const char *mica_arch_names(void);

/** Reads the common keys NAME.* and then lets the descriptor adjust. `n_vocab` comes from the vocabulary's size. */
mica_status mica_arch_configure(const mica_arch *arch, const mica_gguf *g, mica_hparams *h, mica_error *err);

/* For configure functions: NAME.key of this model; `suffix` like "attention.sliding_window". */
mica_status mica_arch_get_i64(const mica_gguf *g, const char *suffix, bool required, int64_t min, int64_t max, int64_t *out,
                              mica_error *err);
mica_status mica_arch_get_f32(const mica_gguf *g, const char *suffix, bool required, float *out, mica_error *err);
/** Reads the sliding window, if there is one, and marks the layers that have it: by the file's own pattern key, else all but each
 * `full_every`-th (0: all). */
mica_status mica_arch_window(const mica_gguf *g, mica_hparams *h, int32_t full_every, mica_error *err);

#endif
