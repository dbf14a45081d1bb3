#include "router/predict.h"

#include <math.h>

#include "router/cost.h"

static double known(double measured, double expected) { return isnan(measured) ? expected : measured; }

static double ms_of(double tokens, double rate)
{
    return 1000 * mica_time_of_tokens((mica_tokens){tokens}, (mica_tokens_per_s){rate}, (mica_part){1}).v;
}

/* Dollars for electricity of so many tokens. */
static double usd_of_power(const mica_route_policy *policy, double watts, double tokens, double rate)
{
    mica_joules_per_token energy = mica_energy_per_token((mica_watts){watts}, (mica_tokens_per_s){rate});
    mica_usd_per_million price = mica_usd_of_energy(mica_wh_of_token(energy), (mica_usd_per_kwh){policy->electricity_usd});
    return mica_usd_of_tokens(price, (mica_tokens){tokens}).v;
}

static void predict_local(const mica_route_policy *policy, const mica_rung *rung, const mica_route_rung_state *now, double n_in,
                          double n_out, mica_prediction *out)
{
    double prefill = known(now->prefill_tps, rung->prefill_tps), decode = known(now->decode_tps, rung->decode_tps);
    double watts = known(now->watts, rung->watts), work_ms = ms_of(n_in, prefill) + ms_of(n_out, decode);
    double loading = now->resident == MICA_YES ? 0 : rung->load_ms;
    double tokens = n_in + n_out < (double)rung->context ? n_in + n_out : (double)rung->context;
    out->ttft_ms = known(now->wait_ms, 0) + loading + ms_of(n_in, prefill);
    out->total_ms = out->ttft_ms + ms_of(n_out, decode);
    out->joules = watts * work_ms / 1000;
    out->usd = usd_of_power(policy, watts, n_in, prefill) + usd_of_power(policy, watts, n_out, decode);
    out->memory_bytes = now->memory_bytes >= 0
                            ? now->memory_bytes
                            : rung->weights_bytes + rung->fixed_bytes + (int64_t)tokens * rung->kv_bytes_per_token;
}

static void predict_remote(const mica_rung *rung, const mica_route_rung_state *now, double n_in, double n_out,
                           mica_prediction *out)
{
    double prefill = known(now->prefill_tps, rung->prefill_tps), decode = known(now->decode_tps, rung->decode_tps);
    out->ttft_ms = known(now->wait_ms, 0) + rung->ttft_ms + (isnan(prefill) ? 0 : ms_of(n_in, prefill));
    out->total_ms = out->ttft_ms + ms_of(n_out, decode);
    out->joules = known(now->watts, rung->watts) * out->total_ms / 1000;
    out->usd = mica_usd_of_tokens((mica_usd_per_million){rung->usd_in}, (mica_tokens){n_in}).v +
               mica_usd_of_tokens((mica_usd_per_million){rung->usd_out}, (mica_tokens){n_out}).v;
    out->memory_bytes = 0;
}

void mica_predict(const mica_route_policy *policy, const mica_rung *rung, const mica_route_rung_state *now, const char *task,
                  mica_route_class value, int64_t prompt_tokens, int64_t output_tokens, mica_prediction *out)
{
    if (rung->kind == MICA_RUNG_REMOTE)
        predict_remote(rung, now, (double)prompt_tokens, (double)output_tokens, out);
    else
        predict_local(policy, rung, now, (double)prompt_tokens, (double)output_tokens, out);
    out->quality = mica_rung_quality(rung, task, value);
}
