#include "bench/trace.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

typedef struct reader {
    mica_trace *t;
    const char *name;
    long long line;
    bool started;
    mica_error *err;
} reader;

static mica_status fail_line(const reader *r, const char *what)
{
    return mica_fail(r->err, MICA_BAD_TEXT, "%s, line %lld: %s", r->name, r->line, what);
}

/* An integer of at least `low`; `missing` where the member is absent. */
static mica_status get_int(const reader *r, const json_t *o, const char *key, int64_t low, int64_t missing, int64_t *out)
{
    const json_t *value = json_object_get(o, key);
    char what[80];
    *out = value ? json_integer_value(value) : missing;
    if (!value || (json_is_integer(value) && *out >= low))
        return MICA_OK;
    snprintf(what, sizeof what, "\"%s\" is no whole number of at least %lld", key, (long long)low);
    return fail_line(r, what);
}

static void get_text(const json_t *o, const char *key, char out[32])
{
    const char *value = json_string_value(json_object_get(o, key));
    if (value)
        snprintf(out, 32, "%s", value);
}

static mica_status read_meta(reader *r, const json_t *o)
{
    mica_trace *t = r->t;
    const json_t *celsius = json_object_get(o, "temperature_c");
    mica_status status = get_int(r, o, "n_prompt", 0, 0, &t->run.n_prompt);
    if (!status)
        status = get_int(r, o, "n_cached", 0, -1, &t->n_cached_told);
    if (!status)
        status = get_int(r, o, "max_tokens", 0, -1, &t->max_tokens);
    t->run.n_cached = t->n_cached_told > 0 ? t->n_cached_told : 0;
    if (json_is_number(celsius) && json_number_value(celsius) > 0)
        t->temperature_c = json_number_value(celsius);
    get_text(o, "reason", t->reason);
    get_text(o, "battery_status", t->battery);
    return status;
}

static mica_status add_tokens(reader *r, int64_t at, int64_t n)
{
    mica_trace *t = r->t;
    size_t want = t->run.n_tokens + (size_t)n;
    if (n > MICA_TRACE_MAX_TOKENS || want > MICA_TRACE_MAX_TOKENS)
        return fail_line(r, "more tokens than a trace may have");
    if (want > t->capacity) {
        size_t capacity = want + want / 2 + 64;
        int64_t *times = realloc(t->times, capacity * sizeof *times);
        if (!times)
            return mica_fail_nomem(r->err, capacity * sizeof *times, "the trace");
        t->times = times;
        t->capacity = capacity;
    }
    while (t->run.n_tokens < want)
        t->times[t->run.n_tokens++] = at;
    return MICA_OK;
}

static mica_status read_event(reader *r, const json_t *o)
{
    const char *kind = json_string_value(json_object_get(o, "ev"));
    int64_t at = 0, n = 0;
    if (!kind)
        return fail_line(r, "no \"ev\" says what it is");
    if (strcmp(kind, "meta") == 0)
        return read_meta(r, o);
    if (strcmp(kind, "start") != 0 && strcmp(kind, "token") != 0 && strcmp(kind, "end") != 0)
        return fail_line(r, "its \"ev\" is none of meta, start, token, end");
    if (!json_object_get(o, "t_ns"))
        return fail_line(r, "it has no \"t_ns\"");
    mica_status status = get_int(r, o, "t_ns", 0, 0, &at);
    if (status)
        return status;
    if (*kind == 's') {
        r->started = true;
        r->t->run.accepted_ns = at;
        return MICA_OK;
    }
    if (!r->started)
        return fail_line(r, "it comes before \"start\"");
    if (*kind == 'e') {
        get_text(o, "reason", r->t->reason);
        return MICA_OK;
    }
    status = get_int(r, o, "n", 0, 1, &n);
    return status ? status : add_tokens(r, at, n);
}

static bool is_blank(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
        i++;
    return i == length;
}

static mica_status read_line(reader *r, const char *line, size_t length)
{
    json_error_t where;
    if (is_blank(line, length))
        return MICA_OK;
    json_t *o = mica_json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(o)) {
        json_decref(o);
        return fail_line(r, "it is no JSON object");
    }
    mica_status status = read_event(r, o);
    json_decref(o);
    return status;
}

mica_status mica_trace_read(const char *text, size_t length, const char *name, mica_trace *out, mica_error *err)
{
    reader r = {.t = out, .name = name, .err = err};
    mica_status status = MICA_OK;
    *out = (mica_trace){.max_tokens = -1, .temperature_c = NAN, .n_cached_told = -1};
    for (size_t at = 0; !status && at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        r.line++;
        status = read_line(&r, text + at, n);
        at += n + 1;
    }
    if (!status && !r.started)
        status = mica_fail(err, MICA_BAD_TEXT, "%s is no trace: it has no \"start\"", name);
    out->run.token_ns = out->times;
    if (status)
        mica_trace_free(out);
    return status;
}

void mica_trace_free(mica_trace *trace)
{
    free(trace->times);
    trace->times = NULL;
    trace->run.token_ns = NULL;
    trace->run.n_tokens = trace->capacity = 0;
}
