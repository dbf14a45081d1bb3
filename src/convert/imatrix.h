/* imatrix.h - an importance matrix: for each matrix of a model, how large its inputs are: the mean of the square of each, over a
 * text. An encoder that knows it spends its error where the inputs are small.
 *
 * The file is GGUF with general.type "imatrix": tensors NAME.in_sum2 [columns] and NAME.counts [1], F32, as llama.cpp's tools write
 * and read them too. Called by quantize.c and mica imatrix. */
#ifndef MICA_CONVERT_IMATRIX_H
#define MICA_CONVERT_IMATRIX_H
#include "model/weights.h"

#define MICA_IMATRIX_NAME 65 /* the longest name of a tensor, and its end */

typedef struct mica_imatrix mica_imatrix;

/** For collecting: one entry for each matrix of the model's layers. Borrows `g`. */
mica_status mica_imatrix_new(const mica_gguf *g, mica_imatrix **out, mica_error *err);
void mica_imatrix_free(mica_imatrix *m);

/** Adds what a matrix read, n rows of w->cols floats; fits mica_exec.observe. A part of a fused matrix counts where it is the first. */
void mica_imatrix_add(void *imatrix, const mica_weight *w, const float *x, int32_t n);

/** Tokens that were added. */
int64_t mica_imatrix_tokens(const mica_imatrix *m);

/** `text`: name of what was read, for the file's record; `window`: tokens of a window. */
mica_status mica_imatrix_write(const mica_imatrix *m, const char *path, const char *text, int32_t window, mica_error *err);
mica_status mica_imatrix_read(const char *path, mica_imatrix **out, mica_error *err);

/** The mean squares of a matrix's inputs, `cols` of them, borrowed; NULL if it is not there, or was never read. *n is how many
 * there are. */
const float *mica_imatrix_find(const mica_imatrix *m, mica_str name, int64_t *n);

#endif
