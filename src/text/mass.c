/* mass.c - what needs the weight of every token: the total, a draw without filters, entropy, and top-p without top-k. One pass
 * over the logits each, no sort of the vocabulary. Additions are in fixed order.
 */
#include "text/sampler_impl.h"

void mica_weights_init(mica_weights *w)
{
    for (int i = 0; i < MICA_WEIGHT_STEPS; i++)
        w->table[i] = mica_exp(0.69314718055994530942 * (double)i / MICA_WEIGHT_STEPS);
}

static inline size_t block_end(const mica_scan *scan, size_t b)
{
    return (b + 1) * MICA_BLOCK < scan->n ? (b + 1) * MICA_BLOCK : scan->n;
}

static inline double distance(const mica_scan *scan, float logit) { return (double)logit - (double)scan->best; }

/* Whether a block has a token with any weight: most have none after a grammar's mask or at a low temperature. */
static inline bool block_matters(const mica_scan *scan, size_t b, double inverse_t)
{
    return distance(scan, mica_order_value(scan->block_max[b])) * inverse_t >= -MICA_WEIGHT_REACH;
}

double mica_mass_total(const mica_weights *w, const mica_scan *scan, double inverse_t, double *block_mass)
{
    double total = 0.0;
    for (size_t b = 0; b < scan->n_blocks; b++) {
        double part[4] = {0.0, 0.0, 0.0, 0.0}; /* four chains, so that an addition need not wait for the one before */
        if (block_matters(scan, b, inverse_t))
            for (size_t i = b * MICA_BLOCK, end = block_end(scan, b); i < end; i++)
                part[i % 4] += mica_weight(w, distance(scan, scan->logits[i]) * inverse_t);
        block_mass[b] = (part[0] + part[1]) + (part[2] + part[3]);
        total += block_mass[b];
    }
    return total;
}

/* Sums inside a block round differently from its block_mass; where a point falls into that last bit, the last token with
 * weight that was passed takes it. */
int32_t mica_mass_find(const mica_weights *w, const mica_scan *scan, double inverse_t, const double *block_mass, double point)
{
    double passed = 0.0;
    size_t b = 0, last = 0;
    for (; b < scan->n_blocks; b++) {
        if (block_mass[b] <= 0.0)
            continue;
        last = b;
        if (passed + block_mass[b] > point)
            break;
        passed += block_mass[b];
    }
    if (b == scan->n_blocks)
        passed -= block_mass[last]; /* only by rounding: the line's end */
    int32_t token = scan->best_id;
    for (size_t i = last * MICA_BLOCK, end = block_end(scan, last); i < end; i++) {
        double weight = mica_weight(w, distance(scan, scan->logits[i]) * inverse_t);
        if (weight <= 0.0)
            continue;
        token = (int32_t)i;
        passed += weight;
        if (passed > point)
            break;
    }
    return token;
}

size_t mica_mass_collect(const mica_scan *scan, mica_cand *out)
{
    size_t n = 0;
    for (size_t b = 0; b < scan->n_blocks; b++) {
        if (!block_matters(scan, b, 1.0))
            continue;
        for (size_t i = b * MICA_BLOCK, end = block_end(scan, b); i < end; i++)
            if (distance(scan, scan->logits[i]) >= -MICA_WEIGHT_REACH)
                out[n++] = (mica_cand){scan->logits[i], (int32_t)i};
    }
    return n;
}

/* ---- Top-p ----------------------------------------------------------------------------------------------------------- */

/* A histogram of mass over the distance from the best logit finds the bin in which top_p is reached. Everything nearer is in;
 * only that bin's tokens need order. Eight bins a nat keep it small: 1/8 nat of a tail of 150,000 is a few thousand. */
#define BINS_A_NAT 8
#define N_BINS (MICA_WEIGHT_REACH * BINS_A_NAT + 1)

/* n_bins for what has no weight. The same rounding wherever it is asked, so a token is always in one bin. */
static inline size_t bin_of(double x) { return x >= -MICA_WEIGHT_REACH ? (size_t)(-x * BINS_A_NAT) : N_BINS; }

static double fill_bins(const mica_weights *w, const mica_scan *scan, double *bins)
{
    for (size_t b = 0; b < scan->n_blocks; b++) {
        if (!block_matters(scan, b, 1.0))
            continue;
        for (size_t i = b * MICA_BLOCK, end = block_end(scan, b); i < end; i++) {
            double x = distance(scan, scan->logits[i]);
            size_t bin = bin_of(x);
            if (bin < N_BINS)
                bins[bin] += mica_weight(w, x);
        }
    }
    double total = 0.0;
    for (size_t i = 0; i < N_BINS; i++)
        total += bins[i];
    return total;
}

/* Tokens in bins nearer than `cut` to the front of `out`, those in it to the back; both sizes come back. */
static void split_at_bin(const mica_scan *scan, size_t cut, mica_cand *out, size_t *n_front, size_t *n_back)
{
    *n_front = *n_back = 0;
    for (size_t b = 0; b < scan->n_blocks; b++) {
        if (bin_of(distance(scan, mica_order_value(scan->block_max[b]))) > cut)
            continue;
        for (size_t i = b * MICA_BLOCK, end = block_end(scan, b); i < end; i++) {
            size_t bin = bin_of(distance(scan, scan->logits[i]));
            mica_cand c = {scan->logits[i], (int32_t)i};
            if (bin < cut)
                out[(*n_front)++] = c;
            else if (bin == cut)
                out[scan->n - ++*n_back] = c;
        }
    }
}

size_t mica_mass_top_p(const mica_weights *w, const mica_scan *scan, double top_p, mica_cand *out)
{
    double bins[N_BINS] = {0.0}, sure = 0.0;
    double target = top_p * fill_bins(w, scan, bins);
    size_t cut = 0, n_front, n_back;
    while (cut + 1 < N_BINS && sure + bins[cut] < target)
        sure += bins[cut++];
    split_at_bin(scan, cut, out, &n_front, &n_back);
    if (n_back == 0) /* the last bin, reached by rounding only, may be empty */
        return n_front;
    mica_cand *back = out + (scan->n - n_back);
    size_t kept = mica_keep_mass(w, scan, back, n_back, target - sure);
    memmove(out + n_front, back, kept * sizeof *out);
    return n_front + kept;
}
