/* definition.c - from the JSON text of a task to its struct. Strict: a field that is unknown, missing or of the wrong kind is
 * an error that names it, because a misspelt threshold would otherwise just not count. */
#include "task/detect.h"
#include "base/json.h"
#include "task/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kinds as bits. */
enum {
    CLASSIFY = 1 << MICA_TASK_CLASSIFY,
    ROUTE = 1 << MICA_TASK_ROUTE,
    EXTRACT = 1 << MICA_TASK_EXTRACT,
    SUMMARISE = 1 << MICA_TASK_SUMMARISE,
    REDACT = 1 << MICA_TASK_REDACT,
    COMPLETE = 1 << MICA_TASK_COMPLETE,
    LABELLED = CLASSIFY | ROUTE,
    ANY = LABELLED | EXTRACT | SUMMARISE | REDACT | COMPLETE,
};

typedef enum value_kind { TEXT, NUMBER, WHOLE, TRUTH, LIST, TEXTS, OBJECT, ANYTHING } value_kind;

typedef struct field {
    const char *name;
    value_kind kind;
    int allowed, required; /* kinds of tasks */
    double low, high;      /* of numbers; of lists and texts: length */
} field;

static const field task_fields[] = {
    {"version", WHOLE, ANY, ANY, 1, 1},
    {"kind", TEXT, ANY, ANY, 1, 32},
    {"name", TEXT, ANY, ANY, 1, 64},
    {"description", TEXT, ANY, 0, 0, 1000},
    {"prompt", OBJECT, LABELLED | EXTRACT | SUMMARISE, LABELLED | EXTRACT | SUMMARISE, 0, 0},
    {"labels", LIST, LABELLED, LABELLED, 2, MICA_TASK_MAX_LABELS},
    {"label_prefix", TEXT, LABELLED, 0, 0, 100},
    {"normalise", TRUTH, LABELLED, 0, 0, 0},
    {"calibrate", TEXTS, LABELLED, 0, 0, 16},
    {"threshold", NUMBER, ROUTE, ROUTE, 0, 1},
    {"none", TEXT, ROUTE, 0, 1, 100},
    {"schema", ANYTHING, EXTRACT, EXTRACT, 0, 0},
    {"max_tokens", WHOLE, EXTRACT | SUMMARISE | COMPLETE, 0, 1, 1 << 20},
    {"max_sentences", WHOLE, SUMMARISE, 0, 1, 1000},
    {"part_tokens", WHOLE, SUMMARISE, 0, 1, 1 << 20},
    {"part_prompt", OBJECT, SUMMARISE, 0, 0, 0},
    {"reduce_prompt", OBJECT, SUMMARISE, 0, 0, 0},
    {"detect", TEXTS, REDACT, 0, 0, 16},
    {"replacement", TEXT, REDACT, 0, 0, 200},
    {"model", OBJECT, REDACT, 0, 0, 0},
    {"stop", TEXTS, COMPLETE | SUMMARISE, 0, 0, MICA_TASK_MAX_STOPS},
    {"fim", TRUTH, COMPLETE, 0, 0, 0},
    {"token_healing", TRUTH, COMPLETE, 0, 0, 0},
};

static const field prompt_fields[] = {
    {"text", TEXT, ANY, ANY, 1, 1 << 20}, {"system", TEXT, ANY, 0, 0, 1 << 20}, {"reply", TEXT, ANY, 0, 0, 10000},
    {"example", TEXT, ANY, 0, 1, 10000},  {"examples", LIST, ANY, 0, 0, 1000},  {"chat", TRUTH, ANY, 0, 0, 0},
};

static const field label_fields[] = {
    {"label", TEXT, ANY, ANY, 1, 200},
    {"text", TEXT, ANY, 0, 1, 1000},
    {"description", TEXT, ANY, 0, 0, 1000},
};

static const field example_fields[] = {{"input", TEXT, ANY, ANY, 0, 100000}, {"output", TEXT, ANY, ANY, 0, 100000}};

static const field model_fields[] = {
    {"prompt", OBJECT, ANY, ANY, 0, 0},
    {"types", OBJECT, ANY, ANY, 0, 0},
    {"max_tokens", WHOLE, ANY, 0, 1, 1 << 20},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- Fields ---- */

static bool is_texts(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)value, i, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return json_is_array(value);
}

/* What the value should have been; NULL if it is right. */
static const char *wrong_kind(const field *f, const json_t *value)
{
    switch (f->kind) {
    case TEXT:
        return json_is_string(value) ? NULL : "a string";
    case NUMBER:
        return json_is_number(value) ? NULL : "a number";
    case WHOLE:
        return json_is_integer(value) ? NULL : "a whole number";
    case TRUTH:
        return json_is_boolean(value) ? NULL : "true or false";
    case LIST:
        return json_is_array(value) ? NULL : "a list";
    case TEXTS:
        return is_texts(value) ? NULL : "a list of strings";
    case OBJECT:
        return json_is_object(value) ? NULL : "an object";
    case ANYTHING:
        break;
    }
    return NULL;
}

static double measure(const field *f, const json_t *value)
{
    if (f->kind == TEXT)
        return (double)json_string_length(value);
    return f->kind == LIST || f->kind == TEXTS ? (double)json_array_size(value) : json_number_value(value);
}

static mica_status check_field(const field *f, const json_t *value, const char *where, mica_error *err)
{
    const char *wanted = wrong_kind(f, value);
    if (wanted)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the task's field \"%s%s\" must be %s", where, f->name, wanted);
    if (f->kind == TRUTH || f->kind == OBJECT || f->kind == ANYTHING)
        return MICA_OK;
    double n = measure(f, value);
    if (n >= f->low && n <= f->high)
        return MICA_OK;
    const char *what = f->kind == TEXT                       ? "must be a string of"
                       : f->kind == LIST || f->kind == TEXTS ? "must have"
                                                             : "must be within";
    return mica_fail(err, MICA_INVALID_ARGUMENT, "the task's field \"%s%s\" %s %g to %g%s", where, f->name, what, f->low,
                     f->high,
                     f->kind == TEXT                       ? " bytes"
                     : f->kind == LIST || f->kind == TEXTS ? " entries"
                                                           : "");
}

/* Every field of `object` is known and right, and none is missing. `where` is a prefix for messages. */
static mica_status check_fields(const json_t *object, const field *fields, size_t n, int kind, const char *where,
                                mica_error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the task's field \"%s\" must be an object", where);
    json_object_foreach((json_t *)object, key, value)
    {
        const field *f = NULL;
        for (size_t i = 0; i < n && !f; i++)
            f = strcmp(fields[i].name, key) == 0 ? &fields[i] : NULL;
        if (!f || !(f->allowed & kind))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "a task of this kind has no field \"%s%s\"", where, key);
        mica_status status = check_field(f, value, where, err);
        if (status)
            return status;
    }
    for (size_t i = 0; i < n; i++)
        if (fields[i].required & kind && !json_object_get(object, fields[i].name))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "the task's field \"%s%s\" is missing", where, fields[i].name);
    return MICA_OK;
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_string_value(value) : otherwise;
}

static bool truth_of(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_is_true(value) : otherwise;
}

static int32_t whole_of(const json_t *object, const char *key, int32_t otherwise)
{
    const json_t *value = json_object_get(object, key);
    return value ? (int32_t)json_integer_value(value) : otherwise;
}

/* ---- Parts ---- */

static mica_status read_prompt(const json_t *object, mica_task_prompt *p, const char *where, mica_error *err)
{
    size_t i;
    json_t *example;
    mica_status status = check_fields(object, prompt_fields, COUNT(prompt_fields), ANY, where, err);
    if (status)
        return status;
    *p = (mica_task_prompt){.system = text_of(object, "system", ""),
                            .text = text_of(object, "text", ""),
                            .reply = text_of(object, "reply", ""),
                            .example = text_of(object, "example", "{input}\n{output}\n\n"),
                            .examples = json_object_get(object, "examples"),
                            .chat = truth_of(object, "chat", true)};
    const char *once = strstr(p->text, "{input}");
    if (!once || strstr(once + 1, "{input}"))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the task's field \"%stext\" must have {input} exactly once", where);
    json_array_foreach((json_t *)p->examples, i, example)
    {
        if ((status = check_fields(example, example_fields, COUNT(example_fields), ANY, "examples.", err)))
            return status;
    }
    return MICA_OK;
}

static mica_status read_label(const json_t *item, mica_task_label *label, mica_error *err)
{
    mica_status status = MICA_OK;
    if (json_is_string(item))
        *label = (mica_task_label){json_string_value(item), json_string_value(item), ""};
    else if (!(status = check_fields(item, label_fields, COUNT(label_fields), ANY, "labels.", err)))
        *label = (mica_task_label){text_of(item, "label", ""), text_of(item, "text", text_of(item, "label", "")),
                                   text_of(item, "description", "")};
    if (!status && (!*label->name || !*label->text))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a label of the task is empty");
    return status;
}

static mica_status read_labels(mica_task *t, mica_error *err)
{
    const json_t *list = json_object_get(t->definition, "labels");
    t->n_labels = json_array_size(list);
    t->labels = calloc(t->n_labels, sizeof *t->labels);
    if (!t->labels)
        return mica_fail_nomem(err, t->n_labels * sizeof *t->labels, "the task's labels");
    for (size_t i = 0; i < t->n_labels; i++) {
        mica_status status = read_label(json_array_get(list, i), &t->labels[i], err);
        if (status)
            return status;
        for (size_t k = 0; k < i; k++)
            if (strcmp(t->labels[k].name, t->labels[i].name) == 0 || strcmp(t->labels[k].text, t->labels[i].text) == 0)
                return mica_fail(err, MICA_INVALID_ARGUMENT, "the task has the label \"%s\" twice", t->labels[i].name);
    }
    t->label_prefix = text_of(t->definition, "label_prefix", " ");
    t->none = text_of(t->definition, "none", "none");
    t->normalise = truth_of(t->definition, "normalise", false);
    t->threshold = json_number_value(json_object_get(t->definition, "threshold"));
    t->calibrate = json_object_get(t->definition, "calibrate");
    if (json_array_size(t->calibrate) == 0)
        t->calibrate = NULL;
    return MICA_OK;
}

static mica_status read_constraint(mica_task *t, const json_t *schema, mica_error *err)
{
    mica_constraint_options options = mica_constraint_options_default();
    t->schema_text = mica_json_dumps(schema, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!t->schema_text)
        return mica_fail_nomem(err, 1, "the task's schema");
    options.kind = MICA_CONSTRAINT_JSON_SCHEMA;
    options.text = t->schema_text;
    options.length = strlen(t->schema_text);
    return t->model ? mica_constraint_new(t->model, &options, &t->constraint, err) : MICA_OK;
}

static mica_status read_extract(mica_task *t, mica_error *err)
{
    t->max_tokens = whole_of(t->definition, "max_tokens", 512);
    return read_constraint(t, json_object_get(t->definition, "schema"), err);
}

static mica_status read_summarise(mica_task *t, mica_error *err)
{
    const json_t *part = json_object_get(t->definition, "part_prompt"),
                 *reduce = json_object_get(t->definition, "reduce_prompt");
    mica_status status = MICA_OK;
    t->max_tokens = whole_of(t->definition, "max_tokens", 120);
    t->max_sentences = whole_of(t->definition, "max_sentences", 3);
    t->part_tokens = whole_of(t->definition, "part_tokens", t->max_tokens);
    t->part_prompt = t->reduce_prompt = t->prompt;
    if (part)
        status = read_prompt(part, &t->part_prompt, "part_prompt.", err);
    if (!status && reduce)
        status = read_prompt(reduce, &t->reduce_prompt, "reduce_prompt.", err);
    return status;
}

/* {"type": "object", one list of strings for each type} */
static json_t *schema_of_types(const json_t *types)
{
    json_t *properties = json_object(), *required = json_array(), *value;
    const char *type;
    json_object_foreach((json_t *)types, type, value)
    {
        json_object_set_new(properties, json_string_value(value),
                            json_pack("{s:s, s:i, s:{s:s, s:i, s:i}}", "type", "array", "maxItems", 16, "items", "type",
                                      "string", "minLength", 2, "maxLength", 80));
        json_array_append(required, value);
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

static mica_status read_redact_model(mica_task *t, const json_t *model, mica_error *err)
{
    const char *type;
    json_t *key;
    mica_status status = check_fields(model, model_fields, COUNT(model_fields), ANY, "model.", err);
    if (!status)
        status = read_prompt(json_object_get(model, "prompt"), &t->prompt, "model.prompt.", err);
    if (status)
        return status;
    t->types = json_object_get(model, "types");
    t->max_tokens = whole_of(model, "max_tokens", 256);
    json_object_foreach((json_t *)t->types, type, key)
    {
        if (!*type || !json_is_string(key) || json_string_length(key) == 0)
            return mica_fail(err, MICA_INVALID_ARGUMENT,
                             "the task's field \"model.types.%s\" must be a string: the key of its list in the reply", type);
    }
    if (json_object_size(t->types) == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the task's field \"model.types\" is empty; leave \"model\" out for rules only");
    json_t *schema = schema_of_types(t->types);
    status = schema ? read_constraint(t, schema, err) : mica_fail_nomem(err, 1, "the task's schema");
    json_decref(schema);
    return status;
}

static mica_status read_redact(mica_task *t, mica_error *err)
{
    const json_t *detect = json_object_get(t->definition, "detect"), *model = json_object_get(t->definition, "model");
    size_t i;
    json_t *name;
    t->replacement = text_of(t->definition, "replacement", "[{type}]");
    json_array_foreach((json_t *)detect, i, name)
    {
        int bit = mica_detector_of(json_string_value(name));
        if (!bit)
            return mica_fail(err, MICA_INVALID_ARGUMENT,
                             "there is no detector \"%s\"; there are email, phone, iban, card, ip, date",
                             json_string_value(name));
        t->detectors |= bit;
    }
    return model ? read_redact_model(t, model, err) : MICA_OK;
}

static mica_status read_complete(mica_task *t)
{
    t->max_tokens = whole_of(t->definition, "max_tokens", 32);
    t->fim = truth_of(t->definition, "fim", true);
    t->healing = truth_of(t->definition, "token_healing", true);
    return MICA_OK;
}

/* ---- The whole ---- */

static mica_status read_kind(mica_task *t, mica_error *err)
{
    const char *kind = text_of(t->definition, "kind", NULL);
    for (int k = MICA_TASK_CLASSIFY; k <= MICA_TASK_COMPLETE && kind; k++) {
        if (strcmp(kind, mica_task_kind_name((mica_task_kind)k)) == 0) {
            t->kind = (mica_task_kind)k;
            return MICA_OK;
        }
    }
    return mica_fail(err, MICA_INVALID_ARGUMENT,
                     "the task's field \"kind\" must be one of classify, route, extract, summarise, redact, complete");
}

mica_status mica_task_read(mica_task *t, mica_error *err)
{
    mica_status status;
    if (!json_is_object(t->definition))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a task's definition must be a JSON object");
    if ((status = read_kind(t, err)) ||
        (status = check_fields(t->definition, task_fields, COUNT(task_fields), 1 << t->kind, "", err)))
        return status;
    t->name = text_of(t->definition, "name", "");
    t->description = text_of(t->definition, "description", "");
    t->stop = json_object_get(t->definition, "stop");
    const json_t *prompt = json_object_get(t->definition, "prompt");
    if (prompt && (status = read_prompt(prompt, &t->prompt, "prompt.", err)))
        return status;
    switch (t->kind) {
    case MICA_TASK_CLASSIFY:
    case MICA_TASK_ROUTE:
        return read_labels(t, err);
    case MICA_TASK_EXTRACT:
        return read_extract(t, err);
    case MICA_TASK_SUMMARISE:
        return read_summarise(t, err);
    case MICA_TASK_REDACT:
        return read_redact(t, err);
    case MICA_TASK_COMPLETE:
        break;
    }
    return read_complete(t);
}
