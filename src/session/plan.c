/* plan.c - the sizes of a session or batch before it is made. */
#include "session/plan.h"

#include "model/kv.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device/memory.h"
#include "session/lookup.h"
#include "session/session.h"

#define DEFAULT_CTX 4096
#define DEFAULT_CHUNK 256
#define DEFAULT_WORKSPACE ((int64_t)256 << 20)
#define MAX_CTX (1 << 26)

mica_session_options mica_session_options_default(void)
{
    return (mica_session_options){.struct_size = sizeof(mica_session_options)};
}

mica_status mica_check_range(int64_t value, int64_t min, int64_t max, const char *name, mica_error *err)
{
    if (value >= min && value <= max)
        return MICA_OK;
    return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %lld; it must be between %lld and %lld", name, (long long)value,
                     (long long)min, (long long)max);
}

/* ---- options ---- */

mica_status mica_plan_threads(const mica_session_options *o, mica_thread_plan *plan, mica_error *err)
{
    mica_status status = mica_check_range(o->n_threads, 0, MICA_MAX_THREADS, "the number of threads (n_threads)", err);
    if (status)
        return status;
    if (o->cpus && o->n_threads < 1)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a list of CPUs needs n_threads, one CPU a thread");
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

static mica_status check_ranges(const mica_session_options *o, mica_error *err)
{
    mica_status s;
    if ((s = mica_check_range(o->n_ctx, 0, MAX_CTX, "the context length (n_ctx)", err)) ||
        (s = mica_check_range(o->prefill_chunk, 0, 4096, "the prefill chunk (prefill_chunk)", err)) ||
        (s = mica_check_range(o->draft_max, 0, MICA_DRAFT_MAX, "the longest draft (draft_max)", err)) ||
        (s = mica_check_range(o->full_policy, MICA_FULL_ERROR, MICA_FULL_SUMMARISE, "the full-context policy (full_policy)",
                              err)))
        return s;
    if (o->full_policy == MICA_FULL_SUMMARISE && !o->on_summarise)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the policy \"summarise\" needs the callback on_summarise");
    if (o->draft_model && o->draft_max == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a draft model needs draft_max, the longest draft, of at least 1");
    return MICA_OK;
}

const mica_quant *mica_plan_kv_quant(mica_kv_type type)
{
    static const mica_type types[] = {[MICA_KV_F16] = MICA_TYPE_F16, [MICA_KV_Q8_0] = MICA_TYPE_Q8_0, [MICA_KV_Q4_0] = MICA_TYPE_Q4_0};
    return (size_t)type < sizeof types / sizeof *types ? mica_quant_of(types[type]) : NULL;
}

static mica_status check_kv_type(const mica_model *m, mica_kv_type type, const char *name, mica_error *err)
{
    const mica_quant *quant = mica_plan_kv_quant(type);
    if (!quant)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %d; it must be MICA_KV_F16, MICA_KV_Q8_0 or MICA_KV_Q4_0", name, (int)type);
    if (mica_kv_fits(&m->weights.h, quant))
        return MICA_OK;
    return mica_fail(err, MICA_UNSUPPORTED, "a cache in %s needs heads of a multiple of %d elements; this model's have %d: use F16",
                     quant->name, quant->block_weights, m->weights.h.head_dim);
}

mica_status mica_plan_resolve(const mica_model *m, const mica_session_options *in, mica_session_options *o,
                              mica_thread_plan *threads, mica_error *err)
{
    *o = in ? *in : mica_session_options_default();
    mica_status s = check_ranges(o, err);
    if (s)
        return s;
    int32_t trained = m->weights.h.n_ctx_train;
    if (o->n_ctx == 0)
        o->n_ctx = trained < DEFAULT_CTX ? trained : DEFAULT_CTX;
    if (o->n_ctx < 2)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a context of %d token leaves no room for a reply; the least is 2",
                         o->n_ctx);
    if (o->prefill_chunk == 0)
        o->prefill_chunk = DEFAULT_CHUNK;
    if (o->prefill_chunk > o->n_ctx)
        o->prefill_chunk = o->n_ctx;
    if ((s = mica_check_range(o->keep_first, 0, o->n_ctx / 2, "the number of tokens to keep (keep_first)", err)))
        return s;
    if ((s = check_kv_type(m, o->kv_k, "the type of the keys (kv_k)", err)) ||
        (s = check_kv_type(m, o->kv_v, "the type of the values (kv_v)", err)))
        return s;
    if (o->workspace_limit <= 0)
        o->workspace_limit = DEFAULT_WORKSPACE;
    if ((s = mica_plan_threads(o, threads, err)))
        return s;
    o->n_threads = threads->n_threads;
    return MICA_OK;
}

/* ---- sizes ---- */

int32_t mica_plan_chunk(const mica_session_options *o)
{
    return o->prefill_chunk > o->draft_max ? o->prefill_chunk : o->draft_max + 1;
}

int32_t mica_plan_rows(const mica_session_options *o) { return o->draft_max + 1; }

size_t mica_plan_list_bytes(const mica_model *m, const mica_session_options *o)
{
    size_t sampling = mica_sampler_bytes(m->weights.h.n_vocab, o->n_ctx);
    size_t lists = (size_t)o->n_ctx * (2 * sizeof(int32_t) + 2 * sizeof(int64_t));
    return sampling ? lists + sampling + (o->draft_max > 0 ? mica_lookup_bytes(o->n_ctx) : 0) : 0;
}

size_t mica_plan_kv_bytes(const mica_model *m, const mica_session_options *o)
{
    size_t k = mica_kv_half_bytes(&m->weights.h, mica_plan_kv_quant(o->kv_k), o->n_ctx, mica_plan_chunk(o));
    size_t v = mica_kv_half_bytes(&m->weights.h, mica_plan_kv_quant(o->kv_v), o->n_ctx, mica_plan_chunk(o)), sum;
    return k == 0 || v == 0 || __builtin_add_overflow(k, v, &sum) ? 0 : sum;
}

/* ---- the peak ---- */

/* Pages that the first steps bring in, but are of nothing that is counted: code of this library and of those that it uses, the
 * program's tables, buffers of the C library; and a thread's stack. What bench/memory measured on x86-64 (docs/memory.md). */
#define CODE_BYTES   ((int64_t)1536 << 10)
#define THREAD_BYTES ((int64_t)32 << 10)
/* What a row of the embeddings brings in with it, where only rows of them are read: Linux maps 64 KiB around, but the tokens of a
 * text are near one another and repeat. */
#define ROW_BYTES ((int64_t)16 << 10)
#define USUAL_RESIDENT ((int64_t)8 << 20)

int64_t mica_plan_resident(void)
{
    mica_memory_usage usage; /* of this process, wherever sysroot is */
    bool known = mica_memory_usage_read(NULL, &usage, NULL) == MICA_OK && usage.rss_bytes > 0;
    return known ? usage.rss_bytes : USUAL_RESIDENT;
}

static void add_model(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan)
{
    const mica_weights *w = &m->weights;
    int64_t rows = plan->prefill_chunk > MICA_ROWS_KEPT ? plan->prefill_chunk : MICA_ROWS_KEPT, matrix = w->n_bytes - w->n_read;
    int64_t near = !w->rows_apart ? 0 : matrix > rows * ROW_BYTES ? rows * ROW_BYTES : matrix;
    plan->touched_bytes += m->locked ? w->n_bytes : w->n_read + near;
    plan->fixed_bytes += (int64_t)mica_gguf_file_bytes(m->gguf) - w->n_bytes + (int64_t)mica_vocab_heap_bytes(m->gguf);
    if (o->constrained)
        plan->guide_bytes += (int64_t)mica_masks_most_bytes(w->h.n_vocab);
}

void mica_plan_peak(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan)
{
    plan->touched_bytes = plan->guide_bytes = 0;
    plan->fixed_bytes = m->base_bytes + CODE_BYTES + THREAD_BYTES * o->n_threads;
    add_model(m, o, plan);
    if (o->draft_model)
        add_model(o->draft_model, o, plan);
    plan->peak_bytes = plan->touched_bytes + plan->kv_bytes + plan->workspace_bytes + plan->fixed_bytes + plan->guide_bytes +
                       atomic_load(&m->reserved);
}

/* ---- memory ---- */

/* Adds what one model needs for a context. */
static mica_status add_memory(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan, mica_error *err)
{
    size_t kv = mica_plan_kv_bytes(m, o);
    size_t work = mica_exec_bytes(&m->weights, mica_plan_chunk(o), mica_plan_rows(o), o->n_threads);
    size_t lists = mica_plan_list_bytes(m, o);
    if (kv == 0 || work == 0 || lists == 0 || kv > INT64_MAX / 8 || work > INT64_MAX / 8)
        return mica_fail(err, MICA_OVER_BUDGET, "a context of %d tokens needs more memory than can be addressed", o->n_ctx);
    plan->weights_bytes += m->weights.n_bytes;
    plan->kv_bytes += (int64_t)kv;
    plan->workspace_bytes += (int64_t)(work + lists);
    plan->total_bytes = plan->weights_bytes + plan->kv_bytes + plan->workspace_bytes;
    return MICA_OK;
}

mica_status mica_plan_memory(const mica_model *m, const mica_session_options *o, mica_memory_plan *plan, mica_error *err)
{
    *plan = (mica_memory_plan){.n_ctx = o->n_ctx, .prefill_chunk = o->prefill_chunk, .n_threads = o->n_threads,
                               .window_ctx = mica_kv_ring(&m->weights.h, o->n_ctx, mica_plan_chunk(o))};
    mica_status status = add_memory(m, o, plan, err);
    if (!status && o->draft_model) {
        mica_session_options draft = *o;
        draft.draft_max = 0;
        draft.kv_k = draft.kv_v = MICA_KV_F16;
        status = add_memory(o->draft_model, &draft, plan, err);
    }
    if (!status)
        mica_plan_peak(m, o, plan);
    return status;
}

mica_status mica_session_plan(const mica_model *m, const mica_session_options *options, mica_memory_plan *plan, mica_error *err)
{
    mica_session_options o;
    mica_thread_plan threads;
    mica_status status = mica_plan_resolve(m, options, &o, &threads, err);
    return status ? status : mica_plan_memory(m, &o, plan, err);
}
