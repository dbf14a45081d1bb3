/* route_util.h - what the tests of decisions share: a policy with two local rungs and a server, requests, states. */
#ifndef MICA_TESTS_ROUTE_UTIL_H
#define MICA_TESTS_ROUTE_UTIL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "mica/mica_router.h"

#define BIG    "{\"name\":\"big\",\"kind\":\"local\",\"file\":\"b.gguf\",\"weights_bytes\":2000000000,\"min_ram_bytes\":4000000000," \
               "\"kv_bytes_per_token\":100000,\"fixed_bytes\":100000000,\"context\":4096,\"prefill_tps\":100,\"decode_tps\":10," \
               "\"load_ms\":2000,\"watts\":4,\"schema\":true,\"tools\":true,\"quality\":{\"narrow\":0.8,\"complex\":0.5,\"unknown\":0.6}}"
#define SMALL  "{\"name\":\"small\",\"kind\":\"local\",\"file\":\"s.gguf\",\"weights_bytes\":500000000,\"min_ram_bytes\":1000000000," \
               "\"kv_bytes_per_token\":20000,\"fixed_bytes\":50000000,\"context\":2048,\"prefill_tps\":400,\"decode_tps\":40," \
               "\"load_ms\":500,\"watts\":3,\"schema\":true,\"quality\":{\"narrow\":0.65,\"complex\":0.2,\"tasks\":{\"redact\":0.9}}}"
#define SERVER "{\"name\":\"server\",\"kind\":\"remote\",\"context\":128000,\"ttft_ms\":700,\"decode_tps\":50,\"watts\":1," \
               "\"usd_per_million_in\":1,\"usd_per_million_out\":4,\"schema\":true,\"tools\":true,\"quality\":{\"narrow\":0.9," \
               "\"complex\":0.9,\"unknown\":0.9},\"endpoint\":{\"url\":\"http://127.0.0.1:9/v1\"}}"
#define LADDER "{\"schema\":1,\"name\":\"test\",\"version\":\"1\",\"rungs\":[" BIG "," SMALL "," SERVER "]}"
#define CLASSES                                                                                                                \
    "{\"narrow\":{\"order\":\"smallest\",\"prefer\":\"local\",\"min_quality\":0.6,\"output_tokens\":100},"                       \
    "\"complex\":{\"order\":\"ladder\",\"prefer\":\"remote\",\"offline\":\"degrade\",\"min_quality\":0.7,\"output_tokens\":500}," \
    "\"unknown\":{\"order\":\"ladder\",\"output_tokens\":200}}"

/* `more` are members, each with a comma before it. */
#define POLICY(egress, more)                                                                                                   \
    "{\"schema\":1,\"name\":\"p\",\"version\":\"7\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},"                   \
    "\"allow_egress\":" egress ",\"ladder\":" LADDER ",\"classes\":" CLASSES more "}"

static inline mica_route_policy *policy_of(const char *json)
{
    mica_route_policy *policy = NULL;
    mica_error err = {0};
    if (mica_route_policy_parse(json, strlen(json), "test.json", NULL, NULL, &policy, &err))
        fail_msg("%s", err.message);
    return policy;
}

/* A phone of 8 GB with both models' files, on its charger, with a network. */
typedef struct phone {
    mica_route_state state;
    mica_route_rung_state rung[2];
} phone;

static inline void phone_make(phone *p)
{
    p->rung[0] = mica_route_rung_state_default("big");
    p->rung[1] = mica_route_rung_state_default("small");
    p->rung[0].file = p->rung[1].file = MICA_YES;
    p->state = mica_route_state_default();
    p->state.device.ram_bytes = 8000000000;
    p->state.network = MICA_YES;
    p->state.rungs = p->rung;
    p->state.n_rungs = 2;
}

static inline void decide(const char *policy, const mica_route_request *request, const mica_route_state *state,
                          mica_route_decision *out)
{
    mica_error err = {0};
    mica_route_policy *p = policy_of(policy);
    if (mica_route_decide(p, request, state, out, &err))
        fail_msg("%s", err.message);
    mica_route_policy_release(p);
    out->degraded_prompt = "";
}

/* "big server", or "queue", "refuse". */
static inline const char *order_of(const mica_route_decision *d)
{
    static char text[400];
    text[0] = '\0';
    if (d->action != MICA_ROUTE_RUN)
        return mica_route_action_name(d->action);
    for (int32_t i = 0; i < d->n_order; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "", d->candidates[d->order[i]].rung);
    return text;
}

static inline mica_route_reason reason_of(const mica_route_decision *d, const char *rung)
{
    for (int32_t i = 0; i < d->n_candidates; i++)
        if (strcmp(d->candidates[i].rung, rung) == 0)
            return d->candidates[i].reason;
    fail_msg("no candidate %s", rung);
    return MICA_ROUTE_FITS;
}

#endif
