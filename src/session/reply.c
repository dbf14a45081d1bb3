/* reply.c - from logits to a token of the reply: pick, tell, append. */
#include "session/reply.h"

#include <string.h>

#include "base/clock.h"
#include "session/guide.h"
#include "session/receipt.h"
#include "session/session.h"

#define MAX_TOP_LOGPROBS 20

mica_generate_options mica_generate_options_default(void)
{
    return (mica_generate_options){
        .struct_size = sizeof(mica_generate_options),
        .max_tokens = -1,
        .sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .typical_p = 1.0f,
                     .repeat_penalty = 1.0f, .penalty_last_n = 64, .dry_base = 1.75f, .dry_allowed_length = 2,
                     .dry_last_n = -1, .seed = -1},
    };
}

/* ---- start ---- */

static mica_status check_speculation(const mica_session *s, const mica_generate_options *o, mica_error *err)
{
    unsigned known = MICA_SPECULATE_LOOKUP | MICA_SPECULATE_MODEL, asked = (unsigned)o->speculate;
    if (asked & ~known)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "speculate is %u; it must be between 0 and %u", asked, known);
    if (asked && s->options.draft_max == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "speculation needs a session that was made with draft_max of at least 1");
    if ((asked & MICA_SPECULATE_MODEL) && !s->options.draft_model)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "speculation with a draft model needs a session that was made with draft_model");
    if (o->draft_n < 0 || o->draft_n > s->options.draft_max)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "draft_n is %d; it must be between 0 and the session's draft_max, %d",
                         o->draft_n, s->options.draft_max);
    return MICA_OK;
}

static mica_status check_options(const mica_session *s, const mica_generate_options *o, mica_error *err)
{
    if (o->max_tokens < -1)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "max_tokens is %d; it must be -1 (no limit) or more", o->max_tokens);
    if (o->top_logprobs < 0 || o->top_logprobs > MAX_TOP_LOGPROBS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "top_logprobs is %d; it must be between 0 and %d", o->top_logprobs,
                         MAX_TOP_LOGPROBS);
    if (o->n_stop_tokens > MICA_REPLY_STOP_TOKENS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%zu stop tokens; at most %d are possible", o->n_stop_tokens,
                         MICA_REPLY_STOP_TOKENS);
    for (size_t i = 0; i < o->n_stop_tokens; i++)
        if (o->stop_tokens[i] < 0 || o->stop_tokens[i] >= s->model->weights.h.n_vocab)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "stop token %d is not in the vocabulary", o->stop_tokens[i]);
    if (s->n_tokens == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "there is no prompt: call mica_session_prompt() or mica_session_sync() first");
    return check_speculation(s, o, err);
}

/* The caller's arrays may go away while the reply is under way. */
static void keep_options(mica_reply *r, const mica_generate_options *o)
{
    r->o = *o;
    if (o->n_stop_tokens > 0)
        memcpy(r->stop_tokens, o->stop_tokens, o->n_stop_tokens * sizeof *o->stop_tokens);
    r->o.stop_tokens = r->stop_tokens;
    r->o.stop = NULL;
    r->o.sampling.logit_bias = NULL;
}

/* Tokens that may still be said before max_tokens or the context end the reply. */
static int32_t room_left(const mica_reply *r)
{
    const mica_session *s = r->s;
    bool ends = s->options.full_policy == MICA_FULL_ERROR || s->options.full_policy == MICA_FULL_STOP;
    int32_t context = ends ? s->options.n_ctx - s->n_tokens : INT32_MAX;
    int32_t tokens = r->o.max_tokens >= 0 ? r->o.max_tokens - r->gen_n : INT32_MAX;
    return tokens < context ? tokens : context;
}

/* Takes the last token back, if it is text and not all there is, and returns it; else -1. The one before it is computed
 * again, for its logits. */
static int32_t take_back(mica_reply *r)
{
    mica_session *s = r->s;
    int32_t last = s->tokens[s->n_tokens - 1];
    size_t bytes = mica_vocab_bytes(s->model->vocab, last, false, NULL, 0);
    if (!r->o.token_healing || s->n_tokens < 2 || bytes == 0 || bytes > MICA_GUIDE_PIECE)
        return -1;
    r->prompt_n = --s->n_tokens;
    s->n_computed = s->n_computed < s->n_tokens ? s->n_computed : s->n_tokens - 1;
    s->logits_valid = false;
    r->n_untold = bytes;
    return last;
}

static mica_status start_guide(mica_reply *r, mica_error *err)
{
    mica_session *s = r->s;
    mica_status status = MICA_OK;
    if (r->o.constraint && r->o.constraint->model != s->model)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the constraint was made for another model, or for none");
    int32_t healed = take_back(r);
    r->guided = r->o.constraint || healed >= 0;
    mica_guide_request q = {.constraint = r->o.constraint, .stop_tokens = r->o.stop_tokens, .n_stop_tokens = r->o.n_stop_tokens,
                            .ignore_eos = r->o.ignore_eos, .may_close = r->o.close && r->o.max_tokens != 0, .healed = healed,
                            .room = room_left(r)};
    if (r->guided && !s->guide)
        status = mica_guide_new(s->model->vocab, &s->guide, err);
    if (r->guided && !status)
        status = mica_guide_start(s->guide, &q, err);
    if (status && healed >= 0)
        s->n_tokens++; /* it is still there */
    r->guided = r->guided && !status;
    return status;
}

mica_status mica_reply_start(mica_reply *r, mica_session *s, const mica_generate_options *options, mica_error *err)
{
    mica_generate_options defaults = mica_generate_options_default();
    const mica_generate_options *o = options ? options : &defaults;
    memset(r, 0, offsetof(mica_reply, bytes));
    r->s = s;
    r->prompt_n = s->n_tokens;
    if (!s->request_ns)
        s->request_ns = mica_now_ns();
    int32_t max_tokens = o->max_tokens;
    mica_status status = check_options(s, o, err);
    if (!status && s->receipt)
        status = mica_receipt_ensure(s->receipt, s, err);
    if (!status)
        status = mica_govern_reply(s->governor, s->options.n_ctx - s->n_tokens, &max_tokens, err);
    if (!status)
        status = mica_sampler_start(s->sampler, &o->sampling, &r->seed, err);
    if (!status)
        status = mica_stop_start(s->stop, o->stop, o->n_stop, err);
    if (!status && s->n_tokens >= s->options.n_ctx) { /* an earlier reply filled the context: there is no room to append */
        status = mica_session_shrink(s, s->tokens, (size_t)s->n_tokens, err);
        r->stop_reason = status ? "context" : NULL;
    }
    if (!status) {
        keep_options(r, o);
        r->o.max_tokens = max_tokens;
        status = start_guide(r, err);
    }
    r->started = !status;
    return status;
}

/* ---- telling ---- */

static bool ends(const mica_reply *r, int32_t token)
{
    for (size_t i = 0; i < r->o.n_stop_tokens; i++)
        if (r->o.stop_tokens[i] == token)
            return true;
    return !r->o.ignore_eos && mica_vocab_ends_generation(r->s->model->vocab, token);
}

static void tell_token(mica_reply *r, const float *logits)
{
    int32_t tops[MAX_TOP_LOGPROBS], n_vocab = r->s->model->weights.h.n_vocab;
    float logprobs[MAX_TOP_LOGPROBS];
    mica_token_event event = {.token = r->token, .index = r->gen_n, .time_ns = r->last_ns};
    if (!r->o.on_token)
        return;
    if (r->o.top_logprobs > 0 && logits) {
        event.n_top = r->o.top_logprobs < n_vocab ? r->o.top_logprobs : n_vocab;
        event.top_tokens = tops;
        event.top_logprobs = logprobs;
        mica_sampler_top_logprobs(r->s->sampler, logits, r->token, event.n_top, tops, logprobs, &event.logprob);
    }
    if (r->o.on_token(r->o.user, &event))
        r->stop_reason = "cancelled";
}

static void tell_text(mica_reply *r, const char *text, size_t n)
{
    if (n > 0 && r->o.on_text && r->o.on_text(r->o.user, text, n))
        r->stop_reason = "cancelled";
}

/* Whole characters on to the stop strings and from there to the caller. */
static void push_text(mica_reply *r, const char *text, size_t n)
{
    for (size_t i = 0; i < n && !r->stop_reason;) {
        size_t part = n - i < MICA_STOP_MAX_BYTES ? n - i : MICA_STOP_MAX_BYTES;
        const char *out;
        bool hit = false;
        size_t ready = mica_stop_push(r->s->stop, text + i, part, &out, &hit);
        tell_text(r, out, ready);
        if (hit) {
            r->stop_hit = true;
            r->stop_reason = "stop";
        }
        i += part;
    }
}

static void push_token(mica_reply *r)
{
    size_t n = mica_vocab_bytes(r->s->model->vocab, r->token, false, r->bytes, sizeof r->bytes);
    size_t untold = n < r->n_untold ? n : r->n_untold;
    r->n_untold -= untold;
    if (n <= sizeof r->bytes)
        push_text(r, r->text, mica_detok_push(&r->detok, r->bytes + untold, n - untold, r->text));
}

/* What the detokenizer and the stop strings still hold back. */
static void flush_text(mica_reply *r)
{
    const char *reason = r->stop_reason, *out;
    if (r->stop_hit || strcmp(reason, "cancelled") == 0)
        return;
    r->stop_reason = NULL;
    push_text(r, r->text, mica_detok_finish(&r->detok, r->text));
    if (!r->stop_reason) {
        size_t held = mica_stop_finish(r->s->stop, &out);
        tell_text(r, out, held);
    }
    if (!r->stop_reason || strcmp(r->stop_reason, "cancelled") == 0)
        r->stop_reason = reason; /* the reply was over: a late veto changes nothing */
}

/* ---- a token ---- */

static void note_time(mica_reply *r)
{
    int64_t now = mica_now_ns();
    if (r->gen_n == 0)
        r->first_ns = now;
    else
        r->s->itl_ns[r->n_itl++ % r->s->options.n_ctx] = now - r->last_ns;
    r->last_ns = now;
}

/* Until the first token all that is computed is prompt; later steps are decode and do not count as such. */
static void note_prefill(mica_reply *r)
{
    if (r->gen_n > 0)
        return;
    r->prefill_ns = r->s->prefill_ns;
    r->prefill_n = r->s->prefill_n;
}

/* The chosen token becomes the last of the history; at the context's end the policy decides. */
static mica_status append(mica_reply *r, mica_error *err)
{
    mica_session *s = r->s;
    s->tokens[s->n_tokens++] = r->token;
    s->logits_valid = false;
    if (r->stop_reason || s->n_tokens < s->options.n_ctx)
        return MICA_OK;
    if (r->guided && s->guide->may_close && s->options.full_policy == MICA_FULL_ERROR && mica_guide_may_end(s->guide)) {
        r->stop_reason = "context"; /* as far as it came the reply is valid, which is what a close asks for */
        return MICA_OK;
    }
    if (s->options.full_policy == MICA_FULL_STOP || (r->o.max_tokens >= 0 && r->gen_n >= r->o.max_tokens)) {
        r->stop_reason = s->options.full_policy == MICA_FULL_STOP ? "context" : "length";
        return MICA_OK;
    }
    mica_status status = mica_session_shrink(s, s->tokens, (size_t)s->n_tokens, err);
    if (status)
        r->stop_reason = "context";
    return status;
}

/* Why a reply ends whose constraint has nothing more to say. */
static const char *end_of_text(const mica_reply *r)
{
    if (!r->s->guide->closing)
        return "stop";
    return r->o.max_tokens >= 0 && r->o.max_tokens - r->gen_n <= room_left(r) ? "length" : "context";
}

/* A token becomes part of the reply. `chosen`: by the sampler; only such a one may end the reply instead of being text.
 * `logits` may be NULL: then nothing is told of its probability. */
static mica_status say(mica_reply *r, int32_t token, const float *logits, bool chosen, mica_error *err)
{
    bool end = chosen && ends(r, token);
    mica_status status = r->guided && !end ? mica_guide_accept(r->s->guide, token, err) : MICA_OK;
    if (status)
        return status;
    r->token = token;
    note_time(r);
    tell_token(r, logits);
    r->gen_n++;
    if (end) {
        r->stop_reason = r->stop_reason ? r->stop_reason : "eos";
    } else {
        push_token(r);
        if (!r->stop_reason && r->guided && mica_guide_is_over(r->s->guide))
            r->stop_reason = end_of_text(r);
        if (!r->stop_reason && r->gen_n == r->o.max_tokens)
            r->stop_reason = "length";
    }
    return append(r, err);
}

/* Says a token that the sampler chooses among those that are possible; with a close it may find that there is no room for
 * it. */
static mica_status choose(mica_reply *r, const float *logits, mica_error *err)
{
    mica_session *s = r->s;
    const uint32_t *mask = NULL;
    int32_t token;
    mica_status status = r->guided && mica_guide_restricts(s->guide) ? mica_guide_mask(s->guide, &mask, err) : MICA_OK;
    if (!status)
        status = mica_sampler_pick_masked(s->sampler, logits, mask, s->tokens, (size_t)s->n_tokens, &token, err);
    if (!status && r->guided && !ends(r, token))
        status = mica_guide_reserve(s->guide, token, room_left(r), err);
    return status || (r->guided && s->guide->closing) ? status : say(r, token, logits, true, err);
}

/* One token by the logits, and all that follow it without a choice; a reply may begin with such. */
static mica_status take_guided(mica_reply *r, const float *logits, mica_error *err)
{
    mica_guide *g = r->s->guide;
    mica_status status = MICA_OK;
    int32_t before = r->gen_n;
    while (!status && !r->stop_reason) {
        if (mica_guide_is_over(g)) {
            r->stop_reason = end_of_text(r);
            break;
        }
        const float *unused = r->gen_n == before ? logits : NULL;
        status = mica_guide_force(g, room_left(r), err);
        if (status || (!unused && (r->o.top_logprobs > 0 || !mica_guide_queued(g))))
            break;
        if (mica_guide_queued(g))
            status = say(r, g->queue.ids[g->queue_at], unused, false, err);
        else if (!g->closing)
            status = choose(r, unused, err);
    }
    return status;
}

mica_status mica_reply_take(mica_reply *r, const float *logits, mica_error *err)
{
    note_prefill(r);
    mica_status status = r->s->receipt ? mica_receipt_tick(r->s->receipt, r->s, err) : MICA_OK;
    if (status)
        return status;
    if (r->o.max_tokens == 0) {
        r->stop_reason = "length";
        return MICA_OK;
    }
    return r->guided ? take_guided(r, logits, err) : choose(r, logits, err);
}

/* ---- the end ---- */

mica_status mica_reply_finish(mica_reply *r, mica_status status, mica_result *result, mica_error *err)
{
    mica_session *s = r->s;
    mica_result unwanted;
    note_prefill(r);
    if (status == MICA_CANCELLED)
        r->stop_reason = "cancelled";
    else if (status && !r->stop_reason)
        r->stop_reason = "error";
    if (r->started)
        flush_text(r);
    if (r->guided)
        r->forced_n = s->guide->forced_n;
    mica_guide_end(s->guide);
    if (!status && strcmp(r->stop_reason, "cancelled") == 0)
        status = mica_fail(err, MICA_CANCELLED, "a callback stopped the reply after %d tokens", r->gen_n);
    if (!result)
        result = &unwanted;
    mica_reply_result(r, result);
    if (s->receipt)
        status = mica_receipt_end(s->receipt, s, status, result, err);
    s->request_ns = 0;
    s->prefill_ns = 0;
    s->prefill_n = s->cached_n = s->dropped_n = 0;
    return status;
}
