/* status.c - what the page shows of the machine. What cannot be known is null, never a number. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "device/memory.h"
#include "device/thermal.h"
#include "serve/page.h"

static json_t *known(int64_t value) { return value < 0 ? json_null() : json_integer(value); }

static json_t *model(const mica_server *s)
{
    const mica_model_info *i = &s->context.info;
    return json_pack("{s:s, s:s, s:I, s:I, s:i, s:s}", "id", s->context.name, "architecture", i->architecture, "n_params",
                     (json_int_t)i->n_params, "file_bytes", (json_int_t)i->file_bytes, "n_ctx_train", i->n_ctx_train, "kernels",
                     i->kernels);
}

static json_t *memory(const mica_server *s, const mica_memory_plan *plan)
{
    mica_memory_usage usage = {.peak_bytes = -1, .rss_bytes = -1, .anon_bytes = -1};
    int64_t available;
    char reason[MICA_MEMORY_REASON];
    (void)mica_memory_usage_read(NULL, &usage, NULL); /* this process, whatever the system root */
    if (mica_memory_available(s->options.batch.sysroot, &available, reason, NULL))
        available = -1;
    json_t *sizes = json_pack("{s:I, s:I, s:I, s:I, s:I}", "peak_bytes", (json_int_t)s->context.peak_bytes, "weights_bytes", (json_int_t)plan->weights_bytes, "kv_bytes",
                              (json_int_t)plan->kv_bytes, "workspace_bytes", (json_int_t)plan->workspace_bytes, "total_bytes",
                              (json_int_t)plan->total_bytes);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "plan", sizes, "rss_bytes", known(usage.rss_bytes), "anon_bytes",
                     known(usage.anon_bytes), "peak_bytes", known(usage.peak_bytes), "available_bytes", known(available));
}

static json_t *temperature(const mica_server *s)
{
    double celsius;
    char source[32];
    if (!mica_thermal_processor(s->options.batch.sysroot, &celsius, source))
        return json_null();
    return json_pack("{s:f, s:s}", "celsius", celsius, "source", source);
}

static json_t *histogram(const mica_histogram *h)
{
    uint64_t count = 0;
    for (size_t i = 0; i < MICA_METRICS_BUCKETS; i++)
        count += atomic_load(&h->count[i]);
    return json_pack("{s:I, s:f}", "count", (json_int_t)count, "sum_s", (double)atomic_load(&h->sum_us) / 1e6);
}

static json_t *tokens(const mica_metrics *m)
{
    return json_pack("{s:I, s:I, s:I}", "prompt", (json_int_t)atomic_load(&m->prompt_tokens), "cached",
                     (json_int_t)atomic_load(&m->cached_tokens), "generated", (json_int_t)atomic_load(&m->generated_tokens));
}

static json_t *status(const mica_server *s, const mica_memory_plan *plan)
{
    const mica_metrics *m = &s->metrics;
    int64_t running = atomic_load(&m->running), waiting = atomic_load(&m->in_flight) - running;
    json_t *kv = json_pack("{s:I, s:I, s:I}", "tokens", (json_int_t)atomic_load(&m->kv_tokens), "cached",
                           (json_int_t)atomic_load(&m->kv_cached), "capacity", (json_int_t)atomic_load(&m->kv_capacity));
    json_t *load = json_pack("{s:I, s:I, s:I, s:i}", "slots", (json_int_t)atomic_load(&m->slots), "running", (json_int_t)running, "waiting",
                             (json_int_t)(waiting > 0 ? waiting : 0), "queue", s->options.queue);
    return json_pack("{s:s, s:s, s:I, s:f, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", mica_version(), "state",
                     s->draining ? "shutting down" : "ok", "uptime_s", (json_int_t)((mica_now_ns() - s->context.began_ns) / 1000000000), "clock_s",
                     (double)mica_now_ns() / 1e9, "n_ctx", s->context.n_ctx, "threads", plan->n_threads, "model", model(s), "memory",
                     memory(s, plan), "temperature", temperature(s), "load", load, "kv", kv, "tokens", tokens(m), "ttft",
                     histogram(&m->ttft), "tpot", histogram(&m->tpot));
}

void mica_page_status(mica_server *s, mica_job *job)
{
    mica_memory_plan plan;
    mica_error err;
    mica_fault fault;
    if (mica_batch_plan(s->options.model, &s->options.batch, &plan, &err)) {
        mica_fault_engine(&fault, &err, NULL);
        mica_job_fail(job, &fault);
        return;
    }
    json_t *json = status(s, &plan);
    char *text = json ? mica_json_dumps(json, MICA_JSON_FLAGS) : NULL;
    mica_job_reply(job, 200, "application/json", text, text ? strlen(text) : 0);
    free(text);
    json_decref(json);
}
