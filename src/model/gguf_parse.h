/* gguf_parse.h - inside of the GGUF reader: one file (a "part") being read. Used by model/gguf*.c only.
 *
 * Reading goes through a bounded reader: nothing in a file is touched before the bytes left were compared with the bytes
 * wanted. All sizes are uint64_t as in the file, so that a 32-bit build checks the same sums.
 *
 * Invariants of a part that was read (mica_gguf_part_read returned MICA_OK):
 *  1. every value's `count` elements, every string of an array and every tensor's n_bytes lie inside [data, data + length);
 *  2. keys and tensor names are valid UTF-8 of 1 to their maximum bytes; keys are unique (tensor names: see gguf.c);
 *  3. tensors do not overlap, start on the alignment, and hold whole blocks.
 */
#ifndef MICA_MODEL_GGUF_PARSE_H
#define MICA_MODEL_GGUF_PARSE_H
#include "base/map.h"
#include "model/gguf.h"

/* Limits of the specification. */
#define MICA_GGUF_KEY_MAX 65535
#define MICA_GGUF_NAME_MAX 64
#define MICA_GGUF_DIMS_MAX 4

/** Index by name over an array whose items begin with a mica_str. Borrows the array. */
typedef struct mica_gguf_table {
    const unsigned char *items;
    size_t stride;
    struct mica_gguf_slot {
        uint32_t hash, item; /* item: index + 1; 0 is an empty slot */
    } *slots;
    size_t mask; /* number of slots - 1, a power of two - 1 */
} mica_gguf_table;

typedef enum mica_gguf_table_result {
    MICA_GGUF_TABLE_OK = 0,
    MICA_GGUF_TABLE_NOMEM,   /* *item is the number of bytes that were refused */
    MICA_GGUF_TABLE_TWICE,   /* *item has a name that an earlier item has */
    MICA_GGUF_TABLE_CLUSTER, /* *item: too many names with one hash, as only a file made for it has */
} mica_gguf_table_result;

/** O(count), whatever the names are. On failure the table is empty and needs no free. */
mica_gguf_table_result mica_gguf_table_build(mica_gguf_table *table, const void *items, size_t stride, size_t count,
                                             size_t *item);
/** Index of the item, or SIZE_MAX. */
size_t mica_gguf_table_find(const mica_gguf_table *table, const char *name, size_t length);
void mica_gguf_table_free(mica_gguf_table *table);

typedef struct mica_gguf_part {
    char *path;          /* for messages and to find the other parts; owned */
    mica_map map;        /* zero when the bytes are the caller's */
    const uint8_t *data; /* the file */
    uint64_t length;
    uint32_t alignment;
    mica_gguf_value *values; /* owned */
    size_t n_values;
    mica_gguf_table keys;
    mica_gguf_tensor *tensors; /* owned; `part` is 0 until the parts are put together */
    size_t n_tensors;
} mica_gguf_part;

struct mica_gguf {
    mica_gguf_part *parts; /* owned; the metadata is that of the first */
    size_t n_parts;
    mica_gguf_tensor *tensors; /* of all parts, in order; owned */
    size_t n_tensors;
    mica_gguf_table names;
    uint64_t file_bytes;
};

/** Parses part->data. On failure the part still has to be closed. */
mica_status mica_gguf_part_read(mica_gguf_part *part, mica_error *err);
/** Maps and parses a file. On failure nothing is left to close. */
mica_status mica_gguf_part_open(const char *path, mica_gguf_part *part, mica_error *err);
void mica_gguf_part_close(mica_gguf_part *part);

const mica_gguf_value *mica_gguf_part_find(const mica_gguf_part *part, const char *key);
mica_status mica_gguf_part_get_i64(const mica_gguf_part *part, const char *key, bool required, int64_t min, int64_t max,
                                   int64_t *out, mica_error *err);

/** If `first` is one of several parts: takes it over, opens the others and returns all of them in order in *parts (owned by
 * the caller, each to be closed, then free). If it is the only one, *parts holds just it. On failure `first` is closed. */
mica_status mica_gguf_split_open(mica_gguf_part *first, mica_gguf_part **parts, size_t *n_parts, mica_error *err);
/** MICA_UNSUPPORTED if the part is one of several. */
mica_status mica_gguf_split_refuse(const mica_gguf_part *part, mica_error *err);

/** What the first bytes of a file that is not GGUF look like, as the end of the sentence "NAME is ..."; NULL if unknown. */
const char *mica_gguf_sniff(const uint8_t *data, uint64_t length);

/* ---- Bounded reader -------------------------------------------------------------------------------------------------- */

typedef struct mica_gguf_reader {
    const mica_gguf_part *part;
    uint64_t at;      /* next byte; at <= part->length */
    const char *item; /* "key", "tensor"; NULL in the header. With the next three: the subject of messages */
    uint64_t index, count;
    mica_str name; /* of the item, once it was read */
    mica_error *err;
} mica_gguf_reader;

/** Fails with "FILE: ITEM <text> (byte AT)". */
mica_status mica_gguf_reader_fail(const mica_gguf_reader *r, mica_status code, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/** The one sentence for a file that ends too early. */
mica_status mica_gguf_reader_fail_short(const mica_gguf_reader *r, uint64_t need, const char *field);

/* `field` completes "ends inside its ...". */
mica_status mica_gguf_take(mica_gguf_reader *r, uint64_t bytes, const char *field, const uint8_t **out);
mica_status mica_gguf_take_u32(mica_gguf_reader *r, const char *field, uint32_t *out);
mica_status mica_gguf_take_u64(mica_gguf_reader *r, const char *field, uint64_t *out);
/** A name: 1 to `max` bytes of UTF-8. Becomes r->name. */
mica_status mica_gguf_take_name(mica_gguf_reader *r, uint64_t max, mica_str *out);

/** Reads the `count` keys (gguf_values.c) or tensors (gguf_tensors.c) at r->at into the part. */
mica_status mica_gguf_read_values(mica_gguf_reader *r, mica_gguf_part *part, uint64_t count);
mica_status mica_gguf_read_tensors(mica_gguf_reader *r, mica_gguf_part *part, uint64_t count);

/** Makes room for one more in a growing array of `size`-byte items; `what` is for the message. Arrays grow with what was
 * really read, so that a large count in a file costs nothing until its items are there. */
mica_status mica_gguf_grow(void **items, size_t count, size_t *capacity, size_t size, const char *what, mica_error *err);

/* ---- Values and text ------------------------------------------------------------------------------------------------- */

/** Bytes of one element; 0 for strings, arrays and kinds that GGUF does not define. */
size_t mica_gguf_kind_bytes(uint32_t kind);
const char *mica_gguf_kind_name(mica_gguf_kind kind);
/** Name of a value's kind for messages: "u32", "array of string". Static. */
const char *mica_gguf_value_kind_name(const mica_gguf_value *v);

/** One character of `text` (length > 0) as printable UTF-8: itself, or escaped when it is a control or not valid. Writes at
 * most 16 bytes and no terminator, sets *written, returns the bytes consumed. */
size_t mica_gguf_show_char(const char *text, size_t length, bool keep_lines, char out[16], size_t *written);
/** A name as printable text, shortened to fit `size` bytes with the terminator (size >= 32). */
void mica_gguf_show(mica_str name, char *out, size_t size);

static inline uint32_t mica_gguf_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t mica_gguf_le64(const uint8_t *p)
{
    return (uint64_t)mica_gguf_le32(p) | (uint64_t)mica_gguf_le32(p + 4) << 32;
}

#endif
