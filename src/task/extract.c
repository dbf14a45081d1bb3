/* extract.c - the kind extract: JSON of a schema, and where its strings stand in the text. */
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

enum { MAX_DEPTH = 64, MAX_PATH = 1024 };

/* ---- Spans ---- */

/* A walk over the data without recursion: one level for each list or object that is open. */
typedef struct level {
    json_t *value;
    void *iterator; /* of an object */
    size_t index;   /* of a list */
    size_t path;    /* length of the path of `value` */
} level;

typedef struct walk {
    const char *text;
    size_t length;
    json_t *spans;
    mica_char_counter counter;
    level levels[MAX_DEPTH];
    int depth;
    char path[MAX_PATH]; /* JSON pointer */
} walk;

/* Appends "/key" with '~' and '/' escaped (RFC 6901); a path that is too long is cut. */
static void extend_path(walk *w, size_t from, const char *key)
{
    size_t n = from;
    if (n + 1 < MAX_PATH)
        w->path[n++] = '/';
    for (; *key && n + 2 < MAX_PATH; key++) {
        if (*key == '~' || *key == '/') {
            w->path[n++] = '~';
            w->path[n++] = *key == '~' ? '0' : '1';
        } else {
            w->path[n++] = *key;
        }
    }
    w->path[n] = '\0';
}

static bool add_span(walk *w, const json_t *string)
{
    size_t start, end;
    mica_match match =
        mica_text_find(w->text, w->length, 0, json_string_value(string), json_string_length(string), &start, &end);
    json_t *span = json_pack("{s:s}", "path", w->path);
    bool done = span != NULL;
    if (match == MICA_MATCH_NONE)
        done = done && json_object_set_new(span, "match", json_null()) == 0;
    else
        done = done && mica_set_span(span, w->text, start, end, &w->counter) &&
               json_object_set_new(span, "match", json_string(match == MICA_MATCH_EXACT ? "exact" : "loose")) == 0;
    return json_array_append_new(w->spans, span) == 0 && done;
}

/* A value whose path is written: a string is looked up, a list or object is opened. */
static bool visit(walk *w, json_t *value)
{
    if (json_is_string(value))
        return add_span(w, value);
    if ((json_is_object(value) || json_is_array(value)) && w->depth < MAX_DEPTH)
        w->levels[w->depth++] = (level){value, json_object_iter(value), 0, strlen(w->path)};
    return true;
}

static bool walk_all(walk *w, json_t *data)
{
    bool done = visit(w, data);
    while (done && w->depth > 0) {
        level *l = &w->levels[w->depth - 1];
        char number[24];
        json_t *value;
        if (json_is_object(l->value) && l->iterator) {
            extend_path(w, l->path, json_object_iter_key(l->iterator));
            value = json_object_iter_value(l->iterator);
            l->iterator = json_object_iter_next(l->value, l->iterator);
        } else if (json_is_array(l->value) && l->index < json_array_size(l->value)) {
            snprintf(number, sizeof number, "%zu", l->index);
            extend_path(w, l->path, number);
            value = json_array_get(l->value, l->index++);
        } else {
            w->depth--;
            continue;
        }
        done = visit(w, value);
    }
    return done;
}

/* ---- The task ---- */

static mica_status put_result(const mica_task_job *job, const mica_buf *reply, json_t **result, mica_error *err)
{
    json_error_t reason;
    json_t *data = mica_json_loadb(reply->data ? reply->data : "", reply->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &reason);
    if (!data && mica_json_no_memory(&reason))
        return mica_fail_nomem(err, reply->length, "the reply");
    if (!data)
        return mica_fail(err, MICA_BAD_TEXT,
                         "the model's reply ends before it is JSON: raise \"max_tokens\" or shorten the input");
    walk *w = calloc(1, sizeof *w);
    json_t *spans = json_array();
    bool done = w && spans;
    if (done) {
        w->text = job->input->text;
        w->length = job->input->length;
        w->spans = spans;
        done = walk_all(w, data);
    }
    free(w);
    mica_json_set(result, "data", data);
    mica_json_set(result, "spans", spans);
    return done ? MICA_OK : mica_fail_nomem(err, reply->length, "the result");
}

mica_status mica_task_extract(mica_task_job *job, json_t **result, mica_error *err)
{
    const mica_task *t = job->task;
    mica_generate_options o = mica_generate_options_default();
    mica_task_filled filled;
    mica_task_tokens tokens = {.id = NULL};
    mica_buf reply;
    const char *reason = "";
    o.constraint = t->constraint;
    o.close = true;
    o.max_tokens = t->max_tokens;
    mica_buf_init(&reply, MICA_TASK_MAX_TEXT);
    mica_status status = mica_task_fill(t, &t->prompt, job->input->text, job->input->length, &filled, err);
    if (!status)
        status = mica_task_filled_tokens(t, &filled, "", &tokens, err);
    if (!status)
        status = mica_task_generate(job, tokens.id, tokens.n, &o, &reply, &reason, err);
    if (!status)
        status = put_result(job, &reply, result, err);
    if (!status)
        mica_json_set(result, "stop_reason", json_string(reason));
    mica_buf_free(&reply);
    free(tokens.id);
    mica_task_filled_free(&filled);
    return status;
}
