/* cmd_imatrix.c - mica imatrix: reads a text through a model and keeps how large the inputs of each matrix are. The text is cut into
 * windows like that of mica perplexity; all of a window is computed. */
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "convert/imatrix.h"
#include "interrupt.h"
#include "load.h"
#include "session/session.h" /* its compute state: the public interface shows logits only */

typedef struct reader {
    mica_session *session;
    int32_t *tokens;
    size_t n_tokens;
    int32_t window, bos; /* bos -1: none is put first */
    size_t n_windows;
} reader;

static int read_tokens(const mica_opts *o, mica_model *model, reader *r)
{
    mica_error err;
    mica_model_info info;
    char *text;
    size_t length;
    int code = mica_load_text(o, &text, &length);
    if (code != CODE_OK)
        return code;
    if (mica_model_tokenize(model, text, length, MICA_TOKENIZE_ADD_BOS, &r->tokens, &r->n_tokens, &err))
        code = mica_load_failed(&err);
    free(text);
    mica_model_get_info(model, &info);
    r->bos = info.add_bos ? info.bos_token : -1;
    r->n_windows = r->n_tokens / (size_t)r->window;
    if (code == CODE_OK && r->n_windows == 0)
        code = mica_term_error("the text has %zu tokens, less than one window of %d; use a longer text or a smaller --window", r->n_tokens,
                               r->window);
    if (o->chunks > 0 && r->n_windows > (size_t)o->chunks)
        r->n_windows = (size_t)o->chunks;
    return code;
}

static void read_window(const reader *r, size_t i)
{
    mica_session *s = r->session;
    int32_t *tokens = r->tokens + i * (size_t)r->window;
    if (r->bos >= 0)
        tokens[0] = r->bos;
    for (int32_t at = 0; at < r->window; at += s->exec.chunk) {
        int32_t left = r->window - at;
        mica_span span = {&s->kv, tokens + at, left < s->exec.chunk ? left : s->exec.chunk, at, 0};
        mica_forward(&s->exec, &span, 1);
    }
}

static int read_windows(const reader *r, mica_imatrix *m)
{
    mica_bar bar = {.what = "reading"};
    r->session->exec.observe = mica_imatrix_add;
    r->session->exec.observe_user = m;
    for (size_t i = 0; i < r->n_windows && mica_interrupt_count() == 0; i++) {
        mica_bar_show(&bar, (double)i / (double)r->n_windows);
        read_window(r, i);
    }
    mica_bar_end(&bar);
    return mica_interrupt_count() ? CODE_INTERRUPTED : CODE_OK;
}

static int collect(const mica_opts *o, mica_model *model, const reader *r)
{
    mica_error err;
    mica_imatrix *m;
    if (mica_imatrix_new(model->gguf, &m, &err))
        return mica_load_failed(&err);
    mica_interrupt_catch();
    int code = read_windows(r, m);
    if (code == CODE_INTERRUPTED)
        mica_term_error("stopped; nothing was written");
    else if (mica_imatrix_write(m, o->out, o->file ? o->file : "standard input", r->window, &err))
        code = mica_load_failed(&err);
    else
        printf("%s: the inputs of %lld tokens in %zu windows of %d\n", o->out, (long long)mica_imatrix_tokens(m), r->n_windows, r->window);
    mica_imatrix_free(m);
    return code;
}

int mica_cmd_imatrix(const mica_opts *o)
{
    char path[4096];
    mica_model *model = NULL;
    reader r = {.window = (int32_t)o->window};
    mica_opts with_ctx = *o;
    with_ctx.ctx = o->window;
    int code = o->out ? CODE_OK : mica_term_usage("mica imatrix: name the file to write with --out");
    if (code == CODE_OK)
        code = mica_load_path(o, NULL, path);
    if (code == CODE_OK)
        code = mica_load_model(o, path, &model);
    if (code == CODE_OK)
        code = read_tokens(o, model, &r);
    if (code == CODE_OK)
        code = mica_load_session(&with_ctx, model, NULL, &r.session);
    if (code == CODE_OK)
        code = collect(o, model, &r);
    mica_free(r.tokens);
    mica_session_free(r.session);
    mica_model_close(model);
    return code;
}
