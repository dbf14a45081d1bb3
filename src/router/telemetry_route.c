/* telemetry_route.c - the event of a request that a runner carried out: which rung answered, and why it was chosen. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mica/mica_router.h"
#include "router/telemetry.h"

/* "narrow, by rule x": what decided, never what was asked. */
static void reason_of(const mica_route_decision *d, char out[160])
{
    snprintf(out, 160, "%s, by %s%s%s", mica_route_class_name(d->route_class), d->class_by, *d->rule ? " " : "", d->rule);
}

/* How it ended, in the words of the engine where that is known. */
static const char *stop_of(const mica_run_reply *r)
{
    return r->held ? "held" : strcmp(r->finish, "stop") == 0 ? "stop" : strcmp(r->finish, "length") == 0 ? "length" : r->finish;
}

void mica_telemetry_routed(mica_telemetry *t, const mica_run_reply *r, mica_status status)
{
    char reason[160];
    const mica_route_outcome *o = &r->outcome;
    mica_telemetry_event e = mica_telemetry_event_default();
    reason_of(&r->decision, reason);
    e.operation = "chat";
    e.model = r->model;
    e.id = r->decision.id;
    e.rung = o->rung;
    e.reason = reason;
    e.stop_reason = stop_of(r);
    e.error = status ? mica_status_name(status) : NULL;
    e.prompt_n = o->prompt_tokens > 0 ? (int32_t)o->prompt_tokens : 0;
    e.gen_n = o->output_tokens > 0 ? (int32_t)o->output_tokens : 0;
    e.duration_ms = isnan(o->total_ms) ? 0 : o->total_ms;
    e.ttft_ms = o->ttft_ms;
    if (e.gen_n > 1 && !isnan(o->ttft_ms) && o->total_ms > o->ttft_ms)
        e.tpot_ms = (o->total_ms - o->ttft_ms) / (e.gen_n - 1);
    e.joules = o->joules;
    (void)mica_telemetry_add(t, &e); /* counted by the sinks */
}
