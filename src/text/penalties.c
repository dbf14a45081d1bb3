/* penalties.c - logit bias and the penalties for tokens that were already used. Touches only the tokens named or in the window.
 *
 * Repetition: Keskar et al., "CTRL" (2019), section 4.1, in the form all engines use: a positive logit is divided by the
 * penalty, a negative one multiplied, so that it always falls (for a penalty above 1). Frequency and presence: as the OpenAI
 * API defines them, logit -= count * frequency + (count > 0) * presence. One after the other, once a distinct token.
 */
#include "text/sampler_impl.h"

void mica_bias_apply(const mica_logit_bias *bias, size_t n_bias, float *logits)
{
    for (size_t i = 0; i < n_bias; i++) {
        float *x = &logits[bias[i].token];
        /* Banning by addition: NaN stays NaN and is found by the scan, +inf becomes NaN */
        *x = bias[i].bias == -INFINITY ? *x + bias[i].bias : mica_edit_logit(*x, (double)*x + (double)bias[i].bias);
    }
}

static double penalised(const mica_sampling *o, double x, int32_t count)
{
    x = x > 0.0 ? x / (double)o->repeat_penalty : x * (double)o->repeat_penalty;
    return x - ((double)count * (double)o->frequency_penalty + (double)o->presence_penalty);
}

void mica_penalties_apply(const mica_sampling *o, const int32_t *history, size_t n, int32_t *mark, float *logits)
{
    size_t window = mica_window(o->penalty_last_n, n);
    for (size_t i = n - window; i < n; i++)
        mark[history[i]]++;
    for (size_t i = n - window; i < n; i++) {
        int32_t id = history[i];
        if (mark[id] > 0)
            logits[id] = mica_edit_logit(logits[id], penalised(o, (double)logits[id], mark[id]));
        mark[id] = 0; /* done: further occurrences find nothing to do */
    }
}
