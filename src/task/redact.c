/* redact.c - the kind redact: personal data is replaced, everything else stays as it is, byte for byte.
 *
 * Rules find what has a form (detect.h). The model names what has none, such as names and addresses, as lists of strings; of
 * those, only what occurs in the text counts, at every place where it occurs as whole words. */
#include "task/chars.h"
#include "base/json.h"
#include "task/detect.h"
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

/* ---- The model ---- */

/* Adds every occurrence of `needle` in the whole text. Returns how many. */
static size_t add_everywhere(const mica_task_input *in, const char *needle, size_t n, const char *type, mica_finds *finds)
{
    size_t from = 0, start, end, count = 0;
    while (mica_text_find_words(in->text, in->length, from, needle, n, &start, &end)) {
        mica_finds_add(finds, (mica_find){start, end, type, "model", 0});
        from = end;
        count++;
    }
    return count;
}

static mica_status add_reply(const mica_task_job *job, const mica_buf *reply, mica_finds *finds, json_int_t *missed,
                             mica_error *err)
{
    json_error_t reason;
    const char *type;
    json_t *key, *data = mica_json_loadb(reply->data ? reply->data : "", reply->length, JSON_ALLOW_NUL, &reason);
    if (!data && mica_json_no_memory(&reason))
        return mica_fail_nomem(err, reply->length, "the reply");
    if (!data)
        return mica_fail(err, MICA_BAD_TEXT, "the model's reply ends before it is JSON: raise \"max_tokens\"");
    json_object_foreach((json_t *)job->task->types, type, key)
    {
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(data, json_string_value(key)), i, item)
        {
            const char *needle = json_string_value(item);
            *missed += needle && add_everywhere(job->input, needle, json_string_length(item), type, finds) == 0;
        }
    }
    json_decref(data);
    return MICA_OK;
}

/* Asks the model about one part of the text. */
static mica_status ask_part(mica_task_job *job, size_t start, size_t end, mica_finds *finds, json_int_t *missed,
                            mica_error *err)
{
    const mica_task *t = job->task;
    mica_generate_options o = mica_generate_options_default();
    mica_task_filled filled;
    mica_task_tokens tokens = {.id = NULL};
    mica_buf reply;
    o.constraint = t->constraint;
    o.close = true;
    o.max_tokens = t->max_tokens;
    mica_buf_init(&reply, MICA_TASK_MAX_TEXT);
    mica_status status = mica_task_fill(t, &t->prompt, job->input->text + start, end - start, &filled, err);
    if (!status)
        status = mica_task_filled_tokens(t, &filled, "", &tokens, err);
    if (!status)
        status = mica_task_generate(job, tokens.id, tokens.n, &o, &reply, NULL, err);
    if (!status)
        status = add_reply(job, &reply, finds, missed, err);
    mica_buf_free(&reply);
    free(tokens.id);
    mica_task_filled_free(&filled);
    return status;
}

/* Goes through the text in parts that the context holds. *missed: strings of the model that the text does not have. */
static mica_status ask_model(mica_task_job *job, mica_finds *finds, json_int_t *missed, mica_error *err)
{
    mica_status status = MICA_OK;
    for (size_t start = 0, end = 0; start < job->input->length && !status; start = end) {
        status = mica_task_part_end(job, &job->task->prompt, job->task->max_tokens, job->input->text + start,
                                    job->input->length - start, &end, err);
        end += start;
        if (!status)
            status = ask_part(job, start, end, finds, missed, err);
    }
    return status;
}

/* ---- The result ---- */

static void put_replacement(const char *form, const char *type, mica_buf *out)
{
    for (; *form; form++) {
        if (strncmp(form, "{type}", 6) == 0) {
            mica_buf_puts(out, type);
            form += 5;
        } else {
            mica_buf_putc(out, *form);
        }
    }
}

static mica_status put_result(const mica_task_job *job, const mica_finds *finds, json_t **result, mica_error *err)
{
    const mica_task_input *in = job->input;
    mica_char_counter counter = {0, 0};
    mica_buf text;
    json_t *spans = json_array();
    size_t at = 0;
    bool done = spans != NULL;
    mica_buf_init(&text, 8 * MICA_TASK_MAX_TEXT);
    for (size_t i = 0; i < finds->n && done; i++) {
        const mica_find *f = &finds->item[i];
        json_t *span = json_pack("{s:s, s:s}", "type", f->type, "source", f->source);
        if (span && !mica_set_span(span, in->text, f->start, f->end, &counter)) {
            json_decref(span);
            span = NULL;
        }
        mica_json_add(&spans, span);
        done = spans != NULL;
        mica_buf_append(&text, in->text + at, f->start - at);
        put_replacement(job->task->replacement, f->type, &text);
        at = f->end;
    }
    mica_buf_append(&text, in->text + at, in->length - at);
    done = done && !text.failed;
    mica_json_set(result, "text", json_stringn(text.data ? text.data : "", text.length));
    mica_json_set(result, "spans", spans);
    mica_buf_free(&text);
    return done ? MICA_OK : mica_fail_nomem(err, in->length, "the redacted text");
}

/* Adds what of `model` lies between the finds of the rules, without blanks and signs at its ends. Both are settled. */
static void add_between(const mica_task_input *in, const mica_finds *model, mica_finds *rules)
{
    size_t n = rules->n, r = 0; /* of the rules' own, which stay sorted in front */
    for (size_t i = 0; i < model->n; i++) {
        mica_find rest = model->item[i];
        while (rest.start < rest.end) {
            while (r < n && rules->item[r].end <= rest.start)
                r++;
            size_t until = r < n && rules->item[r].start < rest.end ? rules->item[r].start : rest.end;
            mica_find piece = rest;
            piece.end = until > rest.start ? until : rest.start;
            rest.start = r < n && rules->item[r].start < rest.end ? rules->item[r].end : rest.end;
            while (piece.start < piece.end && !mica_word_at(in->text, piece.end, piece.start))
                piece.start += mica_utf8_length((unsigned char)in->text[piece.start]);
            while (piece.end > piece.start && !mica_word_before(in->text, piece.end) && in->text[piece.end - 1] != '.')
                piece.end = mica_char_before(in->text, piece.end);
            if (piece.start < piece.end)
                mica_finds_add(rules, piece);
        }
    }
    mica_finds_settle(rules);
}

mica_status mica_task_redact(mica_task_job *job, json_t **result, mica_error *err)
{
    mica_finds rules = {.item = NULL}, model = {.item = NULL};
    json_int_t missed = 0;
    mica_status status = MICA_OK;
    mica_detect(job->input->text, job->input->length, job->task->detectors, &rules);
    mica_finds_settle(&rules);
    if (job->task->types)
        status = ask_model(job, &model, &missed, err);
    mica_finds_settle(&model);
    add_between(job->input, &model, &rules);
    if (!status && (rules.failed || model.failed))
        status = mica_fail_nomem(err, rules.n * sizeof *rules.item, "the finds");
    if (!status)
        status = put_result(job, &rules, result, err);
    if (!status && job->task->types)
        mica_json_set(result, "not_in_text", json_integer(missed));
    mica_finds_free(&rules);
    mica_finds_free(&model);
    return status;
}
