/* record.h - what a run left behind: raw samples and the conditions under which they were taken. Everything that is reported is
 * computed from this (summary.c), so it can be computed again by anyone.
 *
 * Invariants:
 *  1. Times are stored without loss: a packed series unpacks to the same integers.
 *  2. A record is only added to while the run lasts; nothing is dropped, spoilt runs are flagged.
 *  3. Of untrusted bytes (a file of someone else) no size is believed: every one has a limit before memory is taken.
 * Called by measure.c, store.c, summary.c, archive.c. */
#ifndef MICA_BENCH_RECORD_H
#define MICA_BENCH_RECORD_H
#include <jansson.h>

#include "base/error.h"

#define MICA_RECORD_VERSION 1
#define MICA_SERIES_MAX     ((size_t)1 << 27) /* events of one series: a day at 1,500 a second */

/** One reply. Times in nanoseconds of the adapter's clock. */
typedef struct mica_series {
    char phase[24]; /* "warmup", "ttft_512", "decode", ... */
    bool exact;     /* one event is one token */
    int32_t prompt_asked, n_asked;
    uint64_t seed;                                          /* of the prompt */
    int64_t started_ns, done_ns, prompt_n, cached_n, gen_n; /* cached_n -1: not counted */
    char reason[16];
    size_t n;
    int64_t *times;
    int64_t *tokens; /* -1: not told */
} mica_series;

typedef struct mica_record {
    char id[40];
    json_t *head; /* an object: see docs/bench.md, "The record" */
    size_t n_series, capacity;
    mica_series *series;
    json_t *samples; /* an array */
    json_t *summary; /* as it was reported; NULL: none */
} mica_record;

mica_status mica_record_init(mica_record *record, mica_error *err);
void mica_record_free(mica_record *record);
/** Copies the series in. */
mica_status mica_record_add(mica_record *record, const mica_series *series, mica_error *err);
void mica_series_free(mica_series *series);

/** A new id: 32 hexadecimal digits of the system's entropy. */
bool mica_record_new_id(char out[40]);

/* ---- Packing: the count, then each number's difference to the one before, as variable-length integers; compressed by zstd.
 * ---- */

/** *bytes is yours: free(). */
mica_status mica_pack_ints(const int64_t *values, size_t n, void **bytes, size_t *length, mica_error *err);
/** *values is yours: free(). MICA_BAD_FILE for anything that mica_pack_ints() does not make. */
mica_status mica_unpack_ints(const void *bytes, size_t length, int64_t **values, size_t *n, mica_error *err);
/** Text likewise, of at most 256 MiB. *text is terminated. */
mica_status mica_pack_text(const char *text, size_t length, void **bytes, size_t *packed, mica_error *err);
mica_status mica_unpack_text(const void *bytes, size_t packed, char **text, size_t *length, mica_error *err);

#endif
