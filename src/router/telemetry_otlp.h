/* telemetry_otlp.h - events in the form of OTLP/HTTP JSON (the protobuf JSON mapping, with ids in hexadecimal): spans, and
 * metrics that are cumulated since the process began. Names are those of OpenTelemetry's conventions for generative AI,
 * gen_ai.*, and mica.* for what has none there. Called by telemetry_otlp.c. */
#ifndef MICA_ROUTER_TELEMETRY_OTLP_H
#define MICA_ROUTER_TELEMETRY_OTLP_H
#include "router/telemetry.h"

/** {"key": ..., "value": {...}} at the end of a list; an empty text and a number that is not finite add nothing. */
void mica_otlp_text(json_t *attributes, const char *key, const char *text);
void mica_otlp_int(json_t *attributes, const char *key, int64_t value);
void mica_otlp_real(json_t *attributes, const char *key, double value);

/** "123": 64-bit integers are texts. */
json_t *mica_otlp_int64(int64_t value);

/** The resource of all that this process sends. `instance`: 32 hexadecimal digits. */
json_t *mica_otlp_resource(const char *service, const char *instance);
/** The instrumentation scope. */
json_t *mica_otlp_scope(void);

/** The body of a POST to /v1/traces: a span a reply. NULL: no memory. */
json_t *mica_otlp_traces(const char *service, const char *instance, mica_event *const *events, size_t n);

/** Aggregates; bounded: replies of further models than it has room for count as of the model "other". */
typedef struct mica_otlp_metrics mica_otlp_metrics;

mica_otlp_metrics *mica_otlp_metrics_new(int64_t started_unix_ns);
void mica_otlp_metrics_free(mica_otlp_metrics *m);
void mica_otlp_metrics_add(mica_otlp_metrics *m, const mica_telemetry_event *e);
/** The body of a POST to /v1/metrics, as of now. `lost`: events that did not get there. */
json_t *mica_otlp_metrics_json(const mica_otlp_metrics *m, const char *service, const char *instance, uint64_t lost);

#endif
