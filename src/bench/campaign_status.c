#include "bench/campaign_status.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

static double quotient(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* What the tokens so far cost, by the rate and the energy that were measured. */
static mica_status read_cost(const mica_device_cost_input *price, mica_campaign_state *s, mica_error *err)
{
    mica_device_cost cost;
    mica_device_cost_input in = *price;
    mica_tokens tokens = {(double)s->tokens};
    s->usd = s->energy_usd = s->hardware_usd = NAN;
    if (s->tokens == 0)
        return MICA_OK;
    in.rate.v = s->tps;
    if (isfinite(s->energy_wh) && s->totals.measured_tokens > 0)
        in.measured_energy.v = s->energy_wh / (double)s->totals.measured_tokens * 1e6;
    mica_status status = mica_cost_device(&in, &cost, err);
    if (status)
        return status;
    s->energy_usd = mica_usd_of_tokens(cost.energy, tokens).v;
    s->hardware_usd = mica_usd_of_tokens(cost.hardware, tokens).v;
    s->usd = mica_usd_of_tokens(cost.total, tokens).v;
    return MICA_OK;
}

mica_status mica_campaign_state_read(mica_store *store, const mica_campaign_row *row, const mica_device_cost_input *price,
                                     mica_campaign_state *out, mica_error *err)
{
    mica_campaign_totals *t = &out->totals;
    mica_status status = mica_campaign_store_totals(store, row->id, t, err);
    if (status)
        return status;
    out->tokens = t->prompt_tokens + t->reply_tokens;
    out->part = (double)t->planned / (double)row->tokens;
    out->tps = quotient((double)out->tokens, (double)t->wall_ns / 1e9);
    out->recent_tps = quotient((double)t->recent_tokens, (double)t->recent_ns / 1e9);
    /* What is left is counted in planned tokens, of which a runtime may make more or fewer. */
    double made = quotient((double)out->tokens, (double)t->planned);
    out->left_s = t->planned >= row->tokens ? 0 : (double)(row->tokens - t->planned) * made / (out->recent_tps * t->machines);
    out->energy_wh = mica_wh_of_joules((mica_joules){t->joules}).v;
    return read_cost(price, out, err);
}

const char *mica_campaign_state_name(const mica_campaign_state *state, bool locked)
{
    return state->part >= 1 ? "done" : locked ? "running" : "stopped";
}

json_t *mica_campaign_state_json(const mica_campaign_row *row, const mica_campaign_state *s, bool locked)
{
    const mica_campaign_totals *t = &s->totals;
    json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:O, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "campaign", row->id,
                            "name", row->name, "state", mica_campaign_state_name(s, locked), "model_sha256", row->model_sha256,
                            "manifest", row->manifest, "tokens_total", (json_int_t)row->tokens, "tokens_planned",
                            (json_int_t)t->planned, "part", s->part, "tokens", (json_int_t)s->tokens, "prompt_tokens",
                            (json_int_t)t->prompt_tokens, "cached_tokens", (json_int_t)t->cached_tokens, "reply_tokens",
                            (json_int_t)t->reply_tokens, "items", (json_int_t)t->items, "shards", (json_int_t)t->shards);
    const struct {
        const char *name;
        double value;
    } reals[] = {{"seconds", (double)t->wall_ns / 1e9},
                 {"longest_shard_s", (double)t->longest_ns / 1e9},
                 {"tps", s->tps},
                 {"recent_tps", s->recent_tps},
                 {"machines", t->machines},
                 {"left_s", s->left_s},
                 {"energy_wh", s->energy_wh},
                 {"usd", s->usd},
                 {"energy_usd", s->energy_usd},
                 {"hardware_usd", s->hardware_usd}};
    if (!all)
        return NULL;
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        json_object_set_new(all, reals[i].name, real(reals[i].value));
    json_object_set_new(all, "energy_tokens", json_integer(t->measured_tokens));
    json_object_set_new(all, "first_shard_unix", t->first_unix ? json_integer(t->first_unix) : json_null());
    json_object_set_new(all, "last_shard_unix", t->last_unix ? json_integer(t->last_unix) : json_null());
    return all;
}

/* ---- Shards ---- */

static json_t *integers(const int64_t *values, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < n; i++)
        mica_json_add(&array, json_integer(values[i]));
    return array;
}

static json_t *answer_json(int64_t item, const mica_answer *a, const mica_shard_result *r)
{
    return json_pack("{s:I, s:I, s:o, s:I, s:s, s:I, s:I, s:o, s:o}", "item", (json_int_t)item, "prompt_n",
                     (json_int_t)a->prompt_n, "cached_n", a->cached_n < 0 ? json_null() : json_integer(a->cached_n), "gen_n",
                     (json_int_t)a->gen_n, "reason", mica_reason_name(a->reason), "started_ns", (json_int_t)a->started_ns,
                     "done_ns", (json_int_t)a->done_ns, "times", integers(r->times + a->first, a->n), "tokens",
                     integers(r->tokens + a->first, a->n));
}

json_t *mica_campaign_shard_json(const mica_shard_row *row, const mica_shard_result *result)
{
    json_t *answers = json_array();
    for (size_t i = 0; i < result->n; i++)
        mica_json_add(&answers, answer_json(row->shard.first_item + (int64_t)i, &result->answers[i], result));
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:o, s:O?, s:o, s:O}", "shard", (json_int_t)row->shard.seq,
                     "id", row->shard.id, "input", row->shard.input, "planned", (json_int_t)row->shard.tokens, "started_unix",
                     (json_int_t)row->started_unix, "seconds", (double)row->wall_ns / 1e9, "prompt_tokens",
                     (json_int_t)row->sums.prompt_tokens, "cached_tokens", (json_int_t)row->sums.cached_tokens, "reply_tokens",
                     (json_int_t)row->sums.reply_tokens, "joules", real(row->sums.joules), "head", row->head, "answers",
                     answers, "samples", result->samples);
}
