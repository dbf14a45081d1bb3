/* summarise.c - the kind summarise: a bounded summary of a text of any length.
 *
 * A text that does not fit the context is cut into parts (parts.c), each is summarised, and the summaries are summarised in
 * turn, as often as needed. Every byte of the input is in exactly one part, and the result lists them: nothing is left out
 * silently. */
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "task/chars.h"

enum { MAX_LEVELS = 16 };

/* ---- One summary ---- */

/* The reply while it comes: it is stopped once a further sentence begins. */
typedef struct writer {
    mica_buf text;
    int32_t max_sentences, sentences; /* whole ones before `at` */
    size_t at;                        /* where the unfinished sentence begins */
    bool enough;
} writer;

static void count_sentences(writer *w)
{
    while (!w->enough) {
        bool ended;
        size_t end = mica_sentence_end(w->text.data, w->text.length, w->at, &ended);
        if (!ended || end == w->text.length) /* what follows the mark may still belong to it */
            return;
        w->at = end;
        w->enough = ++w->sentences >= w->max_sentences;
    }
}

static int on_text(void *user, const char *text, size_t length)
{
    writer *w = user;
    (void)text;
    (void)length;
    count_sentences(w);
    return w->enough;
}

static size_t trimmed(const char *text, size_t n, size_t *start)
{
    *start = 0;
    while (*start < n && (unsigned char)text[*start] <= ' ')
        (*start)++;
    while (n > *start && (unsigned char)text[n - 1] <= ' ')
        n--;
    return n;
}

/* Ends the reply at a whole sentence, where it has one, and appends it to `out`. */
static void finish(writer *w, bool cut, mica_buf *out)
{
    bool ended = false;
    size_t start, end = w->text.length;
    if (!w->enough && w->text.length > w->at) {
        mica_sentence_end(w->text.data, w->text.length, w->at, &ended);
        w->sentences += ended || !cut;
    }
    if (w->enough || (cut && !ended && w->at > 0))
        end = w->at;
    end = trimmed(w->text.data ? w->text.data : "", end, &start);
    mica_buf_append(out, w->text.data ? w->text.data + start : "", end - start);
}

typedef struct summary {
    mica_task_job *job;
    json_t *parts;  /* of the input */
    json_int_t cut; /* replies that max_tokens ended within a sentence */
    int32_t sentences;
    bool complete;
} summary;

/* Summarises a text that fits, and appends the summary to `out`. */
static mica_status summarise_one(summary *s, const mica_task_prompt *p, int32_t max_tokens, const char *text, size_t length,
                                 mica_buf *out, mica_error *err)
{
    const mica_task *t = s->job->task;
    mica_generate_options o = mica_generate_options_default();
    const char *stops[MICA_TASK_MAX_STOPS], *reason = "";
    mica_task_filled filled;
    mica_task_tokens tokens = {.id = NULL};
    writer w = {.max_sentences = t->max_sentences};
    mica_buf_init(&w.text, MICA_TASK_MAX_TEXT);
    mica_task_stops(t, stops, &o);
    o.max_tokens = max_tokens;
    o.on_text = on_text;
    o.user = &w;
    mica_status status = mica_task_fill(t, p, text, length, &filled, err);
    if (!status)
        status = mica_task_filled_tokens(t, &filled, "", &tokens, err);
    if (!status)
        status = mica_task_generate(s->job, tokens.id, tokens.n, &o, &w.text, &reason, err);
    if (status == MICA_CANCELLED && w.enough)
        status = MICA_OK;
    bool cut = !w.enough && (strcmp(reason, "length") == 0 || strcmp(reason, "context") == 0);
    if (!status)
        finish(&w, cut, out);
    s->cut += cut;
    s->complete = !cut;
    s->sentences = w.sentences;
    mica_buf_free(&w.text);
    free(tokens.id);
    mica_task_filled_free(&filled);
    return status;
}

/* ---- Parts ---- */

static void note_part(summary *s, const char *text, size_t start, size_t end, mica_char_counter *counter)
{
    json_t *part = json_object();
    if (part && !mica_set_span(part, text, start, end, counter)) {
        json_decref(part);
        part = NULL;
    }
    mica_json_add(&s->parts, part);
}

/* Summarises part after part, to `out`, with an empty line between; the parts of the input itself are noted. */
static mica_status summarise_parts(summary *s, const char *text, size_t length, bool note, mica_buf *out, mica_error *err)
{
    const mica_task *t = s->job->task;
    mica_char_counter counter = {0, 0};
    mica_status status = MICA_OK;
    for (size_t start = 0, n; start < length && !status; start += n) {
        status = mica_task_part_end(s->job, &t->part_prompt, t->part_tokens, text + start, length - start, &n, err);
        if (!status && note)
            note_part(s, text, start, start + n, &counter);
        if (start > 0)
            mica_buf_puts(out, "\n\n");
        if (!status)
            status = summarise_one(s, &t->part_prompt, t->part_tokens, text + start, n, out, err);
    }
    return !status && out->failed ? mica_fail_nomem(err, out->length, "the summaries of the parts") : status;
}

/* One step: *done if the whole text fitted and `out` is the summary. */
static mica_status summarise_level(summary *s, const mica_task_prompt *p, const char *text, size_t length, bool first,
                                   mica_buf *out, bool *done, mica_error *err)
{
    const mica_task *t = s->job->task;
    mica_char_counter counter = {0, 0};
    size_t end;
    mica_status status = mica_task_part_end(s->job, p, t->max_tokens, text, length, &end, err);
    *done = !status && end == length;
    if (status || !*done)
        return status ? status : summarise_parts(s, text, length, first, out, err);
    if (first && length > 0)
        note_part(s, text, 0, length, &counter);
    return summarise_one(s, p, t->max_tokens, text, length, out, err);
}

static mica_status summarise_all(summary *s, mica_buf *out, int *levels, mica_error *err)
{
    const mica_task *t = s->job->task;
    const char *text = s->job->input->text;
    size_t length = s->job->input->length;
    mica_buf shorter; /* the summaries that are the text of the next level */
    bool done = false;
    mica_status status = MICA_OK;
    mica_buf_init(&shorter, MICA_TASK_MAX_TEXT);
    for (*levels = 0; !done && !status; (*levels)++) {
        if (*levels == MAX_LEVELS)
            status = mica_fail(err, MICA_CONTEXT_FULL,
                               "the text is still too long after %d levels of summaries; use a longer context", MAX_LEVELS);
        if (!status)
            status = summarise_level(s, *levels ? &t->reduce_prompt : &t->prompt, text, length, *levels == 0, out, &done, err);
        if (done || status)
            continue;
        if (out->length >= length)
            status = mica_fail(err, MICA_CONTEXT_FULL,
                               "the summaries of the parts are not shorter than the text: the context of %d tokens "
                               "is too small for \"part_tokens\" %d",
                               mica_task_context(s->job), t->part_tokens);
        mica_buf_free(&shorter);
        shorter = *out;
        mica_buf_init(out, MICA_TASK_MAX_TEXT);
        text = shorter.data;
        length = shorter.length;
    }
    mica_buf_free(&shorter);
    return status;
}

mica_status mica_task_summarise(mica_task_job *job, json_t **result, mica_error *err)
{
    summary s = {.job = job, .parts = json_array()};
    mica_buf text;
    int levels = 0;
    mica_buf_init(&text, MICA_TASK_MAX_TEXT);
    mica_status status = s.parts ? summarise_all(&s, &text, &levels, err) : mica_fail_nomem(err, 1, "the parts");
    if (!status) {
        mica_json_set(result, "summary", json_stringn(text.data ? text.data : "", text.length));
        mica_json_set(result, "parts", json_incref(s.parts));
        mica_json_set(result, "levels", json_integer(levels));
        mica_json_set(result, "sentences", json_integer(s.sentences));
        mica_json_set(result, "complete", json_boolean(s.complete));
        mica_json_set(result, "cut_replies", json_integer(s.cut));
    }
    json_decref(s.parts);
    mica_buf_free(&text);
    return status;
}
