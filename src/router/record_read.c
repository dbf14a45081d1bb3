#include "router/record_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "router/rules.h"

double mica_record_real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *mica_record_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t get_int(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static mica_status read_class(const json_t *decision, mica_known_class *out, mica_error *err)
{
    const char *name = mica_record_text(decision, "class");
    int32_t i = 0;
    while (mica_route_class_words[i] && strcmp(mica_route_class_words[i], name) != 0)
        i++;
    if (!mica_route_class_words[i])
        return mica_fail(err, MICA_BAD_TEXT, "the record's decision has the class \"%.40s\", which is none", name);
    out->route_class = (mica_route_class)i;
    snprintf(out->classifier, sizeof out->classifier, "%s", mica_record_text(decision, "classifier"));
    out->p_narrow = mica_record_real(decision, "p_narrow");
    out->is_private = json_is_true(json_object_get(decision, "private"));
    return MICA_OK;
}

static mica_status read_parts(json_t *root, mica_record *out, mica_error *err)
{
    json_t *request = json_object_get(root, "request"), *state = json_object_get(root, "state");
    out->decision = json_object_get(root, "decision");
    out->id = mica_record_text(root, "id");
    out->policy_hash = mica_record_text(json_object_get(root, "policy"), "hash");
    if (!request || !state || !json_is_object(out->decision) || json_integer_value(json_object_get(root, "schema")) != 1)
        return mica_fail(err, MICA_BAD_TEXT, "the record is none of schema 1 with request, state and decision");
    mica_status status = mica_route_request_from(request, "the record: /request", &out->request, err);
    if (!status)
        status = mica_route_state_from(state, "the record: /state", &out->state, err);
    if (!status)
        status = read_class(out->decision, &out->known, err);
    if (status)
        return status;
    out->known.had_text = get_int(root, "text_bytes") > 0;
    snprintf(out->known.policy_hash, sizeof out->known.policy_hash, "%s", out->policy_hash);
    const char *first = json_string_value(json_array_get(json_object_get(out->decision, "order"), 0));
    snprintf(out->chosen, sizeof out->chosen, "%s", first ? first : "");
    return MICA_OK;
}

mica_status mica_record_read(json_t *root, mica_record *out, mica_error *err)
{
    memset(out, 0, sizeof *out);
    out->root = json_incref(root);
    mica_status status = read_parts(root, out, err);
    if (status)
        mica_record_free(out);
    return status;
}

void mica_record_free(mica_record *record)
{
    mica_route_request_free(record->request);
    mica_route_state_free(record->state);
    json_decref(record->root);
}

static void read_attempt(const json_t *object, mica_route_attempt *a)
{
    snprintf(a->rung, sizeof a->rung, "%s", mica_record_text(object, "rung"));
    snprintf(a->result, sizeof a->result, "%s", mica_record_text(object, "result"));
    snprintf(a->error, sizeof a->error, "%s", mica_record_text(object, "error"));
    a->start_ms = mica_record_real(object, "start_ms");
    a->end_ms = mica_record_real(object, "end_ms");
    a->first_byte_ms = mica_record_real(object, "first_byte_ms");
    a->output_tokens = get_int(object, "output_tokens");
    a->hedge = json_is_true(json_object_get(object, "hedge"));
}

bool mica_record_outcome(const json_t *object, mica_route_outcome *out)
{
    const json_t *attempts = json_object_get(object, "attempts");
    if (!json_is_object(object) || !json_is_boolean(json_object_get(object, "ok")))
        return false;
    *out = mica_route_outcome_default();
    out->ok = json_is_true(json_object_get(object, "ok"));
    snprintf(out->rung, sizeof out->rung, "%s", mica_record_text(object, "rung"));
    out->held = get_int(object, "held");
    out->held = out->held > 0 ? out->held : 0;
    out->ttft_ms = mica_record_real(object, "ttft_ms");
    out->total_ms = mica_record_real(object, "total_ms");
    out->usd = mica_record_real(object, "usd");
    out->joules = mica_record_real(object, "joules");
    out->quality = mica_record_real(object, "quality");
    out->prompt_tokens = get_int(object, "prompt_tokens");
    out->output_tokens = get_int(object, "output_tokens");
    for (size_t i = 0; i < json_array_size(attempts) && out->n_attempts < MICA_ROUTE_ATTEMPTS_MAX; i++)
        read_attempt(json_array_get(attempts, i), &out->attempts[out->n_attempts++]);
    return true;
}
