/* policy.c - a governor's policy: the usual values, and JSON over them. Runs once, when a governor is made. */
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "device/control.h"

static const char *const objectives[] = {"off", "burst", "sustained", "efficient"};

#define N_OBJECTIVES (int)(sizeof objectives / sizeof *objectives)

const char *mica_objective_name(mica_objective objective)
{
    return (int)objective >= 0 && (int)objective < N_OBJECTIVES ? objectives[objective] : "unknown";
}

/* docs/governor.md says why each value is what it is. */
void mica_policy_init(mica_policy *p, mica_objective objective)
{
    *p = (mica_policy){.objective = objective,
                       .period_s = 0.5,
                       .probe_s = 1.0,
                       .keep = 0.98, .worth = 0.6, .surely = 0.68, .explore_s = 280,
                       .dwell_s = 20,
                       .trial_s = 6,
                       .margin_c = 0.5,
                       .skin_c = 43,
                       .floor_part = 0.6,
                       .battery_low = 0.2,
                       .battery_objective = MICA_OBJECTIVE_EFFICIENT,
                       .max_tokens = -1,
                       .severe_max_tokens = 256,
                       .severe_refuse = 1024,
                       .hot_chunk = 64,
                       .hot_draft = 3};
    if (objective == MICA_OBJECTIVE_OFF)
        p->severe_max_tokens = p->severe_refuse = -1;
    snprintf(p->name, sizeof p->name, "%s", mica_objective_name(objective));
}

/* ---- JSON ---- */

typedef enum kind { REAL, WHOLE, OBJECTIVE, NAME } kind;

typedef struct field {
    const char *name;
    kind kind;
    size_t offset;
    double low, high;
} field;

/* The same as in share/mica/schemas/governor.schema.json, which the test cli_governor compares. */
static const field fields[] = {
    {"name", NAME, offsetof(mica_policy, name), 1, 47},
    {"objective", OBJECTIVE, offsetof(mica_policy, objective), 0, 0},
    {"period_s", REAL, offsetof(mica_policy, period_s), 0.05, 10},
    {"probe_s", REAL, offsetof(mica_policy, probe_s), 0.1, 60},
    {"keep", REAL, offsetof(mica_policy, keep), 0.5, 1},
    {"dwell_s", REAL, offsetof(mica_policy, dwell_s), 1, 600},
    {"trial_s", REAL, offsetof(mica_policy, trial_s), 0.5, 60},
    {"margin_c", REAL, offsetof(mica_policy, margin_c), 0, 20},
    {"worth", REAL, offsetof(mica_policy, worth), 0, 1},
    {"surely", REAL, offsetof(mica_policy, surely), 0, 1},
    {"explore_s", REAL, offsetof(mica_policy, explore_s), 10, 86400},
    {"skin_c", REAL, offsetof(mica_policy, skin_c), 20, 80},
    {"floor_part", REAL, offsetof(mica_policy, floor_part), 0.05, 1},
    {"floor_tps", REAL, offsetof(mica_policy, floor_tps), 0, 1e6},
    {"battery_low", REAL, offsetof(mica_policy, battery_low), 0, 1},
    {"battery_objective", OBJECTIVE, offsetof(mica_policy, battery_objective), 0, 0},
    {"max_tokens", WHOLE, offsetof(mica_policy, max_tokens), -1, 1 << 24},
    {"severe_max_tokens", WHOLE, offsetof(mica_policy, severe_max_tokens), -1, 1 << 24},
    {"severe_refuse", WHOLE, offsetof(mica_policy, severe_refuse), -1, 1 << 24},
    {"yield_us", WHOLE, offsetof(mica_policy, yield_us), 0, 1000000},
    {"hot_chunk", WHOLE, offsetof(mica_policy, hot_chunk), 0, 4096},
    {"hot_draft", WHOLE, offsetof(mica_policy, hot_draft), -1, 63},
};

#define N_FIELDS (sizeof fields / sizeof *fields)

static mica_status wrong(const field *f, mica_error *err)
{
    static const char *const wanted[] = {[REAL] = "a number", [WHOLE] = "a whole number", [NAME] = "a string of bytes"};
    if (f->kind == OBJECTIVE)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the policy's \"%s\" must be off, burst, sustained or efficient", f->name);
    return mica_fail(err, MICA_INVALID_ARGUMENT, "the policy's \"%s\" must be %s from %g to %g", f->name, wanted[f->kind],
                     f->low, f->high);
}

static bool read_objective(const json_t *value, mica_objective *out)
{
    const char *text = json_string_value(value);
    for (int i = 0; text && i < N_OBJECTIVES; i++) {
        if (strcmp(objectives[i], text) != 0)
            continue;
        *out = (mica_objective)i;
        return true;
    }
    return false;
}

static bool read_field(mica_policy *p, const field *f, const json_t *value)
{
    void *at = (char *)p + f->offset;
    double n = f->kind == NAME ? (double)json_string_length(value) : json_number_value(value);
    bool right = f->kind == NAME ? json_is_string(value) : f->kind == WHOLE ? json_is_integer(value) : json_is_number(value);
    if (f->kind == OBJECTIVE)
        return read_objective(value, at);
    if (!right || !(n >= f->low && n <= f->high))
        return false;
    if (f->kind == REAL)
        *(double *)at = n;
    else if (f->kind == WHOLE)
        *(int32_t *)at = (int32_t)n;
    else
        snprintf(at, sizeof p->name, "%s", json_string_value(value));
    return true;
}

static const field *find_field(const char *name)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static bool is_note(const char *name)
{
    return strcmp(name, "$schema") == 0 || strcmp(name, "description") == 0;
}

static mica_status read_policy(mica_policy *p, json_t *root, mica_error *err)
{
    const char *name;
    json_t *value;
    mica_objective objective;
    if (!json_is_object(root) || json_integer_value(json_object_get(root, "version")) != 1)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a policy is a JSON object with \"version\": 1");
    if (!read_objective(json_object_get(root, "objective"), &objective))
        return wrong(find_field("objective"), err);
    mica_policy_init(p, objective);
    json_object_foreach(root, name, value)
    {
        const field *f = find_field(name);
        if (!f && strcmp(name, "version") != 0 && !is_note(name))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "the policy has a field \"%.60s\" that is not known", name);
        if (f && !read_field(p, f, value))
            return wrong(f, err);
    }
    return MICA_OK;
}

mica_status mica_policy_parse(mica_policy *policy, const char *json, size_t length, mica_error *err)
{
    json_error_t why;
    json_t *root = mica_json_loadb(json, length, JSON_REJECT_DUPLICATES, &why);
    if (!root && mica_json_no_memory(&why))
        return mica_fail_nomem(err, length, "the policy");
    if (!root)
        return mica_fail_at(err, MICA_BAD_TEXT, why.position, "the policy is not JSON: %.200s", why.text);
    mica_status status = read_policy(policy, root, err);
    json_decref(root);
    return status;
}
