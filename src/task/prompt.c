/* prompt.c - from a task's prompt and an input to tokens.
 *
 * The input is text and nothing else: what it says is never a control token, nor a placeholder. Without a chat template the
 * prompt is one text, tokenised as a whole. With one, the template is rendered around a mark in place of the user's message;
 * what the template wrote is tokenised with control tokens, what stands for the mark without. */
#include "base/json.h"
#include "task/task.h"

#include <stdlib.h>
#include <string.h>

/* Private-use characters, which no template and no task has a reason to write; if one does, it is an error. */
#define MARK "\xEE\x83\xB1mica-task-message\xEE\x83\xB1"

/* ---- Filling in ---- */

/* What a placeholder stands for: its bytes go to `out`. */
typedef struct filler {
    const mica_task *t;
    const mica_task_prompt *p;
    const char *input;
    size_t length;
} filler;

static void put_labels(const mica_task *t, bool described, mica_buf *out)
{
    for (size_t i = 0; i < t->n_labels; i++) {
        const mica_task_label *l = &t->labels[i];
        if (described)
            mica_buf_printf(out, "%s- %s%s%s", i ? "\n" : "", l->text, *l->description ? ": " : "", l->description);
        else
            mica_buf_printf(out, "%s%s", i ? ", " : "", l->text);
    }
}

/* "{input}" and "{output}" of an example. */
static void put_example(const char *form, const json_t *example, mica_buf *out)
{
    while (*form) {
        bool input = strncmp(form, "{input}", 7) == 0, output = strncmp(form, "{output}", 8) == 0;
        if (input || output)
            mica_buf_puts(out, json_string_value(json_object_get(example, input ? "input" : "output")));
        else
            mica_buf_putc(out, *form);
        form += input ? 7 : output ? 8 : 1;
    }
}

static void put_examples(const mica_task_prompt *p, mica_buf *out)
{
    size_t i;
    json_t *example;
    json_array_foreach((json_t *)p->examples, i, example)
    {
        put_example(p->example, example, out);
    }
}

/* Length of the placeholder at `at`, whose text is put to `out`; 0 if there is none. */
static size_t put_placeholder(const filler *f, const char *at, mica_buf *out)
{
    static const char *const names[] = {"{input}", "{labels}", "{descriptions}", "{examples}", "{schema}"};
    size_t i = 0, n = sizeof names / sizeof *names;
    while (i < n && strncmp(at, names[i], strlen(names[i])) != 0)
        i++;
    if (i == 0)
        mica_buf_append(out, f->input, f->length);
    else if (i == 1 || i == 2)
        put_labels(f->t, i == 2, out);
    else if (i == 3)
        put_examples(f->p, out);
    else if (i == 4)
        mica_buf_puts(out, f->t->schema_text ? f->t->schema_text : "");
    return i < n ? strlen(names[i]) : 0;
}

static void fill_text(const filler *f, const char *text, mica_buf *out)
{
    while (*text) {
        size_t n = put_placeholder(f, text, out);
        if (n == 0)
            mica_buf_append(out, text, n = 1 + strcspn(text + 1, "{"));
        text += n;
    }
}

/* ---- Tokens ---- */

static mica_status append(mica_task_tokens *to, const int32_t *id, size_t n, mica_error *err)
{
    int32_t *grown = realloc(to->id, (to->n + n + 1) * sizeof *grown);
    if (!grown)
        return mica_fail_nomem(err, (to->n + n + 1) * sizeof *grown, "the prompt's tokens");
    to->id = grown;
    if (n > 0)
        memcpy(grown + to->n, id, n * sizeof *id);
    to->n += n;
    return MICA_OK;
}

/* MICA_TOKENIZE_ADD_BOS might add an EOS as well, which must not stand in the middle: the BOS is put first here. */
mica_status mica_task_tokenize(const mica_task *t, const char *text, size_t length, unsigned flags, mica_task_tokens *out,
                               mica_error *err)
{
    mica_model_info info;
    int32_t *tokens = NULL;
    size_t n = 0;
    *out = (mica_task_tokens){.id = NULL};
    mica_status status =
        mica_model_tokenize(t->model, text, length, flags & ~(unsigned)MICA_TOKENIZE_ADD_BOS, &tokens, &n, err);
    if (status)
        return status;
    mica_model_get_info(t->model, &info);
    bool bos = flags & MICA_TOKENIZE_ADD_BOS && info.add_bos && info.bos_token >= 0 && !(n > 0 && tokens[0] == info.bos_token);
    if (bos)
        status = append(out, &info.bos_token, 1, err);
    if (!status)
        status = append(out, tokens, n, err);
    mica_free(tokens);
    return status;
}

static mica_status add_piece(const mica_task *t, const char *text, size_t length, unsigned flags, mica_task_tokens *to,
                             mica_error *err)
{
    mica_task_tokens piece;
    mica_status status = mica_task_tokenize(t, text, length, flags, &piece, err);
    if (!status)
        status = append(to, piece.id, piece.n, err);
    free(piece.id);
    return status;
}

/* ---- With a chat template ---- */

static mica_status render_around_mark(const mica_task *t, const mica_task_prompt *p, char **text, size_t *length,
                                      mica_error *err)
{
    json_t *messages = json_array();
    if (*p->system)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", p->system));
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", MARK));
    json_t *request = json_pack("{s:o, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *json = request ? mica_json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!json)
        return mica_fail_nomem(err, 1, "the conversation");
    mica_status status = mica_model_chat_render(t->model, json, strlen(json), 0, text, length, err);
    free(json);
    return status;
}

static mica_status fill_chat(const mica_task *t, const mica_task_prompt *p, const char *message, size_t length,
                             mica_task_filled *out, mica_error *err)
{
    char *text = NULL;
    size_t n = 0;
    mica_status status = render_around_mark(t, p, &text, &n, err);
    if (status)
        return status;
    char *mark = memmem(text, n, MARK, strlen(MARK)), *after = mark ? mark + strlen(MARK) : NULL;
    size_t rest = mark ? n - (size_t)(after - text) : 0;
    if (!mark || memmem(after, rest, MARK, strlen(MARK)))
        status =
            mica_fail(err, MICA_BAD_TEMPLATE, "the chat template does not put the user's message into the prompt exactly once");
    if (!status)
        status =
            add_piece(t, text, (size_t)(mark - text), MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL, &out->head, err);
    if (!status)
        status = add_piece(t, message, length, 0, &out->head, err);
    if (!status)
        status = add_piece(t, after, rest, MICA_TOKENIZE_PARSE_SPECIAL, &out->head, err);
    mica_free(text);
    if (!status && !(out->tail = strdup(p->reply)))
        status = mica_fail_nomem(err, strlen(p->reply), "the prompt");
    out->tail_length = strlen(p->reply);
    return status;
}

/* ---- Both ---- */

mica_status mica_task_fill(const mica_task *t, const mica_task_prompt *p, const char *input, size_t length,
                           mica_task_filled *out, mica_error *err)
{
    const filler f = {t, p, input, length};
    mica_model_info info;
    mica_buf text;
    mica_status status = MICA_OK;
    *out = (mica_task_filled){.tail = NULL};
    mica_model_get_info(t->model, &info);
    bool chat = p->chat && *info.chat_template;
    mica_buf_init(&text, 2 * MICA_TASK_MAX_TEXT);
    if (!chat && *p->system)
        mica_buf_printf(&text, "%s\n\n", p->system);
    fill_text(&f, p->text, &text);
    if (!chat)
        mica_buf_puts(&text, p->reply);
    if (text.failed)
        status = mica_fail_nomem(err, length, "the prompt");
    else if (chat)
        status = fill_chat(t, p, text.data, text.length, out, err);
    else
        out->tail = mica_buf_take(&text, &out->tail_length);
    mica_buf_free(&text);
    if (status)
        mica_task_filled_free(out);
    return status;
}

void mica_task_filled_free(mica_task_filled *filled)
{
    free(filled->head.id);
    free(filled->tail);
    *filled = (mica_task_filled){.tail = NULL};
}

mica_status mica_task_filled_tokens(const mica_task *t, const mica_task_filled *filled, const char *more, mica_task_tokens *out,
                                    mica_error *err)
{
    mica_buf text;
    mica_status status = MICA_OK;
    *out = (mica_task_tokens){.id = NULL};
    mica_buf_init(&text, 3 * MICA_TASK_MAX_TEXT);
    mica_buf_append(&text, filled->tail, filled->tail_length);
    mica_buf_puts(&text, more);
    if (text.failed)
        status = mica_fail_nomem(err, filled->tail_length, "the prompt");
    if (!status)
        status = append(out, filled->head.id, filled->head.n, err);
    if (!status && (text.length > 0 || filled->head.n == 0))
        status =
            add_piece(t, text.data ? text.data : "", text.length, filled->head.n > 0 ? 0 : MICA_TOKENIZE_ADD_BOS, out, err);
    mica_buf_free(&text);
    if (status) {
        free(out->id);
        *out = (mica_task_tokens){.id = NULL};
    }
    return status;
}
