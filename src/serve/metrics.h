/* metrics.h - what the server counts, and how Prometheus reads it. All fields are atomic: every thread counts, the HTTP thread
 * prints. Called by all of serve. */
#ifndef MICA_SERVE_METRICS_H
#define MICA_SERVE_METRICS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MICA_METRICS_ROUTES   24 /* rows of the route table, and one for paths that are none */
#define MICA_METRICS_STATUSES 24
#define MICA_METRICS_BUCKETS  16

typedef struct mica_histogram {
    _Atomic uint64_t count[MICA_METRICS_BUCKETS]; /* of values up to each bound, not cumulated; the last has no bound */
    _Atomic uint64_t sum_us;
} mica_histogram;

typedef struct mica_metrics {
    _Atomic uint64_t requests[MICA_METRICS_ROUTES][MICA_METRICS_STATUSES];
    _Atomic uint64_t prompt_tokens, cached_tokens, generated_tokens, steps;
    _Atomic uint64_t clients_left, slow_readers, timeouts, queue_refusals, connection_refusals, connections_total;
    _Atomic int64_t connections, in_flight, running, slots;
    _Atomic int64_t queued; /* requests that wait for a slot: of in_flight, and of the router's rungs */
    _Atomic bool lower_rung; /* the governor asks for a smaller model */
    _Atomic int64_t shed_level; /* mica_shed_level */
    _Atomic uint64_t shed_tokens;
    _Atomic int64_t kv_tokens, kv_cached, kv_capacity, kv_evictions, suspensions;
    mica_histogram ttft, tpot, queue_time;
} mica_metrics;

void mica_metrics_request(mica_metrics *m, size_t route, int status);
void mica_histogram_add(mica_histogram *h, double seconds);

/** The text for /metrics; `name_of` says what a row of the route table is called. malloc'ed; NULL without memory. */
char *mica_metrics_text(const mica_metrics *m, const char *model, const char *(*name_of)(size_t route), size_t n_routes,
                        size_t *length);

#endif
