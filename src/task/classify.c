/* classify.c - the kinds classify and route: which label continues the prompt best.
 *
 * A label's score is the log-probability of its tokens in their order. The labels are walked as a prefix tree, in sorted order:
 * each place in the tree is computed once, whatever number of labels go through it, and all behind the prompt, which the
 * session's cache keeps. */
#include "task/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "session/session.h"

typedef struct candidate {
    size_t label;
    mica_task_tokens tokens; /* of the prompt and the label */
    double logprob;
} candidate;

typedef struct scoring {
    mica_task_job *job;
    candidate *item; /* sorted by tokens */
    size_t n;
    size_t shared; /* tokens of the prompt that all have; what follows is scored */
} scoring;

static size_t common(const mica_task_tokens *a, const mica_task_tokens *b)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->id[i] == b->id[i])
        i++;
    return i;
}

static int by_tokens(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    size_t same = common(&x->tokens, &y->tokens);
    if (same < x->tokens.n && same < y->tokens.n)
        return x->tokens.id[same] < y->tokens.id[same] ? -1 : 1;
    return x->tokens.n < y->tokens.n ? -1 : x->tokens.n > y->tokens.n;
}

/* ---- Scores ---- */

/* Adds the log-probability of the token at `at` to every candidate from `first` on that has the same tokens before it. */
static mica_status score_place(scoring *s, size_t first, size_t at, mica_error *err)
{
    const mica_task_tokens *here = &s->item[first].tokens;
    mica_status status = mica_task_sync(s->job, here->id, at, err);
    if (status)
        return status;
    const float *logits = mica_session_logits(s->job->session);
    float logprob;
    mica_sampler_top_logprobs(s->job->session->sampler, logits, here->id[at], 0, NULL, NULL, &logprob);
    double total = (double)logits[here->id[at]] - (double)logprob; /* log of the sum of all exponentials */
    if (!isfinite(total))
        return mica_fail(err, MICA_NON_FINITE, "the model gives logits that are not finite");
    for (size_t i = first; i < s->n && common(here, &s->item[i].tokens) >= at; i++)
        if (s->item[i].tokens.n > at)
            s->item[i].logprob += (double)logits[s->item[i].tokens.id[at]] - total;
    return MICA_OK;
}

/* The first place of `here` that was not scored with the candidate before it: behind where they part, unless that one ends
 * there. */
static size_t unscored(const mica_task_tokens *before, const mica_task_tokens *here)
{
    size_t same = common(before, here);
    return same < before->n ? same + 1 : same;
}

static mica_status score_all(scoring *s, mica_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t at = i == 0 ? s->shared : unscored(&s->item[i - 1].tokens, &s->item[i].tokens);
        for (; at < s->item[i].tokens.n; at++) {
            mica_status status = score_place(s, i, at, err);
            if (status)
                return status;
        }
    }
    return MICA_OK;
}

/* ---- Candidates ---- */

static mica_status make_candidate(const mica_task *t, const mica_task_filled *filled, size_t label, candidate *out,
                                  mica_error *err)
{
    mica_buf text;
    mica_buf_init(&text, 1 << 20);
    mica_buf_puts(&text, t->label_prefix);
    mica_buf_puts(&text, t->labels[label].text);
    *out = (candidate){.label = label};
    mica_status status =
        text.failed ? mica_fail_nomem(err, 1, "a label") : mica_task_filled_tokens(t, filled, text.data, &out->tokens, err);
    mica_buf_free(&text);
    return status;
}

static mica_status check_candidates(const scoring *s, mica_error *err)
{
    const mica_task *t = s->job->task;
    if (s->shared == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the prompt of the task \"%s\" has no tokens before the label", t->name);
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].tokens.n <= s->shared)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "the label \"%s\" has no tokens of its own",
                             t->labels[s->item[i].label].name);
    return MICA_OK;
}

/* The candidates of an input. Tokens of the label may merge with the prompt's end: what is scored begins where the first label
 * departs from the prompt without one, so that all labels are scored from the same place. */
static mica_status make_candidates(scoring *s, const char *input, size_t length, mica_error *err)
{
    const mica_task *t = s->job->task;
    mica_task_filled filled;
    mica_task_tokens bare = {.id = NULL};
    mica_status status = mica_task_fill(t, &t->prompt, input, length, &filled, err);
    if (status)
        return status;
    status = mica_task_filled_tokens(t, &filled, "", &bare, err);
    s->shared = bare.n;
    for (; s->n < t->n_labels && !status; s->n++) {
        status = make_candidate(t, &filled, s->n, &s->item[s->n], err);
        size_t same = status ? 0 : common(&bare, &s->item[s->n].tokens);
        s->shared = same < s->shared ? same : s->shared;
    }
    free(bare.id);
    mica_task_filled_free(&filled);
    return status ? status : check_candidates(s, err);
}

/* The score of each label for an input, to scores[n_labels], and its number of tokens. */
static mica_status score_input(mica_task_job *job, const char *input, size_t length, double *scores, size_t *tokens,
                               mica_error *err)
{
    const mica_task *t = job->task;
    scoring s = {.job = job, .item = calloc(t->n_labels, sizeof *s.item)};
    if (!s.item)
        return mica_fail_nomem(err, t->n_labels * sizeof *s.item, "the labels' tokens");
    mica_status status = make_candidates(&s, input, length, err);
    if (!status) {
        qsort(s.item, s.n, sizeof *s.item, by_tokens);
        status = score_all(&s, err);
    }
    for (size_t i = 0; i < s.n; i++) {
        size_t label = s.item[i].label;
        if (!status) {
            tokens[label] = s.item[i].tokens.n - s.shared;
            scores[label] = s.item[i].logprob;
        }
        free(s.item[i].tokens.id);
    }
    free(s.item);
    return status;
}

/* ---- Calibration ---- */

static double comparable(const mica_task *t, double logprob, size_t tokens)
{
    return t->normalise ? logprob / (double)tokens : logprob;
}

/* What the labels score where the input says nothing, as the mean over the content-free inputs: T. Zhao and others, "Calibrate
 * Before Use", ICML 2021. Computed once for a task. */
static mica_status calibrate(mica_task_job *job, double *scores, size_t *tokens, mica_error *err)
{
    mica_task *t = job->task;
    double *bias = calloc(t->n_labels, sizeof *bias);
    size_t i;
    json_t *input;
    mica_status status = bias ? MICA_OK : mica_fail_nomem(err, t->n_labels * sizeof *bias, "the labels' calibration");
    json_array_foreach((json_t *)t->calibrate, i, input)
    {
        if (!status)
            status = score_input(job, json_string_value(input), json_string_length(input), scores, tokens, err);
        for (size_t k = 0; k < t->n_labels && !status; k++)
            bias[k] += comparable(t, scores[k], tokens[k]) / (double)json_array_size(t->calibrate);
    }
    if (status)
        free(bias);
    else
        t->bias = bias;
    return status;
}

/* ---- The result ---- */

typedef struct rank {
    size_t label;
    double probability;
} rank;

static int by_probability(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->probability > y->probability || x->probability < y->probability)
        return x->probability > y->probability ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

static void put_result(const mica_task *t, const double *scores, const size_t *tokens, rank *ranks, json_t **result)
{
    double best = -INFINITY, total = 0.0;
    for (size_t i = 0; i < t->n_labels; i++) {
        ranks[i] = (rank){i, comparable(t, scores[i], tokens[i]) - (t->bias ? t->bias[i] : 0.0)};
        best = ranks[i].probability > best ? ranks[i].probability : best;
    }
    for (size_t i = 0; i < t->n_labels; i++)
        total += ranks[i].probability = exp(ranks[i].probability - best);
    for (size_t i = 0; i < t->n_labels; i++)
        ranks[i].probability /= total;
    qsort(ranks, t->n_labels, sizeof *ranks, by_probability);
    bool none = t->kind == MICA_TASK_ROUTE && ranks[0].probability < t->threshold;
    mica_json_set(result, "label", json_string(none ? t->none : t->labels[ranks[0].label].name));
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_labels; i++)
        mica_json_add(&list, json_pack("{s:s, s:f, s:I, s:f}", "label", t->labels[ranks[i].label].name, "logprob",
                                              scores[ranks[i].label], "tokens", (json_int_t)tokens[ranks[i].label],
                                              "probability", ranks[i].probability));
    mica_json_set(result, "scores", list);
}

mica_status mica_task_classify(mica_task_job *job, json_t **result, mica_error *err)
{
    mica_task *t = job->task;
    double *scores = calloc(t->n_labels, sizeof *scores);
    size_t *tokens = calloc(t->n_labels, sizeof *tokens);
    rank *ranks = calloc(t->n_labels, sizeof *ranks);
    mica_status status = scores && tokens && ranks ? MICA_OK : mica_fail_nomem(err, t->n_labels * 32, "the labels' scores");
    if (!status && t->calibrate && !t->bias)
        status = calibrate(job, scores, tokens, err);
    if (!status)
        status = score_input(job, job->input->text, job->input->length, scores, tokens, err);
    if (!status)
        put_result(t, scores, tokens, ranks, result);
    free(scores);
    free(tokens);
    free(ranks);
    return status;
}
