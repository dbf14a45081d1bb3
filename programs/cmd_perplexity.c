/* cmd_perplexity.c - mica perplexity: how well a model predicts a text.
 *
 * Protocol (llama.cpp's, so that numbers can be compared): the whole text is tokenised once, with the BOS where the model adds
 * one; cut into windows; the first token of each window becomes the BOS where the model adds one; each token of the second half
 * but its first is scored given all before it in the window. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "load.h"

typedef struct scorer {
    mica_session *session;
    int32_t n_vocab, window, bos; /* bos -1: none is put first */
    int32_t *tokens;
    size_t n_tokens, n_windows;
    size_t at;  /* index in `tokens` of the window being scored */
    double nll; /* sum over the window */
    double total;
    json_t *windows; /* mean of each */
} scorer;

/* -log softmax(logits)[target], in double */
static double nll_of(const float *logits, int32_t n, int32_t target)
{
    double max = -INFINITY, sum = 0.0;
    for (int32_t i = 0; i < n; i++)
        if ((double)logits[i] > max)
            max = (double)logits[i];
    for (int32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    return log(sum) + max - (double)logits[target];
}

static int on_logits(void *user, size_t position, const float *logits)
{
    scorer *s = user;
    if (position + 1 < (size_t)s->window)
        s->nll += nll_of(logits, s->n_vocab, s->tokens[s->at + position + 1]);
    return 0;
}

static int score_window(scorer *s, size_t i)
{
    mica_error err;
    int32_t scored = s->window - s->window / 2 - 1;
    s->at = i * (size_t)s->window;
    s->nll = 0.0;
    if (s->bos >= 0)
        s->tokens[s->at] = s->bos;
    if (mica_session_score(s->session, s->tokens + s->at, (size_t)s->window, (size_t)(s->window / 2), on_logits, s, &err))
        return mica_load_failed(&err);
    if (!isfinite(s->nll))
        return mica_term_error("window %zu has a log-likelihood that is not finite: the model gives NaN or infinite logits", i);
    s->total += s->nll;
    json_array_append_new(s->windows, json_real(s->nll / scored));
    return CODE_OK;
}

static int score_all(scorer *s)
{
    mica_bar bar = {.what = "scoring"};
    int code = CODE_OK;
    for (size_t i = 0; i < s->n_windows && code == CODE_OK; i++) {
        mica_bar_show(&bar, (double)i / (double)s->n_windows);
        code = score_window(s, i);
    }
    mica_bar_end(&bar);
    return code;
}

static int print_result(const scorer *s, bool json)
{
    size_t scored = s->n_windows * (size_t)(s->window - s->window / 2 - 1);
    double mean = s->total / (double)scored;
    if (!json) {
        printf("ppl=%.6f;nll=%.6f;windows=%zu;window=%d;tokens=%zu;scored=%zu\n", exp(mean), mean, s->n_windows, s->window,
               s->n_tokens, scored);
        return CODE_OK;
    }
    return mica_json_line(json_pack("{s:f, s:f, s:O, s:i, s:I, s:I}", "mean_nll", mean, "ppl", exp(mean), "windows", s->windows,
                                    "window", (int)s->window, "n_tokens", (json_int_t)s->n_tokens, "scored_tokens",
                                    (json_int_t)scored))
               ? CODE_OK
               : CODE_FAILED;
}

static int read_tokens(const mica_opts *o, const mica_model *model, scorer *s)
{
    mica_error err;
    char *text;
    size_t length;
    int code = mica_load_text(o, &text, &length);
    if (code != CODE_OK)
        return code;
    if (mica_model_tokenize(model, text, length, MICA_TOKENIZE_ADD_BOS, &s->tokens, &s->n_tokens, &err))
        code = mica_load_failed(&err);
    free(text);
    s->n_windows = s->n_tokens / (size_t)s->window;
    if (code == CODE_OK && s->n_windows == 0)
        code = mica_term_error("the text has %zu tokens, less than one window of %d; use a longer text or a smaller --window",
                               s->n_tokens, s->window);
    if (o->chunks > 0 && s->n_windows > (size_t)o->chunks)
        s->n_windows = (size_t)o->chunks;
    return code;
}

int mica_cmd_perplexity(const mica_opts *o)
{
    char path[4096];
    mica_model *model = NULL;
    mica_model_info info;
    scorer s = {.window = (int32_t)o->window, .windows = json_array()};
    mica_opts with_ctx = *o;
    with_ctx.ctx = o->window;
    int code = mica_load_path(o, NULL, path);
    if (code == CODE_OK)
        code = mica_load_model(o, path, &model);
    if (code == CODE_OK)
        code = read_tokens(o, model, &s);
    if (code == CODE_OK)
        code = mica_load_session(&with_ctx, model, NULL, &s.session);
    if (code == CODE_OK) {
        mica_model_get_info(model, &info);
        s.n_vocab = info.n_vocab;
        s.bos = info.add_bos ? info.bos_token : -1;
        code = score_all(&s);
    }
    if (code == CODE_OK)
        code = print_result(&s, o->json);
    json_decref(s.windows);
    mica_free(s.tokens);
    mica_session_free(s.session);
    mica_model_close(model);
    return code;
}
