/* receipt_json.c - a receipt as JSON; docs/receipt.md describes it. What is not known is null. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "session/receipt_impl.h"

#define DIGITS 9 /* of real numbers, as in the server's answers */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *celsius(int32_t mc) { return mc == MICA_UNKNOWN_MC ? json_null() : json_real(mc / 1000.0); }

static json_t *answer(int value) { return value < 0 ? json_null() : json_boolean(value == MICA_YES); }

/* Names of enums of which -1 is "unknown". */
static json_t *name(const char *text, int value) { return value < 0 ? json_null() : json_string(text); }

static json_t *hash(const char *text) { return text && *text ? json_string(text) : json_null(); }

static json_t *state(const mica_device_state *d)
{
    json_t *heat = json_pack("{s:o, s:o, s:o, s:o, s:o}", "temp_c", celsius(d->temp_max_mc), "thermal",
                             name(mica_thermal_status_name(d->thermal), d->thermal), "cooling", real(d->cooling), "clock",
                             real(d->clock), "clock_limit", real(d->clock_limit));
    json_t *power = json_pack("{s:o, s:o, s:o, s:o, s:o}", "battery", name(mica_battery_status_name(d->battery), d->battery),
                              "battery_level", real(d->battery_level), "battery_w", real(d->battery_w), "on_mains",
                              answer(d->on_mains), "power_save", answer(d->power_save));
    if (!power || json_object_update(heat, power) != 0) {
        json_decref(heat);
        heat = NULL;
    }
    json_decref(power);
    return heat;
}

/* The lines of mica_model_explain_kernels(), "WHAT: KERNELS", as members. */
static json_t *kernels(const mica_receipt *r)
{
    char *text;
    if (mica_model_explain_kernels(r->model, &text, NULL))
        return NULL;
    json_t *parts = json_object();
    for (char *line = text, *next; *line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line + n + (line[n] == '\n');
        line[n] = '\0';
        char *colon = strstr(line, ": ");
        if (!colon)
            continue;
        *colon = '\0';
        mica_json_set(&parts, line, json_string(colon + 2));
    }
    mica_free(text);
    return json_pack("{s:s, s:o}", "set", r->result.kernels, "parts", parts);
}

static json_t *model(const mica_receipt *r)
{
    mica_model_info info;
    const mica_identity *i = r->identity;
    mica_model_get_info(r->model, &info);
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "name", info.name, "architecture", info.architecture, "file_bytes",
                     (json_int_t)info.file_bytes, "sha256", hash(i ? i->model : NULL), "sha256_from",
                     i ? json_string(i->from_cache ? "cache" : "file") : json_null(), "tokenizer_sha256",
                     hash(i ? i->tokenizer : NULL), "template_sha256", hash(i ? i->chat_template : NULL));
}

static json_t *threads(const mica_receipt *r)
{
    json_t *cpus = json_array();
    for (int i = 0; i < r->threads.n_threads && i < MICA_MAX_THREADS; i++)
        mica_json_add(&cpus, r->threads.cpus[i] < 0 ? json_null() : json_integer(r->threads.cpus[i]));
    return json_pack("{s:i, s:i, s:i, s:o}", "n", r->result.n_threads, "least", r->threads_least, "most", r->threads_most,
                     "cpus", cpus);
}

static json_t *context(const mica_receipt *r)
{
    static const char *const policies[] = {"error", "stop", "shift", "summarise"};
    return json_pack("{s:i, s:s, s:i}", "n_ctx", r->options.n_ctx, "policy", policies[r->options.full_policy], "dropped_n",
                     r->result.dropped_n);
}

static json_t *tokens(const mica_receipt *r)
{
    const mica_result *m = &r->result;
    return json_pack("{s:i, s:i, s:i, s:i}", "prompt_n", m->prompt_n, "cached_n", m->cached_n, "gen_n", m->gen_n, "forced_n",
                     m->forced_n);
}

static json_t *times(const mica_receipt *r)
{
    const mica_result *m = &r->result;
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "started_unix_ms", (json_int_t)r->started_unix_ms, "total_ms",
                     (double)(r->ended_ns - r->started_ns) / 1e6, "ttft_ms", m->ttft_ms, "prefill_ms", m->prefill_ms, "tpot_ms",
                     m->tpot_ms, "tpot_p50_ms", m->tpot_p50_ms, "tpot_p95_ms", m->tpot_p95_ms);
}

static json_t *throttling(const mica_receipt *r)
{
    char evidence[96];
    int value = mica_receipt_throttled(r);
    mica_throttle_text(r->throttle, evidence);
    return json_pack("{s:o, s:o}", "value", answer(value), "evidence", value < 0 ? json_null() : json_string(evidence));
}

static json_t *energy(const mica_receipt *r)
{
    double joules = mica_receipt_joules(r);
    if (isnan(joules))
        return json_null();
    return json_pack("{s:f, s:s, s:o, s:s}", "joules", joules, "source", r->end.energy_source, "uncertainty",
                     real(r->end.energy_error), "of", "machine");
}

static json_t *conditions(const mica_receipt *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_conditions; i++)
        mica_json_add(&list, json_string(r->conditions[i].text));
    return list;
}

static json_t *speculation(const mica_receipt *r)
{
    static const char *const modes[] = {"off", "lookup", "model", "both"};
    return json_pack("{s:s, s:i, s:i}", "mode", modes[r->speculate & 3], "drafted_n", r->result.drafted_n, "accepted_n",
                     r->result.accepted_n);
}

static json_t *whole(const mica_receipt *r)
{
    const mica_result *m = &r->result;
    json_t *engine = json_pack("{s:s, s:i}", "version", mica_version(), "numerics", mica_numerics_version());
    json_t *kv =
        json_pack("{s:s, s:s}", "k", mica_receipt_kv_name(r->options.kv_k), "v", mica_receipt_kv_name(r->options.kv_v));
    json_t *machine = json_pack("{s:o, s:o}", "start", state(&r->start), "end", state(&r->end));
    json_t *peak = m->peak_rss_bytes < 0 ? json_null() : json_integer(m->peak_rss_bytes);
    return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "receipt", 1, "status", mica_status_name(r->status), "stop_reason", m->stop_reason, "engine", engine,
                     "model", model(r), "kernels", kernels(r), "threads", threads(r), "kv", kv, "context", context(r), "tokens",
                     tokens(r), "speculation", speculation(r), "replies_at_once", r->replies_most, "seed", (json_int_t)m->seed,
                     "times", times(r), "peak_rss_bytes", peak, "machine", machine, "throttled", throttling(r), "energy",
                     energy(r), "require", conditions(r));
}

mica_status mica_receipt_json(const mica_receipt *r, char **text, mica_error *err)
{
    *text = NULL;
    if (!r->ended)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "there is no receipt: no reply has ended since this one was made or begun again");
    json_t *object = whole(r);
    if (object)
        *text = mica_json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    json_decref(object);
    return *text ? MICA_OK : mica_fail_nomem(err, 1 << 16, "the receipt");
}
