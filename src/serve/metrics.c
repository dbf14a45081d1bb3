#include "serve/metrics.h"

#include "base/buf.h"
#include "device/memory.h"
#include "mica/mica.h"

static const int statuses[] = {200, 202, 204, 304, 400, 401, 403, 404, 405, 408, 412, 413,
                               415, 417, 429, 431, 499, 500, 501, 502, 503, 504, 505};
#define N_STATUSES (sizeof statuses / sizeof *statuses)
_Static_assert(N_STATUSES < MICA_METRICS_STATUSES, "the last column is for all others");

/* From a cached prefix on a fast machine to a long prompt on a slow one. Seconds. */
static const double bounds[MICA_METRICS_BUCKETS - 1] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                        0.5,   1,      2.5,   5,    10,    30,   60};

void mica_metrics_request(mica_metrics *m, size_t route, int status)
{
    size_t column = 0;
    while (column < N_STATUSES && statuses[column] != status)
        column++;
    if (route < MICA_METRICS_ROUTES)
        atomic_fetch_add(&m->requests[route][column], 1);
}

void mica_histogram_add(mica_histogram *h, double seconds)
{
    size_t i = 0;
    while (i < MICA_METRICS_BUCKETS - 1 && seconds > bounds[i])
        i++;
    atomic_fetch_add(&h->count[i], 1);
    atomic_fetch_add(&h->sum_us, (uint64_t)(seconds > 0.0 ? seconds * 1e6 : 0.0));
}

static void head(mica_buf *out, const char *name, const char *type, const char *help)
{
    mica_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(mica_buf *out, const char *name, const char *help, uint64_t value)
{
    head(out, name, "counter", help);
    mica_buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void gauge(mica_buf *out, const char *name, const char *help, int64_t value)
{
    head(out, name, "gauge", help);
    mica_buf_printf(out, "%s %lld\n", name, (long long)value);
}

static void histogram(mica_buf *out, const char *name, const char *help, const mica_histogram *h)
{
    uint64_t total = 0;
    head(out, name, "histogram", help);
    for (size_t i = 0; i < MICA_METRICS_BUCKETS; i++) {
        total += atomic_load(&h->count[i]);
        if (i < MICA_METRICS_BUCKETS - 1)
            mica_buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)total);
        else
            mica_buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)total);
    }
    mica_buf_printf(out, "%s_sum %.6f\n%s_count %llu\n", name, (double)atomic_load(&h->sum_us) / 1e6, name,
                    (unsigned long long)total);
}

static void requests(mica_buf *out, const mica_metrics *m, const char *(*name_of)(size_t), size_t n_routes)
{
    head(out, "mica_requests_total", "counter",
         "Requests answered, by route and status; 499: the client left before the answer.");
    for (size_t r = 0; r <= n_routes && r < MICA_METRICS_ROUTES; r++)
        for (size_t s = 0; s <= N_STATUSES; s++) {
            uint64_t n = atomic_load(&m->requests[r][s]);
            if (n > 0)
                mica_buf_printf(out, "mica_requests_total{route=\"%s\",status=\"%d\"} %llu\n",
                                r < n_routes ? name_of(r) : "other", s < N_STATUSES ? statuses[s] : 0, (unsigned long long)n);
        }
}

static void name_parts(mica_buf *out, const char *model)
{
    head(out, "mica_info", "gauge", "The model that is served, and the server's version.");
    mica_buf_puts(out, "mica_info{version=\"");
    mica_buf_puts(out, mica_version());
    mica_buf_puts(out, "\",model=\"");
    for (const char *c = model; *c; c++)
        mica_buf_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c == '\n' ? ' ' : *c);
    mica_buf_puts(out, "\"} 1\n");
}

char *mica_metrics_text(const mica_metrics *m, const char *model, const char *(*name_of)(size_t), size_t n_routes,
                        size_t *length)
{
    mica_memory_usage memory = {.peak_bytes = -1, .rss_bytes = -1, .anon_bytes = -1};
    mica_buf out;
    mica_buf_init(&out, (size_t)1 << 20);
    (void)mica_memory_usage_read(NULL, &memory, NULL); /* what it cannot tell stays -1 */
    int64_t running = atomic_load(&m->running), waiting = atomic_load(&m->in_flight) - running;
    name_parts(&out, model);
    requests(&out, m, name_of, n_routes);
    gauge(&out, "mica_queue_length", "Requests that wait for a slot.", waiting > 0 ? waiting : 0);
    gauge(&out, "mica_running", "Requests with a slot.", running);
    gauge(&out, "mica_slots", "Replies that can run at the same time.", atomic_load(&m->slots));
    gauge(&out, "mica_connections", "Open connections.", atomic_load(&m->connections));
    gauge(&out, "mica_kv_tokens", "Tokens that running replies hold in the KV memory.", atomic_load(&m->kv_tokens));
    gauge(&out, "mica_kv_cached_tokens", "Further tokens in it that later requests may begin with.", atomic_load(&m->kv_cached));
    gauge(&out, "mica_kv_capacity_tokens", "Tokens that it has room for.", atomic_load(&m->kv_capacity));
    gauge(&out, "mica_resident_bytes", "Resident memory of the process, mapped weights included; -1: unknown.",
          memory.rss_bytes);
    gauge(&out, "mica_anonymous_bytes", "Resident memory without mapped files; -1: unknown.", memory.anon_bytes);
    gauge(&out, "mica_peak_resident_bytes", "The highest that it was.", memory.peak_bytes);
    counter(&out, "mica_prompt_tokens_total", "Tokens of prompts, cached ones included.", atomic_load(&m->prompt_tokens));
    counter(&out, "mica_cached_tokens_total", "Tokens of prompts that were in a cache.", atomic_load(&m->cached_tokens));
    counter(&out, "mica_generated_tokens_total", "Tokens of replies.", atomic_load(&m->generated_tokens));
    counter(&out, "mica_kv_evictions_total", "Blocks of 32 cached tokens given up for lack of memory.",
            (uint64_t)atomic_load(&m->kv_evictions));
    counter(&out, "mica_suspensions_total", "Times a reply gave its KV memory up to older ones, and was computed again.",
            (uint64_t)atomic_load(&m->suspensions));
    gauge(&out, "mica_memory_pressure",
          "What lack of memory calls for: 0 nothing, 1 prefixes and 2 what is idle is given up, 3 new requests are refused.",
          atomic_load(&m->shed_level));
    counter(&out, "mica_shed_tokens_total", "Cached tokens given up for lack of memory on the machine.",
            atomic_load(&m->shed_tokens));
    counter(&out, "mica_steps_total", "Forward passes.", atomic_load(&m->steps));
    counter(&out, "mica_connections_total", "Connections accepted.", atomic_load(&m->connections_total));
    counter(&out, "mica_clients_left_total", "Requests whose client closed the connection before the end.",
            atomic_load(&m->clients_left));
    counter(&out, "mica_slow_readers_total", "Streams dropped because their client did not read.",
            atomic_load(&m->slow_readers));
    counter(&out, "mica_timeouts_total", "Requests that reached their time limit.", atomic_load(&m->timeouts));
    counter(&out, "mica_queue_refusals_total", "Requests refused because the queue was full.", atomic_load(&m->queue_refusals));
    counter(&out, "mica_connection_refusals_total", "Connections refused because there were too many.",
            atomic_load(&m->connection_refusals));
    histogram(&out, "mica_queue_seconds", "From a request's arrival until it has a slot.", &m->queue_time);
    histogram(&out, "mica_ttft_seconds", "From a request's arrival to its first token.", &m->ttft);
    histogram(&out, "mica_tpot_seconds", "Mean time of a reply's further tokens.", &m->tpot);
    char *text = mica_buf_take(&out, length);
    mica_buf_free(&out);
    return text;
}
