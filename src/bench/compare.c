#include "bench/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "bench/words.h"

mica_compare_options mica_compare_options_default(void)
{
    return (mica_compare_options){.backend = "default",
                                  .rounds = 10,
                                  .long_prompt = 512,
                                  .short_prompt = 32,
                                  .reply = 64,
                                  .adapter_options = mica_adapter_options_default(),
                                  .ratio = mica_ratio_options_default()};
}

void mica_comparison_free(mica_comparison *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->metric[i].a);
        free(c->metric[i].b);
    }
    *c = (mica_comparison){.n = 0};
}

char mica_compare_better(const mica_compare_metric *metric)
{
    switch (metric->ratio.verdict) {
    case MICA_VERDICT_HIGHER:
        return metric->higher_is_better ? 'b' : 'a';
    case MICA_VERDICT_LOWER:
        return metric->higher_is_better ? 'a' : 'b';
    case MICA_VERDICT_NOISE:
        return '=';
    case MICA_VERDICT_TOO_FEW:
        break;
    }
    return '?';
}

/* ---- Values ---- */

static bool append(double **values, size_t *n, size_t *capacity, double value)
{
    if (*n == *capacity) {
        size_t room = *capacity ? 2 * *capacity : 64;
        double *grown = realloc(*values, room * sizeof *grown);
        if (!grown)
            return false;
        *values = grown;
        *capacity = room;
    }
    (*values)[(*n)++] = value;
    return true;
}

static mica_status add_value(mica_comparison *c, int side, const char *name, bool higher, double value, mica_error *err)
{
    size_t i = 0;
    while (i < c->n && strcmp(c->metric[i].name, name) != 0)
        i++;
    if (i == MICA_COMPARE_METRICS)
        return mica_fail(err, MICA_UNSUPPORTED, "more than %d kinds of figures cannot be compared", MICA_COMPARE_METRICS);
    mica_compare_metric *m = &c->metric[i];
    if (i == c->n) {
        *m = (mica_compare_metric){.higher_is_better = higher};
        snprintf(m->name, sizeof m->name, "%s", name);
        c->n++;
    }
    bool added = side == 0 ? append(&m->a, &m->n_a, &m->capacity_a, value) : append(&m->b, &m->n_b, &m->capacity_b, value);
    return added ? MICA_OK : mica_fail_nomem(err, 64 * sizeof value, "a comparison");
}

/* The figures of one reply: its time to first token, and its decode rate if it is long enough for one. */
static mica_status add_reply(mica_comparison *c, int side, int32_t prompt, int64_t started_ns, const int64_t *times, size_t n,
                             int64_t gen_n, mica_error *err)
{
    char name[32];
    mica_status status = MICA_OK;
    if (n > 0 && times[0] > started_ns) {
        snprintf(name, sizeof name, "ttft_%d_ms", prompt);
        status = add_value(c, side, name, false, (double)(times[0] - started_ns) / 1e6, err);
    }
    if (!status && gen_n >= MICA_RUN_MIN_TOKENS && n > 1 && times[n - 1] > times[0])
        status = add_value(c, side, "decode_tps", true, (double)(gen_n - 1) * 1e9 / (double)(times[n - 1] - times[0]), err);
    return status;
}

/* ---- Stored ---- */

mica_status mica_compare_add(mica_comparison *c, int side, const mica_record *run, mica_error *err)
{
    const char *name = json_string_value(json_object_get(run->head, "name"));
    mica_status status = MICA_OK;
    if (!*c->name[side])
        snprintf(c->name[side], sizeof c->name[side], "%s", name ? name : "?");
    for (size_t i = 0; i < run->n_series && !status; i++) {
        const mica_series *x = &run->series[i];
        bool ttft = strncmp(x->phase, "ttft_", 5) == 0, decode = strcmp(x->phase, "decode") == 0;
        if (ttft && x->cached_n <= 0)
            status = add_reply(c, side, x->prompt_asked, x->started_ns, x->times, x->n, 0, err);
        if (decode) /* the prompts before it are those of the short TTFT, but they were not asked for that */
            status = add_reply(c, side, x->prompt_asked, x->n ? x->times[0] : 0, x->times, x->n, x->gen_n, err);
    }
    return status;
}

mica_status mica_compare_judge(mica_comparison *c, const mica_ratio_options *options, mica_error *err)
{
    mica_status status = MICA_OK;
    for (size_t i = 0; i < c->n && !status; i++) {
        mica_compare_metric *m = &c->metric[i];
        m->ratio = (mica_ratio){.verdict = MICA_VERDICT_TOO_FEW};
        if (m->n_a == 0 || m->n_b == 0)
            continue;
        status = c->paired ? mica_stat_paired_ratio(m->a, m->b, m->n_a, options, &m->ratio, err)
                           : mica_stat_unpaired_ratio(m->a, m->n_a, m->b, m->n_b, options, &m->ratio, err);
    }
    return status;
}

/* ---- Live ---- */

typedef struct live {
    const mica_compare_options *options;
    mica_comparison *out;
    mica_adapter *adapter[2];
    mica_adapter_reply reply;
    mica_error *err;
} live;

static mica_status ask(live *l, int side, int32_t prompt, int32_t n, uint64_t seed)
{
    mica_buf text;
    mica_buf_init(&text, (size_t)prompt * 16 + 4096);
    mica_status status = mica_words_text(seed, prompt + 8, &text, l->err);
    mica_adapter_request request = {
        .text = text.data, .text_length = text.length, .prompt_n = prompt, .n = n, .greedy = true, .ignore_eos = true};
    if (!status)
        status = mica_adapter_generate(l->adapter[side], &request, &l->reply, l->err);
    mica_buf_free(&text);
    return status;
}

static mica_status measure(live *l, int side, uint64_t seed)
{
    const mica_compare_options *o = l->options;
    const int32_t prompts[2] = {o->long_prompt, o->short_prompt}, replies[2] = {2, o->reply};
    mica_status status = MICA_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = ask(l, side, prompts[i], replies[i], 2 * seed + (uint64_t)i);
        if (!status)
            status = add_reply(l->out, side, prompts[i],
                               l->reply.cached_n > 0 && l->reply.n_events ? l->reply.token_ns[0] : l->reply.started_ns,
                               l->reply.token_ns, l->reply.n_events, l->reply.gen_n, l->err);
    }
    return status;
}

static mica_status open_side(live *l, int side)
{
    char label[80];
    const mica_compare_options *o = l->options;
    mica_adapter **a = &l->adapter[side];
    mica_adapter_load_request request = {
        .model = o->model[side], .backend = o->backend, .n_ctx = o->long_prompt + o->reply + 16, .threads = o->threads};
    mica_status status = strcmp(o->adapter[side], "mica") == 0
                             ? mica_adapter_mica_open(&o->adapter_options, a, l->err)
                             : mica_adapter_proc_open(o->adapter[side], &o->adapter_options, a, NULL, l->err);
    if (!status)
        status = mica_adapter_load(*a, &request, l->err);
    if (!status)
        status = mica_adapter_ask_partition(*a, l->err);
    if (!status)
        status = mica_adapter_confirm(*a, o->backend, o->allow_fallback, label, l->err);
    if (!status)
        snprintf(l->out->name[side], sizeof l->out->name[side], "%s %s", (*a)->hello.runtime, label);
    /* Warmed up with other words than those that count. */
    return status ? status : ask(l, side, o->long_prompt, o->reply, UINT64_MAX);
}

mica_status mica_compare_live(const mica_compare_options *options, mica_comparison *out, mica_error *err)
{
    live l = {.options = options, .out = out, .err = err};
    *out = (mica_comparison){.paired = true};
    mica_status status =
        options->rounds < 1 || options->rounds > 1000
            ? mica_fail(err, MICA_INVALID_ARGUMENT, "%d rounds are not possible; 1 to 1000 are", options->rounds)
            : open_side(&l, 0);
    if (!status)
        status = open_side(&l, 1);
    for (int32_t i = 0; i < options->rounds && !status; i++) {
        int first = i % 2; /* A B, B A, A B, ... */
        status = measure(&l, first, (uint64_t)i);
        if (!status)
            status = measure(&l, 1 - first, (uint64_t)i);
        if (options->on_round)
            options->on_round(options->user, i + 1, options->rounds, out);
    }
    if (!status)
        status = mica_compare_judge(out, &options->ratio, err);
    mica_adapter_reply_free(&l.reply);
    mica_adapter_close(l.adapter[0]);
    mica_adapter_close(l.adapter[1]);
    return status;
}
