/* session.c - making a session, and bringing its history into the cache. */
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/memory.h"

#define DEFAULT_CTX 4096
#define DEFAULT_CHUNK 256
#define DEFAULT_WORKSPACE ((int64_t)256 << 20)
#define MAX_CTX (1 << 26)

mica_session_options mica_session_options_default(void)
{
    return (mica_session_options){.struct_size = sizeof(mica_session_options)};
}

/* ---- sizes ---- */

static mica_status check_range(int64_t value, int64_t min, int64_t max, const char *name, mica_error *err)
{
    if (value >= min && value <= max)
        return MICA_OK;
    return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %lld; it must be between %lld and %lld", name, (long long)value,
                     (long long)min, (long long)max);
}

static mica_status plan_threads(const mica_session_options *o, mica_thread_plan *plan, mica_error *err)
{
    if (o->n_threads == 0 && !o->cpus)
        return mica_thread_plan_default(o->sysroot, plan, err);
    memset(plan, 0, sizeof *plan);
    plan->n_threads = o->n_threads;
    snprintf(plan->reason, sizeof plan->reason, "%d threads asked for", o->n_threads);
    mica_thread_plan all;
    bool known = !o->cpus && mica_thread_plan_all(o->sysroot, &all, NULL) == MICA_OK;
    for (int i = 0; i < plan->n_threads; i++) /* more threads than cores float freely */
        plan->cpus[i] = o->cpus ? o->cpus[i] : known && plan->n_threads <= all.n_threads ? all.cpus[i] : -1;
    return MICA_OK;
}

/* Fills in defaults and checks ranges. */
static mica_status resolve(const mica_model *m, const mica_session_options *in, mica_session_options *o, mica_thread_plan *plan,
                           mica_error *err)
{
    mica_status s;
    *o = in ? *in : mica_session_options_default();
    if ((s = check_range(o->n_ctx, 0, MAX_CTX, "the context length (n_ctx)", err)) ||
        (s = check_range(o->n_threads, 0, MICA_MAX_THREADS, "the number of threads (n_threads)", err)) ||
        (s = check_range(o->prefill_chunk, 0, 4096, "the prefill chunk (prefill_chunk)", err)) ||
        (s = check_range(o->full_policy, MICA_FULL_ERROR, MICA_FULL_SUMMARISE, "the full-context policy (full_policy)", err)))
        return s;
    if (o->cpus && o->n_threads < 1)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a list of CPUs needs n_threads, one CPU a thread");
    int32_t trained = m->weights.h.n_ctx_train;
    if (o->n_ctx == 0)
        o->n_ctx = trained < DEFAULT_CTX ? trained : DEFAULT_CTX;
    if (o->n_ctx < 2)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a context of %d token leaves no room for a reply; the least is 2", o->n_ctx);
    if (o->prefill_chunk == 0)
        o->prefill_chunk = DEFAULT_CHUNK;
    if (o->prefill_chunk > o->n_ctx)
        o->prefill_chunk = o->n_ctx;
    if ((s = check_range(o->keep_first, 0, o->n_ctx / 2, "the number of tokens to keep (keep_first)", err)))
        return s;
    if (o->full_policy == MICA_FULL_SUMMARISE && !o->on_summarise)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the policy \"summarise\" needs the callback on_summarise");
    if (o->workspace_limit <= 0)
        o->workspace_limit = DEFAULT_WORKSPACE;
    if ((s = plan_threads(o, plan, err)))
        return s;
    o->n_threads = plan->n_threads;
    return MICA_OK;
}

static mica_status plan_memory(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan, mica_error *err)
{
    size_t half = mica_kv_half_bytes(&m->weights.h, o->n_ctx);
    size_t work = mica_exec_bytes(&m->weights, o->prefill_chunk, 1, o->n_threads);
    size_t lists = (size_t)o->n_ctx * (2 * sizeof(int32_t) + 2 * sizeof(int64_t));
    size_t sampling = mica_sampler_bytes(m->weights.h.n_vocab, o->n_ctx);
    if (half == 0 || work == 0 || half > INT64_MAX / 4 || work > INT64_MAX / 4)
        return mica_fail(err, MICA_OVER_BUDGET, "a context of %d tokens needs more memory than can be addressed", o->n_ctx);
    *plan = (mica_memory_plan){.n_ctx = o->n_ctx, .prefill_chunk = o->prefill_chunk, .n_threads = o->n_threads};
    plan->weights_bytes = m->weights.n_bytes;
    plan->kv_bytes = 2 * (int64_t)half;
    plan->workspace_bytes = (int64_t)(work + lists + sampling);
    plan->total_bytes = plan->weights_bytes + plan->kv_bytes + plan->workspace_bytes;
    return MICA_OK;
}

mica_status mica_session_plan(const mica_model *m, const mica_session_options *options, mica_memory_plan *plan, mica_error *err)
{
    mica_session_options o;
    mica_thread_plan threads;
    mica_status status = resolve(m, options, &o, &threads, err);
    return status ? status : plan_memory(m, &o, plan, err);
}

static mica_status check_budget(const mica_session_options *o, const mica_memory_plan *plan, mica_error *err)
{
    int64_t own = plan->kv_bytes + plan->workspace_bytes, available;
    char reason[MICA_MEMORY_REASON] = "the limit given";
    if (plan->workspace_bytes > o->workspace_limit)
        return mica_fail(err, MICA_OVER_BUDGET,
                         "the workspace needs %lld bytes, more than the limit of %lld; use a smaller prefill chunk than %d",
                         (long long)plan->workspace_bytes, (long long)o->workspace_limit, o->prefill_chunk);
    if (o->memory_limit > 0)
        available = o->memory_limit;
    else if (mica_memory_available(o->sysroot, &available, reason, NULL) != MICA_OK)
        return MICA_OK; /* nothing says how much there is: mmap decides */
    if (own <= available)
        return MICA_OK;
    return mica_fail(err, MICA_OVER_BUDGET,
                     "a context of %d tokens needs %lld bytes (KV cache %lld, workspace %lld) but only %lld are available (%s); "
                     "use a shorter context",
                     o->n_ctx, (long long)own, (long long)plan->kv_bytes, (long long)plan->workspace_bytes, (long long)available,
                     reason);
}

/* ---- making ---- */

/* KV cache and workspace in one anonymous mapping: zero pages cost nothing until they are used. */
static mica_status reserve(mica_session *s, mica_error *err)
{
    const mica_model *m = s->model;
    int32_t n_ctx = s->options.n_ctx;
    size_t half = mica_round_up(mica_kv_half_bytes(&m->weights.h, n_ctx), 4096);
    size_t work = mica_exec_bytes(&m->weights, s->options.prefill_chunk, 1, s->options.n_threads);
    size_t bytes = 2 * half + work;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return mica_fail_nomem(err, bytes, "the session's KV cache and workspace");
    s->memory = memory;
    s->memory_bytes = bytes;
    s->exec = (mica_exec){.w = &m->weights, .kern = &m->kernels, .pool = s->pool, .chunk = s->options.prefill_chunk, .logits_max = 1};
    s->kv = (mica_kv){.k = memory, .v = (uint16_t *)(void *)((char *)memory + half), .n_ctx = n_ctx,
                           .n_kv_heads = m->weights.h.n_kv_heads, .head_dim = m->weights.h.head_dim};
    mica_exec_layout(&s->exec, (char *)memory + 2 * half, s->options.n_threads, n_ctx);
    return MICA_OK;
}

static mica_status make(mica_session *s, mica_error *err)
{
    mica_status status;
    size_t n = (size_t)s->options.n_ctx;
    if (s->options.sysroot && !(s->sysroot = strdup(s->options.sysroot)))
        return mica_fail_nomem(err, strlen(s->options.sysroot), "the root prefix");
    s->options.sysroot = s->sysroot;
    s->options.cpus = NULL; /* now in s->threads */
    s->tokens = mica_new_array(n, sizeof *s->tokens);
    s->next = mica_new_array(n, sizeof *s->next);
    s->itl_ns = mica_new_array(n, sizeof *s->itl_ns);
    s->sorted = mica_new_array(n, sizeof *s->sorted);
    if (!s->tokens || !s->next || !s->itl_ns || !s->sorted)
        return mica_fail_nomem(err, n * 24, "the session's history");
    if ((status = mica_sampler_new(s->model->weights.h.n_vocab, s->options.n_ctx, &s->sampler, err)) ||
        (status = mica_stop_new(&s->stop, err)) || (status = mica_pool_new(s->threads.n_threads, s->threads.cpus, &s->pool, err)))
        return status;
    return reserve(s, err);
}

mica_status mica_session_new(mica_model *model, const mica_session_options *options, mica_session **out, mica_error *err)
{
    mica_memory_plan plan;
    *out = NULL;
    mica_session *s = mica_new_array(1, sizeof *s);
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the session");
    mica_model_retain(model);
    s->model = model;
    atomic_init(&s->cancelled, false);
    mica_status status = resolve(model, options, &s->options, &s->threads, err);
    if (!status)
        status = plan_memory(model, &s->options, &plan, err);
    if (!status)
        status = check_budget(&s->options, &plan, err);
    if (!status)
        status = make(s, err);
    if (status) {
        mica_session_free(s);
        return status;
    }
    *out = s;
    return MICA_OK;
}

void mica_session_free(mica_session *s)
{
    if (!s)
        return;
    mica_pool_free(s->pool);
    if (s->memory)
        munmap(s->memory, s->memory_bytes);
    mica_sampler_free(s->sampler);
    mica_stop_free(s->stop);
    free(s->tokens);
    free(s->next);
    free(s->itl_ns);
    free(s->sorted);
    free(s->sysroot);
    mica_model_close(s->model);
    free(s);
}

/* ---- history ---- */

void mica_session_cancel(mica_session *s) { atomic_store(&s->cancelled, true); }

const float *mica_session_logits(const mica_session *s) { return s->logits_valid ? s->exec.logits : NULL; }

const int32_t *mica_session_tokens(const mica_session *s, size_t *n)
{
    *n = (size_t)s->n_tokens;
    return s->tokens;
}

static mica_status interrupted(mica_session *s, int32_t done, int32_t total, mica_error *err)
{
    bool stop = atomic_exchange(&s->cancelled, false);
    if (!stop && s->options.on_prefill)
        stop = s->options.on_prefill(s->options.user, done, total) != 0;
    return stop ? mica_fail(err, MICA_CANCELLED, "cancelled after %d of %d prompt tokens", done, total) : MICA_OK;
}

mica_status mica_session_compute(mica_session *s, mica_error *err)
{
    mica_exec *e = &s->exec;
    int32_t start = s->n_computed, total = s->n_tokens - start;
    int64_t begin = mica_now_ns();
    mica_status status = MICA_OK;
    while (s->n_computed < s->n_tokens && !(status = interrupted(s, s->n_computed - start, total, err))) {
        int32_t n = s->n_tokens - s->n_computed < e->chunk ? s->n_tokens - s->n_computed : e->chunk;
        bool last = s->n_computed + n == s->n_tokens;
        mica_span span = {&s->kv, s->tokens + s->n_computed, n, s->n_computed, last ? 1 : 0};
        mica_forward(e, &span, 1);
        s->n_computed += n;
        s->logits_valid = last;
    }
    if (!status && total > 0 && s->options.on_prefill)
        s->options.on_prefill(s->options.user, total, total);
    s->prefill_ns += mica_now_ns() - begin;
    s->prefill_n += s->n_computed - start;
    return status;
}

/* Makes tokens[0..n) the history and keeps what of the cache agrees with it; n <= n_ctx. */
static void adopt(mica_session *s, const int32_t *tokens, int32_t n)
{
    int32_t same = 0, limit = s->n_computed < n ? s->n_computed : n;
    while (same < limit && s->tokens[same] == tokens[same])
        same++;
    bool unchanged = same == n && n == s->n_computed && s->logits_valid;
    if (same == n && !unchanged)
        same = n - 1; /* the last token is computed again for its logits */
    memmove(s->tokens, tokens, (size_t)n * sizeof *tokens);
    s->n_tokens = n;
    s->n_computed = same;
    s->logits_valid = unchanged;
}

mica_status mica_session_shrink(mica_session *s, const int32_t *tokens, size_t n, mica_error *err)
{
    const mica_session_options *o = &s->options;
    if (o->full_policy == MICA_FULL_ERROR || o->full_policy == MICA_FULL_STOP || n > INT32_MAX)
        return mica_fail(err, MICA_CONTEXT_FULL,
                         "%zu tokens and room for a reply do not fit the context of %d; a context of at least %zu is needed", n,
                         o->n_ctx, n + 1);
    int32_t keep = o->keep_first < (int32_t)n ? o->keep_first : (int32_t)n;
    int32_t tail = (o->n_ctx - keep) / 2, dropped = (int32_t)n - keep - tail, inserted = 0;
    if (o->full_policy == MICA_FULL_SUMMARISE) {
        int32_t room = o->n_ctx - keep - tail - 1;
        inserted = o->on_summarise(o->user, tokens + keep, dropped, s->next + keep, room);
        if (inserted < 0 || inserted > room)
            return mica_fail(err, MICA_CONTEXT_FULL, "the context of %d tokens is full and on_summarise gave nothing that fits",
                             o->n_ctx);
        for (int32_t i = 0; i < inserted; i++)
            if (s->next[keep + i] < 0 || s->next[keep + i] >= s->model->weights.h.n_vocab)
                return mica_fail(err, MICA_INVALID_ARGUMENT, "on_summarise gave token %d, which is not in the vocabulary",
                                 s->next[keep + i]);
    }
    memcpy(s->next, tokens, (size_t)keep * sizeof *tokens);
    memcpy(s->next + keep + inserted, tokens + keep + dropped, (size_t)tail * sizeof *tokens);
    adopt(s, s->next, keep + inserted + tail);
    s->dropped_n += dropped;
    mica_context_event event = {o->full_policy, keep, dropped, inserted};
    if (o->on_context_event)
        o->on_context_event(o->user, &event);
    return MICA_OK;
}

static mica_status check_tokens(const mica_session *s, const int32_t *tokens, size_t n, mica_error *err)
{
    int32_t n_vocab = s->model->weights.h.n_vocab;
    if (n == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the prompt has no tokens; give at least one");
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "token %d at index %zu is not in the vocabulary of %d", tokens[i], i, n_vocab);
    return MICA_OK;
}

static mica_status sync(mica_session *s, const int32_t *tokens, size_t n, int64_t accepted_ns, mica_error *err)
{
    mica_status status = check_tokens(s, tokens, n, err);
    if (status)
        return status;
    s->request_ns = accepted_ns;
    s->prefill_ns = 0;
    s->prefill_n = s->cached_n = s->dropped_n = 0;
    if (n >= (size_t)s->options.n_ctx) {
        if ((status = mica_session_shrink(s, tokens, n, err)))
            return status;
    } else {
        adopt(s, tokens, (int32_t)n);
    }
    s->cached_n = s->n_computed;
    return mica_session_compute(s, err);
}

mica_status mica_session_sync(mica_session *s, const int32_t *tokens, size_t n, mica_error *err)
{
    atomic_store(&s->cancelled, false);
    return sync(s, tokens, n, mica_now_ns(), err);
}

mica_status mica_session_prompt(mica_session *s, const char *text, size_t length, unsigned flags, mica_error *err)
{
    int64_t accepted = mica_now_ns();
    int32_t *tokens = NULL;
    size_t n = 0;
    atomic_store(&s->cancelled, false);
    mica_status status = mica_vocab_tokenize(s->model->vocab, text, length, flags, &tokens, &n, err);
    if (!status)
        status = sync(s, tokens, n, accepted, err);
    free(tokens);
    return status;
}
