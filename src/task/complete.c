/* complete.c - the kind complete: what comes at the cursor.
 *
 * With text behind the cursor, and a model that was trained to fill in, the prompt is PREFIX before SUFFIX after MIDDLE.
 * Otherwise the text before the cursor is continued. A session that is used again has the unchanged beginning of the text in
 * its cache. */
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "session/session.h"

static mica_status append(mica_task_tokens *to, const mica_task_tokens *more, mica_error *err)
{
    int32_t *grown = realloc(to->id, (to->n + more->n + 1) * sizeof *grown);
    if (!grown)
        return mica_fail_nomem(err, (to->n + more->n + 1) * sizeof *grown, "the prompt's tokens");
    to->id = grown;
    if (more->n > 0)
        memcpy(grown + to->n, more->id, more->n * sizeof *grown);
    to->n += more->n;
    return MICA_OK;
}

static mica_status add_text(const mica_task_job *job, const char *text, size_t length, mica_task_tokens *to, mica_error *err)
{
    mica_task_tokens piece;
    mica_status status = mica_task_tokenize(job->task, text, length, 0, &piece, err);
    if (!status)
        status = append(to, &piece, err);
    free(piece.id);
    return status;
}

static mica_status fill_in(const mica_task_job *job, const mica_vocab_special *s, mica_task_tokens *tokens, mica_error *err)
{
    int32_t signs[] = {s->fim_prefix, s->fim_suffix, s->fim_middle};
    const mica_task_input *in = job->input;
    mica_status status = append(tokens, &(mica_task_tokens){&signs[0], 1}, err);
    if (!status)
        status = add_text(job, in->text, in->length, tokens, err);
    if (!status)
        status = append(tokens, &(mica_task_tokens){&signs[1], 1}, err);
    if (!status)
        status = add_text(job, in->suffix, in->suffix_length, tokens, err);
    return status ? status : append(tokens, &(mica_task_tokens){&signs[2], 1}, err);
}

/* Tokens of the prompt; *fim says in which of the two forms. */
static mica_status make_prompt(const mica_task_job *job, bool *fim, mica_task_tokens *tokens, mica_error *err)
{
    const mica_vocab_special *s = mica_vocab_special_tokens(job->session->model->vocab);
    const mica_task_input *in = job->input;
    *fim = job->task->fim && in->suffix_length > 0 && s->fim_prefix >= 0 && s->fim_suffix >= 0 && s->fim_middle >= 0;
    mica_status status = mica_task_tokenize(job->task, "", 0, MICA_TOKENIZE_ADD_BOS, tokens, err);
    if (!status)
        status = *fim ? fill_in(job, s, tokens, err) : add_text(job, in->text, in->length, tokens, err);
    if (!status && tokens->n == 0)
        status = mica_fail(err, MICA_INVALID_ARGUMENT,
                           "there is nothing before the cursor, and nothing behind it to fill in before");
    return status;
}

mica_status mica_task_complete(mica_task_job *job, json_t **result, mica_error *err)
{
    const mica_task *t = job->task;
    mica_generate_options o = mica_generate_options_default();
    const char *stops[MICA_TASK_MAX_STOPS], *reason = "";
    mica_task_tokens tokens = {.id = NULL};
    mica_buf text;
    bool fim = false;
    mica_buf_init(&text, MICA_TASK_MAX_TEXT);
    mica_task_stops(t, stops, &o);
    mica_status status = make_prompt(job, &fim, &tokens, err);
    o.max_tokens = t->max_tokens;
    o.token_healing = t->healing && !fim && job->input->length > 0;
    o.on_text = job->input->on_text;
    o.user = job->input->user;
    if (!status)
        status = mica_task_generate(job, tokens.id, tokens.n, &o, &text, &reason, err);
    if (!status) {
        mica_json_set(result, "completion", json_stringn(text.data ? text.data : "", text.length));
        mica_json_set(result, "mode", json_string(fim ? "fim" : "prefix"));
        mica_json_set(result, "stop_reason", json_string(reason));
    }
    mica_buf_free(&text);
    free(tokens.id);
    return status;
}
