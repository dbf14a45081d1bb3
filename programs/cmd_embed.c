/* cmd_embed.c - mica embed: texts to vectors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "interrupt.h"
#include "load.h"

typedef struct embedder {
    const mica_opts *o;
    mica_model *model;
    mica_session *session;
    float *vector; /* [n_embd] */
    int32_t n_embd;
    size_t index; /* of the text, from 0 */
} embedder;

static int print_vector(const embedder *e, size_t n_tokens)
{
    if (!e->o->json) {
        for (int32_t i = 0; i < e->n_embd; i++)
            printf(i ? " %.9g" : "%.9g", (double)e->vector[i]);
        return mica_term_write("\n", 1) ? CODE_OK : CODE_FAILED;
    }
    json_t *list = json_array();
    for (int32_t i = 0; i < e->n_embd; i++)
        json_array_append_new(list, mica_json_real((double)e->vector[i]));
    return mica_json_line(json_pack("{s:I, s:I, s:o}", "index", (json_int_t)e->index, "n_tokens", (json_int_t)n_tokens,
                                    "embedding", list))
               ? CODE_OK
               : CODE_FAILED;
}

static int embed_text(embedder *e, const char *text, size_t length)
{
    mica_error err;
    int32_t *tokens = NULL;
    size_t n = 0;
    mica_pooling pooling = strcmp(e->o->pooling, "last") == 0 ? MICA_POOLING_LAST : MICA_POOLING_MEAN;
    mica_status status =
        mica_model_tokenize(e->model, text, length, e->o->no_bos ? 0u : MICA_TOKENIZE_ADD_BOS, &tokens, &n, &err);
    if (!status && n == 0) {
        mica_free(tokens);
        return mica_term_error("text %zu is empty: there is no token to embed", e->index + 1);
    }
    if (!status)
        status = mica_session_embed(e->session, tokens, n, pooling, !e->o->no_normalise, e->vector, &err);
    mica_free(tokens);
    return status ? mica_load_failed(&err) : print_vector(e, n);
}

static int embed_lines(embedder *e, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    int code = CODE_OK;
    for (; at < end && code == CODE_OK && mica_interrupt_count() == 0; e->index++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        code = embed_text(e, at, n > 0 && at[n - 1] == '\r' ? n - 1 : n);
        at += n + (stop != NULL);
    }
    return code == CODE_OK && at < end ? CODE_INTERRUPTED : code;
}

static int open_embedder(embedder *e)
{
    char path[4096];
    mica_model_info info;
    int code = mica_load_path(e->o, NULL, path);
    if (code == CODE_OK)
        code = mica_load_model(e->o, path, &e->model);
    if (code == CODE_OK)
        code = mica_load_session(e->o, e->model, NULL, &e->session);
    if (code != CODE_OK)
        return code;
    mica_model_get_info(e->model, &info);
    e->n_embd = info.n_embd;
    e->vector = malloc((size_t)info.n_embd * sizeof *e->vector);
    return e->vector ? CODE_OK : mica_term_error("not enough memory for a vector");
}

/* Like mica run: one line end is the shell's or the editor's, not the text's. */
static size_t without_line_end(const mica_opts *o, const char *text, size_t length)
{
    if (o->prompt || length == 0 || text[length - 1] != '\n')
        return length;
    return length > 1 && text[length - 2] == '\r' ? length - 2 : length - 1;
}

int mica_cmd_embed(const mica_opts *o)
{
    embedder e = {.o = o};
    char *text = NULL;
    size_t length = 0;
    int code = open_embedder(&e);
    if (code == CODE_OK)
        code = mica_load_text(o, &text, &length);
    if (code == CODE_OK) {
        mica_interrupt_catch();
        mica_interrupt_watch(e.session);
        code = o->lines ? embed_lines(&e, text, length) : embed_text(&e, text, without_line_end(o, text, length));
        mica_interrupt_watch(NULL);
    }
    free(text);
    free(e.vector);
    mica_session_free(e.session);
    mica_model_close(e.model);
    return code;
}
