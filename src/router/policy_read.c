/* policy_read.c - the members of a policy file. docs/router.md describes them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "router/policy.h"
#include "router/request.h"

#define TOKENS_MAX 1e9
#define BYTES_MAX  1099511627776.0

static const char *const orders[] = {"ladder", "smallest", "score", NULL};
static const char *const sides[] = {"none", "local", "remote", NULL};
static const char *const offlines[] = {"run", "degrade", "queue", NULL};

static const mica_field_row policy_fields[] = {
    MICA_PART_FIELD("schema", true),
    MICA_NAME_FIELD(mica_route_policy, name, "name"),
    MICA_NAME_FIELD(mica_route_policy, version, "version"),
    MICA_TEXT_FIELD(mica_route_policy, note, "note", 0, false),
    MICA_PART_FIELD("ladder", true),
    MICA_PART_FIELD("prices", false),
    MICA_PART_FIELD("classifier", false),
    MICA_FLAG_FIELD(mica_route_policy, allow_egress, "allow_egress"),
    MICA_FLAG_FIELD(mica_route_policy, log_text, "log_text"),
    MICA_REAL_FIELD(mica_route_policy, bytes_per_token, "bytes_per_token", 0.5, 100, true),
    MICA_INT_FIELD(mica_route_policy, hops, "hops", 1, MICA_ROUTE_RUNGS_MAX, false),
    MICA_PART_FIELD("memory", true),
    MICA_PART_FIELD("rules", false),
    MICA_PART_FIELD("classes", true),
    MICA_PART_FIELD("when", false),
    MICA_PART_FIELD("offline", false),
    MICA_PART_FIELD("run", false),
};

static const mica_field_row memory_fields[] = {
    MICA_REAL_FIELD(mica_route_policy, ram_fraction, "ram_fraction", 0.01, 1, true),
};

static const mica_field_row classifier_fields[] = {
    MICA_PART_FIELD("file", true),
    MICA_REAL_FIELD(mica_route_policy, min_confidence, "min_confidence", 0.5, 1, true),
};

static const mica_field_row offline_fields[] = {
    MICA_TEXT_FIELD(mica_route_policy, degraded_prompt, "degraded_prompt", 0, false),
    MICA_FLAG_FIELD(mica_route_policy, queue_when_nothing_fits, "queue_when_nothing_fits"),
};

static const mica_field_row classes_fields[] = {
    MICA_PART_FIELD("unknown", true),
    MICA_PART_FIELD("narrow", true),
    MICA_PART_FIELD("complex", true),
};

static const mica_field_row class_fields[] = {
    MICA_CHOICE_FIELD(mica_policy_class, order, "order", 0, orders, true),
    MICA_CHOICE_FIELD(mica_policy_class, prefer, "prefer", 0, sides, false),
    MICA_CHOICE_FIELD(mica_policy_class, offline, "offline", 0, offlines, false),
    MICA_REAL_FIELD(mica_policy_class, min_quality, "min_quality", 0, 1, false),
    MICA_INT_FIELD(mica_policy_class, output_tokens, "output_tokens", 1, TOKENS_MAX, true),
    MICA_INT_FIELD(mica_policy_class, deadline_ms, "deadline_ms", 1, 1e12, false),
    MICA_REAL_FIELD(mica_policy_class, per_usd, "per_usd", 0, 1e9, false),
    MICA_REAL_FIELD(mica_policy_class, per_second, "per_second", 0, 1e9, false),
    MICA_REAL_FIELD(mica_policy_class, per_joule, "per_joule", 0, 1e9, false),
    MICA_REAL_FIELD(mica_policy_class, per_quality, "per_quality", 0, 1e9, false),
};

static const mica_field_row when_fields[] = {
    MICA_NAME_FIELD(mica_policy_when, name, "name"),
    MICA_TEXT_FIELD(mica_policy_when, note, "note", 0, false),
    MICA_CHOICE_FIELD(mica_policy_when, thermal_least, "thermal_at_least", MICA_THERMAL_NONE, mica_route_thermal_words, false),
    MICA_REAL_FIELD(mica_policy_when, battery_below, "battery_below", 0, 1, false),
    MICA_ANSWER_FIELD(mica_policy_when, on_battery, "on_battery"),
    MICA_ANSWER_FIELD(mica_policy_when, power_save, "power_save"),
    MICA_ANSWER_FIELD(mica_policy_when, metered, "metered"),
    MICA_ANSWER_FIELD(mica_policy_when, network, "network"),
    MICA_CHOICE_FIELD(mica_policy_when, route_class, "class", 0, mica_route_class_words, false),
    MICA_INT_FIELD(mica_policy_when, prompt_least, "prompt_tokens_at_least", 0, TOKENS_MAX, false),
    MICA_INT_FIELD(mica_policy_when, output_least, "output_tokens_at_least", 0, TOKENS_MAX, false),
    MICA_CHOICE_FIELD(mica_policy_when, forbid, "forbid", 0, sides, false),
    MICA_CHOICE_FIELD(mica_policy_when, prefer, "prefer", 0, sides, false),
    MICA_CHOICE_FIELD(mica_policy_when, order, "order", 0, orders, false),
    MICA_INT_FIELD(mica_policy_when, output_most, "max_output_tokens", 1, TOKENS_MAX, false),
    MICA_INT_FIELD(mica_policy_when, weights_most, "max_weights_bytes", 0, BYTES_MAX, false),
    MICA_INT_FIELD(mica_policy_when, yield_tokens, "yield_tokens", 1, TOKENS_MAX, false),
};

enum { T_POLICY, T_MEMORY, T_CLASSIFIER, T_OFFLINE, T_CLASSES, T_CLASS, T_WHEN };

static const mica_field_table tables[] = {
    [T_POLICY] = MICA_FIELD_TABLE("policy", policy_fields, false),
    [T_MEMORY] = MICA_FIELD_TABLE("memory", memory_fields, false),
    [T_CLASSIFIER] = MICA_FIELD_TABLE("use of a classifier", classifier_fields, false),
    [T_OFFLINE] = MICA_FIELD_TABLE("offline part", offline_fields, false),
    [T_CLASSES] = MICA_FIELD_TABLE("set of classes", classes_fields, false),
    [T_CLASS] = MICA_FIELD_TABLE("class", class_fields, false),
    [T_WHEN] = MICA_FIELD_TABLE("when", when_fields, false),
};

const mica_field_table *mica_policy_table(size_t i) { return i < sizeof tables / sizeof *tables ? &tables[i] : NULL; }

/* ---- Parts ---- */

/* An object that is read into the policy itself. */
static mica_status read_part(const json_t *root, const char *name, const char *key, int table, void *out, mica_error *err)
{
    char where[192];
    const json_t *part = json_object_get(root, key);
    snprintf(where, sizeof where, "%.120s: /%s", name, key);
    return part ? mica_fields_read(part, where, &tables[table], out, err) : MICA_OK;
}

static mica_status read_classes(const json_t *root, const char *name, mica_route_policy *policy, mica_error *err)
{
    char where[192];
    const json_t *classes = json_object_get(root, "classes");
    snprintf(where, sizeof where, "%.120s: /classes", name);
    mica_status status = mica_fields_read(classes, where, &tables[T_CLASSES], policy, err);
    for (int32_t i = 0; !status && i < MICA_CLASSES; i++) {
        mica_policy_class *c = &policy->classes[i];
        *c = (mica_policy_class){.deadline_ms = -1};
        snprintf(where, sizeof where, "%.120s: /classes/%s", name, mica_route_class_words[i]);
        status = mica_fields_read(json_object_get(classes, mica_route_class_words[i]), where, &tables[T_CLASS], c, err);
        if (!status && c->order == MICA_ORDER_SCORE && c->per_usd + c->per_second + c->per_joule + c->per_quality <= 0)
            status = mica_fail(err, MICA_BAD_TEXT,
                               "%s/order \"score\" needs one of per_usd, per_second, per_joule and per_quality above 0", where);
    }
    return status;
}

static mica_status read_when(const json_t *object, const char *where, mica_policy_when *when, mica_error *err)
{
    *when = (mica_policy_when){.thermal_least = -1, .battery_below = NAN, .on_battery = MICA_UNKNOWN,
                               .power_save = MICA_UNKNOWN,
                               .metered = MICA_UNKNOWN, .network = MICA_UNKNOWN, .route_class = MICA_CLASS_AUTO,
                               .prompt_least = -1, .output_least = -1, .prefer = -1, .order = -1, .output_most = -1,
                               .weights_most = -1, .yield_tokens = -1};
    return mica_fields_read(object, where, &tables[T_WHEN], when, err);
}

/* A "when" may order by score in any class: then every class must have said what things cost. */
static mica_status check_scores(const mica_route_policy *policy, const char *where, const mica_policy_when *when,
                                mica_error *err)
{
    for (int32_t i = 0; when->order == MICA_ORDER_SCORE && i < MICA_CLASSES; i++) {
        const mica_policy_class *c = &policy->classes[i];
        bool meant = when->route_class == MICA_CLASS_AUTO || when->route_class == i;
        if (meant && c->per_usd + c->per_second + c->per_joule + c->per_quality <= 0)
            return mica_fail(err, MICA_BAD_TEXT, "%s/order \"score\": the class %s has no per_usd, per_second, per_joule or "
                                                 "per_quality above 0", where, mica_route_class_words[i]);
    }
    return MICA_OK;
}

static mica_status read_whens(const json_t *root, const char *name, mica_route_policy *policy, mica_error *err)
{
    char where[192];
    const json_t *list = NULL;
    snprintf(where, sizeof where, "%.120s: ", name);
    mica_status status = mica_field_part(root, where, "when", JSON_ARRAY, MICA_WHENS_MAX, &list, err);
    for (size_t i = 0; !status && i < json_array_size(list); i++) {
        mica_policy_when *when = &policy->when[policy->n_when++];
        snprintf(where, sizeof where, "%.120s: /when/%zu", name, i);
        status = read_when(json_array_get(list, i), where, when, err);
        if (!status)
            status = check_scores(policy, where, when, err);
    }
    return status;
}

static mica_status read_rules(const json_t *root, const char *name, mica_route_policy *policy, mica_error *err)
{
    char where[192];
    const json_t *list = NULL;
    snprintf(where, sizeof where, "%.120s: ", name);
    mica_status status = mica_field_part(root, where, "rules", JSON_ARRAY, MICA_RULES_MAX, &list, err);
    return status ? status : mica_rules_read(list, name, &policy->rules, err);
}

static mica_status read_run(const json_t *root, const char *name, mica_route_policy *policy, mica_error *err)
{
    char where[192];
    const json_t *run = NULL;
    snprintf(where, sizeof where, "%.120s: ", name);
    mica_status status = mica_field_part(root, where, "run", JSON_OBJECT, 64, &run, err);
    return status ? status : mica_run_settings_read(run, &policy->run, err);
}

static void take_defaults(mica_route_policy *policy, mica_policy_parts *parts)
{
    policy->hops = MICA_ROUTE_RUNGS_MAX;
    policy->min_confidence = 1;
    policy->electricity_usd = parts->prices ? parts->prices->electricity.v : NAN;
    policy->classifier = parts->classifier;
    parts->classifier = NULL;
}

mica_status mica_policy_read(const json_t *root, const char *name, mica_policy_parts *parts, mica_route_policy *policy,
                             mica_error *err)
{
    char where[192];
    take_defaults(policy, parts);
    snprintf(where, sizeof where, "%.120s: ", name);
    mica_status status = mica_fields_read(root, where, &tables[T_POLICY], policy, err);
    if (!status && json_integer_value(json_object_get(root, "schema")) != 1)
        status = mica_fail(err, MICA_BAD_TEXT, "%s/schema must be 1: this build knows no other form of a policy", where);
    if (!status)
        status = read_part(root, name, "memory", T_MEMORY, policy, err);
    if (!status)
        status = read_part(root, name, "classifier", T_CLASSIFIER, policy, err);
    if (!status)
        status = read_part(root, name, "offline", T_OFFLINE, policy, err);
    if (!status)
        status = read_rules(root, name, policy, err);
    if (!status)
        status = read_classes(root, name, policy, err);
    if (!status)
        status = read_whens(root, name, policy, err);
    if (!status)
        status = read_run(root, name, policy, err);
    return status ? status : mica_ladder_read(parts->ladder, parts->ladder_name, parts->prices, &policy->ladder, err);
}
