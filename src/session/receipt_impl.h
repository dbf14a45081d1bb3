/* receipt_impl.h - the inside of a receipt; receipt.c fills it, receipt_json.c writes it.
 *
 * Invariants: start, end, throttle and what follows are of one request, from mica_receipt_begin() on; `ended` says that all of
 * them are there. */
#ifndef MICA_SESSION_RECEIPT_IMPL_H
#define MICA_SESSION_RECEIPT_IMPL_H
#include "session/identity.h"
#include "session/receipt.h"
#include "session/require.h"

struct mica_receipt {
    mica_model *model;             /* one reference */
    const mica_identity *identity; /* NULL: not wanted */
    mica_device *device;
    bool owns_device, watches; /* watches: a condition is about the machine */
    mica_condition *conditions;
    size_t n_conditions;

    bool begun, ended; /* begun: and not ended yet */
    int64_t started_unix_ms, started_ns, ended_ns, look_ns; /* look_ns: of the next look at the machine */
    mica_device_state start, end; /* `end`: the last reading so far */
    unsigned throttle;            /* what any reading showed */
    bool energy_whole;            /* no source came or went since the start */
    mica_session_options options; /* the session's, resolved; its pointers are not used */
    mica_thread_plan threads;     /* at the end */
    int32_t threads_least, threads_most, replies_most; /* replies_most: of the batch at the same time, this one included */
    mica_speculation speculate;
    mica_status status;
    mica_result result;
};

/** "f16", as the program's options call it. Static. */
const char *mica_receipt_kv_name(mica_kv_type type);

/** MICA_YES, MICA_NO (something could have shown it, and nothing did) or MICA_UNKNOWN. */
int mica_receipt_throttled(const mica_receipt *r);

/** Joules from start to end; NAN if nothing counted all of them. */
double mica_receipt_joules(const mica_receipt *r);

#endif
