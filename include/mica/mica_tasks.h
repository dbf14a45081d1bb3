/* mica_tasks.h - narrow tasks that small models are good at: classify, extract, summarise, route, redact, complete.
 *
 *     mica_task *task;  char *result;  size_t length;  mica_task_input input = mica_task_input_default();
 *     mica_task_new(model, definition, definition_length, &task, &err);     // the text of share/mica/tasks/classify.json
 *     input.text = "I was charged twice";  input.length = 19;
 *     mica_task_run(task, session, &input, &result, &length, &err);         // {"label":"billing","scores":[...],...}
 *     mica_free(result);  mica_task_free(task);
 *
 * A task is data: a JSON text with its kind, prompt, labels or schema, and thresholds. docs/tasks.md describes the fields, and
 * share/mica/schemas/task.schema.json is their schema. The rules of mica.h hold here too.
 */
#ifndef MICA_MICA_TASKS_H
#define MICA_MICA_TASKS_H
#include "mica/mica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A definition, made ready for a model. Belongs to one thread at a time. */
typedef struct mica_task mica_task;

typedef enum mica_task_kind {
    MICA_TASK_CLASSIFY = 0,  /* {"label", "scores": [{"label", "logprob", "tokens", "probability"}]} */
    MICA_TASK_ROUTE = 1,     /* the same; label is the definition's "none" below its threshold */
    MICA_TASK_EXTRACT = 2,   /* {"data", "spans": [{"path", "start", "end", "char_start", "char_end", "match"}]} */
    MICA_TASK_SUMMARISE = 3, /* {"summary", "parts": [{"start", "end"}], "levels", "sentences", "complete"} */
    MICA_TASK_REDACT = 4,    /* {"text", "spans": [{"type", "source", "start", "end", "char_start", "char_end"}]} */
    MICA_TASK_COMPLETE = 5,  /* {"completion", "mode"} */
} mica_task_kind;

/** Reads a definition and prepares it for a model, of which it takes a reference. `model` may be NULL for a task that needs
 * none: redact without its "model" part. MICA_BAD_TEXT: not JSON; MICA_INVALID_ARGUMENT: a field is missing, unknown or of the
 * wrong kind, and the message names it; or what mica_constraint_new() says of the schema. */
MICA_API mica_status mica_task_new(mica_model *model, const char *definition, size_t length, mica_task **out, mica_error *err);
/** NULL is fine. */
MICA_API void mica_task_free(mica_task *task);

/** What a task is. All pointers are borrowed until the task is freed. */
typedef struct mica_task_info {
    mica_task_kind kind;
    const char *name, *description;
    bool needs_model;
} mica_task_info;

MICA_API void mica_task_get_info(const mica_task *task, mica_task_info *info);

/** "classify", ...; static, NULL if there is no such kind. */
MICA_API const char *mica_task_kind_name(mica_task_kind kind);

typedef struct mica_task_input {
    size_t struct_size;
    const char *text; /* the input; with complete what is before the cursor */
    size_t length;
    const char *suffix; /* complete: what is after the cursor; NULL: nothing */
    size_t suffix_length;
    /** complete: the text as it comes; non-zero stops. May be NULL. */
    int (*on_text)(void *user, const char *text, size_t length);
    void *user;
} mica_task_input;

MICA_API mica_task_input mica_task_input_default(void);

/** Runs the task on one input. `session` is one of the task's model (NULL where the task needs none); what its cache has in
 * common with the prompt is not computed again, so a session should serve one task at a time. *result is yours: a JSON object
 * as said at the kinds above, with "usage": {"prompt_tokens", "cached_tokens", "computed_tokens", "generated_tokens", "ms"}.
 * Offsets "start" and "end" count bytes of the input, "char_start" and "char_end" code points. MICA_BAD_TEXT: the input is not
 * UTF-8. MICA_CONTEXT_FULL: it does not fit the session's context (redact and summarise split it). */
MICA_API mica_status mica_task_run(mica_task *task, mica_session *session, const mica_task_input *input, char **result,
                                   size_t *result_length, mica_error *err);

#ifdef __cplusplus
}
#endif
#endif
