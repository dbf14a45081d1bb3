/* gguf.h - reads GGUF v2 and v3 (specification: ggml's docs/gguf.md) from a mapping. Trusts nothing in the file.
 *
 * Owns the mapping(s) of all parts of a split model and the index of keys and tensors. Immutable after opening, so it may be
 * shared between threads. Strings and tensor data are borrowed from the mapping until mica_gguf_close(). Strings are NOT
 * terminated. Called by model/model, text/vocab and the programs' inspect.
 */
#ifndef MICA_MODEL_GGUF_H
#define MICA_MODEL_GGUF_H
#include "base/error.h"
#include "quant/quant.h"

typedef enum mica_gguf_kind { /* value types, numbered as in the file */
    MICA_GGUF_U8 = 0, MICA_GGUF_I8, MICA_GGUF_U16, MICA_GGUF_I16, MICA_GGUF_U32, MICA_GGUF_I32, MICA_GGUF_F32,
    MICA_GGUF_BOOL, MICA_GGUF_STRING, MICA_GGUF_ARRAY, MICA_GGUF_U64, MICA_GGUF_I64, MICA_GGUF_F64,
} mica_gguf_kind;

typedef struct mica_str { /* bytes borrowed from the mapping; not terminated */
    const char *data;
    size_t length;
} mica_str;

typedef struct mica_gguf_value {
    mica_str key;
    mica_gguf_kind kind;
    mica_gguf_kind element; /* of an array (never ARRAY: nested arrays are refused) */
    uint64_t count;         /* elements of an array; 1 otherwise */
    const uint8_t *data;    /* raw little-endian bytes, unaligned: first element; a string: its 8-byte length comes first */
    uint64_t offset;        /* of `data` in its file, for messages */
} mica_gguf_value;

typedef struct mica_gguf_tensor {
    mica_str name;
    const mica_quant *quant; /* its type; never NULL */
    int32_t n_dims;
    int64_t dims[4];     /* innermost first, padded with 1 */
    const uint8_t *data; /* in the mapping; n_bytes of it are inside the file; aligned to general.alignment from the
                          * file's start, so in memory too, unless it is a part of another file: then to 4 */
    uint64_t n_bytes;
    int part; /* which file of a split model */
} mica_gguf_tensor;

typedef struct mica_gguf mica_gguf;

/** Opens a path. If it is one part of a split model (key split.count > 1, name -00001-of-0000N.gguf) all parts are opened and
 * checked against split.no, split.count and split.tensors.count. Messages name the file, the field and the byte offset. */
mica_status mica_gguf_open(const char *path, mica_gguf **out, mica_error *err);
/** Opens a part of an open file; a split model is refused here (its other parts have no name). */
mica_status mica_gguf_open_fd(int fd, uint64_t offset, uint64_t length, mica_gguf **out, mica_error *err);
/** Opens bytes in memory that start at a multiple of 4, borrowed until close (fuzzing, tests). `name` is for messages. */
mica_status mica_gguf_open_memory(const void *data, size_t length, const char *name, mica_gguf **out, mica_error *err);
void mica_gguf_close(mica_gguf *g);

size_t mica_gguf_value_count(const mica_gguf *g);
const mica_gguf_value *mica_gguf_value_at(const mica_gguf *g, size_t i);
/** NULL if absent. `key` is terminated. Hashed, O(1). */
const mica_gguf_value *mica_gguf_find(const mica_gguf *g, const char *key);

/* Typed getters. Absent: *out is left as it was and MICA_OK returned (set the default beforehand), or MICA_BAD_FILE when
 * `required`. A value of another kind, or outside the range of *out, is MICA_BAD_FILE with key and offset. Integers of every
 * width are accepted where they fit; get_f32 takes f32 and f64, and refuses NaN and infinities. */
mica_status mica_gguf_get_i64(const mica_gguf *g, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
                              mica_error *err);
mica_status mica_gguf_get_f32(const mica_gguf *g, const char *key, bool required, float *out, mica_error *err);
mica_status mica_gguf_get_bool(const mica_gguf *g, const char *key, bool required, bool *out, mica_error *err);
mica_status mica_gguf_get_str(const mica_gguf *g, const char *key, bool required, mica_str *out, mica_error *err);

/* Arrays. Element i of a numeric array as a number (no bounds check: i < count), whatever its width. */
int64_t mica_gguf_array_i64(const mica_gguf_value *v, uint64_t i);
double mica_gguf_array_f64(const mica_gguf_value *v, uint64_t i);
/** Walks an array of strings: *cursor starts at 0; returns the strings in order. The caller stops after v->count. O(1). */
mica_str mica_gguf_array_str(const mica_gguf_value *v, uint64_t *cursor);

size_t mica_gguf_tensor_count(const mica_gguf *g);
const mica_gguf_tensor *mica_gguf_tensor_at(const mica_gguf *g, size_t i);
/** NULL if absent. Hashed, O(1). */
const mica_gguf_tensor *mica_gguf_tensor_find(const mica_gguf *g, const char *name);

uint64_t mica_gguf_file_bytes(const mica_gguf *g); /* of all parts together */
const char *mica_gguf_path(const mica_gguf *g);    /* for messages */

/** One of the files of a model. */
typedef struct mica_gguf_file {
    const char *path;    /* for messages; no path where a descriptor was opened */
    const uint8_t *data; /* all of it, mapped */
    uint64_t length;
    int64_t modified_ns; /* Unix time; 0: bytes in memory */
    bool huge;           /* in huge pages, see base/map_huge.h */
} mica_gguf_file;

size_t mica_gguf_file_count(const mica_gguf *g);
mica_gguf_file mica_gguf_file_at(const mica_gguf *g, size_t i);

/** Bytes that a value takes in the file, from `data` on, the lengths of strings included. */
uint64_t mica_gguf_value_bytes(const mica_gguf_value *v);
/** A printable copy of a value, arrays shortened, invalid UTF-8 escaped; yours (free), NULL when out of memory. */
char *mica_gguf_value_text(const mica_gguf_value *v);

#endif
