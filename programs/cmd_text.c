/* cmd_text.c - mica tokenize, detokenize and template: text in, text out, no session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "load.h"

static int open_model(const mica_opts *o, mica_model **model)
{
    char path[4096];
    *model = NULL;
    int code = mica_load_path(o, NULL, path);
    return code == CODE_OK ? mica_load_model(o, path, model) : code;
}

/* ---- tokenize ---- */

/* Each token's own bytes. */
static json_t *pieces_of(const mica_model *model, const int32_t *ids, size_t n)
{
    json_t *pieces = json_array();
    for (size_t i = 0; i < n; i++) {
        char *text = NULL;
        size_t length = 0;
        if (mica_model_detokenize(model, ids + i, 1, true, &text, &length, NULL) == MICA_OK)
            json_array_append_new(pieces, mica_json_text(text, length));
        mica_free(text);
    }
    return pieces;
}

static void print_ids(const int32_t *ids, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++)
        printf(i ? ", %d" : "%d", ids[i]);
    puts("]");
}

static int print_tokens(const mica_opts *o, const mica_model *model, const int32_t *ids, size_t n)
{
    if (!o->json) {
        print_ids(ids, n);
        return CODE_OK;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    return mica_json_line(json_pack("{s:o, s:I, s:o}", "tokens", list, "n", (json_int_t)n, "pieces", pieces_of(model, ids, n)))
               ? CODE_OK
               : CODE_FAILED;
}

int mica_cmd_tokenize(const mica_opts *o)
{
    mica_model *model = NULL;
    mica_error err;
    char *text = NULL;
    int32_t *ids = NULL;
    size_t length = 0, n = 0;
    unsigned flags = (o->no_bos ? 0u : MICA_TOKENIZE_ADD_BOS) | (o->special ? MICA_TOKENIZE_PARSE_SPECIAL : 0u);
    int code = open_model(o, &model);
    if (code == CODE_OK)
        code = mica_load_text(o, &text, &length);
    if (code == CODE_OK && mica_model_tokenize(model, text, length, flags, &ids, &n, &err))
        code = mica_load_failed(&err);
    if (code == CODE_OK)
        code = print_tokens(o, model, ids, n);
    mica_free(ids);
    free(text);
    mica_model_close(model);
    return code;
}

/* ---- detokenize ---- */

static int read_ids(const mica_opts *o, int32_t **ids, size_t *n)
{
    char *text = NULL;
    size_t length;
    if ((o->ids != NULL) == o->from_stdin)
        return mica_term_usage("give the token ids with --ids or on standard input with --stdin");
    int code = o->ids ? CODE_OK : mica_load_file("-", &text, &length);
    if (code == CODE_OK)
        code = mica_load_ids(o->ids ? o->ids : text, o->ids ? "--ids" : "standard input", ids, n);
    free(text);
    return code;
}

int mica_cmd_detokenize(const mica_opts *o)
{
    mica_model *model = NULL;
    mica_error err;
    char *text = NULL;
    int32_t *ids = NULL;
    size_t length = 0, n = 0;
    int code = read_ids(o, &ids, &n);
    if (code == CODE_OK)
        code = open_model(o, &model);
    if (code == CODE_OK && mica_model_detokenize(model, ids, n, o->special, &text, &length, &err))
        code = mica_load_failed(&err);
    if (code == CODE_OK && !mica_term_write(text, length))
        code = CODE_FAILED;
    mica_free(text);
    free(ids);
    mica_model_close(model);
    return code;
}

/* ---- template ---- */

/* The text of `request` through the template of a model, or with --template alone through that file. */
static int render(const mica_opts *o, const char *request, size_t length, char **text, size_t *text_length)
{
    mica_error err;
    mica_model *model = NULL;
    char *template = NULL;
    size_t template_length = 0;
    mica_status status = MICA_OK;
    int code;
    if (o->template_file && !o->model) {
        code = mica_load_file(o->template_file, &template, &template_length);
        if (code == CODE_OK)
            status = mica_template_render(template, template_length, request, length, o->bos, o->eos, o->now, text, text_length,
                                          &err);
    } else {
        mica_opts with_template = *o;
        with_template.chat_template = o->template_file;
        code = open_model(&with_template, &model);
        if (code == CODE_OK)
            status = mica_model_chat_render(model, request, length, o->now, text, text_length, &err);
    }
    free(template);
    mica_model_close(model);
    return status ? mica_load_failed(&err) : code;
}

int mica_cmd_template(const mica_opts *o)
{
    char *request = NULL, *text = NULL;
    size_t length = 0, text_length = 0;
    if (!o->request)
        return mica_term_usage("--request is missing: the file with the conversation, or - for standard input");
    int code = mica_load_file(o->request, &request, &length);
    if (code == CODE_OK)
        code = render(o, request, length, &text, &text_length);
    if (code == CODE_OK && !mica_term_write(text, text_length))
        code = CODE_FAILED;
    free(request);
    mica_free(text);
    return code;
}
