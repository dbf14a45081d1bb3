/* hf_config.h - config.json of a Hugging Face folder: which architecture it is, its shape and constants, and the keys that say so
 * in a GGUF file. What the engine would compute differently is refused. Called by convert.c; hf_tensors.c reads the shape. */
#ifndef MICA_CONVERT_HF_CONFIG_H
#define MICA_CONVERT_HF_CONFIG_H
#include <jansson.h>

#include "convert/gguf_write.h"
#include "model/arch.h"

typedef struct mica_hf_kind mica_hf_kind;

/** How positions rotate. The arrays are divisors of the frequencies, as the tensors of the same names. */
typedef struct mica_hf_rope {
    double base, linear; /* linear: 1 without scaling */
    double window_base;  /* of windowed layers; 0: they have none of their own */
    int64_t dim;         /* leading values of a head that rotate */
    float *freqs, *longs, *shorts; /* [dim / 2], or NULL */
    int64_t original_ctx;          /* longrope; 0: none */
    double magnitude;
} mica_hf_rope;

typedef struct mica_hf_config {
    json_t *file;         /* the whole of config.json */
    const json_t *text;   /* the object with the language model's values: the file, or its text_config */
    const mica_hf_kind *kind;
    const mica_arch *arch;
    int64_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_ctx, n_vocab;
    double norm_eps;
    double attn_softcap, final_softcap; /* 0: none */
    int64_t window;                     /* 0: none */
    uint8_t windowed[MICA_MAX_LAYERS];
    bool usual_window;                  /* the layers that have it are those of the architecture's own pattern */
    mica_hf_rope rope;
    bool tied, untied; /* config.json says that the output matrix is the embedding, or is not; neither: the weights tell */
    bool norm_plus; /* norms multiply by 1 + weight; GGUF files hold the sum */
    bool halves;    /* rows of q and k pair i with i + half a head where the engine pairs neighbours */
} mica_hf_config;

/** On failure there is nothing to free. */
mica_status mica_hf_config_read(const char *dir, mica_hf_config *c, mica_error *err);
void mica_hf_config_free(mica_hf_config *c);

/** The keys ARCH.*, and general.architecture. */
void mica_hf_config_write(const mica_hf_config *c, mica_gguf_writer *w);

/* hf_rope.c */
mica_status mica_hf_rope_read(mica_hf_config *c, mica_error *err);
void mica_hf_rope_write(const mica_hf_config *c, mica_gguf_writer *w);

/* The key ARCH.SUFFIX. */
void mica_hf_put_u32(const mica_hf_config *c, mica_gguf_writer *w, const char *suffix, int64_t value);
void mica_hf_put_f32(const mica_hf_config *c, mica_gguf_writer *w, const char *suffix, double value);
void mica_hf_put_text(const mica_hf_config *c, mica_gguf_writer *w, const char *suffix, const char *value);

#define MICA_HF_CONFIG "config.json"

#endif
