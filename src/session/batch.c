/* batch.c - many sessions, one forward step. Owns threads, workspace, the KV memory and the list of its sessions, which own the rest.
 *
 * Invariants:
 *  1. sessions[0..n_sessions) are those made here and not freed; queue[0..n_queue) those with a request, in the order of
 *     submission.
 *  2. Between steps every queued session has tokens to compute (n_computed < n_tokens) and its reply goes on.
 *  3. A step has room for one token of every session: exec.chunk >= max_sessions. So no running reply sits out a step, unless
 *     the KV memory is full: then the replies that came last give their blocks up, and compute them again when others have ended.
 *     One context fits, so the first in the queue always goes on.
 *  4. exec.logits belong to nobody between steps.
 */
#include "session/batch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/mem.h"
#include "session/fit.h"
#include "session/prefix_file.h"
#include "session/session.h"

#define DEFAULT_SESSIONS 8
#define MAX_SESSIONS 256
#define DEFAULT_STEP 256
#define MAX_STEP 4096

struct mica_batch {
    mica_model *model;
    mica_session_options options; /* of a session that takes the batch's whole context; prefill_chunk: tokens of a step */
    mica_thread_plan threads;
    mica_pool *pool;
    mica_governed governed;
    mica_exec exec;
    mica_kv_blocks blocks;
    void *memory; /* KV memory and workspace, one mapping */
    size_t memory_bytes;
    int64_t reserved; /* bytes that the model's plans count for it */
    uint64_t n_ended;     /* replies */
    int64_t suspensions; /* how often a reply gave its blocks up */
    char *sysroot;
    int32_t max_sessions, n_sessions, n_queue, n_spans;
    mica_session **sessions, **queue; /* [max_sessions] */
    mica_session **owners;            /* [max_sessions] whose spans make up the step */
    mica_span *spans;                 /* [max_sessions] */
};

/* ---- sizes ---- */

mica_batch_options mica_batch_options_default(void) { return (mica_batch_options){.struct_size = sizeof(mica_batch_options)}; }

/* What is asked for, with the defaults. */
typedef struct sizes {
    mica_session_options options; /* the batch as options of one of its sessions */
    mica_thread_plan threads;
    int32_t max_sessions, kv_tokens, slots[MICA_KV_KINDS];
} sizes;

/* Slots of the KV memory, whole blocks: for windowed layers twice what max_sessions need, so that prefixes stay as well. */
static void count_slots(const mica_model *m, const mica_session_options *o, int32_t max_sessions, int32_t kv_tokens,
                        int32_t slots[MICA_KV_KINDS])
{
    int64_t context = mica_kv_blocks_for(o->n_ctx), full = kv_tokens ? mica_kv_blocks_for(kv_tokens) : max_sessions * context;
    int64_t window = 2 * max_sessions * ((int64_t)mica_kv_blocks_for(m->weights.h.window + o->prefill_chunk) + 2);
    if (full > INT32_MAX / MICA_KV_BLOCK)
        full = INT32_MAX / MICA_KV_BLOCK;
    if (m->weights.h.window == 0)
        window = 1; /* of no layer */
    slots[MICA_KV_FULL] = (int32_t)full * MICA_KV_BLOCK;
    slots[MICA_KV_WINDOWED] = (int32_t)(window < full ? window : full) * MICA_KV_BLOCK;
}

static mica_status resolve(const mica_model *m, const mica_batch_options *in, sizes *z, mica_error *err)
{
    mica_batch_options b = in ? *in : mica_batch_options_default();
    mica_session_options *o = &z->options;
    int32_t *max_sessions = &z->max_sessions;
    mica_session_options wanted = mica_session_options_default();
    mica_status s = mica_check_range(b.max_sessions, 0, MAX_SESSIONS, "the number of sessions (max_sessions)", err);
    if (s)
        return s;
    *max_sessions = b.max_sessions ? b.max_sessions : DEFAULT_SESSIONS;
    if (b.step_tokens == 0)
        b.step_tokens = *max_sessions > DEFAULT_STEP ? *max_sessions : DEFAULT_STEP;
    if ((s = mica_check_range(b.step_tokens, *max_sessions, MAX_STEP, "the tokens of a step (step_tokens)", err)))
        return s;
    wanted.n_ctx = b.n_ctx;
    wanted.n_threads = b.n_threads;
    wanted.cpus = b.cpus;
    wanted.workspace_limit = b.workspace_limit;
    wanted.memory_limit = b.memory_limit;
    wanted.memory_budget = b.memory_budget;
    wanted.app_limit = b.app_limit;
    wanted.constrained = b.constrained;
    wanted.sysroot = b.sysroot;
    wanted.kv_k = b.kv_k;
    wanted.kv_v = b.kv_v;
    wanted.governor = b.governor;
    s = mica_plan_resolve(m, &wanted, o, &z->threads, err);
    if (s)
        return s;
    o->prefill_chunk = b.step_tokens; /* of all sessions together: n_ctx is no limit */
    if (b.kv_tokens != 0 && b.kv_tokens < o->n_ctx)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "a KV memory of %d tokens (kv_tokens) does not hold one context of %d; give as many, or a shorter context",
                         b.kv_tokens, o->n_ctx);
    z->kv_tokens = b.kv_tokens;
    count_slots(m, o, *max_sessions, b.kv_tokens, z->slots);
    return MICA_OK;
}

static size_t half_bytes(const mica_model *m, mica_kv_type type, const int32_t slots[MICA_KV_KINDS])
{
    return mica_kv_slot_bytes(&m->weights.h, mica_plan_kv_quant(type), slots);
}

static mica_status plan_memory(const mica_model *m, const sizes *z, mica_memory_plan *plan, mica_error *err)
{
    const mica_session_options *o = &z->options;
    size_t k = half_bytes(m, o->kv_k, z->slots), v = half_bytes(m, o->kv_v, z->slots), lists = mica_plan_list_bytes(m, o);
    size_t work = mica_exec_bytes(&m->weights, o->prefill_chunk, z->max_sessions, o->n_threads);
    int32_t blocks[MICA_KV_KINDS] = {z->slots[0] / MICA_KV_BLOCK, z->slots[1] / MICA_KV_BLOCK};
    const uint64_t limit = INT64_MAX / 8 / MAX_SESSIONS;
    if (k == 0 || v == 0 || work == 0 || lists == 0 || k > limit || v > limit || lists > limit || work > limit)
        return mica_fail(err, MICA_OVER_BUDGET, "%d sessions of %d tokens need more memory than can be addressed",
                         z->max_sessions, o->n_ctx);
    lists += mica_kv_lease_tables(o->n_ctx) * sizeof(int32_t);
    *plan = (mica_memory_plan){.n_ctx = o->n_ctx, .prefill_chunk = o->prefill_chunk, .n_threads = o->n_threads,
                               .window_ctx = o->n_ctx};
    if (m->weights.h.window > 0 && z->slots[MICA_KV_WINDOWED] / z->max_sessions < o->n_ctx)
        plan->window_ctx = z->slots[MICA_KV_WINDOWED] / z->max_sessions;
    plan->weights_bytes = m->weights.n_bytes;
    plan->kv_bytes = (int64_t)(k + v);
    plan->workspace_bytes = (int64_t)(work + lists * (size_t)z->max_sessions + mica_kv_blocks_list_bytes(blocks));
    plan->total_bytes = plan->weights_bytes + plan->kv_bytes + plan->workspace_bytes;
    mica_plan_peak(m, o, plan);
    return MICA_OK;
}

/* With another context; a KV memory that is given stays as large. */
static mica_status plan_again(const void *user, const mica_model *m, const mica_session_options *o, mica_memory_plan *plan,
                              mica_error *err)
{
    sizes z = *(const sizes *)user;
    z.options = *o;
    count_slots(m, o, z.max_sessions, z.kv_tokens, z.slots);
    return plan_memory(m, &z, plan, err);
}

mica_status mica_batch_plan(const mica_model *m, const mica_batch_options *options, mica_memory_plan *plan, mica_error *err)
{
    sizes z;
    mica_status status = resolve(m, options, &z, err);
    return status ? status : plan_memory(m, &z, plan, err);
}

/* ---- making ---- */

/* KV memory and workspace in one anonymous mapping: zero pages cost nothing until they are used. */
static mica_status make_memory(mica_batch *b, const int32_t slots[MICA_KV_KINDS], mica_error *err)
{
    const mica_weights *w = &b->model->weights;
    const mica_session_options *o = &b->options;
    size_t values = mica_round_up(half_bytes(b->model, o->kv_k, slots), 4096);
    size_t kv = values + mica_round_up(half_bytes(b->model, o->kv_v, slots), 4096);
    size_t bytes = kv + mica_exec_bytes(w, o->prefill_chunk, b->max_sessions, MICA_MAX_THREADS); /* threads may be added */
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mica_kv view;
    if (memory == MAP_FAILED)
        return mica_fail_nomem(err, bytes, "the batch's KV memory and workspace");
    b->memory = memory;
    b->memory_bytes = bytes;
    b->exec = (mica_exec){.w = w, .kern = &b->model->kernels, .pool = b->pool, .chunk = o->prefill_chunk,
                          .logits_max = b->max_sessions};
    mica_exec_layout(&b->exec, memory + kv, MICA_MAX_THREADS, o->n_ctx);
    mica_kv_lay_out(&view, &w->h, slots, mica_plan_kv_quant(o->kv_k), mica_plan_kv_quant(o->kv_v), memory, memory + values);
    return mica_kv_blocks_init(&b->blocks, &view, err);
}

static mica_status make(mica_batch *b, const int32_t slots[MICA_KV_KINDS], mica_error *err)
{
    size_t n = (size_t)b->max_sessions;
    if (b->options.sysroot && !(b->sysroot = strdup(b->options.sysroot)))
        return mica_fail_nomem(err, strlen(b->options.sysroot), "the root prefix");
    b->options.sysroot = b->sysroot;
    b->options.cpus = NULL; /* now in b->threads */
    b->sessions = mica_new_array(n, sizeof *b->sessions);
    b->queue = mica_new_array(n, sizeof *b->queue);
    b->owners = mica_new_array(n, sizeof *b->owners);
    b->spans = mica_new_array(n, sizeof *b->spans);
    if (!b->sessions || !b->queue || !b->owners || !b->spans)
        return mica_fail_nomem(err, n * (3 * sizeof *b->sessions + sizeof *b->spans), "the batch's list of sessions");
    mica_status status = mica_pool_new(b->threads.n_threads, b->threads.cpus, &b->pool, err);
    b->governed = (mica_governed){.governor = b->options.governor, .pool = b->pool, .options = &b->options, .threads = &b->threads};
    return status ? status : make_memory(b, slots, err);
}

mica_status mica_batch_new(mica_model *model, const mica_batch_options *options, mica_batch **out, mica_error *err)
{
    mica_memory_plan plan;
    sizes z;
    *out = NULL;
    mica_batch *b = mica_new_array(1, sizeof *b);
    if (!b)
        return mica_fail_nomem(err, sizeof *b, "the batch");
    mica_model_retain(model);
    b->model = model;
    mica_status status = resolve(model, options, &z, err);
    const mica_fit_planner planner = {plan_again, &z, "fewer sessions, or steps of fewer tokens",
                                      "; or fewer sessions, or a smaller KV memory (kv_tokens)"};
    if (!status)
        status = mica_fit_require(model, &z.options, &planner, &plan, err);
    if (!status) {
        b->options = z.options;
        b->threads = z.threads;
        b->max_sessions = z.max_sessions;
        status = make(b, z.slots, err);
    }
    if (!status) {
        b->reserved = plan.kv_bytes + plan.workspace_bytes;
        atomic_fetch_add(&model->reserved, b->reserved);
    }
    if (status) {
        mica_batch_free(b);
        return status;
    }
    *out = b;
    return MICA_OK;
}

mica_status mica_batch_set_threads(mica_batch *b, int32_t n_threads, const int32_t *cpus, mica_error *err)
{
    return mica_threads_set(b->pool, &b->options, &b->threads, n_threads, cpus, err);
}

void mica_batch_free(mica_batch *b)
{
    if (!b)
        return;
    while (b->n_sessions > 0)
        mica_session_free(b->sessions[b->n_sessions - 1]); /* which forgets itself here */
    mica_pool_free(b->pool);
    mica_kv_blocks_free(&b->blocks);
    if (b->memory)
        munmap(b->memory, b->memory_bytes);
    free(b->sessions);
    free(b->queue);
    free(b->owners);
    free(b->spans);
    free(b->sysroot);
    atomic_fetch_sub(&b->model->reserved, b->reserved);
    mica_model_close(b->model);
    free(b);
}

int32_t mica_batch_replies(const mica_batch *b) { return b->n_queue; }

const mica_thread_plan *mica_batch_threads(const mica_batch *b) { return &b->threads; }

/* ---- sessions ---- */

/* Some models choose their rotary frequencies by the length of the context; a batch has one set for all its sessions. */
static mica_status check_context(const mica_batch *b, int32_t n_ctx, mica_error *err)
{
    const mica_hparams *h = &b->model->weights.h;
    int32_t limit = h->rope_original_ctx;
    if (n_ctx > b->options.n_ctx)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a context of %d tokens is longer than the batch's, %d", n_ctx,
                         b->options.n_ctx);
    if (h->rope_long && h->rope_short && n_ctx <= limit && b->options.n_ctx > limit)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "this model computes contexts of up to %d tokens in another way than longer ones: in a batch of %d "
                         "tokens a session of %d is not possible",
                         limit, b->options.n_ctx, n_ctx);
    return MICA_OK;
}

mica_status mica_batch_session_new(mica_batch *b, const mica_session_options *options, mica_session **out, mica_error *err)
{
    mica_session_options wanted = options ? *options : mica_session_options_default(), o;
    mica_thread_plan threads;
    mica_session_loan loan = {.pool = b->pool, .exec = &b->exec, .batch = b, .blocks = &b->blocks,
                              .governed = &b->governed};
    *out = NULL;
    if (b->n_sessions == b->max_sessions)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the batch has %d sessions already, as many as it was made for",
                         b->n_sessions);
    if (wanted.draft_max != 0 || wanted.draft_model)
        return mica_fail(err, MICA_UNSUPPORTED, "sessions of a batch do not speculate: leave out draft_max and draft_model");
    wanted.n_ctx = wanted.n_ctx ? wanted.n_ctx : b->options.n_ctx;
    wanted.n_threads = b->threads.n_threads;
    wanted.cpus = b->threads.cpus;
    wanted.prefill_chunk = 0;
    wanted.sysroot = b->sysroot;
    wanted.kv_k = b->options.kv_k;
    wanted.kv_v = b->options.kv_v;
    mica_status status = mica_plan_resolve(b->model, &wanted, &o, &threads, err);
    if (!status)
        status = check_context(b, o.n_ctx, err);
    if (!status)
        status = mica_session_make(b->model, &o, &b->threads, &loan, out, err);
    if (!status)
        b->sessions[b->n_sessions++] = *out;
    return status;
}

/* Takes `s` out of list[0..*n), whose order stays. */
static void remove_from(mica_session **list, int32_t *n, const mica_session *s)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < *n; i++)
        if (list[i] != s)
            list[kept++] = list[i];
    *n = kept;
}

void mica_batch_forget(mica_batch *b, mica_session *s)
{
    remove_from(b->sessions, &b->n_sessions, s);
    remove_from(b->queue, &b->n_queue, s);
}

/* ---- what it does with its memory ---- */

void mica_batch_get_info(const mica_batch *b, mica_batch_info *info)
{
    const mica_kv_blocks *p = &b->blocks;
    int64_t cached = 0, used = p->n[MICA_KV_FULL] - p->n_free[MICA_KV_FULL];
    for (int32_t i = 0; i < p->n[MICA_KV_FULL]; i++)
        cached += p->block[i].n > 0 && p->block[i].uses == 1;
    *info = (mica_batch_info){.kv_tokens = (int64_t)p->n[MICA_KV_FULL] * MICA_KV_BLOCK,
                              .kv_held = (used - cached) * MICA_KV_BLOCK, .kv_cached = cached * MICA_KV_BLOCK,
                              .evictions = p->evictions, .suspensions = b->suspensions};
}

static mica_prefix_owner prefix_owner(mica_batch *b)
{
    return (mica_prefix_owner){b->model, &b->exec, &b->blocks, b->options.n_ctx};
}

mica_status mica_batch_save_prefixes(mica_batch *b, const char *path, mica_error *err)
{
    mica_prefix_owner owner = prefix_owner(b);
    return mica_prefix_save(&owner, path, err);
}

mica_status mica_batch_restore_prefixes(mica_batch *b, const char *path, int64_t *n_tokens, mica_error *err)
{
    mica_prefix_owner owner = prefix_owner(b);
    return mica_prefix_restore(&owner, path, n_tokens, err);
}

mica_status mica_batch_shed(mica_batch *b, mica_shed_level level, const char *path, int64_t *n_tokens, mica_error *err)
{
    mica_batch_info before, after;
    mica_status status = MICA_OK;
    mica_batch_get_info(b, &before);
    if (level > MICA_SHED_NOTHING && path)
        status = mica_batch_save_prefixes(b, path, err);
    while (level >= MICA_SHED_IDLE && mica_batch_empty_idle(b, NULL))
        ;
    if (level >= MICA_SHED_PREFIXES) {
        mica_kv_tree_empty(&b->blocks);
        mica_kv_blocks_give_back(&b->blocks);
    }
    mica_batch_get_info(b, &after);
    if (n_tokens)
        *n_tokens = before.kv_held + before.kv_cached - after.kv_held - after.kv_cached;
    return status;
}

bool mica_batch_empty_idle(mica_batch *b, const mica_session *but)
{
    mica_session *oldest = NULL;
    for (int32_t i = 0; i < b->n_sessions; i++) {
        mica_session *s = b->sessions[i];
        if (s != but && s->lease.n > 0 && !mica_batch_has_request(b, s) && (!oldest || s->ended < oldest->ended))
            oldest = s;
    }
    if (oldest)
        mica_session_give_up(oldest);
    return oldest != NULL;
}

/* ---- requests ---- */

bool mica_batch_has_request(const mica_batch *b, const mica_session *s)
{
    for (int32_t i = 0; i < b->n_queue; i++)
        if (b->queue[i] == s)
            return true;
    return false;
}

mica_status mica_batch_submit(mica_session *s, const int32_t *tokens, size_t n, const mica_generate_options *options,
                              mica_error *err)
{
    mica_batch *b = s->batch;
    if (!b)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "this session belongs to no batch: use mica_session_sync()");
    if (mica_batch_has_request(b, s))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "this session has a request under way: one at a time");
    atomic_store(&s->cancelled, false);
    s->logits_valid = false; /* a restored snapshot may claim them; they are not kept here */
    s->from_nothing = options && options->from_nothing;
    mica_status status = mica_session_accept(s, tokens, n, mica_now_ns(), err);
    if (!status)
        status = mica_reply_start(&s->reply, s, options, err);
    if (!status)
        b->queue[b->n_queue++] = s;
    return status;
}

/* ---- the step ---- */

static int32_t uncomputed(const mica_session *s) { return s->n_tokens - s->n_computed; }

/* The reply is over: it leaves the batch, and then its owner hears of it, who may do almost anything. */
static void finish(mica_batch *b, mica_session *s, mica_status status, mica_error why)
{
    mica_result result;
    mica_generate_options o = s->reply.o;
    remove_from(b->queue, &b->n_queue, s);
    mica_session_publish(s);
    s->ended = ++b->n_ended;
    status = mica_reply_finish(&s->reply, status, &result, &why);
    if (o.on_done)
        o.on_done(o.user, status, &result, status ? &why : NULL);
}

/* Cancelled ones leave before they cost a step. */
static void drop_cancelled(mica_batch *b)
{
    mica_error why;
    for (int32_t i = 0; i < b->n_queue;) {
        mica_session *s = b->queue[i];
        int32_t done = s->prefill_n, total = done + uncomputed(s); /* of the prompt, while it is being read */
        mica_status status = mica_session_interrupted(s, done, total, &why);
        if (status)
            finish(b, s, status, why);
        i = status ? 0 : i + 1; /* on_done may have changed the queue */
    }
}

static void add_span(mica_batch *b, mica_session *s, int32_t n)
{
    b->owners[b->n_spans] = s;
    b->spans[b->n_spans++] = (mica_span){&s->kv, s->tokens + s->n_computed, n, s->n_computed, n == uncomputed(s) ? 1 : 0};
}

/* A reply that has begun, which may have more than one token to compute: after a context shift, or where a constraint left
 * no choice. */
static bool is_running(const mica_session *s) { return s->reply.gen_n > 0 || uncomputed(s) == 1; }

/* The last reply in the queue behind number i that has blocks gives them up: it has no part in this step yet. */
static bool suspend_later(mica_batch *b, int32_t i)
{
    int32_t last = b->n_queue - 1;
    while (last > i && b->queue[last]->lease.n == 0)
        last--;
    if (last <= i)
        return false;
    mica_session_give_up(b->queue[last]);
    b->suspensions++;
    return true;
}

static bool has_memory(mica_batch *b, int32_t i, int32_t n)
{
    mica_session *s = b->queue[i];
    while (!mica_kv_lease_reserve(&s->lease, s->n_computed, s->n_computed + n))
        if (!mica_batch_empty_idle(b, s) && !suspend_later(b, i))
            return false;
    return true;
}

/* Another session computes in this step what this one would begin with: it is found in the tree when it is there. */
static bool is_being_computed(const mica_batch *b, const mica_session *s)
{
    int32_t next = s->n_computed + MICA_KV_BLOCK;
    for (int32_t i = 0; i < b->n_spans; i++) {
        const mica_session *other = b->owners[i];
        if (next < s->n_tokens && other->n_computed <= s->n_computed && next <= other->n_computed + b->spans[i].n &&
            memcmp(other->tokens, s->tokens, (size_t)next * sizeof *s->tokens) == 0)
            return true;
    }
    return false;
}

/* One token of every reply that runs; the rest of the step is for those that have more to compute, first come, first served. */
static void compose(mica_batch *b)
{
    int32_t room = mica_govern_chunk(&b->governed, b->exec.chunk);
    room = room < b->n_queue ? b->n_queue : room;
    b->n_spans = 0;
    for (int32_t i = 0; i < b->n_queue; i++) {
        mica_session_settle(b->queue[i]);
        if (uncomputed(b->queue[i]) > 1)
            mica_session_find(b->queue[i]);
        room -= is_running(b->queue[i]);
    }
    for (int32_t i = 0; i < b->n_queue; i++) {
        mica_session *s = b->queue[i];
        int32_t own = is_running(s), more = uncomputed(s) - own;
        if (more > 0 && !s->from_nothing && is_being_computed(b, s))
            continue;
        more = more < room ? more : room;
        if (own + more > 0 && has_memory(b, i, own + more)) {
            add_span(b, s, own + more);
            room -= more;
        }
    }
}

/* What the step computed becomes part of the sessions. */
static void advance(mica_batch *b, int64_t step_ns)
{
    for (int32_t i = 0; i < b->n_spans; i++) {
        mica_session *s = b->owners[i];
        s->n_computed += b->spans[i].n;
        mica_kv_lease_publish(&s->lease, s->tokens, s->n_computed);
        s->prefill_n += b->spans[i].n; /* counts until the first token */
        s->prefill_ns += step_ns;
    }
}

/* The replies whose logits the step computed take their tokens. Those that end keep their place in `owners`, with why. */
static void take(mica_batch *b)
{
    const float *logits = b->exec.logits;
    size_t n_vocab = (size_t)b->model->weights.h.n_vocab;
    for (int32_t i = 0; i < b->n_spans; i++) {
        mica_session *s = b->owners[i];
        if (b->spans[i].n_logits == 0)
            continue;
        if (s->reply.gen_n == 0 && s->options.on_prefill)
            s->options.on_prefill(s->options.user, s->prefill_n, s->prefill_n);
        s->reply.status = mica_reply_take(&s->reply, logits, &s->reply.error);
        logits += n_vocab;
    }
}

static void finish_ended(mica_batch *b)
{
    for (int32_t i = 0; i < b->n_queue;) {
        mica_reply *r = &b->queue[i]->reply;
        bool over = r->status || r->stop_reason;
        if (over)
            finish(b, r->s, r->status, r->error);
        i = over ? 0 : i + 1;
    }
}

/* Replies of which the step decodes a token; 0 if it does something else as well. */
static int32_t decoding(const mica_batch *b)
{
    for (int32_t i = 0; i < b->n_spans; i++)
        if (b->spans[i].n > 1 || b->owners[i]->reply.gen_n == 0)
            return 0;
    return b->n_spans;
}

int32_t mica_batch_step(mica_batch *b)
{
    drop_cancelled(b);
    if (b->n_queue > 0)
        mica_govern_before(&b->governed);
    compose(b);
    if (b->n_spans == 0)
        return 0;
    int64_t start = mica_now_ns();
    mica_forward(&b->exec, b->spans, b->n_spans);
    mica_govern_after(&b->governed, decoding(b));
    advance(b, mica_now_ns() - start);
    take(b);
    finish_ended(b);
    return b->n_queue;
}
