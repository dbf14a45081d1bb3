#include "quant_score.h"

#include <math.h>
#include <string.h>

double mica_quant_log_sum(const float *x, int32_t n, int32_t *top)
{
    int32_t at = 0;
    double sum = 0.0;
    for (int32_t i = 1; i < n; i++)
        at = x[i] > x[at] ? i : at;
    for (int32_t i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)x[at]);
    *top = at;
    return log(sum) + (double)x[at];
}

double mica_quant_kl(const float *p, double p_log_sum, const float *q, double q_log_sum, int32_t n)
{
    double kl = 0.0;
    for (int32_t i = 0; i < n; i++) {
        double log_p = (double)p[i] - p_log_sum;
        if (log_p > -60.0) /* e^-60 of a probability times any sensible log ratio is nothing */
            kl += exp(log_p) * (log_p - ((double)q[i] - q_log_sum));
    }
    return kl > 0.0 ? kl : 0.0; /* it cannot be less but for rounding */
}

void mica_quant_window_keep(mica_quant_window *w, int32_t i, const float *logits)
{
    memcpy(w->logits + (size_t)i * (size_t)w->n_vocab, logits, (size_t)w->n_vocab * sizeof *logits);
    w->log_sum[i] = mica_quant_log_sum(logits, w->n_vocab, &w->top[i]);
}

void mica_quant_score_add(mica_quant_score *score, const mica_quant_window *w, int32_t i, const float *logits, int32_t target)
{
    int32_t top;
    double log_sum = mica_quant_log_sum(logits, w->n_vocab, &top);
    double kl = mica_quant_kl(w->logits + (size_t)i * (size_t)w->n_vocab, w->log_sum[i], logits, log_sum, w->n_vocab);
    score->nll += log_sum - (double)logits[target];
    score->kl += kl;
    score->same_top += top == w->top[i];
    if (score->kls)
        score->kls[score->n] = kl;
    score->n++;
}
