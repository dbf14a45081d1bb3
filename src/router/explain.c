/* explain.c - a record in words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "router/record_read.h"

enum { TEXT_MAX = 256 << 10 };

/* ---- The request ---- */

static void say_time(const mica_record *record, mica_buf *out)
{
    struct tm t;
    int64_t ms = mica_route_state_of(record->state)->time_ms;
    time_t s = (time_t)(ms / 1000);
    if (ms >= 0 && gmtime_r(&s, &t))
        mica_buf_printf(out, ", %04d-%02d-%02d %02d:%02d:%02d UTC", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                        t.tm_min,
                        t.tm_sec);
}

static void say_request(const mica_record *record, mica_buf *out)
{
    const mica_route_request *r = mica_route_request_of(record->request);
    const json_t *d = record->decision, *policy = json_object_get(record->root, "policy");
    mica_buf_printf(out, "request %s", *record->id ? record->id : "without an id");
    say_time(record, out);
    mica_buf_printf(out, "\n  policy %s %s (%s)\n  ", mica_record_text(policy, "name"), mica_record_text(policy, "version"),
                    record->policy_hash);
    if (r->task)
        mica_buf_printf(out, "task %s, ", r->task);
    mica_buf_printf(out, "%lld tokens in, up to %lld out", (long long)json_integer_value(json_object_get(d, "prompt_tokens")),
                    (long long)json_integer_value(json_object_get(d, "output_tokens")));
    mica_buf_puts(out, r->has_schema ? ", with a schema" : "");
    mica_buf_puts(out, r->has_tools ? ", with tools" : "");
    mica_buf_puts(out, record->known.is_private ? ", private" : "");
    if (r->deadline_ms >= 0)
        mica_buf_printf(out, ", within %lld ms", (long long)r->deadline_ms);
    if (!isnan(r->max_usd))
        mica_buf_printf(out, ", for $%.3g at most", r->max_usd);
    if (!isnan(r->max_joules))
        mica_buf_printf(out, ", with %.3g J at most", r->max_joules);
    mica_buf_putc(out, '\n');
}

static void say_state(const mica_record *record, mica_buf *out)
{
    const mica_route_state *s = mica_route_state_of(record->state);
    const mica_route_device *d = &s->device;
    const char *when = mica_record_text(record->decision, "states");
    static const char *const networks[] = {"network unknown", "no network", "network"};
    mica_buf_puts(out, "  device: ");
    if (d->ram_bytes >= 0)
        mica_buf_printf(out, "%.2f GB of RAM, ", (double)d->ram_bytes / 1e9);
    if (d->available_bytes >= 0)
        mica_buf_printf(out, "%.2f available, ", (double)d->available_bytes / 1e9);
    if (d->thermal > MICA_THERMAL_NONE && d->thermal <= MICA_THERMAL_SHUTDOWN)
        mica_buf_printf(out, "heat %s, ", mica_route_thermal_words[d->thermal]);
    if (!isnan(d->battery))
        mica_buf_printf(out, "battery %.0f %%%s, ", 100 * d->battery, d->on_battery == MICA_YES ? " and discharging" : "");
    mica_buf_puts(out, d->power_save == MICA_YES ? "power save, " : "");
    mica_buf_printf(out, "%s%s\n", networks[s->network + 1], s->metered == MICA_YES ? " (metered)" : "");
    if (*when)
        mica_buf_printf(out, "  holds: %s\n", when);
}

/* ---- The choice ---- */

static void say_value(mica_buf *out, const json_t *object, const char *key, double scale, const char *before, const char *after)
{
    double value = mica_record_real(object, key);
    if (!isnan(value))
        mica_buf_printf(out, "%s%.3g%s", before, value / scale, after);
}

static void say_figures(const json_t *c, mica_buf *out)
{
    say_value(out, c, "memory_bytes", 1e9, ", ", " GB");
    say_value(out, c, "ttft_ms", 1000, ", ", " s to the first token");
    say_value(out, c, "total_ms", 1000, ", ", " s in all");
    say_value(out, c, "joules", 1, ", ", " J");
    say_value(out, c, "usd", 1, ", $", "");
    say_value(out, c, "quality", 1, ", quality ", "");
}

static const json_t *find_candidate(const json_t *candidates, const char *rung)
{
    for (size_t i = 0; i < json_array_size(candidates); i++)
        if (strcmp(mica_record_text(json_array_get(candidates, i), "rung"), rung) == 0)
            return json_array_get(candidates, i);
    return NULL;
}

static void say_choice(const mica_record *record, mica_buf *out)
{
    const json_t *order = json_object_get(record->decision, "order"), *all = json_object_get(record->decision, "candidates");
    mica_buf_printf(out, "  %s: %s\n", mica_record_text(record->decision, "action"),
                    mica_record_text(record->decision, "message"));
    for (size_t i = 0; i < json_array_size(order); i++) {
        const char *rung = json_string_value(json_array_get(order, i));
        mica_buf_printf(out, "  %zu. %s", i + 1, rung ? rung : "?");
        say_figures(find_candidate(all, rung ? rung : ""), out);
        mica_buf_putc(out, '\n');
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i);
        if (strcmp(mica_record_text(c, "reason"), "fits") != 0)
            mica_buf_printf(out, "  not %s: %s\n", mica_record_text(c, "rung"), mica_record_text(c, "why"));
    }
}

static void say_end(const mica_route_outcome *o, mica_buf *out)
{
    if (o->ok)
        mica_buf_printf(out, "  outcome: answered by %s", o->rung);
    else if (o->held > 0)
        mica_buf_printf(out, "  outcome: held in the queue as %lld until the network returns", (long long)o->held);
    else
        mica_buf_puts(out, "  outcome: failed");
}

static void say_outcome(const mica_record *record, mica_buf *out)
{
    mica_route_outcome o;
    const json_t *object = json_object_get(record->root, "outcome");
    if (!mica_record_outcome(object, &o))
        return;
    for (int32_t i = 0; i < o.n_attempts; i++) {
        mica_buf_printf(out, "  tried %s: %s", o.attempts[i].rung, o.attempts[i].result);
        if (!isnan(o.attempts[i].end_ms))
            mica_buf_printf(out, " after %.0f ms",
                            o.attempts[i].end_ms - (isnan(o.attempts[i].start_ms) ? 0 : o.attempts[i].start_ms));
        mica_buf_printf(out, "%s%s\n", o.attempts[i].error[0] ? ": " : "", o.attempts[i].error);
    }
    say_end(&o, out);
    say_figures(object, out);
    mica_buf_putc(out, '\n');
}

/* A log is a file like any other, and this goes to a terminal. */
static void clean(mica_buf *out)
{
    for (size_t i = 0; i < out->length; i++)
        if (((unsigned char)out->data[i] < 0x20 && out->data[i] != '\n') || out->data[i] == 0x7f)
            out->data[i] = ' ';
}

mica_status mica_route_explain(const char *record, size_t length, char **text, size_t *text_length, mica_error *err)
{
    mica_record r;
    mica_buf out;
    json_t *root;
    *text = NULL;
    mica_status status = mica_fields_load(record, length, "the record", &root, err);
    if (status)
        return status;
    if (strcmp(mica_record_text(root, "record"), "route") != 0)
        status = mica_fail(err, MICA_BAD_TEXT, "this line is no record of a decision: it has no \"record\": \"route\"");
    else
        status = mica_record_read(root, &r, err);
    json_decref(root);
    if (status)
        return status;
    mica_buf_init(&out, TEXT_MAX);
    say_request(&r, &out);
    say_state(&r, &out);
    say_choice(&r, &out);
    say_outcome(&r, &out);
    mica_record_free(&r);
    clean(&out);
    *text = mica_buf_take(&out, text_length);
    mica_buf_free(&out);
    return *text ? MICA_OK : mica_fail_nomem(err, TEXT_MAX, "the words for a record");
}
