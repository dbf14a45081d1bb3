/* record.c - a decision as one line of JSON: what it was made from, every candidate with its reason, what came of it. A member
 * that is not known is not there. docs/router.md has the form; record_read.c reads it back. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/append.h"
#include "base/json.h"
#include "router/policy.h"
#include "router/request.h"

/* ---- Members: nothing for what is unknown ---- */

static void set_text(json_t **object, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    errno = 0;
    json_t *text = json_string(value);
    if (text || errno == ENOMEM) /* else it is no UTF-8, and no record is given up for that: are_utf8() has what matters */
        mica_json_set(object, key, text);
}

static void set_int(json_t **object, const char *key, int64_t value)
{
    if (value >= 0)
        mica_json_set(object, key, json_integer(value));
}

static void set_real(json_t **object, const char *key, double value)
{
    if (isfinite(value))
        mica_json_set(object, key, json_real(value));
}

static void set_answer(json_t **object, const char *key, int value)
{
    if (value == MICA_YES || value == MICA_NO)
        mica_json_set(object, key, json_boolean(value == MICA_YES));
}

static void set_flag(json_t **object, const char *key, bool value)
{
    if (value)
        mica_json_set(object, key, json_true());
}

/* ---- Request and state ---- */

static json_t *request_json(const mica_route_request *r, bool with_text)
{
    json_t *out = json_object();
    set_text(&out, "task", r->task);
    if (r->route_class != MICA_CLASS_AUTO)
        set_text(&out, "class", mica_route_class_name(r->route_class));
    set_int(&out, "prompt_tokens", r->prompt_tokens);
    set_int(&out, "prompt_bytes", r->prompt_bytes >= 0 || r->prompt_tokens >= 0 ? r->prompt_bytes : (int64_t)r->length);
    set_int(&out, "output_tokens", r->output_tokens);
    set_flag(&out, "schema", r->has_schema);
    set_flag(&out, "tools", r->has_tools);
    set_flag(&out, "private", r->is_private);
    set_int(&out, "deadline_ms", r->deadline_ms);
    set_real(&out, "max_usd", r->max_usd);
    set_real(&out, "max_joules", r->max_joules);
    set_text(&out, "rung", r->rung);
    if (with_text && r->text)
        mica_json_set(&out, "text", json_stringn(r->text, r->length));
    return out;
}

static json_t *rung_state_json(const mica_route_rung_state *r)
{
    json_t *out = json_object();
    set_text(&out, "name", r->name);
    set_answer(&out, "file", r->file);
    set_answer(&out, "resident", r->resident);
    set_answer(&out, "healthy", r->healthy);
    set_real(&out, "prefill_tps", r->prefill_tps);
    set_real(&out, "decode_tps", r->decode_tps);
    set_real(&out, "watts", r->watts);
    set_real(&out, "wait_ms", r->wait_ms);
    set_answer(&out, "hot", r->hot);
    set_int(&out, "memory_bytes", r->memory_bytes);
    set_int(&out, "free_bytes", r->free_bytes);
    set_text(&out, "refusal", r->refusal);
    return out;
}

static json_t *state_json(const mica_route_state *s)
{
    json_t *out = json_object(), *device = json_object(), *rungs = json_array();
    set_int(&device, "ram_bytes", s->device.ram_bytes);
    set_int(&device, "available_bytes", s->device.available_bytes);
    if (s->device.thermal >= MICA_THERMAL_NONE && s->device.thermal <= MICA_THERMAL_SHUTDOWN)
        set_text(&device, "thermal", mica_route_thermal_words[s->device.thermal]);
    set_real(&device, "battery", s->device.battery);
    set_answer(&device, "on_battery", s->device.on_battery);
    set_answer(&device, "power_save", s->device.power_save);
    set_int(&out, "time_ms", s->time_ms);
    mica_json_set(&out, "device", device);
    set_answer(&out, "network", s->network);
    set_answer(&out, "metered", s->metered);
    for (size_t i = 0; i < s->n_rungs; i++)
        mica_json_add(&rungs, rung_state_json(&s->rungs[i]));
    mica_json_set(&out, "rungs", rungs);
    return out;
}

/* ---- Decision ---- */

static json_t *candidate_json(const mica_route_candidate *c)
{
    json_t *out = json_object();
    set_text(&out, "rung", c->rung);
    set_flag(&out, "remote", c->remote);
    set_text(&out, "reason", mica_route_reason_name(c->reason));
    set_text(&out, "why", c->why);
    set_int(&out, "memory_bytes", c->remote ? -1 : c->memory_bytes);
    set_real(&out, "ttft_ms", c->ttft_ms);
    set_real(&out, "total_ms", c->total_ms);
    set_real(&out, "usd", c->usd);
    set_real(&out, "joules", c->joules);
    set_real(&out, "quality", c->quality);
    set_real(&out, "score", c->score);
    return out;
}

static json_t *decision_json(const mica_route_decision *d)
{
    json_t *out = json_object(), *order = json_array(), *candidates = json_array();
    set_text(&out, "class", mica_route_class_name(d->route_class));
    set_text(&out, "class_by", d->class_by);
    set_text(&out, "rule", d->rule);
    set_real(&out, "p_narrow", d->p_narrow);
    set_text(&out, "classifier", d->classifier_hash);
    set_flag(&out, "private", d->is_private);
    set_text(&out, "states", d->states);
    set_int(&out, "prompt_tokens", d->prompt_tokens);
    set_int(&out, "output_tokens", d->output_tokens);
    set_text(&out, "action", mica_route_action_name(d->action));
    set_flag(&out, "degraded", d->degraded);
    set_int(&out, "yield_tokens", d->yield_tokens > 0 ? d->yield_tokens : -1);
    for (int32_t i = 0; i < d->n_order; i++)
        mica_json_add(&order, json_string(d->candidates[d->order[i]].rung));
    mica_json_set(&out, "order", order);
    for (int32_t i = 0; i < d->n_candidates; i++)
        mica_json_add(&candidates, candidate_json(&d->candidates[i]));
    mica_json_set(&out, "candidates", candidates);
    set_text(&out, "message", d->message);
    return out;
}

/* ---- Outcome ---- */

mica_route_outcome mica_route_outcome_default(void)
{
    return (mica_route_outcome){.ttft_ms = NAN, .total_ms = NAN, .usd = NAN, .joules = NAN, .quality = NAN, .prompt_tokens = -1,
                                .output_tokens = -1};
}

static json_t *attempt_json(const mica_route_attempt *a)
{
    json_t *out = json_object();
    set_text(&out, "rung", a->rung);
    set_text(&out, "result", a->result);
    set_text(&out, "error", a->error);
    set_real(&out, "start_ms", a->start_ms);
    set_real(&out, "first_byte_ms", a->first_byte_ms);
    set_real(&out, "end_ms", a->end_ms);
    set_int(&out, "output_tokens", a->output_tokens);
    set_flag(&out, "hedge", a->hedge);
    return out;
}

static json_t *outcome_json(const mica_route_outcome *o)
{
    json_t *out = json_object(), *attempts = json_array();
    mica_json_set(&out, "ok", json_boolean(o->ok));
    set_text(&out, "rung", o->rung);
    set_int(&out, "held", o->held > 0 ? o->held : -1);
    set_real(&out, "ttft_ms", o->ttft_ms);
    set_real(&out, "total_ms", o->total_ms);
    set_real(&out, "usd", o->usd);
    set_real(&out, "joules", o->joules);
    set_real(&out, "quality", o->quality);
    set_int(&out, "prompt_tokens", o->prompt_tokens);
    set_int(&out, "output_tokens", o->output_tokens);
    for (int32_t i = 0; i < o->n_attempts && i < MICA_ROUTE_ATTEMPTS_MAX; i++)
        mica_json_add(&attempts, attempt_json(&o->attempts[i]));
    mica_json_set(&out, "attempts", attempts);
    return out;
}

/* ---- Lines ---- */

/* 15 digits bring a decimal number back as it was written. */
static mica_status finish(json_t *root, char **line, size_t *length, mica_error *err)
{
    *line = root ? mica_json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(root);
    if (!*line)
        return mica_fail(err, MICA_OUT_OF_MEMORY, "there is not enough memory for the record of a decision");
    *length = strlen(*line);
    return MICA_OK;
}

/* jansson refuses a text that is no UTF-8 by leaving it out: that must not pass in silence. */
static bool is_utf8(const char *text, size_t length)
{
    errno = 0;
    json_t *value = json_stringn(text, length);
    bool is = value != NULL || errno == ENOMEM; /* without memory the record fails, with that reason */
    json_decref(value);
    return is;
}

static bool are_utf8(const mica_route_request *r, bool with_text)
{
    const char *const texts[] = {r->id, r->task, r->rung};
    for (int i = 0; i < 3; i++)
        if (texts[i] && !is_utf8(texts[i], strlen(texts[i])))
            return false;
    return !with_text || !r->text || is_utf8(r->text, r->length);
}

mica_status mica_route_record(const mica_route_policy *policy, const mica_route_decision *decision,
                              const mica_route_request *request, const mica_route_state *state,
                              const mica_route_outcome *outcome, char **line, size_t *length, mica_error *err)
{
    json_t *root, *of_policy;
    *line = NULL;
    if (!are_utf8(request, policy->log_text))
        return mica_fail(err, MICA_BAD_TEXT, "a text of the request is not UTF-8, so it cannot be recorded");
    root = json_object();
    of_policy = json_object();
    set_text(&root, "record", "route");
    mica_json_set(&root, "schema", json_integer(1));
    set_text(&root, "id", decision->id);
    set_text(&of_policy, "name", decision->policy_name);
    set_text(&of_policy, "version", decision->policy_version);
    set_text(&of_policy, "hash", decision->policy_hash);
    mica_json_set(&root, "policy", of_policy);
    mica_json_set(&root, "text_bytes", json_integer(request->text ? (json_int_t)request->length : 0));
    mica_json_set(&root, "request", request_json(request, policy->log_text));
    mica_json_set(&root, "state", state_json(state));
    mica_json_set(&root, "decision", decision_json(decision));
    mica_json_set(&root, "outcome", outcome ? outcome_json(outcome) : json_null());
    return finish(root, line, length, err);
}

mica_status mica_route_outcome_line(const char *id, const mica_route_outcome *outcome, char **line, size_t *length,
                                    mica_error *err)
{
    *line = NULL;
    if (!id || !*id || !is_utf8(id, strlen(id)))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "an outcome needs the id of its decision");
    json_t *root = json_object();
    set_text(&root, "record", "outcome");
    mica_json_set(&root, "schema", json_integer(1));
    set_text(&root, "id", id);
    mica_json_set(&root, "outcome", outcome_json(outcome));
    return finish(root, line, length, err);
}

/* ---- The log ---- */

mica_status mica_route_log_append(const char *path, const char *line, size_t length, mica_error *err)
{
    return mica_append_line(path, "the log", line, length, err);
}

mica_status mica_route_new_id(char out[33], mica_error *err)
{
    unsigned char bytes[16];
    ssize_t got;
    do
        got = getrandom(bytes, sizeof bytes, 0);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof bytes)
        return mica_fail(err, MICA_IO_ERROR, "the system gives no random numbers for an id");
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return MICA_OK;
}
