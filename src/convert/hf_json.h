/* hf_json.h - the JSON files of a Hugging Face folder, and values in them. null counts as absent. Called by hf_*.c and safetensors.c.
 *
 * Getters leave *out as it was where the key is absent (set the default beforehand), or fail when it is `required`; `file` is for
 * messages. */
#ifndef MICA_CONVERT_HF_JSON_H
#define MICA_CONVERT_HF_JSON_H
#include <jansson.h>

#include "base/error.h"

/** DIR/NAME, yours (free). */
char *mica_hf_path(const char *dir, const char *name);

/** The object in DIR/NAME, yours (json_decref). NULL and MICA_OK if there is no such file and it is not `required`. With `reals` all
 * numbers are reals: files of transformers' tokenizers have integers of a hundred bits. */
mica_status mica_hf_load(const char *dir, const char *name, bool required, bool reals, json_t **out, mica_error *err);
/** The text of DIR/NAME, yours (free); NULL and MICA_OK if there is none. */
mica_status mica_hf_text_file(const char *dir, const char *name, char **out, mica_error *err);

/** NULL if absent or null. */
const json_t *mica_hf_get(const json_t *object, const char *key);
/** Borrowed; NULL if absent, null, or no string. */
const char *mica_hf_text(const json_t *object, const char *key);
mica_status mica_hf_get_i64(const char *file, const json_t *object, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
                            mica_error *err);
/** Finite. */
mica_status mica_hf_get_f64(const char *file, const json_t *object, const char *key, bool required, double *out, mica_error *err);
/** An array of `n` finite numbers as floats, yours (free). */
mica_status mica_hf_get_floats(const char *file, const json_t *object, const char *key, size_t n, float **out, mica_error *err);

#endif
