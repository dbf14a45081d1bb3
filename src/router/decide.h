/* decide.h - what the parts of a decision share: the request as it is counted with, and why a rung is passed over. Called by
 * decide.c and candidate.c. */
#ifndef MICA_ROUTER_DECIDE_H
#define MICA_ROUTER_DECIDE_H
#include "router/policy.h"
#include "router/predict.h"

/** What an earlier decision found out about a request whose text is gone. */
typedef struct mica_known_class {
    mica_route_class route_class;
    char policy_hash[17], classifier[17]; /* that found it; "" none */
    double p_narrow;                      /* NAN: no classifier was asked */
    bool is_private, had_text;
} mica_known_class;

/** mica_route_decide(), but where the request had a text that is gone (`known` may be NULL), what only the text can tell is
 * taken from there: the whole class under the same policy; else the classifier's probability, if the policy has the same one,
 * or the class. *kept (may be NULL): the class is the one of `known`. */
mica_status mica_decide_known(const mica_route_policy *policy, const mica_route_request *request, const mica_route_state *state,
                              const mica_known_class *known, mica_route_decision *out, bool *kept, mica_error *err);

/** What holds for this request now: the class's row of the policy, changed by every "when" that holds. */
typedef struct mica_terms {
    const mica_route_policy *policy;
    const mica_route_request *request;
    const mica_route_state *state;
    const mica_known_class *known; /* NULL: decide by the text */
    bool kept;
    const mica_policy_class *of_class;
    mica_route_class route_class;
    bool is_private, forbid_local, forbid_remote;
    const char *forbid_by, *weights_by; /* names of the "when" parts */
    int32_t order, prefer;
    int64_t weights_most;  /* -1: any */
    double min_quality;    /* 0: any */
    int64_t deadline_ms;   /* -1: none */
    int64_t prompt_tokens, output_tokens;
    int32_t wanted;        /* the rung that the request names; -1: none */
} mica_terms;

/** Fills a rung's candidate: prediction, reason, words. `order` is not looked at here. */
void mica_candidate_judge(const mica_terms *terms, const mica_rung *rung, int32_t index, mica_route_candidate *out);

/** What the state says of a rung; everything unknown where it says nothing. */
mica_route_rung_state mica_candidate_state(const mica_route_state *state, const char *name);

#endif
