/* session.h - the inside of a mica_session: one conversation.
 *
 * Invariants:
 *  1. tokens[0..n_tokens) is the history; its first n_computed tokens are in the KV cache, of windowed layers those since
 *     kv.first. n_computed <= n_tokens <= n_ctx. mica_kv_can_resume(kv, n_computed) holds before every step
 *     (mica_session_settle()).
 *  2. logits_valid: exec.logits are those after token n_tokens - 1, and n_computed == n_tokens. Never in a batch, whose
 *     sessions share exec.logits.
 *  3. Nothing is allocated after mica_session_new() but what mica_session_prompt() needs to tokenise, what replies with a
 *     constraint or healing need (guide.h), and embeddings (embed.h).
 *  4. A batch's session and the session of a draft model run on threads that are not theirs, and those of a batch in its
 *     workspace and in blocks of its KV memory (kv_lease.h), which are there only for what is computed.
 * Used by one thread at a time; `cancelled` by any.
 */
#ifndef MICA_SESSION_SESSION_H
#define MICA_SESSION_SESSION_H
#include <stdatomic.h>

#include "mica/mica_receipt.h"
#include "model/forward.h"
#include "session/engine.h"
#include "session/govern.h"
#include "session/kv_lease.h"
#include "session/reply.h"
#include "text/sampler.h"

typedef struct mica_embedder mica_embedder;
typedef struct mica_guide mica_guide;
typedef struct mica_speculator mica_speculator;

struct mica_session {
    mica_model *model;
    mica_session_options options; /* resolved: no field is 0 for "default" any more */
    mica_thread_plan threads;
    mica_pool *pool;
    mica_exec exec;
    mica_kv kv;
    mica_kv_lease lease; /* in a batch: what kv is a view of */
    mica_sampler *sampler;
    mica_stop *stop;
    mica_batch *batch;           /* that it belongs to; NULL: none */
    mica_speculator *speculator; /* NULL: draft_max is 0 */
    mica_governed governed;      /* not in a batch */
    mica_governed *governor;     /* that, or the batch's */
    mica_guide *guide;           /* NULL: no reply has asked for a constraint or healing yet */
    mica_embedder *embedder;     /* NULL: nothing was embedded yet */
    bool owns_pool;
    void *memory; /* KV cache and workspace, one mapping; NULL in a batch */
    size_t memory_bytes;
    size_t kv_small_bytes; /* of the KV cache at its beginning, while it is in small pages */
    int64_t reserved; /* bytes that the model's plans count for it; 0 where another session or a batch has them */
    int32_t *tables; /* of the lease */
    uint64_t ended;  /* the number of its last reply among the batch's */
    bool from_nothing; /* the prompt of the request under way takes nothing from the tree of prefixes */
    char *sysroot;

    int32_t *tokens; /* [n_ctx] */
    int32_t *next;   /* [n_ctx] the history being composed by a full-context policy */
    int64_t *itl_ns; /* [n_ctx] times between tokens of the running reply */
    int64_t *sorted; /* [n_ctx] for percentiles */
    int32_t n_tokens, n_computed;
    bool logits_valid;
    atomic_bool cancelled;
    mica_reply reply; /* under way, or the last one */
    mica_receipt *receipt; /* borrowed; NULL: nobody wants one */

    /* metrics of the request that is under way: from the first sync after a reply to the next reply */
    int64_t request_ns;   /* when it was accepted; 0: none */
    int64_t prefill_ns;   /* spent computing prompt tokens */
    int32_t prefill_n;    /* prompt tokens computed */
    int32_t cached_n, dropped_n;
};

/** What a session borrows instead of making it. */
typedef struct mica_session_loan {
    mica_pool *pool;
    const mica_exec *exec; /* with `batch` and `blocks`, or all three are NULL */
    mica_batch *batch;
    mica_kv_blocks *blocks;
    mica_governed *governed;
} mica_session_loan;

/** Makes a session with resolved options, without a look at limits. `loan` NULL: nothing is borrowed. Takes a reference on the
 * model. */
mica_status mica_session_make(mica_model *model, const mica_session_options *resolved, const mica_thread_plan *threads,
                              const mica_session_loan *loan, mica_session **out, mica_error *err);

/** Makes tokens[0..n) the history of a new request, uncomputed beyond the common prefix; a full-context policy is applied. */
mica_status mica_session_accept(mica_session *s, const int32_t *tokens, size_t n, int64_t accepted_ns, mica_error *err);

/** Makes tokens[0..n) the history and keeps what of the cache agrees with it; 1 <= n <= n_ctx, the tokens are valid. */
void mica_session_adopt(mica_session *s, const int32_t *tokens, int32_t n);

/** Where a history was cut back further than windowed layers remember, none of it is computed: call it before a step wherever
 * n_computed has been lowered. */
void mica_session_settle(mica_session *s);

/** MICA_CANCELLED if someone wants the running call stopped before its next step: `done` of `total` tokens are computed. */
mica_status mica_session_interrupted(mica_session *s, int32_t done, int32_t total, mica_error *err);

/** MICA_INVALID_ARGUMENT if there is no token, or one outside the vocabulary. */
mica_status mica_session_check_tokens(const mica_session *s, const int32_t *tokens, size_t n, mica_error *err);

/** In a batch: takes what others have computed of the history's next tokens. */
void mica_session_find(mica_session *s);

/** In a batch: puts all that is computed into the tree of prefixes; nothing is written for a while. */
void mica_session_publish(mica_session *s);

/** In a batch: gives up the cache, which stays in the tree of prefixes for as long as there is memory. */
void mica_session_give_up(mica_session *s);

/** Computes what of the history is not in the cache yet, in chunks; leaves logits_valid. */
mica_status mica_session_compute(mica_session *s, mica_error *err);

/** Applies the full-context policy to tokens[0..n) (n > what fits) and makes the shorter sequence the history, uncomputed
 * beyond the common prefix. MICA_CONTEXT_FULL when the policy is to fail or to stop. */
mica_status mica_session_shrink(mica_session *s, const int32_t *tokens, size_t n, mica_error *err);

/** Makes the pool a team of n_threads on these CPUs, as in mica_session_set_threads(); *options and *threads say so afterwards
 * (threads.c). */
mica_status mica_threads_set(mica_pool *pool, mica_session_options *options, mica_thread_plan *threads, int32_t n_threads,
                             const int32_t *cpus, mica_error *err);

/** The error of a call that a batch's session does not take. */
mica_status mica_session_in_batch(mica_error *err);

#endif
