/* roofline.c - what bandwidth and arithmetic allow a model (S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful
 * Visual Performance Model for Multicore Architectures", CACM 52(4), 2009), and what published figures say. Pure functions.
 *
 * Decode reads every multiplied weight once a token, so its ceiling is bandwidth / bytes. A prompt uses each weight once for
 * all its tokens, so its ceiling is arithmetic, from the length on at which computing takes longer than reading the weights. */
#include <math.h>

#include "mica/mica_ops.h"

/* Dense models on phones: 62 to 74 % of the LPDDR peak (five published rows, tests/data/bench/published.json). */
#define DENSE_LOW  0.62
#define DENSE_HIGH 0.74

/* ---- Bytes ---- */

static double kv_layer_bytes(const mica_model_cost *m) { return 2.0 * m->n_kv_heads * m->head_dim * m->kv_element_bytes; }

double mica_model_kv_bytes(const mica_model_cost *m, int64_t depth)
{
    int64_t seen = m->window > 0 && m->window < depth ? m->window : depth;
    return kv_layer_bytes(m) * ((double)(m->n_layers - m->n_windowed) * (double)depth + (double)m->n_windowed * (double)seen);
}

double mica_model_decode_bytes(const mica_model_cost *m, int64_t depth)
{
    return (double)m->streamed_bytes + (double)m->lookup_row_bytes + mica_model_kv_bytes(m, depth);
}

/* ---- Operations ---- */

/* Pairs of a token and one that it sees, for n tokens from the start: token i sees min(i, window) with itself. */
static double pairs(double n, double window)
{
    if (window <= 0 || n <= window)
        return n * (n + 1) / 2;
    return window * (window + 1) / 2 + (n - window) * window;
}

mica_prefill_ops mica_model_prefill_ops(const mica_model_cost *m, int64_t n)
{
    double head = 4.0 * m->n_heads * m->head_dim; /* q . k and p . v, a multiplication and an addition each */
    mica_prefill_ops ops = {.linear = 2.0 * (double)m->layer_weights * (double)n + 2.0 * (double)m->output_weights};
    ops.attention =
        head * ((double)(m->n_layers - m->n_windowed) * pairs((double)n, 0) + m->n_windowed * pairs((double)n, m->window));
    ops.total = ops.linear + ops.attention;
    return ops;
}

/* ---- The roofline ---- */

/* a / b where both are known and above 0. */
static double part(double a, double b) { return a > 0 && b > 0 && isfinite(a) && isfinite(b) ? a / b : NAN; }

/* Seconds for `ops`; none at all take none, whatever the rate. */
static double time_of(double ops, double ops_per_s) { return ops == 0 ? 0 : part(ops, ops_per_s); }

mica_roofline mica_roofline_of(const mica_model_cost *m, double read_bytes_per_s, double ops_per_s, double float_ops_per_s,
                               int64_t depth, int64_t prompt)
{
    mica_prefill_ops ops = mica_model_prefill_ops(m, prompt);
    mica_roofline r = {.decode_bytes = mica_model_decode_bytes(m, depth), .prefill_ops = ops.total};
    r.decode_ceiling_tps = part(read_bytes_per_s, r.decode_bytes);
    double compute_s = time_of(ops.linear, ops_per_s) + time_of(ops.attention, float_ops_per_s);
    double read_s = part((double)m->streamed_bytes, read_bytes_per_s);
    double longer = compute_s > read_s ? compute_s : read_s;
    r.prefill_ceiling_ms = isnan(compute_s) || isnan(read_s) ? NAN : longer * 1e3;
    r.prefill_ceiling_tps = part((double)prompt, r.prefill_ceiling_ms * 1e-3);
    /* Attention is left out: at these lengths it is little. */
    r.crossover_tokens = part(read_s, part(2.0 * (double)m->layer_weights, ops_per_s));
    return r;
}

double mica_roofline_implied(double bytes_per_token, double decode_tps) { return bytes_per_token * decode_tps; }

double mica_roofline_decode_part(const mica_model_cost *m, double read_bytes_per_s, int64_t depth, double decode_tps)
{
    return part(mica_roofline_implied(mica_model_decode_bytes(m, depth), decode_tps), read_bytes_per_s);
}

double mica_roofline_streamed_at_most(double peak_bytes_per_s, double decode_tps) { return part(peak_bytes_per_s, decode_tps); }

/* ---- Published figures ---- */

/* Half a percent on each side, as published rates have three digits. */
mica_plausibility mica_roofline_judge(double implied_bytes_per_s, double peak_bytes_per_s)
{
    double share = part(implied_bytes_per_s, peak_bytes_per_s);
    if (share > 1)
        return MICA_IMPOSSIBLE_STREAM;
    if (share > DENSE_HIGH + 0.005)
        return MICA_PLAUSIBLE_HIGH;
    return share >= DENSE_LOW - 0.005 ? MICA_PLAUSIBLE_DENSE : MICA_PLAUSIBLE_BELOW;
}

const char *mica_plausibility_text(mica_plausibility p)
{
    switch (p) {
    case MICA_PLAUSIBLE_DENSE: return "62 to 74 % of the memory's peak rate: where dense models on phones lie";
    case MICA_PLAUSIBLE_BELOW: return "below 62 % of the memory's peak rate: arithmetic, launches or heat bound it, not memory";
    case MICA_PLAUSIBLE_HIGH:
        return "above 74 % of the memory's peak rate: more than dense models on phones are known to reach";
    case MICA_IMPOSSIBLE_STREAM:
        return "above the memory's peak rate: not all of the file is read for each token; tables of which a token reads a row, "
               "such as per-layer embeddings, must not be counted as streamed";
    }
    return "";
}
