/* quant_score.h - how far the predictions of one file of a model are from those of another, over a text. Called by
 * cmd_compare_quants.c.
 *
 * Windows as in mica perplexity: the second half of each is scored. At every scored token the distribution of the reference P and
 * of the other Q give KL(P || Q) = sum P log(P / Q) in nats, and whether both have the same most probable token. */
#ifndef MICA_PROGRAMS_QUANT_SCORE_H
#define MICA_PROGRAMS_QUANT_SCORE_H
#include <stddef.h>
#include <stdint.h>

/** The reference's logits of one window, and what follows from each row alone. */
typedef struct mica_quant_window {
    float *logits;    /* [rows][n_vocab] */
    double *log_sum;  /* [rows] log of the sum of exp(logits) */
    int32_t *top;     /* [rows] the most probable token; of equal ones the first */
    int32_t n_vocab, rows;
} mica_quant_window;

/** Sums over scored tokens. */
typedef struct mica_quant_score {
    double nll, kl;
    int64_t n, same_top;
    double *kls; /* [n] each, for percentiles; NULL: not wanted */
} mica_quant_score;

/** Log of the sum of exp(x), and where the largest is. */
double mica_quant_log_sum(const float *x, int32_t n, int32_t *top);

/** KL(P || Q) of two rows of logits with their log-sums; at least 0. */
double mica_quant_kl(const float *p, double p_log_sum, const float *q, double q_log_sum, int32_t n);

/** Keeps row `i` of the reference. */
void mica_quant_window_keep(mica_quant_window *w, int32_t i, const float *logits);

/** Adds a row of the other file, whose right next token is `target`. */
void mica_quant_score_add(mica_quant_score *score, const mica_quant_window *w, int32_t i, const float *logits, int32_t target);

#endif
