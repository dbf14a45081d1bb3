/* session.c - making a session, and bringing its history into the cache. */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/map_huge.h"
#include "base/mem.h"
#include "session/batch.h"
#include "session/embed.h"
#include "session/fit.h"
#include "session/guide.h"
#include "session/plan.h"
#include "session/receipt.h"
#include "session/speculate.h"

/* ---- making ---- */

/* KV cache and workspace in one anonymous mapping: zero pages cost nothing until they are used. */
static mica_status reserve(mica_session *s, mica_error *err)
{
    const mica_weights *w = &s->model->weights;
    const mica_session_options *o = &s->options;
    const mica_quant *k_quant = mica_plan_kv_quant(o->kv_k), *v_quant = mica_plan_kv_quant(o->kv_v);
    int32_t step = mica_plan_chunk(o);
    size_t values = mica_round_up(mica_kv_half_bytes(&w->h, k_quant, o->n_ctx, step), 4096);
    size_t kv = values + mica_round_up(mica_kv_half_bytes(&w->h, v_quant, o->n_ctx, step), 4096);
    size_t bytes = kv + mica_exec_bytes(w, step, mica_plan_rows(o), MICA_MAX_THREADS); /* threads may be added */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return mica_fail_nomem(err, bytes, "the session's KV cache and workspace");
    s->memory = memory;
    s->memory_bytes = bytes;
    s->kv_small_bytes = kv;
    mica_kv_init(&s->kv, &w->h, o->n_ctx, step, k_quant, v_quant, memory, (uint8_t *)memory + values);
    s->exec = (mica_exec){.w = w, .kern = &s->model->kernels, .pool = s->pool, .chunk = step,
                          .logits_max = mica_plan_rows(o)};
    mica_exec_layout(&s->exec, (char *)memory + kv, MICA_MAX_THREADS, o->n_ctx);
    return MICA_OK;
}

/* A batch's session has the batch's workspace, and blocks of its KV memory as it needs them. */
static mica_status borrow(mica_session *s, const mica_session_loan *loan, mica_error *err)
{
    size_t n = mica_kv_lease_tables(s->options.n_ctx);
    s->exec = *loan->exec;
    s->tables = mica_new_array(n, sizeof *s->tables);
    if (!s->tables)
        return mica_fail_nomem(err, n * sizeof *s->tables, "the session's table of blocks");
    mica_kv_lease_init(&s->lease, loan->blocks, &s->kv, s->options.n_ctx, s->tables);
    return MICA_OK;
}

static mica_status make_lists(mica_session *s, mica_error *err)
{
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
    return MICA_OK;
}

static mica_status make_parts(mica_session *s, const mica_session_loan *loan, mica_error *err)
{
    mica_status status;
    s->pool = loan ? loan->pool : NULL;
    s->owns_pool = !loan;
    if ((status = make_lists(s, err)) ||
        (status = mica_sampler_new(s->model->weights.h.n_vocab, s->options.n_ctx, &s->sampler, err)) ||
        (status = mica_stop_new(&s->stop, err)) ||
        (s->owns_pool && (status = mica_pool_new(s->threads.n_threads, s->threads.cpus, &s->pool, err))) ||
        (status = loan && loan->exec ? borrow(s, loan, err) : reserve(s, err)) ||
        (s->options.draft_max > 0 && (status = mica_speculator_new(s, &s->speculator, err))))
        return status;
    s->batch = loan ? loan->batch : NULL;
    s->governed = (mica_governed){.governor = loan ? NULL : s->options.governor, .pool = s->pool, .options = &s->options,
                                  .threads = &s->threads, .cancelled = &s->cancelled};
    s->governor = loan && loan->governed ? loan->governed : &s->governed;
    mica_weights_want(&s->model->weights, 0); /* comes in while a prompt is made */
    return MICA_OK;
}

mica_status mica_session_make(mica_model *model, const mica_session_options *resolved, const mica_thread_plan *threads,
                              const mica_session_loan *loan, mica_session **out, mica_error *err)
{
    *out = NULL;
    mica_session *s = mica_new_array(1, sizeof *s);
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the session");
    mica_model_retain(model);
    s->model = model;
    s->options = *resolved;
    s->threads = *threads;
    atomic_init(&s->cancelled, false);
    mica_status status = make_parts(s, loan, err);
    if (status) {
        mica_session_free(s);
        return status;
    }
    *out = s;
    return MICA_OK;
}

mica_status mica_session_new(mica_model *model, const mica_session_options *options, mica_session **out, mica_error *err)
{
    mica_session_options o;
    mica_thread_plan threads;
    mica_memory_plan plan;
    *out = NULL;
    mica_status status = mica_plan_resolve(model, options, &o, &threads, err);
    if (!status)
        status = mica_fit_require(model, &o, &mica_fit_session, &plan, err);
    if (!status)
        status = mica_session_make(model, &o, &threads, NULL, out, err);
    if (!status) {
        (*out)->reserved = plan.kv_bytes + plan.workspace_bytes;
        atomic_fetch_add(&model->reserved, (*out)->reserved);
    }
    return status;
}

void mica_session_free(mica_session *s)
{
    if (!s)
        return;
    if (s->batch) {
        mica_batch_forget(s->batch, s);
        mica_session_give_up(s);
    }
    mica_speculator_free(s->speculator);
    mica_guide_free(s->guide);
    mica_embedder_free(s->embedder);
    if (s->owns_pool)
        mica_pool_free(s->pool);
    if (s->memory)
        munmap(s->memory, s->memory_bytes);
    free(s->tables);
    mica_sampler_free(s->sampler);
    mica_stop_free(s->stop);
    free(s->tokens);
    free(s->next);
    free(s->itl_ns);
    free(s->sorted);
    free(s->sysroot);
    atomic_fetch_sub(&s->model->reserved, s->reserved);
    mica_model_close(s->model);
    free(s);
}

/* ---- history ---- */

void mica_session_cancel(mica_session *s)
{
    atomic_store(&s->cancelled, true);
    if (s->speculator)
        mica_speculator_cancel(s->speculator); /* a draft model may be reading a long prompt */
}

mica_status mica_session_in_batch(mica_error *err)
{
    return mica_fail(err, MICA_INVALID_ARGUMENT, "this session belongs to a batch: give its prompts to mica_batch_submit()");
}

const float *mica_session_logits(const mica_session *s) { return s->logits_valid ? s->exec.logits : NULL; }

mica_status mica_session_reset(mica_session *s, mica_error *err)
{
    if (s->batch && mica_batch_has_request(s->batch, s))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "this session has a request under way: reset it before or after");
    if (s->batch)
        mica_session_give_up(s);
    s->n_tokens = s->n_computed = 0;
    s->logits_valid = false;
    return MICA_OK;
}

const int32_t *mica_session_tokens(const mica_session *s, size_t *n)
{
    *n = (size_t)s->n_tokens;
    return s->tokens;
}

mica_status mica_session_interrupted(mica_session *s, int32_t done, int32_t total, mica_error *err)
{
    bool stop = atomic_exchange(&s->cancelled, false);
    if (!stop && s->options.on_prefill && s->reply.gen_n == 0)
        stop = s->options.on_prefill(s->options.user, done, total) != 0;
    return stop ? mica_fail(err, MICA_CANCELLED, "cancelled after %d of %d prompt tokens", done, total) : MICA_OK;
}

void mica_session_settle(mica_session *s)
{
    if (!mica_kv_can_resume(&s->kv, s->n_computed))
        s->n_computed = 0;
}

void mica_session_find(mica_session *s)
{
    if (s->from_nothing && s->reply.gen_n == 0)
        return;
    int32_t n = mica_kv_lease_find(&s->lease, s->tokens, s->n_tokens - 1, s->n_computed); /* one is computed for its logits */
    if (s->reply.gen_n == 0)
        s->cached_n += n - s->n_computed;
    s->n_computed = n;
}

void mica_session_publish(mica_session *s)
{
    if (mica_kv_can_resume(&s->kv, s->n_computed)) /* else it was cut back, and is not in the cache as a whole */
        mica_kv_lease_rest(&s->lease, s->tokens, s->n_computed);
}

void mica_session_give_up(mica_session *s)
{
    mica_session_publish(s);
    mica_kv_lease_release(&s->lease);
    s->n_computed = 0;
}

/* Each token reads the whole cache: once half of it is in use it goes into huge pages. Not before, they would make all of it resident. */
static void keep_cache_fast(mica_session *s)
{
    if (!s->kv_small_bytes || s->n_computed < s->options.n_ctx / 2)
        return;
    mica_memory_collapse(s->memory, s->kv_small_bytes);
    s->kv_small_bytes = 0;
}

mica_status mica_session_compute(mica_session *s, mica_error *err)
{
    int32_t chunk = s->options.prefill_chunk, start = s->n_computed, total = s->n_tokens - start;
    int64_t begin = mica_now_ns();
    mica_status status = MICA_OK;
    if (total == 0 && !s->logits_valid && start > 0)
        s->n_computed--; /* all is in the cache, but the last token's logits are gone */
    mica_session_settle(s);
    if (s->n_computed == 0) {
        start = 0;
        total = s->n_tokens;
    }
    while (s->n_computed < s->n_tokens && !(status = mica_session_interrupted(s, s->n_computed - start, total, err))) {
        mica_govern_before(&s->governed);
        int32_t most = mica_govern_chunk(&s->governed, chunk);
        int32_t n = s->n_tokens - s->n_computed < most ? s->n_tokens - s->n_computed : most;
        bool last = s->n_computed + n == s->n_tokens;
        mica_span span = {&s->kv, s->tokens + s->n_computed, n, s->n_computed, last ? 1 : 0};
        mica_forward(&s->exec, &span, 1);
        mica_govern_after(&s->governed, n == 1 && s->reply.gen_n > 0);
        s->n_computed += n;
        s->logits_valid = last;
        keep_cache_fast(s);
    }
    if (!status && total > 0 && s->options.on_prefill && s->reply.gen_n == 0)
        s->options.on_prefill(s->options.user, total, total);
    s->prefill_ns += mica_now_ns() - begin;
    s->prefill_n += s->n_computed - start;
    return status;
}

void mica_session_adopt(mica_session *s, const int32_t *tokens, int32_t n)
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
    if (!unchanged)
        mica_session_settle(s);
}

mica_status mica_session_shrink(mica_session *s, const int32_t *tokens, size_t n, mica_error *err)
{
    const mica_session_options *o = &s->options;
    if (o->full_policy == MICA_FULL_ERROR || o->full_policy == MICA_FULL_STOP || n > INT32_MAX)
        return mica_fail(err, MICA_CONTEXT_FULL,
                         "%zu tokens and room for a reply do not fit the context of %d; a context of at least %zu is needed", n,
                         o->n_ctx, n + 1);
    mica_status status = s->receipt ? mica_receipt_may_drop(s->receipt, err) : MICA_OK;
    if (status)
        return status;
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
    mica_session_adopt(s, s->next, keep + inserted + tail);
    s->dropped_n += dropped;
    mica_context_event event = {o->full_policy, keep, dropped, inserted};
    if (o->on_context_event)
        o->on_context_event(o->user, &event);
    return MICA_OK;
}

mica_status mica_session_check_tokens(const mica_session *s, const int32_t *tokens, size_t n, mica_error *err)
{
    int32_t n_vocab = s->model->weights.h.n_vocab;
    if (n == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the prompt has no tokens; give at least one");
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "token %d at index %zu is not in the vocabulary of %d", tokens[i], i,
                             n_vocab);
    return MICA_OK;
}

mica_status mica_session_accept(mica_session *s, const int32_t *tokens, size_t n, int64_t accepted_ns, mica_error *err)
{
    mica_status status = mica_session_check_tokens(s, tokens, n, err);
    if (status)
        return status;
    s->request_ns = accepted_ns;
    s->reply.gen_n = 0; /* what is computed from now on is prompt */
    s->prefill_ns = 0;
    s->prefill_n = s->cached_n = s->dropped_n = 0;
    if (s->receipt && (status = mica_receipt_begin(s->receipt, s, err)))
        return status;
    if (s->batch)
        mica_session_give_up(s); /* the tree has it, and may have more */
    if (n >= (size_t)s->options.n_ctx)
        status = mica_session_shrink(s, tokens, n, err);
    else
        mica_session_adopt(s, tokens, (int32_t)n);
    s->cached_n = s->n_computed;
    if (s->batch && !status)
        mica_session_find(s);
    return status;
}

static mica_status sync(mica_session *s, const int32_t *tokens, size_t n, int64_t accepted_ns, mica_error *err)
{
    mica_status status = mica_session_accept(s, tokens, n, accepted_ns, err);
    return status ? status : mica_session_compute(s, err);
}

mica_status mica_session_sync(mica_session *s, const int32_t *tokens, size_t n, mica_error *err)
{
    if (s->batch)
        return mica_session_in_batch(err);
    atomic_store(&s->cancelled, false);
    return sync(s, tokens, n, mica_now_ns(), err);
}

mica_status mica_session_prompt(mica_session *s, const char *text, size_t length, unsigned flags, mica_error *err)
{
    int64_t accepted = mica_now_ns();
    int32_t *tokens = NULL;
    size_t n = 0;
    if (s->batch)
        return mica_session_in_batch(err);
    atomic_store(&s->cancelled, false);
    mica_status status = mica_vocab_tokenize(s->model->vocab, text, length, flags, &tokens, &n, err);
    if (!status)
        status = sync(s, tokens, n, accepted, err);
    free(tokens);
    return status;
}
