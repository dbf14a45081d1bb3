/* telemetry.h - the inside of telemetry: an event on its way, and what a sink is.
 *
 * An event is copied once, and shared by the queues of all sinks. A sink's functions are called by its own thread alone. */
#ifndef MICA_ROUTER_TELEMETRY_H
#define MICA_ROUTER_TELEMETRY_H
#include <jansson.h>
#include <stdatomic.h>

#include "mica/mica_telemetry.h"

#define MICA_TELEMETRY_BATCH 64 /* events that a sink gets at once */

typedef struct mica_event {
    atomic_int references;
    _Atomic int64_t *in_flight; /* bytes of all events of the telemetry; counted down at the end */
    size_t bytes;
    uint8_t trace_id[16], span_id[8]; /* random */
    bool cut;                         /* a text was longer than what is kept of it */
    mica_telemetry_event e;           /* its texts are behind the struct, terminated; "" where there was none */
} mica_event;

/** telemetry_event.c. NULL: no memory, or too much waits already. */
mica_event *mica_event_copy(const mica_telemetry_event *event, bool text, _Atomic int64_t *in_flight);
void mica_event_release(mica_event *event);
/** As a line of the JSONL sink has it. */
json_t *mica_event_json(const mica_event *event);

/** What a sink is told when it is made. */
typedef struct mica_sink_setup {
    const char *target, *headers, *service;
    int64_t started_unix_ns;
    int64_t max_bytes; /* of a file; 0: any */
} mica_sink_setup;

typedef struct mica_sink_kind {
    const char *name;
    int32_t gather_ms; /* how long events may wait for others, to be written together */
    mica_status (*open)(const mica_sink_setup *setup, void **out, mica_error *err);
    /** All events, in order. *written says how many of them are where they belong, also on an error: the rest is lost. Must
     * return soon after mica_deadline_is_over(deadline). */
    mica_status (*write)(void *sink, mica_event *const *events, size_t n, const _Atomic int64_t *deadline, size_t *written,
                         mica_error *err);
    void (*close)(void *sink);
} mica_sink_kind;

extern const mica_sink_kind mica_sink_jsonl, mica_sink_sqlite, mica_sink_otlp;

/** telemetry_route.c: the event of a request that came to a decision. */
struct mica_run_reply;
void mica_telemetry_routed(mica_telemetry *t, const struct mica_run_reply *reply, mica_status status);

/** 0: there is none yet; else the monotonic time from which on nothing may wait. */
bool mica_deadline_is_over(const _Atomic int64_t *deadline);

#endif
