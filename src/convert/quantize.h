/* quantize.h - a model file in other formats, tensor by tensor: memory is bounded by a few MB a thread whatever the model's size, and
 * OUT appears at once and whole. Called by mica quantize. */
#ifndef MICA_CONVERT_QUANTIZE_H
#define MICA_CONVERT_QUANTIZE_H
#include "convert/imatrix.h"
#include "convert/recipe.h"

/** A user's own rule, before the recipe's; the first that fits. */
typedef struct mica_quantize_override {
    const char *pattern; /* see mica_recipe_match() */
    const mica_quant *quant;
} mica_quantize_override;

typedef struct mica_quantize_options {
    const mica_recipe *recipe;
    const mica_imatrix *imatrix; /* NULL: none */
    const mica_quantize_override *overrides;
    size_t n_overrides;
    int n_threads;
    /** Told of progress, 0..1; true: stop, MICA_CANCELLED. May be NULL. */
    bool (*on_progress)(void *user, double done);
    void *user;
} mica_quantize_options;

typedef struct mica_quantize_result {
    uint64_t bytes_in, bytes_out;
    int64_t weights;       /* of matrices */
    double bits;           /* a weight of a matrix, on average */
    int64_t n_encoded, n_copied;
    int64_t n_short_rows;  /* matrices that got another format because their rows have no whole blocks */
    int64_t n_unweighted;  /* matrices of blocks that the importance matrix does not know, but for embeddings and the output */
    bool was_quantized;    /* some came from another block format of fewer than 8 bits: loss upon loss */
} mica_quantize_result;

/** MICA_BAD_FILE: the input is no model, or a weight is not finite (or too large for F16). MICA_INVALID_ARGUMENT: the importance
 * matrix is of another model, or an override fits no matrix. */
mica_status mica_quantize(const mica_gguf *in, const char *out, const mica_quantize_options *options, mica_quantize_result *result,
                          mica_error *err);

/** The size of the difference between two files of one model: sqrt(sum (a - b)^2 / sum a^2) over all weights of matrices.
 * MICA_INVALID_ARGUMENT if a matrix of `a` is missing in `b` or has another shape there. */
mica_status mica_quantize_difference(const mica_gguf *a, const mica_gguf *b, double *out, mica_error *err);

#endif
