#include "session/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "device/budget.h"
#include "device/memory.h"
#include "session/session.h"

#define CTX_STEP 256 /* contexts that are advised are multiples of it */
/* Contexts that are advised leave so much: a program that is started again has some pages more or fewer, and others take memory
 * meanwhile. */
#define SLACK   ((int64_t)1 << 20)
#define N_TYPES 3 /* of caches */

static mica_status plan_session(const void *user, const mica_model *m, const mica_session_options *o, mica_memory_plan *plan,
                                mica_error *err)
{
    (void)user;
    return mica_plan_memory(m, o, plan, err);
}

const mica_fit_planner mica_fit_session = {plan_session, NULL, "a smaller prefill chunk", ""};

typedef struct fit {
    const mica_model *m;
    const mica_session_options *o;
    const mica_fit_planner *planner;
    mica_budget *b;
    mica_memory_bounds bounds;
    char available_source[MICA_MEMORY_REASON];
} fit;

/* ---- What fits ---- */

static bool fits(const fit *f, const mica_memory_plan *p, int64_t slack)
{
    return p->peak_bytes <= f->b->budget_bytes - slack && p->workspace_bytes <= f->o->workspace_limit &&
           (f->b->available_bytes < 0 || p->kv_bytes + p->workspace_bytes <= f->b->available_bytes - slack);
}

static bool ctx_fits(const fit *f, int32_t n_ctx, mica_kv_type type)
{
    mica_session_options o = *f->o;
    mica_memory_plan p;
    o.n_ctx = n_ctx;
    o.prefill_chunk = o.prefill_chunk < n_ctx || f->planner != &mica_fit_session ? o.prefill_chunk : n_ctx;
    o.kv_k = o.kv_v = type;
    return f->planner->plan(f->planner->user, f->m, &o, &p, NULL) == MICA_OK && fits(f, &p, SLACK);
}

/* The longest context, up to the one asked for, by halving: what is planned grows with it. */
static int32_t longest(const fit *f, mica_kv_type type)
{
    int32_t asked = f->o->n_ctx, good = 0, bad = asked / CTX_STEP + 1;
    if (!mica_kv_fits(&f->m->weights.h, mica_plan_kv_quant(type)))
        return 0;
    if (ctx_fits(f, asked, type))
        return asked;
    while (bad - good > 1) {
        int32_t middle = good + (bad - good) / 2;
        if (middle * CTX_STEP < asked && ctx_fits(f, middle * CTX_STEP, type))
            good = middle;
        else
            bad = middle;
    }
    return good * CTX_STEP;
}

/* Bytes of a matrix in a format, or in the one that takes its place where rows are no whole blocks; never more than now. */
static int64_t bytes_in(const mica_gguf_tensor *t, mica_type type, mica_type instead)
{
    const mica_quant *q = mica_quant_of(type);
    if (t->dims[0] % q->block_weights != 0)
        q = mica_quant_of(instead);
    if (t->n_dims < 2 || t->dims[0] % q->block_weights != 0)
        return (int64_t)t->n_bytes;
    int64_t bytes = (int64_t)mica_quant_bytes(q, (size_t)(t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]));
    return bytes < (int64_t)t->n_bytes ? bytes : (int64_t)t->n_bytes;
}

/* What rows of 32-weight blocks take instead is what llama.cpp's tool takes. */
static void find_type(const fit *f)
{
    static const mica_type types[][2] = {{MICA_TYPE_Q8_0, MICA_TYPE_Q8_0}, {MICA_TYPE_Q6_K, MICA_TYPE_Q8_0},
                                         {MICA_TYPE_Q5_K, MICA_TYPE_Q5_1}, {MICA_TYPE_Q4_K, MICA_TYPE_Q5_0},
                                         {MICA_TYPE_Q4_0, MICA_TYPE_Q4_0}, {MICA_TYPE_Q3_K, MICA_TYPE_Q4_0},
                                         {MICA_TYPE_Q2_K, MICA_TYPE_Q4_0}};
    const mica_weights *w = &f->m->weights;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        mica_memory_plan p = f->b->plan;
        int64_t bytes = 0, saved = 0;
        for (size_t i = 0; i < mica_gguf_tensor_count(f->m->gguf); i++) {
            const mica_gguf_tensor *t = mica_gguf_tensor_at(f->m->gguf, i);
            int64_t then = bytes_in(t, types[k][0], types[k][1]);
            bytes += then;
            saved += w->rows_apart && t->data == w->embd.data ? 0 : (int64_t)t->n_bytes - then;
        }
        p.peak_bytes -= saved;
        if (bytes >= w->n_bytes || !fits(f, &p, 0))
            continue;
        f->b->type_that_fits = mica_quant_of(types[k][0])->name;
        f->b->type_bytes = bytes;
        return;
    }
}

/* ---- The sentence ---- */

static void say_need(const fit *f, mica_buf *out)
{
    const mica_memory_plan *p = &f->b->plan;
    char peak[32], weights[32], kv[32], work[32], rest[32], most[32];
    mica_memory_text(p->peak_bytes, peak);
    mica_memory_text(p->touched_bytes, weights);
    mica_memory_text(p->kv_bytes, kv);
    mica_memory_text(p->workspace_bytes, work);
    mica_memory_text(p->peak_bytes - p->touched_bytes - p->kv_bytes - p->workspace_bytes, rest);
    mica_buf_printf(out, "a context of %d needs %s at its peak (weights %s, KV cache %s, workspace %s, other %s)", p->n_ctx,
                    peak, weights, kv, work, rest);
    if (p->peak_bytes > f->b->budget_bytes) {
        mica_memory_text(f->b->budget_bytes, most);
        mica_buf_printf(out, ", over the budget of %s", most);
        int64_t budget = f->o->memory_budget ? -f->o->memory_budget : MICA_BUDGET_PERCENT,
                limit = f->o->memory_limit ? -f->o->memory_limit : 100;
        if (budget > 0 && limit > 0)
            mica_buf_printf(out, ", %d %% of %s", (int)(budget < limit ? budget : limit), f->bounds.source);
    } else {
        mica_buf_printf(out, ", and only %lld bytes are available now (%s)", (long long)f->b->available_bytes,
                        f->available_source);
    }
}

static void say_what_fits(const fit *f, mica_buf *out)
{
    bool usual = f->o->kv_k == MICA_KV_F16 && f->o->kv_v == MICA_KV_F16;
    const char *const names[N_TYPES] = {usual ? "" : " with an f16 cache", " with a q8_0 cache", " with a q4_0 cache"};
    const mica_budget *b = f->b;
    const char *before = "; what fits: ";
    int32_t best = 0;
    for (int i = 0; i < N_TYPES; i++) {
        if (b->ctx_that_fits[i] <= best)
            continue;
        best = b->ctx_that_fits[i];
        mica_buf_printf(out, "%sa context of %d%s", before, best, names[i]);
        before = ", ";
    }
    if (b->type_that_fits) {
        char size[32];
        mica_memory_text(b->type_bytes, size);
        mica_buf_printf(out, "%sweights in %s (%s)", before, b->type_that_fits, size);
    } else if (best == 0) {
        mica_buf_puts(out, "; no context, cache or format of this model would fit: use a smaller model");
    }
    mica_buf_puts(out, f->planner->less_kv);
    if (b->plan.peak_bytes > b->budget_bytes && b->plan.peak_bytes <= b->limit_bytes)
        mica_buf_printf(out, "; or ask for a memory budget of %lld bytes", (long long)b->plan.peak_bytes);
}

static void say(const fit *f)
{
    mica_budget *b = f->b;
    mica_buf text;
    size_t length;
    mica_buf_init(&text, 4096);
    if (b->plan.workspace_bytes > f->o->workspace_limit) {
        mica_buf_printf(&text, "the workspace needs %lld bytes, more than the limit of %lld; use %s than %d",
                        (long long)b->plan.workspace_bytes, (long long)f->o->workspace_limit, f->planner->less_work,
                        b->plan.prefill_chunk);
    } else {
        say_need(f, &text);
        say_what_fits(f, &text);
    }
    char *all = mica_buf_take(&text, &length);
    snprintf(b->message, sizeof b->message, "%s", all ? all : "the session does not fit the memory budget");
    free(all);
    mica_buf_free(&text);
}

/* ---- Interface ---- */

static mica_status read_bounds(fit *f, mica_error *err)
{
    const mica_session_options *o = f->o;
    mica_budget *b = f->b;
    mica_status status = mica_memory_bounds_read(o->sysroot, o->app_limit, o->memory_budget, o->memory_limit, &f->bounds, err);
    b->usable_bytes = f->bounds.usable;
    b->budget_bytes = f->bounds.budget;
    b->limit_bytes = f->bounds.limit;
    b->available_bytes = -1;
    if (!status && o->memory_limit <= 0 && mica_memory_available(o->sysroot, &b->available_bytes, f->available_source, NULL))
        b->available_bytes = -1; /* nothing says how much there is: mmap decides */
    return status;
}

mica_status mica_fit_check(const mica_model *m, const mica_session_options *o, const mica_fit_planner *planner,
                           mica_budget *budget, mica_error *err)
{
    fit f = {.m = m, .o = o, .planner = planner, .b = budget};
    *budget = (mica_budget){.available_bytes = -1};
    mica_status status = planner->plan(planner->user, m, o, &budget->plan, err);
    if (!status)
        status = read_bounds(&f, err);
    if (status)
        return status;
    budget->fits = fits(&f, &budget->plan, 0);
    if (budget->fits)
        return MICA_OK;
    for (int type = 0; type < N_TYPES; type++)
        budget->ctx_that_fits[type] = longest(&f, (mica_kv_type)type);
    find_type(&f);
    say(&f);
    return MICA_OK;
}

mica_status mica_fit_require(const mica_model *m, const mica_session_options *o, const mica_fit_planner *planner,
                             mica_memory_plan *plan, mica_error *err)
{
    mica_budget b;
    mica_status status = mica_fit_check(m, o, planner, &b, err);
    *plan = b.plan;
    return status ? status : b.fits ? MICA_OK : mica_fail(err, MICA_OVER_BUDGET, "%s", b.message);
}

mica_status mica_model_budget(const mica_model *m, const mica_session_options *options, mica_budget *budget, mica_error *err)
{
    mica_session_options o;
    mica_thread_plan threads;
    mica_status status = mica_plan_resolve(m, options, &o, &threads, err);
    return status ? status : mica_fit_check(m, &o, &mica_fit_session, budget, err);
}

/* What a plan reads of a model: its tables, without the vocabulary and the kernels. */
mica_status mica_budget_check(const char *path, const mica_session_options *options, mica_budget *budget, mica_error *err)
{
    mica_model shell = {.base_bytes = mica_plan_resident()};
    mica_status status = mica_gguf_open(path, &shell.gguf, err);
    if (status)
        return status;
    const mica_gguf_value *tokens = mica_gguf_find(shell.gguf, "tokenizer.ggml.tokens");
    if (!tokens || tokens->kind != MICA_GGUF_ARRAY || tokens->count < 1 || tokens->count > INT32_MAX)
        status =
            mica_fail(err, MICA_BAD_FILE, "%s: there is no vocabulary (tokenizer.ggml.tokens)", mica_gguf_path(shell.gguf));
    if (!status)
        status = mica_weights_bind(shell.gguf, (int32_t)tokens->count, NULL, NULL, &shell.weights, err);
    if (!status)
        status = mica_model_budget(&shell, options, budget, err);
    mica_weights_free(&shell.weights);
    mica_gguf_close(shell.gguf);
    return status;
}
