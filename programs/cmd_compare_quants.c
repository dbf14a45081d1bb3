/* cmd_compare_quants.c - mica compare-quants: what each file of one model costs in bytes and time, and in what it predicts. The file
 * with the most bits a weight is the reference of the others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "convert/quantize.h"
#include "load.h"
#include "mica/mica_ops.h"
#include "quant_score.h"

enum { MAX_FILES = 16, SPEED_PROMPT = 128, SPEED_REPLY = 32 };

typedef struct candidate {
    const char *path;
    mica_model *model;
    mica_session *session;
    mica_model_info info;
    double bits;                        /* a weight */
    double error;                       /* of the weights, against the reference's; NAN: not comparable */
    double prefill_tps, decode_tps;
    mica_quant_score score;
} candidate;

typedef struct comparison {
    candidate files[MAX_FILES];
    int n, reference;
    int32_t *tokens;
    size_t n_tokens, n_windows;
    int32_t window, bos; /* bos -1: none is put first */
    mica_quant_window kept;
} comparison;

/* The window that is being scored, of one file. */
typedef struct scoring {
    comparison *c;
    candidate *file;
    const int32_t *tokens;
} scoring;

/* ---- Opening ---- */

static int open_file(const mica_opts *o, const char *path, candidate *f)
{
    f->path = path;
    int code = mica_load_model(o, path, &f->model);
    if (code != CODE_OK)
        return code;
    mica_model_get_info(f->model, &f->info);
    f->bits = 8.0 * (double)f->info.weight_bytes / (double)f->info.n_params;
    mica_opts with_ctx = *o;
    with_ctx.ctx = o->window > SPEED_PROMPT + SPEED_REPLY ? o->window : SPEED_PROMPT + SPEED_REPLY;
    return mica_load_session(&with_ctx, f->model, NULL, &f->session);
}

static int open_files(const mica_opts *o, comparison *c)
{
    int code = CODE_OK;
    for (int i = 0; i < o->n_args && code == CODE_OK; i++, c->n++) {
        code = open_file(o, o->args[i], &c->files[i]);
        if (c->files[i].bits > c->files[c->reference].bits)
            c->reference = i;
    }
    return code;
}

static int tokenize(const candidate *f, const char *text, size_t length, int32_t **tokens, size_t *n)
{
    mica_error err;
    return mica_model_tokenize(f->model, text, length, MICA_TOKENIZE_ADD_BOS, tokens, n, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* Files that read the text as other tokens cannot be compared token by token. */
static int check_same_tokens(const comparison *c, const char *text, size_t length)
{
    int code = CODE_OK;
    for (int i = 0; i < c->n && code == CODE_OK; i++) {
        int32_t *tokens = NULL;
        size_t n = 0;
        code = tokenize(&c->files[i], text, length, &tokens, &n);
        if (code == CODE_OK && (n != c->n_tokens || c->files[i].info.n_vocab != c->files[c->reference].info.n_vocab ||
                                memcmp(tokens, c->tokens, n * sizeof *tokens) != 0))
            code = mica_term_error("%s and %s read the text as different tokens: they are not files of one model", c->files[i].path,
                                   c->files[c->reference].path);
        mica_free(tokens);
    }
    return code;
}

static int read_text(const mica_opts *o, comparison *c)
{
    const candidate *reference = &c->files[c->reference];
    char *text;
    size_t length;
    int code = mica_load_text(o, &text, &length);
    if (code != CODE_OK)
        return code;
    code = tokenize(reference, text, length, &c->tokens, &c->n_tokens);
    if (code == CODE_OK)
        code = check_same_tokens(c, text, length);
    free(text);
    c->bos = reference->info.add_bos ? reference->info.bos_token : -1;
    c->n_windows = c->n_tokens / (size_t)c->window;
    if (code == CODE_OK && (c->n_windows == 0 || c->n_tokens < SPEED_PROMPT))
        code = mica_term_error("the text has %zu tokens; one window of %d, and %d for the speed, are the least", c->n_tokens, c->window,
                               SPEED_PROMPT);
    if (o->chunks > 0 && c->n_windows > (size_t)o->chunks)
        c->n_windows = (size_t)o->chunks;
    return code;
}

static int allocate(comparison *c)
{
    mica_quant_window *w = &c->kept;
    w->rows = c->window - c->window / 2 - 1;
    w->n_vocab = c->files[c->reference].info.n_vocab;
    w->logits = malloc((size_t)w->rows * (size_t)w->n_vocab * sizeof *w->logits);
    w->log_sum = malloc((size_t)w->rows * sizeof *w->log_sum);
    w->top = malloc((size_t)w->rows * sizeof *w->top);
    bool enough = w->logits && w->log_sum && w->top;
    for (int i = 0; i < c->n; i++)
        enough &= (c->files[i].score.kls = malloc(c->n_windows * (size_t)w->rows * sizeof(double))) != NULL;
    return enough ? CODE_OK : mica_term_error("not enough memory for the logits of a window; use a smaller --window");
}

/* ---- Scoring ---- */

/* The reference comes first in each window, and is scored against itself. */
static int on_logits(void *user, size_t position, const float *logits)
{
    scoring *s = user;
    comparison *c = s->c;
    if (position + 1 >= (size_t)c->window)
        return 0;
    int32_t row = (int32_t)position - c->window / 2;
    if (s->file == &c->files[c->reference])
        mica_quant_window_keep(&c->kept, row, logits);
    mica_quant_score_add(&s->file->score, &c->kept, row, logits, s->tokens[position + 1]);
    return 0;
}

static int score_window(comparison *c, size_t i)
{
    mica_error err;
    int32_t *tokens = c->tokens + i * (size_t)c->window;
    if (c->bos >= 0)
        tokens[0] = c->bos;
    for (int k = 0; k < c->n; k++) {
        scoring s = {.c = c, .file = &c->files[(c->reference + k) % c->n], .tokens = tokens};
        if (mica_session_score(s.file->session, tokens, (size_t)c->window, (size_t)(c->window / 2), on_logits, &s, &err))
            return mica_load_failed(&err);
    }
    return CODE_OK;
}

static int score_all(comparison *c)
{
    mica_bar bar = {.what = "scoring"};
    int code = CODE_OK;
    for (size_t i = 0; i < c->n_windows && code == CODE_OK; i++) {
        mica_bar_show(&bar, (double)i / (double)c->n_windows);
        code = score_window(c, i);
    }
    mica_bar_end(&bar);
    for (int i = 0; i < c->n && code == CODE_OK; i++) {
        if (!isfinite(c->files[i].score.nll))
            code = mica_term_error("%s gives logits that are not finite", c->files[i].path);
        mica_stat_sort(c->files[i].score.kls, (size_t)c->files[i].score.n);
    }
    return code;
}

/* ---- Weights and speed ---- */

/* Files of another layout (fused matrices) have no weights to compare; their predictions are compared all the same. */
static int weigh(comparison *c)
{
    mica_error err;
    mica_gguf *reference, *other;
    if (mica_gguf_open(c->files[c->reference].path, &reference, &err))
        return mica_load_failed(&err);
    int code = CODE_OK;
    for (int i = 0; i < c->n && code == CODE_OK; i++) {
        if (mica_gguf_open(c->files[i].path, &other, &err)) {
            code = mica_load_failed(&err);
            break;
        }
        if (mica_quantize_difference(reference, other, &c->files[i].error, &err))
            c->files[i].error = NAN;
        mica_gguf_close(other);
    }
    mica_gguf_close(reference);
    return code;
}

/* The better of two rounds: one may be disturbed. */
static int time_file(const comparison *c, candidate *f)
{
    mica_error err;
    mica_generate_options g = mica_generate_options_default();
    g.max_tokens = SPEED_REPLY;
    g.sampling.temperature = 0.0f;
    g.ignore_eos = true;
    for (int round = 0; round < 2; round++) {
        mica_result r;
        const int32_t *prompt = c->tokens + round; /* not what is in the cache */
        if (mica_session_sync(f->session, prompt, SPEED_PROMPT - 1, &err) || mica_session_generate(f->session, &g, &r, &err))
            return mica_load_failed(&err);
        f->prefill_tps = fmax(f->prefill_tps, r.prefill_tps);
        f->decode_tps = fmax(f->decode_tps, r.decode_tps);
    }
    return CODE_OK;
}

static int time_files(comparison *c)
{
    int code = CODE_OK;
    for (int i = 0; i < c->n && code == CODE_OK; i++)
        code = time_file(c, &c->files[i]);
    return code;
}

/* ---- Output ---- */

static double ppl(const candidate *f) { return exp(f->score.nll / (double)f->score.n); }

static double kl_p99(const candidate *f) { return mica_stat_percentile(f->score.kls, (size_t)f->score.n, 0.99); }

static double same_top(const candidate *f) { return 100.0 * (double)f->score.same_top / (double)f->score.n; }

static void print_table(const comparison *c)
{
    int width = 4;
    for (int i = 0; i < c->n; i++)
        width = (int)strlen(c->files[i].path) > width ? (int)strlen(c->files[i].path) : width;
    printf("%-*s %8s %6s %8s %8s %8s %9s %9s %8s %9s\n", width, "file", "MB", "bits", "prefill", "decode", "ppl", "KL", "KL p99",
           "same top", "weights");
    for (int i = 0; i < c->n; i++) {
        const candidate *f = &c->files[i];
        printf("%-*s %8.1f %6.3f %8.1f %8.1f %8.3f %9.5f %9.5f %7.2f%% ", width, f->path, (double)f->info.file_bytes / 1e6, f->bits,
               f->prefill_tps, f->decode_tps, ppl(f), f->score.kl / (double)f->score.n, kl_p99(f), same_top(f));
        if (isfinite(f->error))
            printf("%9.5f\n", f->error);
        else
            printf("%9s\n", "-");
    }
}

static void print_legend(const comparison *c)
{
    const candidate *r = &c->files[c->reference];
    printf("\nAgainst %s, which has the most bits a weight, over %lld tokens in %zu windows of %d. KL: of its predictions to the file's, in nats,\n"
           "mean and 99th percentile. same top: how often both find the same token most probable. weights: error relative to its weights.\n"
           "prefill, decode: tokens/s at %d tokens of prompt, the better of two short runs; mica bench measures.\n",
           r->path, (long long)r->score.n, c->n_windows, c->window, SPEED_PROMPT);
}

static int print_json(const comparison *c)
{
    json_t *files = json_array();
    for (int i = 0; i < c->n; i++) {
        const candidate *f = &c->files[i];
        json_array_append_new(files, json_pack("{s:s, s:b, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "file", f->path, "reference",
                                               i == c->reference, "bytes", (json_int_t)f->info.file_bytes, "bits_per_weight", f->bits,
                                               "prefill_tps", f->prefill_tps, "decode_tps", f->decode_tps, "ppl", ppl(f), "mean_nll",
                                               f->score.nll / (double)f->score.n, "kl", f->score.kl / (double)f->score.n, "kl_p99", kl_p99(f),
                                               "same_top_percent", same_top(f), "weight_error", mica_json_real(f->error)));
    }
    return mica_json_line(json_pack("{s:o, s:I, s:I, s:i}", "files", files, "scored_tokens", (json_int_t)c->files[c->reference].score.n,
                                    "windows", (json_int_t)c->n_windows, "window", (int)c->window))
               ? CODE_OK
               : CODE_FAILED;
}

static void close_all(comparison *c)
{
    for (int i = 0; i < MAX_FILES; i++) {
        mica_session_free(c->files[i].session);
        mica_model_close(c->files[i].model);
        free(c->files[i].score.kls);
    }
    mica_free(c->tokens);
    free(c->kept.logits);
    free(c->kept.log_sum);
    free(c->kept.top);
    free(c);
}

int mica_cmd_compare_quants(const mica_opts *o)
{
    comparison *c = calloc(1, sizeof *c);
    if (!c)
        return mica_term_error("not enough memory");
    c->window = (int32_t)o->window;
    int code = open_files(o, c);
    if (code == CODE_OK)
        code = read_text(o, c);
    if (code == CODE_OK)
        code = allocate(c);
    if (code == CODE_OK)
        code = time_files(c);
    if (code == CODE_OK)
        code = score_all(c);
    if (code == CODE_OK)
        code = weigh(c);
    if (code == CODE_OK && o->json) {
        code = print_json(c);
    } else if (code == CODE_OK) {
        print_table(c);
        print_legend(c);
    }
    close_all(c);
    return code;
}
