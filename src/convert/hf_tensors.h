/* hf_tensors.h - which tensor of a Hugging Face folder becomes which of a GGUF file, and what has to change on the way. The map is a
 * table. Called by convert.c. */
#ifndef MICA_CONVERT_HF_TENSORS_H
#define MICA_CONVERT_HF_TENSORS_H
#include "convert/encode.h"
#include "convert/hf_config.h"
#include "convert/safetensors.h"

typedef struct mica_hf_out {
    char name[64];  /* in the GGUF file */
    int32_t n_dims; /* innermost first there */
    int64_t dims[4];
    mica_encode_job job; /* all of it but `to` */
} mica_hf_out;

/** In the order of the file; output.weight is the last if there is one. *out is yours (free). Also sets c->n_vocab, the rows of the embedding. MICA_BAD_FILE: a tensor is missing
 * or has another shape; MICA_UNSUPPORTED: one has no place in the architecture, or no type that can be read. */
mica_status mica_hf_tensors_plan(const mica_safetensors *s, mica_hf_config *c, mica_hf_out **out, size_t *n, mica_error *err);

#endif
