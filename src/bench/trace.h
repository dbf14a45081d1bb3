/* trace.h - a recorded generation as JSON lines, the form in which other tools hand their runs to `mica analyze`:
 *
 *     {"ev": "meta", "n_prompt": 512, "max_tokens": 128, "temperature_c": 31.5, "battery_status": "Discharging"}
 *     {"ev": "start", "t_ns": 0}
 *     {"ev": "token", "t_ns": 2000000000, "n": 1}          n: token ids that the event brought, 1 if absent
 *     {"ev": "end", "t_ns": 12000000000, "reason": "length"}
 *
 * Members that are not known here are left alone. Owns its times. Called by the program and by tests. */
#ifndef MICA_BENCH_TRACE_H
#define MICA_BENCH_TRACE_H
#include "mica/mica_ops.h"

#define MICA_TRACE_MAX_TOKENS 100000000 /* of one trace: 800 MB of times */

typedef struct mica_trace {
    mica_run run; /* token_ns is `times` */
    int64_t *times;
    size_t capacity;
    char reason[32];       /* "length", "stop", "error", ...; "" if the trace has no end: it was cut */
    int64_t max_tokens;    /* -1: not told */
    double temperature_c;  /* NAN: not told, or not readable (the reading of a sensor that fails is often -1 or less) */
    char battery[32];      /* "Discharging", ...; "" if not told */
    int64_t n_cached_told; /* whether n_cached was told: -1 if not */
} mica_trace;

/** Reads a trace; `name` is for messages. MICA_BAD_TEXT names the line. */
mica_status mica_trace_read(const char *text, size_t length, const char *name, mica_trace *out, mica_error *err);
void mica_trace_free(mica_trace *trace);

#endif
