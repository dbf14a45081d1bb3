/* throttle.c - finds the step that a throttling device leaves in a rate over time. Offline: it sees the whole trace.
 *
 * Binary segmentation (A. Scott, M. Knott, "A Cluster Analysis Method for Grouping Means in the Analysis of Variance",
 * Biometrics 30, 1974; consistency: L. Vostrikova, 1981), where a split is not one point but flat - ramp - flat: level a, a
 * straight ramp of any length, level b, fitted by least squares over all starts and lengths with prefix sums. A split must be
 * significant against "no change" in a permutation test of its region; blocks of cells are permuted, because the noise of
 * neighbouring seconds is alike. The two sides are then split in turn. When no side splits any more, each split is fitted once
 * more between its final neighbours, on the bins themselves, and named by what it is: the length of the ramp tells a throttle
 * from a drift.
 *
 * Robustness: bins below half of their running median are stalls, and bridged by a straight line; the search works on medians
 * of cells of 5 bins; cells (later bins) are clipped to their running median +- 3.5 standard deviations. So pauses of a garbage
 * collector, stalls and heavy tails weigh no more than ordinary noise, while a step is followed by the running median.
 *
 * Costs O(n^2) for n cells of a region, 120 for ten minutes; regions longer than MAX_FIT are searched on coarser cells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "mica/mica_ops.h"

#define CELL_BINS     5    /* bins of a cell, from token times */
#define MAX_FIT       2000 /* cells of a region: two million fits, well below a second */
#define MAX_BINS      ((size_t)1 << 20) /* of a trace: 12 days of seconds, some seconds of work */
#define CLIP          3.5  /* standard deviations */
#define HALF_WINDOW   0.67 /* of the running median, in flats: stalls are shorter than that, flat sides longer */
#define STALL         0.5  /* of the running median: a bin below has stalled */
#define MAX_BLOCK     4    /* cells that are permuted together; fewer where that would leave less than 12 blocks */
#define MIN_SPLIT     0.05 /* a smaller change is no split: it is left in its flat */
#define RAMP_SLACK    1.5  /* a fitted ramp is never a throttle's if it is so much longer than allowed */
#define RAMP_CELLS    2.0  /* and always may be so many cells longer, */
#define RAMP_ERRORS   4.0  /* and so many standard errors */
#define MAX_TILT      0.5  /* a flat side may rise or fall by this part of the step, over TILT flats */
#define TILT          4.0
#define ANCHOR        5    /* good bins beside a stall that say what it is bridged with */

mica_throttle_options mica_throttle_options_default(void)
{
    return (mica_throttle_options){.struct_size = sizeof(mica_throttle_options),
                                   .min_depth = 0.10,
                                   .max_ramp_s = 90,
                                   .min_flat_s = 45,
                                   .cell_s = 5,
                                   .min_confidence = 0.99,
                                   .permutations = 199,
                                   .seed = 1};
}

const char *mica_change_name(mica_change change)
{
    switch (change) {
    case MICA_CHANGE_THROTTLE: return "throttle";
    case MICA_CHANGE_RISE: return "rise";
    case MICA_CHANGE_SMALL: return "small";
    case MICA_CHANGE_DRIFT: return "drift";
    case MICA_CHANGE_SHORT: return "short";
    }
    return "small";
}

/* A series with its running sums: sum[i] and moment[i] of the first i values. All are centred, to keep the sums small. */
typedef struct series {
    double *x;           /* [n], clipped */
    double *sum, *moment; /* [n + 1]: of x - centre, of i (x - centre) */
    size_t n;
    double step_s, centre;
} series;

/* Flat - ramp - flat over [left, right): level `a` until `from`, `b` from `to` on. */
typedef struct fit {
    size_t left, right, from, to;
    double a, b;
    double gain; /* by which the model lowers the sum of squares of "no change" */
} fit;

typedef struct search {
    series s;
    mica_throttle_options o;
    mica_rng rng;
    double *shuffled; /* [n], for permutations */
    fit splits[MICA_THROTTLE_MAX_CHANGES];
    double confidence[MICA_THROTTLE_MAX_CHANGES];
    bool small[MICA_THROTTLE_MAX_CHANGES]; /* less than min_depth: not a border of what its neighbours are fitted to */
    size_t n_splits;
    size_t longest; /* ramp of a throttle, in cells */
} search;

/* ---- Series ---- */

/* The median of x[from..to), with room for it. */
static double median_of(const double *x, size_t from, size_t to, double *room)
{
    memcpy(room, x + from, (to - from) * sizeof *x);
    mica_stat_sort(room, to - from);
    return mica_stat_percentile(room, to - from, 0.5);
}

/* The running median of x[n] over +- half; `window` has room for it. */
static void running_median(const double *x, size_t n, size_t half, double *out, double *window)
{
    for (size_t i = 0; i < n; i++) {
        size_t from = i > half ? i - half : 0, to = i + half + 1 < n ? i + half + 1 : n;
        out[i] = median_of(x, from, to, window);
    }
}

/* Marks bins that stalled, and the two beside them, which did so in part: bad[i] is 1 there. */
static void mark_stalls(const double *x, size_t n, const double *middle, double *bad)
{
    for (size_t i = 0; i < n; i++)
        bad[i] = 0;
    for (size_t i = 0; i < n; i++) {
        if (x[i] >= STALL * middle[i])
            continue;
        bad[i] = 1;
        bad[i > 0 ? i - 1 : 0] = 1;
        bad[i + 1 < n ? i + 1 : i] = 1;
    }
}

/* The median of the ANCHOR good values before `end` (step -1) or from it on (step 1); NAN if there is none. */
static double anchor(const double *x, const double *bad, size_t n, size_t end, int step)
{
    double near[ANCHOR];
    size_t count = 0;
    for (size_t i = step > 0 ? end : end - 1; count < ANCHOR && i < n; i += (size_t)step) /* below 0 wraps, and ends it */
        if (bad[i] == 0)
            near[count++] = x[i];
    mica_stat_sort(near, count);
    return mica_stat_percentile(near, count, 0.5);
}

/* Replaces what stalled by a straight line between the medians of good values beside it. `room` is [3 n]. */
static void bridge_stalls(double *x, size_t n, size_t half, double *room)
{
    double *middle = room, *bad = room + n, *window = room + 2 * n;
    running_median(x, n, half, middle, window);
    mark_stalls(x, n, middle, bad);
    for (size_t i = 0, to; i < n; i = to + 1) {
        to = i;
        if (bad[i] == 0)
            continue;
        while (to < n && bad[to] != 0)
            to++;
        double left = anchor(x, bad, n, i, -1), right = anchor(x, bad, n, to, 1);
        left = isnan(left) ? right : left;
        right = isnan(right) ? left : right;
        for (size_t k = i; k < to && !isnan(left); k++)
            x[k] = left + (right - left) * (double)(k + 1 - i) / (double)(to + 1 - i);
    }
}

/* Clips x to its running median +- CLIP standard deviations, these from the median absolute deviation. `room` is [3 n]. */
static void clip(double *x, size_t n, size_t half, double *room)
{
    double *middle = room, *off = room + n, *window = room + 2 * n;
    running_median(x, n, half, middle, window);
    for (size_t i = 0; i < n; i++)
        off[i] = fabs(x[i] - middle[i]);
    double sigma = 1.4826 * median_of(off, 0, n, window); /* of a normal distribution */
    for (size_t i = 0; i < n; i++) {
        double limit = CLIP * sigma, d = x[i] - middle[i];
        x[i] = middle[i] + (d > limit ? limit : d < -limit ? -limit : d);
    }
}

static void series_free(series *s)
{
    free(s->x);
    free(s->sum);
    free(s->moment);
}

static size_t half_window(double half_s, double step_s) { return half_s > 3 * step_s ? (size_t)(half_s / step_s) : 3; }

/* Medians of `group` bins, clipped against medians of +- half_s, with their sums. */
static mica_status series_make(const double *rates, size_t n, double bin_s, size_t group, double half_s, series *s,
                               mica_error *err)
{
    size_t count = n / group;
    *s = (series){.n = count, .step_s = bin_s * (double)group};
    double *room = mica_new_array(3 * count + group, sizeof *room);
    s->x = mica_new_array(count, sizeof *s->x);
    s->sum = mica_new_array(count + 1, sizeof *s->sum);
    s->moment = mica_new_array(count + 1, sizeof *s->moment);
    if (!room || !s->x || !s->sum || !s->moment) {
        free(room);
        return mica_fail_nomem(err, (6 * count + group) * sizeof *room, "the search for a throttle");
    }
    for (size_t i = 0; i < count; i++)
        s->x[i] = median_of(rates, i * group, (i + 1) * group, room);
    clip(s->x, count, half_window(half_s, s->step_s), room);
    s->centre = count ? mica_stat_mean(s->x, count) : 0;
    for (size_t i = 0; i < count; i++) {
        s->sum[i + 1] = s->sum[i] + (s->x[i] - s->centre);
        s->moment[i + 1] = s->moment[i] + (double)i * (s->x[i] - s->centre);
    }
    free(room);
    return MICA_OK;
}

static double sum_of(const series *s, size_t from, size_t to) { return s->sum[to] - s->sum[from]; }

/* A copy of the rates without stalls; NULL without memory. */
static double *without_stalls(const double *rates, size_t n, double bin_s, double half_s)
{
    double *copy = mica_new_array(n, sizeof *copy), *room = mica_new_array(n, 3 * sizeof *room);
    if (copy && room) {
        if (n > 0)
            memcpy(copy, rates, n * sizeof *copy);
        bridge_stalls(copy, n, half_window(2 * half_s, bin_s), room); /* wide: a stall may lie at the end of the trace */
    } else {
        free(copy);
        copy = NULL;
    }
    free(room);
    return copy;
}

/* ---- The fit ---- */

/* Least squares of x ~ a + (b - a) w, where w is 0 before `from`, rises to 1 at `to` and stays there. With d = to - from,
 * w[from + j] = (j + 1/2) / d, whose sum is d / 2 and whose sum of squares is d / 3 - 1 / (12 d). */
static fit fit_at(const series *s, size_t left, size_t right, size_t from, size_t to)
{
    fit f = {.left = left, .right = right, .from = from, .to = to};
    double n = (double)(right - left), d = (double)(to - from), after = (double)(right - to);
    double w = d / 2 + after, ww = (d > 0 ? d / 3 - 1 / (12 * d) : 0) + after, y = sum_of(s, left, right),
           wy = sum_of(s, to, right);
    if (d > 0)
        wy += (s->moment[to] - s->moment[from] - ((double)from - 0.5) * sum_of(s, from, to)) / d;
    double spread = ww - w * w / n, slope = spread > 1e-12 ? (wy - w * y / n) / spread : 0;
    f.gain = slope * slope * spread;
    f.a = (y - slope * w) / n + s->centre;
    f.b = f.a + slope;
    return f;
}

/* The best fit to a region with a ramp of at most `longest`. */
static fit best_fit(const series *s, size_t left, size_t right, size_t longest)
{
    fit best = {.left = left, .right = right, .from = left, .to = left, .gain = -1};
    for (size_t from = left; from < right; from++) {
        for (size_t to = from; to <= right && to - from <= longest; to++) {
            fit f = fit_at(s, left, right, from, to);
            if (f.gain > best.gain)
                best = f;
        }
    }
    return best;
}

/* The gain of the best single step in n values. */
static double step_gain(const double *x, size_t n)
{
    double total = 0, best = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        total += x[i];
    for (size_t i = 1; i < n; i++) {
        sum += x[i - 1];
        double d = sum / (double)i - (total - sum) / (double)(n - i);
        double gain = d * d * (double)i * (double)(n - i) / (double)n;
        best = gain > best ? gain : best;
    }
    return best;
}

/* Permutes blocks of values; the rest at the end keeps its place. */
static void shuffle(double *x, size_t n, size_t block, mica_rng *rng)
{
    for (size_t blocks = n / block; blocks > 1; blocks--) {
        double *a = x + (blocks - 1) * block, *b = x + (size_t)(mica_rng_unit(rng) * (double)blocks) * block;
        for (size_t k = 0; k < block; k++) {
            double swap = a[k];
            a[k] = b[k];
            b[k] = swap;
        }
    }
}

/* 1 - p of "the values of this region come in no order". */
static double confidence_of(search *r, size_t left, size_t right)
{
    size_t n = right - left, block = n >= 12 * MAX_BLOCK ? MAX_BLOCK : n >= 24 ? n / 12 : 1;
    double seen = step_gain(r->s.x + left, n);
    int32_t as_large = 0;
    memcpy(r->shuffled, r->s.x + left, n * sizeof *r->shuffled);
    for (int32_t i = 0; i < r->o.permutations; i++) {
        shuffle(r->shuffled, n, block, &r->rng);
        as_large += step_gain(r->shuffled, n) >= seen;
    }
    return 1 - (double)(1 + as_large) / (double)(1 + r->o.permutations);
}

/* ---- Binary segmentation ---- */

static double depth_of(const fit *f) { return f->a > 0 ? 1 - f->b / f->a : 0; }

/* Sum of squares that levels [n + 1] with n ramps between them leave, in the region of the first. */
static double rest_of(const series *s, const fit *const *ramps, size_t n, const double *levels)
{
    double rest = 0;
    size_t k = 0;
    for (size_t i = ramps[0]->left; i < ramps[0]->right; i++) {
        while (k < n && i >= ramps[k]->to)
            k++;
        double level = levels[k];
        if (k < n && i >= ramps[k]->from)
            level += (levels[k + 1] - level) * ((double)(i - ramps[k]->from) + 0.5) / (double)(ramps[k]->to - ramps[k]->from);
        rest += (s->x[i] - level) * (s->x[i] - level);
    }
    return rest;
}

static double mean_of(const series *s, size_t from, size_t to)
{
    return s->centre + (to > from ? sum_of(s, from, to) / (double)(to - from) : 0);
}

/* Is this long ramp rather two short ones with a flat between? Two steps in one direction look like a slow drift to a single
 * fit. Schwarz's criterion decides: n log(rest / n) + parameters x log n; a ramp and its level are three parameters. */
static bool is_two(const search *r, const fit *one, const fit *first)
{
    fit before = best_fit(&r->s, one->left, first->from, r->longest), after = best_fit(&r->s, first->to, one->right, r->longest);
    fit a = after.gain > before.gain ? *first : before, b = after.gain > before.gain ? after : *first;
    if (first->from <= one->left + 1 || first->to + 1 >= one->right || a.to >= b.from)
        return false;
    a.left = one->left;
    a.right = one->right;
    const fit *two[2] = {&a, &b};
    double levels[3] = {mean_of(&r->s, one->left, a.from), mean_of(&r->s, a.to, b.from), mean_of(&r->s, b.to, one->right)};
    double n = (double)(one->right - one->left), tiny = 1e-12 * (1 + r->s.centre * r->s.centre) * n;
    double rest_one = rest_of(&r->s, &one, 1, (double[]){one->a, one->b}), rest_two = rest_of(&r->s, two, 2, levels);
    return n * log((rest_two + tiny) / (rest_one + tiny)) + 3 * log(n) < 0;
}

/* Splits [left, right) if it holds a change; false if it is one flat. */
static bool split(search *r, size_t left, size_t right)
{
    size_t smallest = (size_t)ceil(2 * r->o.min_flat_s / r->s.step_s);
    if (r->n_splits == MICA_THROTTLE_MAX_CHANGES || right - left < smallest || right - left > MAX_FIT)
        return false;
    fit f = best_fit(&r->s, left, right, right - left);
    if (fabs(depth_of(&f)) < MIN_SPLIT)
        return false;
    double confidence = confidence_of(r, left, right);
    if (confidence < r->o.min_confidence)
        return false;
    if (f.to - f.from > r->longest) {
        fit first = best_fit(&r->s, left, right, r->longest);
        if (is_two(r, &f, &first))
            f = first;
    }
    r->confidence[r->n_splits] = confidence;
    r->splits[r->n_splits++] = f;
    return true;
}

/* Splits regions until none holds a change. At most MICA_THROTTLE_MAX_CHANGES + 1 regions wait, so the stack cannot overflow.
 */
static void segment(search *r)
{
    struct { size_t left, right; } stack[2 * MICA_THROTTLE_MAX_CHANGES + 2];
    size_t depth = 0;
    stack[depth].left = 0;
    stack[depth++].right = r->s.n;
    while (depth > 0) {
        depth--;
        size_t left = stack[depth].left, right = stack[depth].right, n = r->n_splits;
        if (!split(r, left, right))
            continue;
        stack[depth].left = left;
        stack[depth++].right = r->splits[n].from;
        stack[depth].left = r->splits[n].to;
        stack[depth++].right = right;
    }
}

static void sort_splits(search *r)
{
    for (size_t i = 1; i < r->n_splits; i++) {
        for (size_t k = i; k > 0 && r->splits[k].from < r->splits[k - 1].from; k--) {
            fit f = r->splits[k];
            double c = r->confidence[k];
            r->splits[k] = r->splits[k - 1];
            r->confidence[k] = r->confidence[k - 1];
            r->splits[k - 1] = f;
            r->confidence[k - 1] = c;
        }
    }
}

/* ---- Naming ---- */

/* Change of level over [from, to) by a straight line, for `over_s` or the whole of it if that is shorter. */
static double tilt_of(const series *s, size_t from, size_t to, double over_s)
{
    double n = (double)(to - from);
    if (n < 3)
        return 0;
    double spread = n * (n * n - 1) / 12;
    double slope = (s->moment[to] - s->moment[from] - ((double)from + (n - 1) / 2) * sum_of(s, from, to)) / spread;
    double steps = over_s / s->step_s;
    return slope * (steps < n ? steps : n);
}

/* Standard error of the length of a fitted ramp of T seconds with noise sigma in cells of c seconds: 2.6 sigma / |b - a| sqrt(3
 * c T). The form follows from the slope, (b - a) / T, with which an end that is off by some seconds misses the values; 2.6 was
 * found by fitting such ramps. */
static double ramp_error(const series *cells, const fit *f, double ramp_s)
{
    double step = fabs(f->b - f->a), rest = rest_of(cells, &f, 1, (double[]){f->a, f->b});
    double sigma = sqrt(rest / (double)(f->right - f->left));
    return step > 0 ? 2.6 * sigma / step * sqrt(3 * cells->step_s * ramp_s) : 0;
}

/* The longest ramp that may still be one of max_ramp_s. */
static double longest_ramp(const search *r, const fit *coarse)
{
    double most = r->o.max_ramp_s;
    double longer = RAMP_CELLS * r->s.step_s + RAMP_ERRORS * ramp_error(&r->s, coarse, most);
    return longer < (RAMP_SLACK - 1) * most ? most + longer : RAMP_SLACK * most;
}

static mica_change name_change(const search *r, const series *s, const fit *coarse, const fit *f)
{
    double before = (double)(f->from - f->left) * s->step_s, after = (double)(f->right - f->to) * s->step_s;
    double ramp = (double)(f->to - f->from) * s->step_s, step = fabs(f->b - f->a);
    if (fabs(depth_of(f)) < r->o.min_depth)
        return MICA_CHANGE_SMALL;
    if (ramp > longest_ramp(r, coarse))
        return MICA_CHANGE_DRIFT;
    if (before < r->o.min_flat_s || after < r->o.min_flat_s)
        return MICA_CHANGE_SHORT;
    double over = TILT * r->o.min_flat_s;
    if (fabs(tilt_of(s, f->left, f->from, over)) > MAX_TILT * step || fabs(tilt_of(s, f->to, f->right, over)) > MAX_TILT * step)
        return MICA_CHANGE_DRIFT;
    return f->b < f->a ? MICA_CHANGE_THROTTLE : MICA_CHANGE_RISE;
}

/* Fits a split again on bins, within two cells of where the cells had it. */
static fit refine(const series *fine, const fit *coarse, size_t group)
{
    size_t left = coarse->left * group, right = coarse->right * group, slack = 2 * group;
    size_t from = coarse->from * group, to = coarse->to * group;
    right = right > fine->n ? fine->n : right;
    fit best = {.left = left, .right = right, .from = from, .to = to, .gain = -1};
    for (size_t i = from > left + slack ? from - slack : left; i <= from + slack && i < right; i++) {
        size_t k = to > left + slack ? to - slack : left;
        for (k = k < i ? i : k; k <= to + slack && k <= right; k++) {
            fit f = fit_at(fine, left, right, i, k);
            if (f.gain > best.gain)
                best = f;
        }
    }
    return best;
}

/* Split i fitted again between its neighbours; with `over_small`, between those of its neighbours that are not small. */
static fit fit_between(const search *r, size_t i, bool over_small)
{
    size_t before = i, after = i + 1, left = 0, right = r->s.n;
    while (before > 0 && over_small && r->small[before - 1])
        before--;
    while (after < r->n_splits && over_small && r->small[after])
        after++;
    if (before > 0)
        left = r->splits[before - 1].to;
    if (after < r->n_splits)
        right = r->splits[after].from;
    return best_fit(&r->s, left, right, right - left);
}

static void report(search *r, const series *fine, size_t group, mica_throttle *out)
{
    for (size_t i = 0; i < r->n_splits; i++) {
        fit f = fit_between(r, i, false);
        r->small[i] = fabs(depth_of(&f)) < r->o.min_depth;
    }
    for (size_t i = 0; i < r->n_splits; i++) {
        fit coarse = fit_between(r, i, !r->small[i]), f = refine(fine, &coarse, group);
        mica_level_change *c = &out->changes[out->n_changes];
        *c = (mica_level_change){.kind = name_change(r, fine, &coarse, &f),
                                 .start_s = (double)f.from * fine->step_s,
                                 .end_s = (double)f.to * fine->step_s,
                                 .before_tps = f.a,
                                 .after_tps = f.b,
                                 .depth = depth_of(&f),
                                 .confidence = r->confidence[i]};
        if (c->kind == MICA_CHANGE_THROTTLE && (!out->throttled || c->depth > out->changes[out->worst].depth)) {
            out->throttled = true;
            out->worst = out->n_changes;
        }
        out->n_changes++;
    }
}

/* ---- Entry ---- */

static mica_status check_options(const mica_throttle_options *o, double bin_s, const double *rates, size_t n, mica_error *err)
{
    if (!(o->min_depth > 0 && o->min_depth < 1 && o->max_ramp_s > 0 && o->min_flat_s > 0 && o->min_confidence > 0 &&
          o->min_confidence < 1))
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the definition of a throttle is out of range: depth %g and confidence %g must lie "
                         "between 0 and 1, the times %g s and %g s above 0",
                         o->min_depth, o->min_confidence, o->max_ramp_s, o->min_flat_s);
    if (o->permutations < 19 || o->permutations > 100000)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d permutations are outside 19..100000", (int)o->permutations);
    if (!(bin_s > 0 && isfinite(bin_s) && o->cell_s >= bin_s && o->cell_s / bin_s < 1e6))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "cells of %g s cannot be made of bins of %g s", o->cell_s, bin_s);
    if (n > MAX_BINS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a trace of %zu bins is longer than %zu: give longer bins", n, MAX_BINS);
    for (size_t i = 0; i < n; i++)
        if (!(rates[i] >= 0 && isfinite(rates[i])))
            return mica_fail_at(err, MICA_INVALID_ARGUMENT, (int64_t)i, "rate %zu is %g, no number of at least 0", i, rates[i]);
    return MICA_OK;
}

mica_status mica_throttle_find(const double *rates, size_t n, double bin_s, const mica_throttle_options *options,
                               mica_throttle *out, mica_error *err)
{
    search r = {.o = options ? *options : mica_throttle_options_default()};
    series fine = {0};
    *out = (mica_throttle){.worst = -1};
    mica_status status = check_options(&r.o, bin_s, rates, n, err);
    if (status)
        return status;
    size_t group = (size_t)(r.o.cell_s / bin_s + 0.5);
    while (n / group > MAX_FIT)
        group *= 2;
    out->too_short = (double)n * bin_s < 2 * r.o.min_flat_s;
    r.longest = (size_t)(RAMP_SLACK * r.o.max_ramp_s / (bin_s * (double)group));
    mica_rng_seed(&r.rng, r.o.seed);
    double half_s = HALF_WINDOW * r.o.min_flat_s, *bridged = without_stalls(rates, n, bin_s, half_s);
    status = bridged ? series_make(bridged, n, bin_s, group, half_s, &r.s, err)
                     : mica_fail_nomem(err, 4 * n * sizeof *bridged, "the search for a throttle");
    if (!status)
        status = series_make(bridged, n, bin_s, 1, half_s, &fine, err);
    free(bridged);
    r.shuffled = mica_new_array(r.s.n, sizeof *r.shuffled);
    if (!status && !r.shuffled)
        status = mica_fail_nomem(err, r.s.n * sizeof *r.shuffled, "the permutation test");
    if (!status) {
        segment(&r);
        sort_splits(&r);
        report(&r, &fine, group, out);
    }
    series_free(&r.s);
    series_free(&fine);
    free(r.shuffled);
    return status;
}

mica_status mica_throttle_detect(const int64_t *token_ns, size_t n, const mica_throttle_options *options, mica_throttle *out,
                                 mica_error *err)
{
    double bin_s = (options ? options->cell_s : mica_throttle_options_default().cell_s) / CELL_BINS, *rates;
    size_t count;
    *out = (mica_throttle){.worst = -1};
    mica_status status = mica_rate_series(token_ns, n, bin_s, &rates, &count, err);
    if (status)
        return status;
    status = mica_throttle_find(rates, count, bin_s, options, out, err);
    free(rates);
    return status;
}
