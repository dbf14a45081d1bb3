/* filter.c - typical, top-p and min-p over a set of candidates, and the draw. Filters see the distribution at temperature 1
 * over the candidates that earlier stages left; each leaves at least one. The order of candidates after a filter is fixed but
 * not sorted; nothing later needs it sorted.
 */
#include "text/sampler_impl.h"

static double weight_of(const mica_weights *w, const mica_scan *scan, int32_t id)
{
    return mica_weight(w, (double)scan->logits[id] - (double)scan->best);
}

size_t mica_keep_mass(const mica_weights *w, const mica_scan *scan, mica_cand *c, size_t n, double target)
{
    mica_heap_make(c, n);
    size_t kept = 0;
    double mass = 0.0;
    do {
        mica_heap_pop(c, n - kept);
        mass += weight_of(w, scan, c[n - ++kept].id);
    } while (kept < n && mass < target);
    memmove(c, c + (n - kept), kept * sizeof *c);
    return kept;
}

/* Meister et al., "Locally Typical Sampling" (TACL 2023): tokens whose surprise -log p is nearest to the entropy H, until they
 * have the mass. With x = logit - best and M the mass: -log p = log M - x and H = log M - E[x], so their distance is
 * |x - E[x]|. */
size_t mica_filter_typical(const mica_weights *w, const mica_scan *scan, double typical_p, mica_cand *c, size_t n)
{
    double mass = 0.0, moment = 0.0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)c[i].key - (double)scan->best, weight = mica_weight(w, x);
        mass += weight;
        moment += weight * x;
    }
    double mean = moment / mass;
    for (size_t i = 0; i < n; i++) {
        double x = (double)c[i].key - (double)scan->best;
        c[i].key = (float)-fabs(x - mean);
    }
    n = mica_keep_mass(w, scan, c, n, typical_p * mass);
    for (size_t i = 0; i < n; i++)
        c[i].key = scan->logits[c[i].id];
    return n;
}

size_t mica_filter_top_p(const mica_weights *w, const mica_scan *scan, double top_p, mica_cand *c, size_t n)
{
    double mass = 0.0;
    for (size_t i = 0; i < n; i++)
        mass += weight_of(w, scan, c[i].id);
    return mica_keep_mass(w, scan, c, n, top_p * mass);
}

static float best_key(const mica_cand *c, size_t n)
{
    float best = c[0].key;
    for (size_t i = 1; i < n; i++)
        best = c[i].key > best ? c[i].key : best;
    return best;
}

/* p >= min_p * p_best as logits; in double, so that min_p 1 keeps exactly the ties with the best. */
static double min_p_floor(double min_p, float best) { return (double)best + mica_log(min_p); }

size_t mica_filter_min_p(double min_p, mica_cand *c, size_t n)
{
    double lowest = min_p_floor(min_p, best_key(c, n));
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if ((double)c[i].key >= lowest)
            c[kept++] = c[i];
    return kept;
}

size_t mica_collect_min_p(const mica_scan *scan, double min_p, mica_cand *out)
{
    double lowest = min_p_floor(min_p, scan->best);
    size_t n = 0;
    for (size_t b = 0; b < scan->n_blocks; b++) {
        if ((double)mica_order_value(scan->block_max[b]) < lowest)
            continue;
        size_t from = b * MICA_BLOCK, to = from + MICA_BLOCK < scan->n ? from + MICA_BLOCK : scan->n;
        for (size_t i = from; i < to; i++)
            if ((double)scan->logits[i] >= lowest)
                out[n++] = (mica_cand){scan->logits[i], (int32_t)i};
    }
    return n;
}

int32_t mica_draw(const mica_weights *w, double inverse_t, const mica_cand *c, size_t n, double u)
{
    double best = (double)best_key(c, n), mass = 0.0, passed = 0.0;
    for (size_t i = 0; i < n; i++)
        mass += mica_weight(w, ((double)c[i].key - best) * inverse_t);
    int32_t token = c[0].id;
    for (size_t i = 0; i < n; i++) {
        double weight = mica_weight(w, ((double)c[i].key - best) * inverse_t);
        if (weight <= 0.0)
            continue;
        token = c[i].id; /* the last one with weight stands if u * mass rounds up to the mass */
        passed += weight;
        if (passed > u * mass)
            break;
    }
    return token;
}
