/* route_state.h - what mica route decide knows of this machine: --state FILE, else a reading of it. Called by route_decide.c.
 * */
#ifndef MICA_PROGRAMS_ROUTE_STATE_H
#define MICA_PROGRAMS_ROUTE_STATE_H
#include "mica/mica_router.h"
#include "opts.h"
#include "router/run_local.h"

typedef struct mica_routing_state {
    mica_route_state state;
    mica_route_state_file *file; /* of --state; NULL: read here */
    mica_route_rung_state rungs[MICA_ROUTE_RUNGS_MAX];
    char refusals[MICA_ROUTE_RUNGS_MAX][MICA_REFUSAL_MAX]; /* of `rungs` */
} mica_routing_state;

/** Names of rungs are borrowed from the policy. Returns an exit code. */
int mica_routing_state_read(const mica_opts *o, const mica_route_policy *policy, mica_routing_state *out);
void mica_routing_state_free(mica_routing_state *state);

#endif
