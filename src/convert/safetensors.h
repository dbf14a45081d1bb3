/* safetensors.h - reads the weights of a Hugging Face folder: model.safetensors, or the parts that model.safetensors.index.json
 * names. Trusts nothing in them.
 *
 * A file is 8 bytes of header length, a JSON object {name: {dtype, shape, data_offsets}}, and the data. Invariants after opening:
 * every tensor lies inside its file, has as many bytes as its shape and type say, and shares none with another; every byte of data
 * belongs to a tensor; no name occurs twice, in no part either.
 *
 * Owns the mappings; names and data are borrowed from it. Called by convert.c and hf_tensors.c. */
#ifndef MICA_CONVERT_SAFETENSORS_H
#define MICA_CONVERT_SAFETENSORS_H
#include "base/error.h"
#include "quant/quant.h"

#define MICA_SAFETENSORS_DIMS 8

typedef struct mica_hf_tensor {
    const char *name, *dtype;
    const mica_quant *quant; /* F32, F16 or BF16; NULL: a type whose weights are not read here */
    int32_t n_dims;
    int64_t dims[MICA_SAFETENSORS_DIMS]; /* outermost first, as in the file */
    const uint8_t *data;                 /* not aligned */
    uint64_t n_bytes;
    size_t file;
} mica_hf_tensor;

typedef struct mica_safetensors mica_safetensors;

mica_status mica_safetensors_open(const char *dir, mica_safetensors **out, mica_error *err);
/** One file in memory, borrowed until close; `name` is for messages. */
mica_status mica_safetensors_open_memory(const void *data, size_t length, const char *name, mica_safetensors **out, mica_error *err);
void mica_safetensors_close(mica_safetensors *s);

size_t mica_safetensors_count(const mica_safetensors *s);
/** In the order of their names. */
const mica_hf_tensor *mica_safetensors_at(const mica_safetensors *s, size_t i);
/** NULL if absent. */
const mica_hf_tensor *mica_safetensors_find(const mica_safetensors *s, const char *name);
uint64_t mica_safetensors_bytes(const mica_safetensors *s);
/** Of the file that a tensor is in, for messages. */
const char *mica_safetensors_path(const mica_safetensors *s, const mica_hf_tensor *tensor);

#endif
