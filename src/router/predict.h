/* predict.h - what an answer of a rung would take: memory, time, energy, money, quality. Pure; unknown in, unknown out (NAN).
 *
 * Time of a local rung: waiting + loading unless it is resident + prompt / prefill rate + reply / decode rate. Its energy: the
 * device's power times the seconds of prefill and decode; its money: that energy at the price of electricity (the hardware is
 * there anyway). Of a remote rung: waiting + time to its first token + prompt / prefill rate, where one is known, + reply /
 * decode rate; list prices; the device's power while it waits. Called by decide.c. */
#ifndef MICA_ROUTER_PREDICT_H
#define MICA_ROUTER_PREDICT_H
#include "router/policy.h"

typedef struct mica_prediction {
    int64_t memory_bytes; /* as planned from the file, else weights, KV cache of the tokens, fixed; 0 if remote */
    double ttft_ms, total_ms, usd, joules, quality;
} mica_prediction;

/** `task` may be "". */
void mica_predict(const mica_route_policy *policy, const mica_rung *rung, const mica_route_rung_state *now, const char *task,
                  mica_route_class value, int64_t prompt_tokens, int64_t output_tokens, mica_prediction *out);

#endif
