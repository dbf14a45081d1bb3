/* snapshot.h - the form of a session snapshot; docs/snapshots.md describes it for people. snapshot.c writes and restores. The file
 * of a batch's prefixes (prefix_file.c) has the same header.
 *
 *     header | tokens | logits | keys | values          each part padded with zeros to a multiple of 64 bytes
 *
 * Invariants of a snapshot that is accepted:
 *  1. Every byte is covered: the header by its own checksum, each section with its padding by the one in the header.
 *  2. Sections lie where mica_snapshot_lay_out() puts them: the counts decide, no offset in the file is believed.
 *  3. Logits are there if and only if n_computed == n_tokens > 0.
 *  4. The cache is enough to go on with: first is 0, or n_computed - window + 1 or less.
 * Restoring checks everything before it touches the session. The arrays are in the machine's byte order, which is little-endian
 * everywhere GGUF files are read in place.
 */
#ifndef MICA_SESSION_SNAPSHOT_H
#define MICA_SESSION_SNAPSHOT_H
#include "base/map.h"
#include "base/newfile.h"
#include "base/xxh64.h"
#include "session/session.h"

#define MICA_SNAPSHOT_FORMAT 2 /* 1 had all positions of windowed layers */
#define MICA_SNAPSHOT_HEADER 256 /* bytes */
#define MICA_SNAPSHOT_ALIGN 64   /* a cache line: sections can be used in place when a file is mapped */
#define MICA_SNAPSHOT_NAME 48

typedef enum mica_snapshot_kind { MICA_SNAPSHOT_SESSION, MICA_SNAPSHOT_PREFIXES } mica_snapshot_kind;

enum { /* parts behind the header */
    MICA_SNAPSHOT_TOKENS, MICA_SNAPSHOT_LOGITS, MICA_SNAPSHOT_KEYS, MICA_SNAPSHOT_VALUES, MICA_SNAPSHOT_PARTS,
};

typedef struct mica_snapshot_section {
    uint64_t offset, bytes; /* from the start of the snapshot; without the padding */
    uint64_t checksum;      /* XXH64, seed 0, with the padding */
} mica_snapshot_section;

typedef struct mica_snapshot_header {
    mica_snapshot_kind kind;
    uint32_t format;
    uint64_t total_bytes;
    uint64_t model;   /* mica_model_fingerprint() */
    uint64_t rope;    /* XXH64 of the rotary frequencies: some models choose them by n_ctx */
    int32_t numerics; /* mica_numerics_version() */
    int32_t k_type, v_type;
    int32_t n_layers, n_kv_heads, head_dim, n_vocab;
    int32_t n_ctx; /* of the session that was saved; for messages */
    int32_t n_tokens, n_computed;
    int32_t first; /* windowed layers have positions [first, n_computed) */
    char name[MICA_SNAPSHOT_NAME]; /* of the model, terminated, printable ASCII; for messages */
    mica_snapshot_section sections[MICA_SNAPSHOT_PARTS];
} mica_snapshot_header;

/** "tokens", "logits", ... Static. */
const char *mica_snapshot_part_name(int part);

/** What a snapshot says of the arithmetic, the model and the kind of cache; the rest is 0. */
void mica_snapshot_identify(mica_model *model, const mica_exec *exec, const mica_kv *kv, int32_t n_ctx, mica_snapshot_kind kind,
                            mica_snapshot_header *h);

/** Whether `a`, of the file called `name`, was made with the arithmetic, model and kind of cache of `b`. */
mica_status mica_snapshot_check_origin(const mica_snapshot_header *a, const mica_snapshot_header *b, const char *name,
                                       mica_error *err);

/** Sets the offsets of the sections and total_bytes from the sections' sizes. */
void mica_snapshot_place(mica_snapshot_header *h);

/** Whether sections and total_bytes are those of `expected`. */
mica_status mica_snapshot_check_sections(const mica_snapshot_header *h, const mica_snapshot_header *expected, const char *name,
                                         mica_error *err);

/** Whether the checksums of the sections are right; their places are. */
mica_status mica_snapshot_check_content(const mica_snapshot_header *h, const uint8_t *data, const char *name, mica_error *err);

/** What the session's snapshot would say, laid out, but without checksums. */
void mica_snapshot_describe(const mica_session *session, mica_snapshot_header *h);

/** Sets offsets, sizes and total_bytes from the counts (0 <= first <= n_computed <= n_tokens <= the session's n_ctx) and the
 * shape of the session's cache. */
void mica_snapshot_lay_out(const mica_session *session, mica_snapshot_header *h);

void mica_snapshot_encode(const mica_snapshot_header *h, uint8_t out[MICA_SNAPSHOT_HEADER]);

/** Reads the header of `length` bytes and checks that it is one of this kind and format, whole, and that the length is what it says;
 * nothing else. `name` is for messages. */
mica_status mica_snapshot_decode(const uint8_t *data, size_t length, mica_snapshot_kind kind, const char *name,
                                 mica_snapshot_header *h, mica_error *err);

/** Maps a file of this form. MICA_BAD_FILE if it is empty. */
mica_status mica_snapshot_map(const char *path, mica_map *map, mica_error *err);

/* Where the bytes of a snapshot go, in order: a hash, memory or a file. */
typedef struct mica_sink {
    mica_status (*put)(struct mica_sink *sink, const void *data, size_t length, mica_error *err);
    mica_xxh64 hash;
    uint8_t *memory; /* the next byte */
    mica_newfile *file;
} mica_sink;

/** Puts the bytes of a section, without padding. */
typedef mica_status (*mica_snapshot_put)(const void *owner, const mica_snapshot_header *h, int part, mica_sink *to, mica_error *err);

/** Computes the checksums of the sections that `put` gives, and writes all of it: to memory of h->total_bytes, or a file, which is replaced in one step (base/newfile.h). */
mica_status mica_snapshot_write_memory(const void *owner, mica_snapshot_header *h, mica_snapshot_put put, uint8_t *out, mica_error *err);
mica_status mica_snapshot_write_file(const void *owner, mica_snapshot_header *h, mica_snapshot_put put, const char *path,
                                     mica_error *err);

/** Bytes of a section with its padding. */
static inline uint64_t mica_snapshot_padded(uint64_t bytes)
{
    return (bytes + MICA_SNAPSHOT_ALIGN - 1) & ~(uint64_t)(MICA_SNAPSHOT_ALIGN - 1);
}

#endif
