/* plan.h - the sizes of a session or batch before it is made: defaults filled in, ranges checked, memory counted. fit.h
 * compares it with what there is. Owns nothing. Called by session.c, batch.c and fit.c. */
#ifndef MICA_SESSION_PLAN_H
#define MICA_SESSION_PLAN_H
#include "model/weights.h"

#define MICA_DRAFT_MAX 63 /* tokens: a step of 64 has reached the speed of prefill, longer drafts only cost logits */

/** Fills in defaults and checks ranges; *threads gets the threads that are meant. */
mica_status mica_plan_resolve(const mica_model *m, const mica_session_options *in, mica_session_options *o,
                              mica_thread_plan *threads, mica_error *err);

/** The threads that n_threads (0: the default plan) and cpus (NULL: as planned) mean on the machine at o->sysroot. */
mica_status mica_plan_threads(const mica_session_options *o, mica_thread_plan *plan, mica_error *err);

/** Memory of a session with resolved options: its own KV cache, workspace and lists, its draft model's, the predicted peak. */
mica_status mica_plan_memory(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan, mica_error *err);

/** The format of a cache type; NULL if there is none. */
const mica_quant *mica_plan_kv_quant(mica_kv_type type);

/** Bytes of keys and values; 0 if out of range. */
size_t mica_plan_kv_bytes(const mica_model *m, const mica_session_options *o);

/** Bytes of one session without its workspace for the forward pass: history, sampler. 0 if out of range. */
size_t mica_plan_list_bytes(const mica_model *m, const mica_session_options *o);

/** The most tokens of a step, and of those whose logits are wanted. */
int32_t mica_plan_chunk(const mica_session_options *o);
int32_t mica_plan_rows(const mica_session_options *o);

/** With weights, KV cache and workspace counted: the rest, and the peak. For batches; mica_plan_memory() does it itself. */
void mica_plan_peak(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan);

/** Resident memory of this process now; a usual size where the system does not tell. */
int64_t mica_plan_resident(void);

mica_status mica_check_range(int64_t value, int64_t min, int64_t max, const char *name, mica_error *err);

#endif
