/* telemetry_event.c - a copy of an event, in one piece of memory, and its JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/json.h"
#include "router/telemetry.h"

#define TEXT_MAX ((size_t)64 << 10) /* bytes of a prompt or reply that are kept */
#define RECEIPT_MAX ((size_t)64 << 10)
#define NAME_MAX_BYTES 1024
#define IN_FLIGHT_MAX ((int64_t)16 << 20) /* bytes of all events that wait: what telemetry may ever take */

/* ---- Copying ---- */

/* At most `most` bytes, and no part of a character. */
static size_t cut_length(const char *text, size_t length, size_t most)
{
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xC0) == 0x80)
        most--;
    return most;
}

static size_t length_of(const char *text, size_t most) { return text ? cut_length(text, strlen(text), most) : 0; }

typedef struct text_field {
    const char **text;
    size_t length;
} text_field;

enum { N_TEXTS = 11 };

/* The texts of `e` and how much of each is kept. */
static void find_texts(mica_telemetry_event *e, bool text, text_field out[N_TEXTS])
{
    const char **names[] = {&e->operation, &e->model,       &e->id,    &e->rung,
                            &e->reason,    &e->stop_reason, &e->error, &e->energy_source};
    size_t n = 0;
    for (; n < sizeof names / sizeof *names; n++)
        out[n] = (text_field){names[n], length_of(*names[n], NAME_MAX_BYTES)};
    size_t receipt = e->receipt ? strlen(e->receipt) : 0;
    out[n++] = (text_field){&e->receipt, receipt <= RECEIPT_MAX ? receipt : 0}; /* a part of it would be no JSON */
    out[n++] = (text_field){&e->prompt, text && e->prompt ? cut_length(e->prompt, e->prompt_length, TEXT_MAX) : 0};
    out[n] = (text_field){&e->reply, text && e->reply ? cut_length(e->reply, e->reply_length, TEXT_MAX) : 0};
}

static void place_texts(mica_event *copy, const text_field fields[N_TEXTS])
{
    char *at = (char *)(copy + 1);
    for (size_t i = 0; i < N_TEXTS; i++) {
        if (fields[i].length > 0)
            memcpy(at, *fields[i].text, fields[i].length);
        *fields[i].text = at;
        at += fields[i].length;
        *at++ = '\0';
    }
}

static int64_t unix_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Without random numbers from the system there is no trace that would be another's. */
static bool make_ids(mica_event *copy)
{
    uint8_t ids[24];
    if (getrandom(ids, sizeof ids, GRND_NONBLOCK) != (ssize_t)sizeof ids)
        return false;
    memcpy(copy->trace_id, ids, 16);
    memcpy(copy->span_id, ids + 16, 8);
    copy->trace_id[0] |= 1; /* all zeros would be no id */
    copy->span_id[0] |= 1;
    return true;
}

mica_event *mica_event_copy(const mica_telemetry_event *event, bool text, _Atomic int64_t *in_flight)
{
    mica_telemetry_event e = *event;
    text_field fields[N_TEXTS];
    size_t bytes = sizeof(mica_event) + N_TEXTS;
    find_texts(&e, text, fields);
    for (size_t i = 0; i < N_TEXTS; i++)
        bytes += fields[i].length;
    if (atomic_fetch_add(in_flight, (int64_t)bytes) + (int64_t)bytes > IN_FLIGHT_MAX) {
        atomic_fetch_sub(in_flight, (int64_t)bytes);
        return NULL;
    }
    mica_event *copy = calloc(1, bytes);
    if (!copy || !make_ids(copy)) {
        free(copy);
        atomic_fetch_sub(in_flight, (int64_t)bytes);
        return NULL;
    }
    place_texts(copy, fields); /* writes the new places to `e` */
    copy->cut =
        text && ((event->prompt && event->prompt_length > TEXT_MAX) || (event->reply && event->reply_length > TEXT_MAX));
    e.prompt_length = fields[N_TEXTS - 2].length;
    e.reply_length = fields[N_TEXTS - 1].length;
    if (!e.started_unix_ns)
        e.started_unix_ns = unix_now_ns() - (int64_t)(e.duration_ms * 1e6);
    copy->e = e;
    copy->bytes = bytes;
    copy->in_flight = in_flight;
    atomic_init(&copy->references, 1);
    return copy;
}

void mica_event_release(mica_event *event)
{
    if (atomic_fetch_sub(&event->references, 1) != 1)
        return;
    atomic_fetch_sub(event->in_flight, (int64_t)event->bytes);
    free(event);
}

/* ---- JSON ---- */

/* Texts come from requests and files: what is not UTF-8 is left out. */
static json_t *text_of(const char *text)
{
    json_t *value = *text ? json_string(text) : NULL;
    return value ? value : json_null();
}

static json_t *long_text(const char *text, size_t length)
{
    json_t *value = json_stringn(text, length);
    return value ? value : json_null();
}

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* "2026-01-31T12:34:56.789Z" */
static json_t *time_of(int64_t unix_ns)
{
    char text[40];
    struct tm utc;
    time_t seconds = (time_t)(unix_ns / 1000000000);
    gmtime_r(&seconds, &utc);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + n, sizeof text - n, ".%03dZ", (int)(unix_ns / 1000000 % 1000));
    return json_string(text);
}

json_t *mica_event_json(const mica_event *event)
{
    const mica_telemetry_event *e = &event->e;
    json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "time", time_of(e->started_unix_ns), "operation",
                          text_of(e->operation), "model", text_of(e->model), "id", text_of(e->id), "rung", text_of(e->rung),
                          "reason", text_of(e->reason), "stop_reason", text_of(e->stop_reason), "error", text_of(e->error));
    json_t *figures =
        json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "prompt_n", e->prompt_n, "cached_n",
                  e->cached_n, "gen_n", e->gen_n, "duration_ms", number(e->duration_ms), "ttft_ms", number(e->ttft_ms),
                  "tpot_ms", number(e->tpot_ms), "tpot_p50_ms", number(e->tpot_p50_ms), "tpot_p95_ms", number(e->tpot_p95_ms),
                  "peak_rss_bytes", e->peak_rss_bytes < 0 ? json_null() : json_integer(e->peak_rss_bytes), "throttled_flag",
                  e->throttled < 0 ? json_null() : json_boolean(e->throttled), "joules", number(e->joules), "energy_source",
                  text_of(e->energy_source));
    if (!o || !figures || json_object_update(o, figures)) {
        json_decref(o);
        o = NULL;
    }
    json_decref(figures);
    json_t *receipt = o && *e->receipt ? mica_json_loads(e->receipt, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (receipt)
        json_object_set_new(o, "receipt", receipt);
    if (o && e->prompt_length > 0)
        json_object_set_new(o, "prompt", long_text(e->prompt, e->prompt_length));
    if (o && e->reply_length > 0)
        json_object_set_new(o, "reply", long_text(e->reply, e->reply_length));
    if (o && event->cut)
        json_object_set_new(o, "text_cut", json_true());
    return o;
}
