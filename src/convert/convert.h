/* convert.h - a Hugging Face folder (safetensors, config.json, tokenizer.json) as a GGUF file. Tensor by tensor: memory is the
 * tokenizer, and then a few MB a thread. Called by mica convert. */
#ifndef MICA_CONVERT_CONVERT_H
#define MICA_CONVERT_CONVERT_H
#include "convert/recipe.h"

typedef struct mica_convert_options {
    const mica_recipe *recipe; /* NULL: the type that the embedding has in the folder */
    int n_threads;
    /** Told of progress, 0..1; true: stop, MICA_CANCELLED. May be NULL. */
    bool (*on_progress)(void *user, double done);
    void *user;
} mica_convert_options;

typedef struct mica_convert_result {
    const char *arch, *type; /* general.architecture; the recipe's name. Static */
    uint64_t bytes_in, bytes_out;
    size_t n_tensors;
    int64_t weights;      /* of matrices */
    double bits;          /* a weight of a matrix, on average */
    int64_t n_short_rows; /* matrices that got another format because their rows have no whole blocks */
} mica_convert_result;

/** `out` appears at once and whole. MICA_BAD_FILE: files are damaged or do not fit together; MICA_UNSUPPORTED: the engine could not
 * run the model as it is meant. */
mica_status mica_convert(const char *dir, const char *out, const mica_convert_options *options, mica_convert_result *result, mica_error *err);

#endif
