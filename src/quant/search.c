/* search.c - the best scale and offset of one group of weights; see search.h. All sums are in double: weights may be as
 * small as denormal floats or as large as floats get, and an importance has any unit. */
#include "quant/search.h"
#include <math.h>

/* Smaller gains, relative to the weights, are rounding of the sums. Ignoring them keeps equal groups at equal scales. */
#define NOISE 1e-12

enum { MAX_REFINEMENTS = 8 }; /* Lloyd steps; they nearly always end by themselves after two or three */

static double lowest_level(const mica_search_shape *shape) { return shape->table ? shape->table[0] : shape->level_lo; }

static double highest_level(const mica_search_shape *shape)
{
    return shape->table ? shape->table[shape->n_levels - 1] : shape->level_lo + shape->n_levels - 1;
}

/* The level nearest to y. NaN gives the lowest. */
static inline int nearest_level(const mica_search_shape *shape, double y)
{
    if (shape->table) { /* a search by halves over the 15 midpoints, doubled */
        const int8_t *t = shape->table;
        double twice = 2.0 * y;
        int k = twice > t[7] + t[8] ? 8 : 0;
        k += twice > t[k + 3] + t[k + 4] ? 4 : 0;
        k += twice > t[k + 1] + t[k + 2] ? 2 : 0;
        k += twice > t[k] + t[k + 1] ? 1 : 0;
        return t[k];
    }
    double steps = y - shape->level_lo + 0.5;
    if (!(steps > 0.0))
        return shape->level_lo;
    return shape->level_lo + (steps >= shape->n_levels ? shape->n_levels - 1 : (int)steps);
}

/* Weighted sums over a group, from which the least-squares solutions and their errors follow. */
typedef struct sums {
    double w, x, v, xx, xv, vv; /* v: levels */
} sums;

static sums sum_group(const mica_search_shape *shape, const mica_search_group *group, double inverse, double offset)
{
    sums s = {0};
    for (int i = 0; i < shape->group; i++) {
        double x = group->x[i], v = nearest_level(shape, (x - offset) * inverse), wx = group->w[i] * x, wv = group->w[i] * v;
        s.w += group->w[i];
        s.x += wx;
        s.v += wv;
        s.xx += wx * x;
        s.xv += wx * v;
        s.vv += wv * v;
    }
    return s;
}

/* What a format's offset may be. */
typedef enum offset_rule { NO_OFFSET, OFFSET_BELOW_0, ANY_OFFSET } offset_rule;

static mica_search_fit solve_scale(const sums *s) { return (mica_search_fit){s->vv > 0.0 ? s->xv / s->vv : 0.0, 0.0}; }

static mica_search_fit solve_offset(const sums *s, offset_rule rule)
{
    double determinant = s->w * s->vv - s->v * s->v;
    mica_search_fit fit = {0.0, s->w > 0.0 ? s->x / s->w : 0.0};
    if (determinant > 0.0) {
        fit.scale = (s->w * s->xv - s->v * s->x) / determinant;
        fit.offset = (s->vv * s->x - s->v * s->xv) / determinant;
    }
    if (fit.offset > 0.0 && rule != ANY_OFFSET)
        fit = solve_scale(s);
    if (fit.scale < 0.0)
        fit.scale = 0.0;
    return fit;
}

static double error_of(const sums *s, mica_search_fit f)
{
    return s->xx + f.scale * (f.scale * s->vv - 2.0 * s->xv + 2.0 * f.offset * s->v) +
           f.offset * (f.offset * s->w - 2.0 * s->x);
}

/* The best fit so far. */
typedef struct candidate {
    mica_search_fit fit;
    double error;
} candidate;

/* Chooses levels with the start scale 1/inverse and offset, solves for scale and offset, keeps them if they are better. */
static bool improve(const mica_search_shape *shape, const mica_search_group *group, double inverse, double offset,
                    offset_rule rule, candidate *best)
{
    sums s = sum_group(shape, group, inverse, offset);
    mica_search_fit fit = rule == NO_OFFSET ? solve_scale(&s) : solve_offset(&s, rule);
    double error = error_of(&s, fit);
    if (!(error < best->error - NOISE * s.xx))
        return false;
    best->fit = fit;
    best->error = error;
    return true;
}

static mica_search_fit refine(const mica_search_shape *shape, const mica_search_group *group, offset_rule rule,
                              candidate *best)
{
    for (int i = 0; i < MAX_REFINEMENTS && best->fit.scale != 0.0; i++)
        if (!improve(shape, group, 1.0 / best->fit.scale, best->fit.offset, rule, best))
            break;
    return best->fit;
}

mica_search_fit mica_search_fit_scale(const mica_search_shape *shape, const mica_search_group *group)
{
    double largest = 0.0;
    for (int i = 0; i < shape->group; i++)
        largest = fabs(group->x[i]) > fabs(largest) ? group->x[i] : largest;
    if (largest == 0.0 || !isfinite(largest))
        return (mica_search_fit){0.0, 0.0};
    candidate best = {{0.0, 0.0}, INFINITY};
    /* The extreme weight near either end of the levels: their sets are not symmetric. */
    double ends[2] = {lowest_level(shape), highest_level(shape)};
    for (int end = 0; end < 2; end++)
        for (double more = shape->start_lo; more <= shape->start_hi; more += shape->start_step)
            improve(shape, group, (ends[end] + (end ? more : -more)) / largest, 0.0, NO_OFFSET, &best);
    return refine(shape, group, NO_OFFSET, &best);
}

mica_search_fit mica_search_fit_offset(const mica_search_shape *shape, const mica_search_group *group, bool any_sign)
{
    double lo = any_sign ? group->x[0] : 0.0, hi = group->x[0];
    for (int i = 0; i < shape->group; i++) {
        lo = group->x[i] < lo ? group->x[i] : lo;
        hi = group->x[i] > hi ? group->x[i] : hi;
    }
    if (!isfinite(hi - lo))
        return (mica_search_fit){0.0, 0.0};
    if (hi == lo)
        return (mica_search_fit){0.0, lo};
    candidate best = {{0.0, lo}, INFINITY};
    offset_rule rule = any_sign ? ANY_OFFSET : OFFSET_BELOW_0;
    double range = highest_level(shape) - lowest_level(shape);
    for (double more = shape->start_lo; more <= shape->start_hi; more += shape->start_step)
        improve(shape, group, (range + more) / (hi - lo), lo, rule, &best);
    return refine(shape, group, rule, &best);
}

void mica_search_load(const mica_search_shape *shape, const float *x, const float *importance, int n, mica_search_group *groups)
{
    double total = 0.0;
    for (int i = 0; i < n && importance; i++)
        total += importance[i] > 0.0f ? importance[i] : 0.0;
    bool weighted = total > 0.0 && isfinite(total);
    double least = 1e-6 * total / n;
    for (int i = 0; i < n; i++) {
        mica_search_group *group = &groups[i / shape->group];
        group->x[i % shape->group] = x[i];
        group->w[i % shape->group] = !weighted ? 1.0 : importance[i] > least ? importance[i] : least;
    }
}

double mica_search_error(const mica_search_shape *shape, const mica_search_group *group, mica_search_fit fit)
{
    double inverse = fit.scale != 0.0 ? 1.0 / fit.scale : 0.0, error = 0.0;
    for (int i = 0; i < shape->group; i++) {
        double target = group->x[i] - fit.offset, miss = target - fit.scale * nearest_level(shape, target * inverse);
        error += group->w[i] * miss * miss;
    }
    return error;
}

void mica_search_levels(const mica_search_shape *shape, const mica_search_group *group, mica_search_fit fit, int8_t *q)
{
    double inverse = fit.scale != 0.0 ? 1.0 / fit.scale : 0.0;
    for (int i = 0; i < shape->group; i++)
        q[i] = (int8_t)nearest_level(shape, (group->x[i] - fit.offset) * inverse);
}

float mica_search_half(double x)
{
    double magnitude = fabs(x) < 65504.0 ? fabs(x) : 65504.0; /* the largest half; NaN too */
    if (magnitude > 0.0 && magnitude < 0x1p-24)
        magnitude = 0x1p-24; /* the smallest */
    float half = mica_f16_to_f32(mica_f32_to_f16((float)magnitude));
    return x < 0.0 ? -half : half;
}

void mica_search_scaled(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out)
{
    mica_search_group group;
    mica_search_load(shape, x, importance, 32, &group);
    mica_search_fit fit = mica_search_fit_scale(shape, &group);
    out->d = mica_search_half(fit.scale);
    out->m = 0.0f;
    mica_search_levels(shape, &group, (mica_search_fit){out->d, 0.0}, out->q);
    for (int i = 0; i < 2; i++)
        out->scale[i] = 1, out->min[i] = 0;
}

void mica_search_offset(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out)
{
    mica_search_group group;
    mica_search_load(shape, x, importance, 32, &group);
    mica_search_fit fit = mica_search_fit_offset(shape, &group, true);
    out->d = mica_search_half(fit.scale);
    out->m = mica_search_half(fit.offset);
    mica_search_levels(shape, &group, (mica_search_fit){out->d, out->m}, out->q);
    for (int i = 0; i < 2; i++)
        out->scale[i] = out->min[i] = 1;
}

float mica_search_largest(const float *x, int n)
{
    float largest = x[0];
    for (int i = 1; i < n; i++)
        if (fabsf(x[i]) > fabsf(largest))
            largest = x[i];
    return largest;
}

void mica_search_range(const float *x, int n, float *lo, float *hi)
{
    *lo = *hi = x[0];
    for (int i = 1; i < n; i++) {
        *lo = x[i] < *lo ? x[i] : *lo;
        *hi = x[i] > *hi ? x[i] : *hi;
    }
}

int mica_search_level(float v, int hi)
{
    if (!(v > 0.0f))
        return 0;
    return v < (float)hi ? (int)v : hi;
}
