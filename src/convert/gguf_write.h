/* gguf_write.h - writes a GGUF v3 file: keys, then the table of tensors, then their data in that order.
 *
 *     status = mica_gguf_writer_new(path, &w, err);
 *     mica_gguf_writer_text(w, "general.architecture", "llama");             // keys, then tensors; these cannot fail: begin does
 *     mica_gguf_writer_tensor(w, &name, quant, n_dims, dims);
 *     status = mica_gguf_writer_begin(w, err);                               // writes the header
 *     status = mica_gguf_writer_data(w, bytes, n, err);                      // the tensors' bytes one after another, in any pieces
 *     status = mica_gguf_writer_finish(w, err);                              // puts the file in its place
 *     mica_gguf_writer_free(w);                                              // always; without finish nothing has changed
 *
 * Memory: the header. Where data starts and how it is padded is the writer's business (MICA_GGUF_ALIGNMENT). Called by quantize.c,
 * convert.c with its hf_*.c, and imatrix_file.c. */
#ifndef MICA_CONVERT_GGUF_WRITE_H
#define MICA_CONVERT_GGUF_WRITE_H
#include "model/gguf.h"

#define MICA_GGUF_ALIGNMENT 32

typedef struct mica_gguf_writer mica_gguf_writer;

mica_status mica_gguf_writer_new(const char *path, mica_gguf_writer **out, mica_error *err);
void mica_gguf_writer_free(mica_gguf_writer *w);

/* One key each. The caller gives no key twice. */
void mica_gguf_writer_text(mica_gguf_writer *w, const char *key, const char *value);
void mica_gguf_writer_u32(mica_gguf_writer *w, const char *key, uint32_t value);
void mica_gguf_writer_f32(mica_gguf_writer *w, const char *key, float value);
void mica_gguf_writer_bool(mica_gguf_writer *w, const char *key, bool value);
/** An array of I32, F32 or BOOL, which are values of 4, 4 and 1 bytes. */
void mica_gguf_writer_array(mica_gguf_writer *w, const char *key, mica_gguf_kind element, const void *values, size_t n);
void mica_gguf_writer_texts(mica_gguf_writer *w, const char *key, const char *const *values, size_t n);
/** A key of another file as it is. */
void mica_gguf_writer_copy(mica_gguf_writer *w, const mica_gguf_value *value);

/** Dimensions innermost first; whole blocks in dims[0]. */
void mica_gguf_writer_tensor(mica_gguf_writer *w, mica_str name, const mica_quant *quant, int32_t n_dims, const int64_t *dims);

/** Bytes of the finished file; after the last tensor was named. */
uint64_t mica_gguf_writer_bytes(const mica_gguf_writer *w);

mica_status mica_gguf_writer_begin(mica_gguf_writer *w, mica_error *err);
/** The next bytes; they may not go beyond the end of a tensor. */
mica_status mica_gguf_writer_data(mica_gguf_writer *w, const void *data, size_t length, mica_error *err);
/** MICA_INVALID_ARGUMENT if bytes of a tensor are missing. */
mica_status mica_gguf_writer_finish(mica_gguf_writer *w, mica_error *err);

#endif
