#include "serve/receipts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "serve/fields.h"
#include "serve/http.h"
#include "session/receipt.h"
#ifdef MICA_HAVE_ROUTER
#include "mica/mica_telemetry.h"
#endif

/* ---- Requests ---- */

static bool read_condition(mica_request *r, const json_t *text, mica_fault *fault)
{
    if (!json_is_string(text))
        return mica_fault_set(fault, 400, "invalid_type", "x_mica.require",
                              "\"require\" in \"x_mica\" must be a list of strings");
    if (r->n_require == MICA_SERVE_REQUIRE_MAX)
        return mica_fault_bad(fault, "x_mica.require", "there are more than %d conditions", MICA_SERVE_REQUIRE_MAX);
    r->require[r->n_require++] = json_string_value(text);
    return true;
}

bool mica_receipts_read(mica_request *r, mica_fault *fault)
{
    const json_t *ours = mica_field(r->body, "x_mica"), *conditions = ours ? mica_field(ours, "require") : NULL;
    for (size_t i = 0; i < r->context->n_require && i < MICA_SERVE_REQUIRE_MAX; i++)
        r->require[r->n_require++] = r->context->require[i];
    if (ours && !json_is_object(ours))
        return mica_fault_set(fault, 400, "invalid_type", "x_mica", "\"x_mica\" must be an object");
    if (ours && !mica_field_bool(ours, "receipt", &r->want_receipt, fault))
        return false;
    if (conditions && !json_is_array(conditions))
        return mica_fault_set(fault, 400, "invalid_type", "x_mica.require",
                              "\"require\" in \"x_mica\" must be a list of strings");
    for (size_t i = 0; i < json_array_size(conditions); i++)
        if (!read_condition(r, json_array_get(conditions, i), fault))
            return false;
    return true;
}

bool mica_receipts_refuse(mica_job *job)
{
    mica_fault fault;
    json_t *body = mica_json_loadb(job->body, job->length, 0, NULL);
    const json_t *ours = json_object_get(body, "x_mica"), *receipt = json_object_get(ours, "receipt");
    bool asks = json_is_true(receipt) || json_array_size(json_object_get(ours, "require")) > 0;
    json_decref(body);
    if (!asks)
        return false;
    mica_fault_bad(&fault, "x_mica",
                   "receipts and conditions are of the model that is served here: name it as \"model\", not a rung");
    mica_job_fail(job, &fault);
    return true;
}

bool mica_receipts_make(mica_request *r, mica_fault *fault)
{
    const mica_serve_context *context = r->context;
    mica_receipt_options o = mica_receipt_options_default();
    mica_error err;
    if (!r->want_receipt && r->n_require == 0 && !context->telemetry)
        return true;
    o.require = r->require;
    o.n_require = r->n_require;
    o.hashes = r->want_receipt;
    o.hash_cache = context->hash_cache;
    o.sysroot = context->sysroot;
    if (!r->want_receipt && r->n_require == 0) /* what telemetry alone looks at must not cost replies time */
        o.device = context->device;
    for (int32_t i = 0; i < r->n_choices; i++)
        if (mica_receipt_new(context->model, &o, &r->choices[i].receipt, &err))
            return mica_fault_engine(fault, &err, "x_mica.require");
    mica_session_options slot = {.n_ctx = context->n_ctx, .kv_k = context->kv_k, .kv_v = context->kv_v};
    if (r->n_choices > 0 && mica_receipt_foresee(r->choices[0].receipt, &slot, &err))
        return mica_fault_engine(fault, &err, "x_mica.require"); /* before a stream has begun */
    return true;
}

/* ---- Answers ---- */

static json_t *receipt_of(const mica_choice *c)
{
    char *text;
    if (!c->receipt || mica_receipt_json(c->receipt, &text, NULL))
        return json_null();
    json_t *object = mica_json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    mica_free(text);
    return object ? object : json_null();
}

void mica_receipts_add(const mica_request *r, json_t *timings)
{
    if (!r->want_receipt || !timings)
        return;
    if (r->n_choices == 1) {
        json_object_set_new(timings, "receipt", receipt_of(&r->choices[0]));
        return;
    }
    json_t *list = json_array();
    for (int32_t i = 0; i < r->n_choices; i++)
        mica_json_add(&list, receipt_of(&r->choices[i]));
    json_object_set_new(timings, "receipts", list);
}

/* ---- Telemetry ---- */

#ifdef MICA_HAVE_ROUTER
/* Times are those that the client sees: from the request's arrival. */
static void fill_times(const mica_choice *c, mica_telemetry_event *e)
{
    const mica_result *m = &c->result;
    int64_t arrived = c->request->job ? c->request->job->arrived_ns : c->started_ns;
    e->duration_ms = (double)(mica_now_ns() - arrived) / 1e6;
    if (c->first_ns)
        e->ttft_ms = (double)(c->first_ns - arrived) / 1e6;
    if (m->gen_n > 1) {
        e->tpot_ms = m->tpot_ms;
        e->tpot_p50_ms = m->tpot_p50_ms;
        e->tpot_p95_ms = m->tpot_p95_ms;
    }
}

void mica_receipts_tell(const mica_choice *c, mica_status status)
{
    const mica_request *r = c->request;
    const mica_result *m = &c->result;
    mica_telemetry_event e = mica_telemetry_event_default();
    mica_receipt_figures f;
    char *prompt = NULL, *receipt = NULL;
    bool inner = r->job && r->job->route >= mica_route_count(); /* a rung's: the router tells the whole of it */
    if (!r->context->telemetry || inner)
        return;
    e.operation = r->api == &mica_api_completions ? "text_completion" : "chat";
    e.model = r->context->name;
    e.id = r->id;
    e.stop_reason = m->stop_reason;
    e.error = status ? mica_status_name(status) : NULL;
    e.prompt_n = (int32_t)c->prompt->n;
    e.cached_n = m->cached_n;
    e.gen_n = m->gen_n;
    e.max_tokens = r->options.max_tokens;
    e.peak_rss_bytes = m->peak_rss_bytes;
    fill_times(c, &e);
    if (c->receipt && mica_receipt_get_figures(c->receipt, &f)) {
        e.throttled = f.throttled;
        e.joules = f.joules;
        e.energy_source = f.energy_source;
    }
    if (r->want_receipt && c->receipt && mica_receipt_json(c->receipt, &receipt, NULL) == MICA_OK)
        e.receipt = receipt;
    if (r->context->telemetry_text && mica_model_detokenize(r->context->model, c->prompt->tokens, c->prompt->n, true, &prompt,
                                                            &e.prompt_length, NULL) == MICA_OK) {
        e.prompt = prompt;
        e.reply = c->content.data;
        e.reply_length = c->content.length;
    }
    (void)mica_telemetry_add(r->context->telemetry, &e); /* counted, for /metrics */
    mica_free(prompt);
    mica_free(receipt);
}

static void sink_lines(const mica_serve_context *context, mica_buf *out)
{
    size_t n = context->telemetry ? mica_telemetry_sink_count(context->telemetry) : 0;
    if (n > 0)
        mica_buf_puts(
            out, "# HELP mica_telemetry_events_total Events by sink: written, lost by it, dropped because its queue was full.\n"
                 "# TYPE mica_telemetry_events_total counter\n");
    for (size_t i = 0; i < n; i++) {
        mica_telemetry_sink_info s;
        mica_telemetry_sink(context->telemetry, i, &s);
        const struct {
            const char *name;
            uint64_t n;
        } outcomes[] = {{"written", s.written}, {"lost", s.lost}, {"dropped", s.dropped}};
        for (size_t k = 0; k < sizeof outcomes / sizeof *outcomes; k++)
            mica_buf_printf(out, "mica_telemetry_events_total{sink=\"%zu\",kind=\"%s\",outcome=\"%s\"} %llu\n", i, s.kind,
                            outcomes[k].name, (unsigned long long)outcomes[k].n);
    }
}
#else
void mica_receipts_tell(const mica_choice *c, mica_status status) { (void)c, (void)status; }

static void sink_lines(const mica_serve_context *context, mica_buf *out) { (void)context, (void)out; }
#endif

/* ---- The machine ---- */

static void line(mica_buf *out, const char *name, const char *type, const char *help, double value)
{
    if (isfinite(value)) /* what is not known is not there: Prometheus has no null */
        mica_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.9g\n", name, help, name, type, name, value);
}

void mica_receipts_metrics(const mica_serve_context *context, mica_device *device, mica_buf *out)
{
    mica_device_state d;
    sink_lines(context, out);
    if (!device || mica_device_read(device, &d, NULL))
        return;
    line(out, "mica_temperature_celsius", "gauge", "The hottest sensor near the processor.",
         d.temp_max_mc == MICA_UNKNOWN_MC ? NAN : d.temp_max_mc / 1000.0);
    line(out, "mica_thermal_status", "gauge",
         "How hard the system slows itself down: 0 not at all, 3 severely, 6 it shuts down.",
         d.thermal < 0 ? NAN : (double)d.thermal);
    int throttled = mica_state_throttled(&d);
    line(out, "mica_throttled", "gauge", "1: something shows that the machine holds itself back.",
         throttled < 0 ? NAN : (double)throttled);
    line(out, "mica_battery_ratio", "gauge", "The battery's level.", d.battery_level);
    line(out, "mica_energy_joules_total", "counter", "Energy of the whole machine since the server began.", d.energy_j);
}
