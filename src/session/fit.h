/* fit.h - whether a plan fits the memory there is, and what would fit instead. Owns nothing. Called by session.c, batch.c and,
 * through mica_memory.h, by programs and the router. */
#ifndef MICA_SESSION_FIT_H
#define MICA_SESSION_FIT_H
#include "mica/mica_memory.h"
#include "session/plan.h"

/** How a session or batch is planned: with the options' context and cache. */
typedef struct mica_fit_planner {
    mica_status (*plan)(const void *user, const mica_model *m, const mica_session_options *o, mica_memory_plan *plan,
                        mica_error *err);
    const void *user;
    const char *less_work; /* what helps against a workspace that is too large: "a smaller prefill chunk" */
    const char *less_kv;   /* and what else against a KV memory that is: ""; ", fewer sessions" */
} mica_fit_planner;

extern const mica_fit_planner mica_fit_session;

/** Fills *budget for resolved options. */
mica_status mica_fit_check(const mica_model *m, const mica_session_options *o, const mica_fit_planner *planner,
                           mica_budget *budget, mica_error *err);

/** MICA_OVER_BUDGET if it does not fit; *plan is what was planned. */
mica_status mica_fit_require(const mica_model *m, const mica_session_options *o, const mica_fit_planner *planner,
                             mica_memory_plan *plan, mica_error *err);

#endif
