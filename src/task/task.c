/* task.c - making a task, and running it on an input. */
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "session/session.h"
#include "text/utf8.h"

#define MAX_DEFINITION ((size_t)1 << 24)

static const char *const kind_names[] = {"classify", "route", "extract", "summarise", "redact", "complete"};

const char *mica_task_kind_name(mica_task_kind kind)
{
    return (size_t)kind < sizeof kind_names / sizeof *kind_names ? kind_names[kind] : NULL;
}

mica_task_input mica_task_input_default(void)
{
    return (mica_task_input){.struct_size = sizeof(mica_task_input)};
}

static bool needs_model(const mica_task *t)
{
    return t->kind != MICA_TASK_REDACT || t->types;
}

void mica_task_get_info(const mica_task *t, mica_task_info *info)
{
    *info = (mica_task_info){t->kind, t->name, t->description, needs_model(t)};
}

static mica_status make(mica_task *t, const char *definition, size_t length, mica_error *err)
{
    json_error_t reason;
    if (length > MAX_DEFINITION)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a task's definition of %zu bytes is too large; at most %zu", length,
                         MAX_DEFINITION);
    t->definition = mica_json_loadb(definition, length, JSON_REJECT_DUPLICATES, &reason);
    if (!t->definition && mica_json_no_memory(&reason))
        return mica_fail_nomem(err, length, "the task's definition");
    if (!t->definition)
        return mica_fail_at(err, MICA_BAD_TEXT, reason.position, "the task's definition is not JSON: line %d, column %d: %s",
                            reason.line, reason.column, reason.text);
    mica_status status = mica_task_read(t, err);
    if (!status && needs_model(t) && !t->model)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the task \"%s\" needs a model", t->name);
    return status;
}

mica_status mica_task_new(mica_model *model, const char *definition, size_t length, mica_task **out, mica_error *err)
{
    *out = NULL;
    mica_task *t = calloc(1, sizeof *t);
    if (!t)
        return mica_fail_nomem(err, sizeof *t, "the task");
    if (model)
        mica_model_retain(model);
    t->model = model;
    mica_status status = make(t, definition, length, err);
    if (status) {
        mica_task_free(t);
        return status;
    }
    *out = t;
    return MICA_OK;
}

void mica_task_free(mica_task *t)
{
    if (!t)
        return;
    mica_constraint_free(t->constraint);
    free(t->schema_text);
    free(t->labels);
    free(t->bias);
    json_decref(t->definition);
    mica_model_close(t->model);
    free(t);
}

static mica_status check(const mica_task *t, const mica_session *session, const mica_task_input *input, mica_error *err)
{
    const struct {
        const char *text;
        size_t length;
        const char *what;
    } texts[] = {{input->text, input->length, "input"}, {input->suffix, input->suffix_length, "suffix"}};
    for (size_t i = 0; i < 2; i++) {
        if (texts[i].length > MICA_TASK_MAX_TEXT)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "the %s has %zu bytes; at most %zu are possible", texts[i].what,
                             texts[i].length, MICA_TASK_MAX_TEXT);
        size_t good = texts[i].length ? mica_utf8_check(texts[i].text, texts[i].length) : 0;
        if (good < texts[i].length)
            return mica_fail_at(err, MICA_BAD_TEXT, (int64_t)good, "the %s is not valid UTF-8 at byte %zu", texts[i].what,
                                good);
    }
    if (needs_model(t) && (!session || session->model != t->model))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the task \"%s\" needs a session of the model that it was made for",
                         t->name);
    return MICA_OK;
}

static mica_status run(mica_task_job *job, json_t **result, mica_error *err)
{
    switch (job->task->kind) {
    case MICA_TASK_CLASSIFY:
    case MICA_TASK_ROUTE:
        return mica_task_classify(job, result, err);
    case MICA_TASK_EXTRACT:
        return mica_task_extract(job, result, err);
    case MICA_TASK_SUMMARISE:
        return mica_task_summarise(job, result, err);
    case MICA_TASK_REDACT:
        return mica_task_redact(job, result, err);
    case MICA_TASK_COMPLETE:
        break;
    }
    return mica_task_complete(job, result, err);
}

mica_status mica_task_run(mica_task *t, mica_session *session, const mica_task_input *input, char **result,
                          size_t *result_length, mica_error *err)
{
    mica_task_job job = {.task = t, .session = session, .input = input, .begin_ns = mica_now_ns()};
    *result = NULL;
    *result_length = 0;
    mica_status status = check(t, session, input, err);
    if (status)
        return status;
    json_t *object = json_object();
    status = object ? run(&job, &object, err) : mica_fail_nomem(err, 1, "the task's result");
    if (!status) {
        mica_json_set(&object, "usage", mica_task_usage(&job));
        *result = object ? mica_json_dumps(object, JSON_COMPACT) : NULL;
        if (*result)
            *result_length = strlen(*result);
        else
            status = mica_fail_nomem(err, 1, "the task's result");
    }
    json_decref(object);
    return status;
}
