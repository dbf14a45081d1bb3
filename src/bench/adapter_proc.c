/* adapter_proc.c - an adapter that is a process of its own and speaks JSON lines. Whatever it does wrong ends it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench/adapter.h"
#include "bench/child.h"
#include "bench/manifest.h"
#include "bench/wire.h"

typedef struct proc {
    mica_adapter base;
    mica_manifest manifest;
    mica_child child;
    int64_t last_id, read_ns;
} proc;

static int64_t deadline_of(double seconds)
{
    return mica_now_ns() + (int64_t)(seconds * 1e9);
}

static const char *name_of(const proc *p)
{
    return p->manifest.name;
}

/* ---- Failing: the process is ended at once ---- */

static mica_status fail_with_words(proc *p, const char *fault, mica_error *err, mica_status code, const char *what)
{
    char words[200];
    mica_child_end(&p->child, 0);
    mica_child_last_words(&p->child, words);
    return mica_adapter_fail(&p->base, fault, err, code, "the adapter %s %s%s%s", name_of(p), what,
                             *words ? "; it last said: " : "", words);
}

static mica_status fail_outcome(proc *p, mica_child_outcome outcome, const char *verb, mica_error *err)
{
    char what[160];
    switch (outcome) {
    case MICA_CHILD_STOPPED:
        mica_child_end(&p->child, 0);
        return mica_adapter_fail(&p->base, MICA_FAULT_STOPPED, err, MICA_CANCELLED, "stopped during %s of the adapter %s", verb,
                                 name_of(p));
    case MICA_CHILD_LONG:
        snprintf(what, sizeof what, "sent a line of more than %zu bytes during %s", MICA_LINE_MAX, verb);
        return fail_with_words(p, MICA_FAULT_LONG, err, MICA_BAD_TEXT, what);
    case MICA_CHILD_LATE:
        snprintf(what, sizeof what, "was too late during %s (docs/adapter-protocol.md has the time limits)", verb);
        return fail_with_words(p, MICA_FAULT_LATE, err, MICA_IO_ERROR, what);
    case MICA_CHILD_CLOSED:
    case MICA_CHILD_OK:
        break;
    }
    snprintf(what, sizeof what, "ended during %s", verb);
    return fail_with_words(p, MICA_FAULT_DIED, err, MICA_IO_ERROR, what);
}

static mica_status fail_garbage(proc *p, const char *verb, const char *what, mica_error *err)
{
    char text[200];
    snprintf(text, sizeof text, "broke the protocol during %s: %s", verb, what);
    return fail_with_words(p, MICA_FAULT_GARBAGE, err, MICA_BAD_TEXT, text);
}

/* ---- Lines ---- */

static mica_status send_line(proc *p, json_t *request, const char *verb, double seconds, mica_error *err)
{
    char *text = request ? mica_json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!text)
        return mica_adapter_fail(&p->base, MICA_FAULT_GARBAGE, err, MICA_BAD_TEXT,
                                 "a request to the adapter %s cannot be written: a text in it is not valid UTF-8", name_of(p));
    size_t length = strlen(text);
    text[length] = '\n'; /* in place of the terminator */
    mica_child_outcome outcome = mica_child_write(&p->child, text, length + 1, deadline_of(seconds));
    free(text);
    return outcome ? fail_outcome(p, outcome, verb, err) : MICA_OK;
}

/* An event of its own: "error". It may be polite, and then the adapter goes on. */
static mica_status refuse(proc *p, const json_t *event, const char *verb, mica_error *err)
{
    const char *code = json_string_value(json_object_get(event, "code"));
    const char *message = json_string_value(json_object_get(event, "message"));
    char text[300];
    if (!code || !message)
        return fail_garbage(p, verb, "an error without code and message", err);
    snprintf(text, sizeof text, "%.250s", message);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    return mica_adapter_fail(&p->base, MICA_FAULT_REFUSED, err, MICA_UNSUPPORTED, "the adapter %s refused %s (%.30s): %s",
                             name_of(p), verb, code, text);
}

/* The next event of the request under way. On success *event is the caller's. */
static mica_status receive(proc *p, const char *verb, int64_t deadline_ns, json_t **event, const char **name, mica_error *err)
{
    char *line, what[100];
    size_t length;
    json_error_t reason;
    *event = NULL;
    mica_child_outcome outcome = mica_child_line(&p->child, deadline_ns, &line, &length, &p->read_ns);
    if (outcome)
        return fail_outcome(p, outcome, verb, err);
    *event = mica_json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);
    *name = json_string_value(json_object_get(*event, "event"));
    const json_t *id = json_object_get(*event, "id");
    mica_status status = MICA_OK;
    if (!*event) {
        snprintf(what, sizeof what, "a line that is not JSON (%.60s)", reason.text);
        status = fail_garbage(p, verb, what, err);
    } else if (!*name || !json_is_integer(id) || json_integer_value(id) != p->last_id) {
        status = fail_garbage(p, verb, *name ? "an event with another id" : "a line that is no event", err);
    } else if (strcmp(*name, "error") == 0) {
        status = refuse(p, *event, verb, err);
    }
    if (status) {
        json_decref(*event);
        *event = NULL;
    }
    return status;
}

/* A request with one event as the answer; "progress" before it is passed over. *event is the caller's. */
static mica_status ask(proc *p, json_t *request, const char *verb, const char *answer, double seconds, json_t **event,
                       mica_error *err)
{
    int64_t deadline_ns = deadline_of(seconds);
    const char *name = NULL;
    mica_status status = send_line(p, request, verb, seconds, err);
    *event = NULL;
    while (!status) {
        status = receive(p, verb, deadline_ns, event, &name, err);
        if (status || strcmp(name, answer) == 0)
            return status;
        bool progress = strcmp(name, "progress") == 0 && strcmp(verb, "load") == 0;
        char what[100];
        snprintf(what, sizeof what, "an event \"%.40s\" instead of \"%s\"", name, answer);
        json_decref(*event);
        *event = NULL;
        if (!progress)
            status = fail_garbage(p, verb, what, err);
    }
    return status;
}

/* ---- Verbs ---- */

static mica_status say_hello(proc *p, mica_error *err)
{
    json_t *event;
    char what[80];
    mica_status status = ask(p, mica_wire_hello(++p->last_id), "hello", "hello", p->manifest.limits.hello_s, &event, err);
    if (!status && !mica_wire_read_hello(event, &p->base.hello, what))
        status = fail_garbage(p, "hello", what, err);
    json_decref(event);
    return status;
}

static mica_status proc_load(mica_adapter *a, const mica_adapter_load_request *request, mica_error *err)
{
    proc *p = (proc *)a;
    json_t *event;
    char what[80];
    mica_status status =
        ask(p, mica_wire_load(++p->last_id, request), "load", "loaded", p->manifest.limits.load_s, &event, err);
    if (!status && !mica_wire_read_loaded(event, &a->loaded, what))
        status = fail_garbage(p, "load", what, err);
    json_decref(event);
    return status;
}

static mica_status proc_partition(mica_adapter *a, mica_error *err)
{
    proc *p = (proc *)a;
    json_t *event;
    char what[80];
    mica_status status = ask(p, mica_wire_plain(++p->last_id, "partition"), "partition", "partition",
                             p->manifest.limits.partition_s, &event, err);
    if (!status && !mica_wire_read_partition(event, &a->partition, what))
        status = fail_garbage(p, "partition", what, err);
    json_decref(event);
    return status;
}

static mica_status proc_unload(mica_adapter *a, mica_error *err)
{
    proc *p = (proc *)a;
    json_t *event;
    mica_status status =
        ask(p, mica_wire_plain(++p->last_id, "unload"), "unload", "unloaded", p->manifest.limits.unload_s, &event, err);
    json_decref(event);
    return status;
}

/* ---- generate ---- */

/* One event of a reply. *ended: it was the last one. */
static mica_status take_event(proc *p, const json_t *event, const char *name, const mica_adapter_request *q,
                              mica_adapter_reply *r, bool *ended, mica_error *err)
{
    char what[80] = "an event at the wrong time";
    int32_t token;
    int64_t t_ns = 0;
    bool good = false, is_token = false;
    if (strcmp(name, "started") == 0)
        good = r->started_ns == 0 && mica_wire_read_time(event, &r->started_ns, what);
    else if (strcmp(name, "done") == 0)
        good = *ended = r->started_ns != 0 && mica_wire_read_done(event, r, what);
    else if (strcmp(name, r->n_events == 0 ? "first_token" : "token") == 0)
        good = is_token = r->started_ns != 0 && mica_wire_read_token(event, &token, &t_ns, what);
    if (!good)
        return fail_garbage(p, "generate", what, err);
    if (!is_token)
        return MICA_OK;
    if (r->n_events >= (size_t)q->n)
        return fail_with_words(p, MICA_FAULT_ENDLESS, err, MICA_BAD_TEXT, "goes on after the last token that was asked for");
    if (!p->base.hello.other_clock && t_ns > p->read_ns)
        return fail_with_words(p, MICA_FAULT_CLOCK, err, MICA_BAD_TEXT, "tells a time in the future");
    return mica_adapter_reply_add(r, token, t_ns) ? MICA_OK : mica_fail_nomem(err, r->n_events * 12, "the tokens of a reply");
}

static double limit_of(const proc *p, const mica_adapter_reply *r)
{
    const mica_adapter_limits *l = &p->manifest.limits;
    return r->started_ns == 0 ? l->start_s : r->n_events == 0 ? l->first_token_s : l->token_s;
}

static mica_status proc_generate(mica_adapter *a, const mica_adapter_request *request, mica_adapter_reply *reply,
                                 mica_error *err)
{
    proc *p = (proc *)a;
    bool ended = false;
    json_t *line = mica_wire_generate(++p->last_id, request);
    reply->sent_ns = mica_now_ns();
    mica_status status = send_line(p, line, "generate", p->manifest.limits.start_s, err);
    while (!status && !ended) {
        json_t *event;
        const char *name;
        status = receive(p, "generate", deadline_of(limit_of(p, reply)), &event, &name, err);
        if (!status)
            status = take_event(p, event, name, request, reply, &ended, err);
        json_decref(event);
    }
    reply->read_ns = p->read_ns;
    return status;
}

/* ---- Begin and end ---- */

static void proc_close(mica_adapter *a)
{
    proc *p = (proc *)a;
    mica_error ignored;
    json_t *event = NULL;
    if (p->child.pid > 0 && (!*a->fault || strcmp(a->fault, MICA_FAULT_REFUSED) == 0)) {
        p->child.stop = NULL; /* the user may have asked to stop: it still gets its seconds to end */
        ask(p, mica_wire_plain(++p->last_id, "quit"), "quit", "bye", p->manifest.limits.quit_s, &event, &ignored);
        json_decref(event);
        mica_child_end(&p->child, deadline_of(p->manifest.limits.quit_s));
    } else {
        mica_child_end(&p->child, 0);
    }
    mica_manifest_free(&p->manifest);
    free(p);
}

mica_status mica_adapter_proc_open(const char *folder, const mica_adapter_options *options, mica_adapter **out, char fault[16],
                                   mica_error *err)
{
    static const mica_adapter_ops ops = {proc_load, proc_partition, proc_generate, proc_unload, proc_close};
    proc *p = calloc(1, sizeof *p);
    if (!p)
        return mica_fail_nomem(err, sizeof *p, "an adapter");
    p->base.ops = &ops;
    p->base.options = *options;
    p->child.in = p->child.out = p->child.err = -1;
    p->child.stop = options->stop;
    p->child.user = options->user;
    mica_status status = mica_manifest_read(folder, &options->limits, &p->manifest, err);
    snprintf(p->base.hello.adapter, sizeof p->base.hello.adapter, "%s", p->manifest.name);
    if (!status)
        status = mica_child_start(p->manifest.argv, &p->child, err);
    if (!status)
        status = say_hello(p, err);
    if (fault)
        snprintf(fault, 16, "%s", p->base.fault);
    if (status)
        proc_close(&p->base);
    else
        *out = &p->base;
    return status;
}
