#include "session/speculate.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "session/drafter.h"
#include "session/guide.h"
#include "session/lookup.h"
#include "session/pace.h"
#include "session/plan.h"

struct mica_speculator {
    mica_lookup lookup;
    mica_pace pace;
    mica_session *drafter;  /* of the draft model; NULL: none */
    bool model_off;         /* it does not pay in this reply */
    int32_t dropped_n;      /* what the context policy had dropped when the index was made */
    int32_t tokens[MICA_DRAFT_MAX];
};

/* What may come next: `n` of the speculator's tokens are to be tried. */
typedef struct draft {
    int32_t n;
    int source; /* -1: nobody had an idea */
} draft;

/* ---- making ---- */

mica_status mica_speculator_new(mica_session *s, mica_speculator **out, mica_error *err)
{
    const mica_model *small = s->options.draft_model;
    mica_speculator *sp = mica_new_array(1, sizeof *sp);
    *out = sp;
    if (!sp)
        return mica_fail_nomem(err, sizeof *sp, "speculation");
    mica_pace_init(&sp->pace, small ? (double)small->weights.n_bytes / (double)s->model->weights.n_bytes : 0.0);
    mica_status status = mica_lookup_new(&sp->lookup, s->options.n_ctx, err);
    return status || !small ? status : mica_drafter_new(s, &sp->drafter, err);
}

void mica_speculator_free(mica_speculator *sp)
{
    if (!sp)
        return;
    mica_session_free(sp->drafter);
    mica_lookup_free(&sp->lookup);
    free(sp);
}

void mica_speculator_cancel(mica_speculator *sp)
{
    if (sp->drafter)
        atomic_store(&sp->drafter->cancelled, true);
}

/* ---- guessing ---- */

/* The history may be another one than in the last step: a new request, or what a context policy left. */
static void follow_history(mica_speculator *sp, const mica_reply *r)
{
    if (r->gen_n == 0) {
        mica_pace_start(&sp->pace);
        sp->model_off = false;
        if (sp->drafter)
            atomic_store(&sp->drafter->cancelled, false);
    }
    if (r->gen_n == 0 || sp->dropped_n != r->s->dropped_n)
        mica_lookup_reset(&sp->lookup);
    sp->dropped_n = r->s->dropped_n;
}

/* The most tokens that can be of use: room in step and context, and the reply's limit; the step gives one more than that. */
static int32_t room_for_draft(const mica_reply *r)
{
    const mica_session *s = r->s;
    int32_t room = s->options.n_ctx - s->n_tokens - 1;
    if (r->o.max_tokens >= 0 && r->o.max_tokens - r->gen_n - 1 < room)
        room = r->o.max_tokens - r->gen_n - 1;
    int32_t longest = mica_govern_draft(&s->governed, s->options.draft_max);
    return room < longest ? room : longest;
}

static int32_t length_of(const mica_speculator *sp, const mica_reply *r, int source, int32_t room)
{
    if (r->o.draft_n == 0)
        return mica_pace_choose(&sp->pace, source, room);
    return r->o.draft_n < room ? r->o.draft_n : room;
}

static draft from_model(mica_speculator *sp, const mica_reply *r, int32_t room)
{
    draft d = {length_of(sp, r, MICA_PACE_MODEL, room), MICA_PACE_MODEL};
    sp->model_off = d.n == 0;
    if (d.n == 0)
        return d;
    int64_t start = mica_now_ns();
    int32_t unread = r->s->n_tokens - sp->drafter->n_computed;
    d.n = mica_drafter_run(sp->drafter, r->s, d.n, sp->tokens);
    if (unread <= 2) /* else it was mostly catching up */
        mica_pace_drafted(&sp->pace, d.n, mica_now_ns() - start);
    return d;
}

static draft guess(mica_speculator *sp, const mica_reply *r)
{
    draft d = {0, -1};
    int32_t room = room_for_draft(r), match;
    if (room < 1)
        return d;
    if (r->o.speculate & MICA_SPECULATE_LOOKUP) {
        match = mica_lookup_find(&sp->lookup, r->s->tokens, r->s->n_tokens, room, sp->tokens);
        if (match > 0)
            d = (draft){length_of(sp, r, mica_pace_source(match), room), mica_pace_source(match)};
    }
    if (d.n == 0 && (r->o.speculate & MICA_SPECULATE_MODEL) && !sp->model_off) {
        draft model = from_model(sp, r, room);
        d = model.n > 0 ? model : d;
    }
    if (d.n > 0 && r->guided) /* what the constraint forbids cannot be right */
        d.n = mica_guide_trim(r->s->guide, sp->tokens, d.n);
    return d;
}

/* ---- verifying ---- */

/* Computes the last token of the history and the draft behind it, with the logits of all. */
static void compute(mica_speculator *sp, mica_session *s, int32_t n)
{
    memcpy(s->tokens + s->n_tokens, sp->tokens, (size_t)n * sizeof *sp->tokens); /* beyond the history: nobody reads it there */
    mica_span span = {&s->kv, s->tokens + s->n_computed, 1 + n, s->n_computed, 1 + n};
    mica_govern_before(&s->governed);
    int64_t start = mica_now_ns();
    mica_forward(&s->exec, &span, 1);
    mica_pace_step(&sp->pace, 1 + n, mica_now_ns() - start);
    mica_govern_after(&s->governed, n == 0);
}

/* How many of the last `said` tokens of the history, one after another, are those of the draft from its token `from` on; of
 * a draft that was not tried, the first one counts. */
static int32_t count_right(const mica_speculator *sp, const mica_session *s, const draft *d, int32_t from, int32_t said)
{
    int32_t known = d->source < 0 ? 0 : d->n > 0 ? d->n : 1, right = 0;
    while (right < said && from + right < known && s->tokens[s->n_tokens - said + right] == sp->tokens[from + right])
        right++;
    return right;
}

/* Takes tokens of the reply while they are those of the draft, and the one after. A row's logits may give several tokens,
 * where a constraint leaves no choice. */
static mica_status accept(mica_speculator *sp, mica_reply *r, const draft *d, mica_error *err)
{
    mica_session *s = r->s;
    size_t n_vocab = (size_t)s->model->weights.h.n_vocab;
    mica_status status = MICA_OK;
    int32_t right = 0, known = d->source < 0 ? 0 : d->n > 0 ? d->n : 1;
    bool wrong = false;
    for (int32_t i = 0; i <= d->n && !wrong && !r->stop_reason;) {
        if (i > 0 && (status = mica_session_interrupted(s, 0, 1, err)))
            break;
        int32_t before = r->gen_n, dropped = s->dropped_n;
        s->n_computed = s->n_tokens; /* row i is what follows the history's last token */
        if ((status = mica_reply_take(r, s->exec.logits + (size_t)i * n_vocab, err)) || s->dropped_n != dropped)
            break;
        int32_t said = r->gen_n - before, hits = count_right(sp, s, d, i, said);
        right += hits;
        wrong = hits < said && i + hits < known;
        i += said;
    }
    if (d->source >= 0)
        mica_pace_judge(&sp->pace, d->source, right, wrong); /* a guess that was not tried is judged too */
    r->drafted_n += d->n;
    r->accepted_n += d->n > 0 ? right : 0;
    return status;
}

mica_status mica_speculate_step(mica_reply *r, mica_error *err)
{
    mica_session *s = r->s;
    mica_speculator *sp = s->speculator;
    mica_status status;
    follow_history(sp, r);
    mica_session_settle(s);
    if (s->n_tokens - s->n_computed != 1) { /* logits are there already, or much is to be computed */
        status = mica_session_compute(s, err);
        return status ? status : mica_reply_take(r, s->exec.logits, err);
    }
    draft d = guess(sp, r);
    if ((status = mica_session_interrupted(s, 0, 1, err)))
        return status;
    compute(sp, s, d.n);
    return accept(sp, r, &d, err);
}
