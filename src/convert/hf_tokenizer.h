/* hf_tokenizer.h - tokenizer.json of a Hugging Face folder, and what belongs to it, as the keys tokenizer.* of a GGUF file.
 *
 * Two kinds can be said in a GGUF file. BPE over the bytes' alphabet, with merges, and a name for how text is split before: that
 * name is found by the structure of tokenizer.json (hf_pretok.c). And BPE over characters with U+2581 for the space and bytes for
 * what no piece covers, which is SentencePiece's: pieces with scores, if the merges are just those that scores would lead to;
 * pieces with merges if not. Called by convert.c. */
#ifndef MICA_CONVERT_HF_TOKENIZER_H
#define MICA_CONVERT_HF_TOKENIZER_H
#include "convert/hf_config.h"

#define MICA_HF_TOKENIZER "tokenizer.json"

/** c->n_vocab is the number of tokens: what has no row in the embedding is left out, rows without a token get one that no text has. */
mica_status mica_hf_tokenizer_write(const char *dir, const mica_hf_config *c, mica_gguf_writer *w, mica_error *err);

/* ---- For the files hf_tokenizer.c, hf_merges.c, hf_pretok.c and hf_special.c ---- */

typedef struct mica_hf_tokenizer {
    json_t *file, *settings;     /* tokenizer.json; tokenizer_config.json, or NULL */
    json_t *generation;          /* generation_config.json, or NULL */
    const json_t *model, *vocab; /* of tokenizer.json; vocab: {piece: id} */
    bool bytes;                  /* the bytes' alphabet */
    size_t n;
    const char **pieces; /* [n] */
    char **made;         /* [n] those pieces that are in no file; NULL */
    int32_t *types;      /* [n] as tokenizer.ggml.token_type */
    float *scores;       /* [n] */
    bool *given;         /* [n] by added_tokens */
    const char *pre;     /* tokenizer.ggml.pre */
    bool space_prefix;
} mica_hf_tokenizer;

enum { MICA_HF_NORMAL = 1, MICA_HF_UNKNOWN, MICA_HF_CONTROL, MICA_HF_USER, MICA_HF_UNUSED, MICA_HF_BYTE };

/** Sets bytes, pre and space_prefix; MICA_UNSUPPORTED if the splitting is not one that is known. */
mica_status mica_hf_pretok_find(mica_hf_tokenizer *t, mica_error *err);
/** Writes tokenizer.ggml.merges, or fills t->scores. *model: tokenizer.ggml.model. */
mica_status mica_hf_merges_write(mica_hf_tokenizer *t, mica_gguf_writer *w, const char **model, mica_error *err);
/** Ids of special tokens, what is added to a text, chat templates. */
mica_status mica_hf_special_write(const mica_hf_tokenizer *t, const char *dir, const mica_hf_config *c, mica_gguf_writer *w, mica_error *err);

#endif
