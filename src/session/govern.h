/* govern.h - a session or batch under its governor: what the governor decided is done before a step, what the step took is told
 * after it. Nothing here changes a result. A reply's length is capped or refused before its first token. Owned by the session
 * or batch; called by what computes: session.c, speculate.c, batch.c; reply.c. */
#ifndef MICA_SESSION_GOVERN_H
#define MICA_SESSION_GOVERN_H
#include <stdatomic.h>

#include "base/pool.h"
#include "mica/mica_governor.h"

typedef struct mica_governed {
    mica_governor *governor; /* NULL: nobody governs, and every function here does nothing */
    mica_pool *pool;
    mica_session_options *options;
    mica_thread_plan *threads;
    atomic_bool *cancelled;   /* ends a pause; NULL: nothing does */
    int32_t n_fast, n_slow;   /* as the pool is; 0 and 0: as it was made */
    int64_t start_ns, end_ns; /* of the step */
    mica_governor_output now;
} mica_governed;

/** Pauses as long as is due, and makes the pool what is wanted: a team that the system refuses is not asked for again, and the
 * one there was goes on. */
void mica_govern_before(mica_governed *g);
/** The step decoded one token of each of n replies; 0: it did something else. */
void mica_govern_after(mica_governed *g, int32_t n);

/** What is left of a chunk, and of a draft. */
int32_t mica_govern_chunk(const mica_governed *g, int32_t chunk);
int32_t mica_govern_draft(const mica_governed *g, int32_t draft);

/** A reply of at most *max_tokens (-1: `room`) begins: MICA_TOO_HOT, or a smaller *max_tokens. */
mica_status mica_govern_reply(mica_governed *g, int32_t room, int32_t *max_tokens, mica_error *err);

#endif
