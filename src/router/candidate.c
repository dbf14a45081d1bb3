/* candidate.c - one rung and one request: what it would take, and whether it may. The checks stand in order of what cannot be
 * talked about (egress, memory) before what the request asks for (quality, time, money); the first that fails is the reason. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "router/decide.h"

typedef struct judging {
    const mica_terms *terms;
    const mica_rung *rung;
    int32_t index;
    mica_route_rung_state now;
    mica_route_candidate *out;
} judging;

__attribute__((format(printf, 3, 4))) static bool reject(judging *j, mica_route_reason reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(j->out->why, sizeof j->out->why, format, args);
    va_end(args);
    j->out->reason = reason;
    return false;
}

static double gb(int64_t bytes) { return (double)bytes / 1e9; }

mica_route_rung_state mica_candidate_state(const mica_route_state *state, const char *name)
{
    for (size_t i = 0; i < state->n_rungs; i++)
        if (state->rungs[i].name && strcmp(state->rungs[i].name, name) == 0)
            return state->rungs[i];
    return mica_route_rung_state_default(name);
}

/* ---- Leaving the device ---- */

static bool may_leave(judging *j)
{
    const mica_terms *t = j->terms;
    if (j->rung->kind != MICA_RUNG_REMOTE)
        return true;
    if (!t->policy->allow_egress)
        return reject(j, MICA_ROUTE_EGRESS_DENIED, "the policy does not say allow_egress: true");
    if (t->is_private)
        return reject(j, MICA_ROUTE_IS_PRIVATE, "the request is private");
    if (t->state->network == MICA_NO)
        return reject(j, MICA_ROUTE_NO_NETWORK, "there is no network");
    if (t->forbid_remote)
        return reject(j, MICA_ROUTE_STATE_FORBIDS, "\"%s\" forbids remote rungs", t->forbid_by);
    return true;
}

/* ---- Memory ---- */

static int64_t given_back(const mica_rung *rung, int64_t planned)
{
    return planned >= 0 ? planned : rung->weights_bytes + rung->fixed_bytes;
}

/* What unloading the other resident models gives back. A planned model's weights are pages that count as free already. */
static int64_t evictable(const judging *j)
{
    const mica_ladder *ladder = j->terms->policy->ladder;
    int64_t sum = 0;
    for (int32_t i = 0; i < ladder->n; i++) {
        mica_route_rung_state other = mica_candidate_state(j->terms->state, ladder->rungs[i].name);
        if (i != j->index && other.resident == MICA_YES)
            sum += given_back(&ladder->rungs[i], other.free_bytes);
    }
    return sum;
}

/* mica_budget_check() has the last word on a file that is here; the policy may want less. */
static bool fits_device(judging *j)
{
    int64_t ram = j->terms->state->device.ram_bytes, needs = j->out->memory_bytes;
    bool refused = j->now.refusal && *j->now.refusal && j->now.resident != MICA_YES;
    double part = j->terms->policy->ram_fraction;
    if (ram < 0)
        return reject(j, MICA_ROUTE_LOW_RAM, "how much RAM the device has is unknown");
    if (ram < j->rung->min_ram_bytes)
        return reject(j, MICA_ROUTE_LOW_RAM, "needs a device with %.2f GB of RAM, this one has %.2f",
                      gb(j->rung->min_ram_bytes),
                      gb(ram));
    if (refused)
        return reject(j, MICA_ROUTE_OVER_BUDGET, "%s", j->now.refusal);
    if ((double)needs > part * (double)ram)
        return reject(j, MICA_ROUTE_OVER_BUDGET, "takes %.2f GB, more than %.0f %% of %.2f GB of RAM", gb(needs), 100 * part,
                      gb(ram));
    return true;
}

static bool fits_now(judging *j)
{
    int64_t available = j->terms->state->device.available_bytes, others = evictable(j);
    int64_t needs = j->now.free_bytes >= 0 ? j->now.free_bytes : j->out->memory_bytes;
    if (j->now.resident == MICA_YES || available < 0 || needs <= available + others)
        return true;
    return reject(j, MICA_ROUTE_NO_MEMORY_NOW, "takes %.2f GB; %.2f are available and %.2f held by other models", gb(needs),
                  gb(available), gb(others));
}

static bool may_run_here(judging *j)
{
    const mica_terms *t = j->terms;
    if (j->rung->kind != MICA_RUNG_LOCAL)
        return true;
    if (j->now.resident != MICA_YES && j->now.file != MICA_YES)
        return reject(j, MICA_ROUTE_NO_FILE, "its model file is not here");
    if (!fits_device(j) || !fits_now(j))
        return false;
    if (t->forbid_local)
        return reject(j, MICA_ROUTE_STATE_FORBIDS, "\"%s\" forbids local rungs", t->forbid_by);
    if (t->weights_most >= 0 && j->rung->weights_bytes > t->weights_most)
        return reject(j, MICA_ROUTE_STATE_FORBIDS, "has %.2f GB of weights, \"%s\" allows %.2f", gb(j->rung->weights_bytes),
                      t->weights_by, gb(t->weights_most));
    return true;
}

/* ---- Ability and limits ---- */

static bool is_able(judging *j)
{
    const mica_terms *t = j->terms;
    if (j->now.healthy == MICA_NO)
        return reject(j, MICA_ROUTE_UNHEALTHY, "it failed before and is left alone");
    if (t->prompt_tokens + t->output_tokens > j->rung->context)
        return reject(j, MICA_ROUTE_CONTEXT, "its context is %lld tokens, prompt and reply take %lld",
                      (long long)j->rung->context, (long long)(t->prompt_tokens + t->output_tokens));
    if (t->request->has_schema && !j->rung->schema)
        return reject(j, MICA_ROUTE_NO_SCHEMA, "it cannot be held to a schema");
    if (t->request->has_tools && !j->rung->tools)
        return reject(j, MICA_ROUTE_NO_TOOLS, "it cannot call tools");
    return true;
}

/* What is unknown cannot be promised. */
static bool is_above(double value, double limit) { return !isnan(limit) && !(value <= limit); }

/* `format` takes a double. */
static const char *say(double value, const char *format, char out[40])
{
    if (isnan(value))
        return "unknown";
    snprintf(out, 40, format, value);
    return out;
}

static bool meets_limits(judging *j)
{
    const mica_terms *t = j->terms;
    mica_route_candidate *c = j->out;
    char is[40];
    if (t->min_quality > 0 && !(c->quality >= t->min_quality))
        return reject(j, MICA_ROUTE_LOW_QUALITY, "its quality for this is %s, wanted is %.2f", say(c->quality, "%.2f", is),
                      t->min_quality);
    if (t->deadline_ms >= 0 && is_above(c->total_ms, (double)t->deadline_ms))
        return reject(j, MICA_ROUTE_TOO_SLOW, "its time would be %s, the deadline is %lld ms", say(c->total_ms, "%.0f ms", is),
                      (long long)t->deadline_ms);
    if (is_above(c->usd, t->request->max_usd))
        return reject(j, MICA_ROUTE_TOO_DEAR, "its cost would be %s, the limit is $%.3g", say(c->usd, "$%.3g", is),
                      t->request->max_usd);
    if (is_above(c->joules, t->request->max_joules))
        return reject(j, MICA_ROUTE_TOO_MUCH_ENERGY, "its energy would be %s, the limit is %.3g J",
                      say(c->joules, "%.3g J", is), t->request->max_joules);
    return true;
}

/* ---- The whole ---- */

/* The sum of what it takes, at the class's prices; NAN if a term that counts is unknown. */
static double score_of(const mica_policy_class *c, const mica_route_candidate *p)
{
    const double weight[] = {c->per_usd, c->per_second, c->per_joule, c->per_quality};
    const double value[] = {p->usd, p->total_ms / 1000, p->joules, 1 - p->quality};
    double sum = 0;
    for (int i = 0; i < 4; i++)
        if (weight[i] > 0)
            sum += weight[i] * value[i];
    return sum;
}

void mica_candidate_judge(const mica_terms *terms, const mica_rung *rung, int32_t index, mica_route_candidate *out)
{
    mica_prediction p;
    judging j = {.terms = terms, .rung = rung, .index = index, .out = out};
    j.now = mica_candidate_state(terms->state, rung->name);
    mica_predict(terms->policy, rung, &j.now, terms->request->task ? terms->request->task : "", terms->route_class,
                 terms->prompt_tokens, terms->output_tokens, &p);
    *out = (mica_route_candidate){.remote = rung->kind == MICA_RUNG_REMOTE, .reason = MICA_ROUTE_FITS,
                                  .memory_bytes = p.memory_bytes, .ttft_ms = p.ttft_ms, .total_ms = p.total_ms, .usd = p.usd,
                                  .joules = p.joules, .quality = p.quality, .score = NAN};
    snprintf(out->rung, sizeof out->rung, "%s", rung->name);
    snprintf(out->why, sizeof out->why, "fits");
    if (terms->order == MICA_ORDER_SCORE)
        out->score = score_of(terms->of_class, out);
    if (terms->wanted >= 0 && terms->wanted != index) {
        reject(&j, MICA_ROUTE_NOT_WANTED, "the request names another rung");
        return;
    }
    if (may_leave(&j) && may_run_here(&j) && is_able(&j))
        meets_limits(&j);
}
