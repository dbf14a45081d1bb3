#include "router/rules.h"

#include <stdio.h>
#include <string.h>

#define TOKENS_MAX  1e9
/* Steps of one pattern over one text. A pattern without back-tracking needs some hundred for a page; a pathological one would
 * need more than there is time. At about 10 ns a step this is a millisecond. */
#define MATCH_STEPS 100000

const char *const mica_route_class_words[] = {"unknown", "narrow", "complex", NULL};

static const mica_field_row rule_fields[] = {
    MICA_NAME_FIELD(mica_rule, name, "name"),
    MICA_TEXT_FIELD(mica_rule, note, "note", 0, false),
    MICA_PART_FIELD("task", false),
    MICA_TEXT_FIELD(mica_rule, pattern, "pattern", 1, false),
    MICA_INT_FIELD(mica_rule, prompt_least, "prompt_tokens_at_least", 0, TOKENS_MAX, false),
    MICA_INT_FIELD(mica_rule, prompt_most, "prompt_tokens_at_most", 0, TOKENS_MAX, false),
    MICA_INT_FIELD(mica_rule, output_least, "output_tokens_at_least", 0, TOKENS_MAX, false),
    MICA_INT_FIELD(mica_rule, output_most, "output_tokens_at_most", 0, TOKENS_MAX, false),
    MICA_ANSWER_FIELD(mica_rule, schema, "has_schema"),
    MICA_ANSWER_FIELD(mica_rule, tools, "has_tools"),
    MICA_CHOICE_FIELD(mica_rule, route_class, "class", 0, mica_route_class_words, false),
    MICA_FLAG_FIELD(mica_rule, make_private, "private"),
};

static const mica_field_table table = MICA_FIELD_TABLE("rule", rule_fields, false);

const mica_field_table *mica_rules_table(size_t i) { return i == 0 ? &table : NULL; }

/* ---- Reading ---- */

static mica_status read_tasks(const json_t *list, const char *where, mica_rule *rule, mica_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || !*text || strlen(text) >= MICA_ROUTE_NAME_MAX)
            return mica_fail(err, MICA_BAD_TEXT, "%s/task/%zu must be a text of 1 to %d bytes", where, i,
                             MICA_ROUTE_NAME_MAX - 1);
        snprintf(rule->task[rule->n_tasks++], MICA_ROUTE_NAME_MAX, "%s", text);
    }
    return MICA_OK;
}

static mica_status compile(mica_rule *rule, const char *where, mica_error *err)
{
    int code;
    PCRE2_SIZE at;
    PCRE2_UCHAR reason[120];
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    if (!rule->pattern[0])
        return MICA_OK;
    rule->code = pcre2_compile((PCRE2_SPTR)rule->pattern, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (!rule->code) {
        pcre2_get_error_message(code, reason, sizeof reason);
        return mica_fail_at(err, MICA_BAD_TEXT, (int64_t)at, "%s/pattern is no regular expression: %s at byte %zu", where,
                            (const char *)reason, at);
    }
    pcre2_jit_compile(rule->code, PCRE2_JIT_COMPLETE); /* where it is not allowed, the interpreter gives the same */
    rule->ascii = pcre2_compile((PCRE2_SPTR)rule->pattern, PCRE2_ZERO_TERMINATED, PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (rule->ascii) /* not, if it names a character beyond one byte */
        pcre2_jit_compile(rule->ascii, PCRE2_JIT_COMPLETE);
    return MICA_OK;
}

static mica_status read_rule(const json_t *object, const char *where, mica_rule *rule, mica_error *err)
{
    const json_t *tasks = NULL;
    rule->prompt_least = rule->prompt_most = rule->output_least = rule->output_most = -1;
    rule->schema = rule->tools = MICA_UNKNOWN;
    rule->route_class = MICA_CLASS_AUTO;
    mica_status status = mica_fields_read(object, where, &table, rule, err);
    if (!status)
        status = mica_field_part(object, where, "task", JSON_ARRAY, MICA_RULE_TASKS_MAX, &tasks, err);
    if (!status)
        status = read_tasks(tasks, where, rule, err);
    if (!status && rule->route_class == MICA_CLASS_AUTO && !rule->make_private)
        status = mica_fail(err, MICA_BAD_TEXT, "%s does nothing: it needs \"class\" or \"private\": true", where);
    return status ? status : compile(rule, where, err);
}

static mica_status make_limits(mica_rules *rules, mica_error *err)
{
    rules->limits = pcre2_match_context_create(NULL);
    if (!rules->limits)
        return mica_fail_nomem(err, sizeof(void *), "the limits of patterns");
    pcre2_set_match_limit(rules->limits, MATCH_STEPS);
    pcre2_set_depth_limit(rules->limits, MATCH_STEPS);
    pcre2_set_heap_limit(rules->limits, 4096); /* KiB */
    return MICA_OK;
}

mica_status mica_rules_read(const json_t *list, const char *name, mica_rules *out, mica_error *err)
{
    char where[192];
    mica_status status = make_limits(out, err);
    for (size_t i = 0; !status && i < json_array_size(list); i++) {
        mica_rule *rule = &out->rule[out->n++];
        snprintf(where, sizeof where, "%.120s: /rules/%zu", name, i);
        status = read_rule(json_array_get(list, i), where, rule, err);
        out->any_pattern = out->any_pattern || rule->code;
    }
    return status;
}

void mica_rules_free(mica_rules *rules)
{
    for (int32_t i = 0; i < rules->n; i++) {
        pcre2_code_free(rules->rule[i].code);
        pcre2_code_free(rules->rule[i].ascii);
    }
    pcre2_match_context_free(rules->limits);
}

/* ---- Applying ---- */

static bool has_task(const mica_rule *rule, const char *task)
{
    for (int32_t i = 0; i < rule->n_tasks; i++)
        if (task && strcmp(rule->task[i], task) == 0)
            return true;
    return rule->n_tasks == 0;
}

/* An unknown value (-1) is in no range. */
static bool in_range(int64_t value, int64_t least, int64_t most)
{
    return (least < 0 || value >= least) && (most < 0 || (value >= 0 && value <= most));
}

static bool is_as(int wanted, bool is) { return wanted == MICA_UNKNOWN || (wanted == MICA_YES) == is; }

/* The text that patterns look at: all of it, as a secret may stand anywhere. */
typedef struct subject {
    const mica_rules *rules;
    PCRE2_SPTR text;
    size_t length;
    bool is_ascii;
    pcre2_match_data *data;
} subject;

static bool is_ascii(const char *text, size_t length)
{
    uint64_t all = 0, word;
    size_t i = 0;
    for (; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, text + i, sizeof word);
        all |= word;
    }
    for (; i < length; i++)
        all |= (unsigned char)text[i];
    return (all & 0x8080808080808080u) == 0;
}

static mica_status make_subject(const mica_rules *rules, const mica_route_request *request, subject *out, mica_error *err)
{
    bool has_text = rules->any_pattern && request->text;
    *out = (subject){.rules = rules,
                     .text = (PCRE2_SPTR)(has_text ? request->text : ""),
                     .length = has_text ? request->length : 0};
    if (!rules->any_pattern)
        return MICA_OK;
    out->is_ascii = is_ascii((const char *)out->text, out->length);
    out->data = pcre2_match_data_create(1, NULL);
    return out->data ? MICA_OK : mica_fail_nomem(err, sizeof(void *), "the matching of patterns");
}

static bool pattern_holds(const mica_rule *rule, const subject *s)
{
    if (!rule->code)
        return true;
    int found = pcre2_match(s->is_ascii && rule->ascii ? rule->ascii : rule->code, s->text, s->length, 0, 0, s->data,
                            s->rules->limits);
    return found >= 0 || (found != PCRE2_ERROR_NOMATCH && rule->make_private);
}

static bool holds(const mica_rule *rule, const mica_route_request *request, int64_t prompt_tokens, int64_t output_tokens,
                  const subject *s)
{
    return has_task(rule, request->task) && in_range(prompt_tokens, rule->prompt_least, rule->prompt_most) &&
           in_range(output_tokens, rule->output_least, rule->output_most) && is_as(rule->schema, request->has_schema) &&
           is_as(rule->tools, request->has_tools) && pattern_holds(rule, s);
}

mica_status mica_rules_apply(const mica_rules *rules, const mica_route_request *request, int64_t prompt_tokens,
                             int64_t output_tokens, mica_rules_result *out, mica_error *err)
{
    subject s;
    *out = (mica_rules_result){0};
    mica_status status = make_subject(rules, request, &s, err);
    if (status)
        return status;
    for (int32_t i = 0; i < rules->n; i++) {
        const mica_rule *rule = &rules->rule[i];
        bool news = (rule->make_private && !out->is_private) || (rule->route_class != MICA_CLASS_AUTO && !out->by);
        if (!news || !holds(rule, request, prompt_tokens, output_tokens, &s))
            continue;
        out->is_private = out->is_private || rule->make_private;
        if (!out->by && rule->route_class != MICA_CLASS_AUTO)
            out->by = rule;
    }
    pcre2_match_data_free(s.data);
    return MICA_OK;
}
