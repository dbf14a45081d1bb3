/* telemetry_otlp_spans.c - attributes, and the spans of replies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "router/telemetry_otlp.h"

enum { SPAN_KIND_INTERNAL = 1, STATUS_ERROR = 2 }; /* of opentelemetry.proto.trace.v1 */

/* ---- Attributes ---- */

json_t *mica_otlp_int64(int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return json_string(text);
}

static void add(json_t *attributes, const char *key, const char *type, json_t *value)
{
    json_array_append_new(attributes, json_pack("{s:s, s:{s:o}}", "key", key, "value", type, value));
}

void mica_otlp_text(json_t *attributes, const char *key, const char *text)
{
    json_t *value = *text ? json_string(text) : NULL; /* NULL: it is not UTF-8 */
    if (value)
        add(attributes, key, "stringValue", value);
}

void mica_otlp_int(json_t *attributes, const char *key, int64_t value)
{
    add(attributes, key, "intValue", mica_otlp_int64(value));
}

void mica_otlp_real(json_t *attributes, const char *key, double value)
{
    if (isfinite(value))
        add(attributes, key, "doubleValue", json_real(value));
}

json_t *mica_otlp_resource(const char *service, const char *instance)
{
    json_t *attributes = json_array();
    mica_otlp_text(attributes, "service.name", service);
    mica_otlp_text(attributes, "service.version", mica_version());
    mica_otlp_text(attributes, "service.instance.id", instance);
    return json_pack("{s:o}", "attributes", attributes);
}

json_t *mica_otlp_scope(void) { return json_pack("{s:s, s:s}", "name", "mica", "version", mica_version()); }

/* ---- Spans ---- */

static void hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* What OpenAI's clients know as finish_reason. */
static const char *finish_of(const mica_telemetry_event *e)
{
    if (*e->error)
        return "error";
    if (strcmp(e->stop_reason, "length") == 0 || strcmp(e->stop_reason, "context") == 0)
        return "length";
    return strcmp(e->stop_reason, "eos") == 0 ? "stop" : e->stop_reason;
}

/* A conversation of one message, in the form of gen_ai.input.messages. */
static void add_message(json_t *attributes, const char *key, const char *role, const char *text, size_t length)
{
    json_t *content = length > 0 ? json_stringn(text, length) : NULL;
    if (!content)
        return;
    json_t *messages = json_pack("[{s:s, s:[{s:s, s:o}]}]", "role", role, "parts", "type", "text", "content", content);
    char *line = mica_json_dumps(messages, JSON_COMPACT);
    if (line)
        mica_otlp_text(attributes, key, line);
    free(line);
    json_decref(messages);
}

static void add_standard(json_t *a, const mica_telemetry_event *e)
{
    mica_otlp_text(a, "gen_ai.operation.name", e->operation);
    mica_otlp_text(a, "gen_ai.provider.name", "mica");
    mica_otlp_text(a, "gen_ai.request.model", e->model);
    mica_otlp_text(a, "gen_ai.response.model", e->model);
    mica_otlp_text(a, "gen_ai.response.id", e->id);
    const char *finish = finish_of(e);
    if (*finish)
        add(a, "gen_ai.response.finish_reasons", "arrayValue", json_pack("{s:[{s:s}]}", "values", "stringValue", finish));
    if (e->max_tokens >= 0)
        mica_otlp_int(a, "gen_ai.request.max_tokens", e->max_tokens);
    mica_otlp_int(a, "gen_ai.usage.input_tokens", e->prompt_n);
    mica_otlp_int(a, "gen_ai.usage.output_tokens", e->gen_n);
    mica_otlp_int(a, "gen_ai.usage.cache_read.input_tokens", e->cached_n);
    mica_otlp_text(a, "error.type", e->error);
    add_message(a, "gen_ai.input.messages", "user", e->prompt, e->prompt_length);
    add_message(a, "gen_ai.output.messages", "assistant", e->reply, e->reply_length);
}

static void add_own(json_t *a, const mica_telemetry_event *e)
{
    mica_otlp_real(a, "mica.ttft_ms", e->ttft_ms);
    mica_otlp_real(a, "mica.tpot_ms", e->tpot_ms);
    mica_otlp_real(a, "mica.tpot_p50_ms", e->tpot_p50_ms);
    mica_otlp_real(a, "mica.tpot_p95_ms", e->tpot_p95_ms);
    if (e->peak_rss_bytes >= 0)
        mica_otlp_int(a, "mica.peak_rss_bytes", e->peak_rss_bytes);
    if (e->throttled >= 0)
        add(a, "mica.throttled", "boolValue", json_boolean(e->throttled));
    mica_otlp_real(a, "mica.joules", e->joules);
    mica_otlp_text(a, "mica.energy_source", e->energy_source);
    mica_otlp_text(a, "mica.stop_reason", e->stop_reason);
    mica_otlp_text(a, "mica.rung", e->rung);
    mica_otlp_text(a, "mica.reason", e->reason);
    mica_otlp_text(a, "mica.receipt", e->receipt);
}

static json_t *span_of(const mica_event *event)
{
    const mica_telemetry_event *e = &event->e;
    char trace[33], id[17], name[600];
    json_t *attributes = json_array();
    hex(event->trace_id, sizeof event->trace_id, trace);
    hex(event->span_id, sizeof event->span_id, id);
    snprintf(name, sizeof name, "%.40s%s%.500s", e->operation, *e->model ? " " : "", e->model);
    add_standard(attributes, e);
    add_own(attributes, e);
    json_t *title = json_string(name);
    json_t *span = json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:o}", "traceId", trace, "spanId", id, "name",
                             title ? title : json_string("reply"), "kind", SPAN_KIND_INTERNAL, "startTimeUnixNano",
                             mica_otlp_int64(e->started_unix_ns), "endTimeUnixNano",
                             mica_otlp_int64(e->started_unix_ns + (int64_t)(e->duration_ms * 1e6)), "attributes", attributes);
    if (span && *e->error)
        json_object_set_new(span, "status", json_pack("{s:i}", "code", STATUS_ERROR));
    return span;
}

json_t *mica_otlp_traces(const char *service, const char *instance, mica_event *const *events, size_t n)
{
    json_t *spans = json_array();
    for (size_t i = 0; i < n; i++)
        mica_json_add(&spans, span_of(events[i]));
    return json_pack("{s:[{s:o, s:[{s:o, s:o}]}]}", "resourceSpans", "resource", mica_otlp_resource(service, instance),
                     "scopeSpans", "scope", mica_otlp_scope(), "spans", spans);
}
