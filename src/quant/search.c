/* search.c - the best scale and offset of one group of weights; see search.h. */
#include "quant/search.h"
#include <math.h>

/* Smaller gains, relative to the weights, are rounding of the sums. Ignoring them keeps equal groups at equal scales. */
#define NOISE 1e-6f

enum { MAX_REFINEMENTS = 8 }; /* Lloyd steps; they nearly always end by themselves after two or three */

typedef int32_t mask __attribute__((vector_size(16))); /* of lanes: all bits or none */

static float lowest_level(const mica_search_shape *shape) { return (float)(shape->table ? shape->table[0] : shape->level_lo); }

static float highest_level(const mica_search_shape *shape)
{
    return (float)(shape->table ? shape->table[shape->n_levels - 1] : shape->level_lo + shape->n_levels - 1);
}

/* The level of a table nearest to y: a search by halves over the 15 midpoints, doubled. NaN gives the lowest. */
static inline float nearest_of_table(const int8_t *t, float y)
{
    float twice = 2.0f * y;
    int k = twice > (float)(t[7] + t[8]) ? 8 : 0;
    k += twice > (float)(t[k + 3] + t[k + 4]) ? 4 : 0;
    k += twice > (float)(t[k + 1] + t[k + 2]) ? 2 : 0;
    k += twice > (float)(t[k] + t[k + 1]) ? 1 : 0;
    return (float)t[k];
}

static inline mica_lanes keep(mica_lanes x, mask m) { return (mica_lanes)((mask)x & m); }

/* (x - offset) * inverse, as the level nearest to it. */
static inline mica_lanes nearest_levels(const mica_search_shape *shape, mica_lanes x, float inverse, float offset)
{
    mica_lanes y = (x - offset) * inverse;
    if (shape->table)
        return (mica_lanes){nearest_of_table(shape->table, y[0]), nearest_of_table(shape->table, y[1]),
                            nearest_of_table(shape->table, y[2]), nearest_of_table(shape->table, y[3])};
    float lo = (float)shape->level_lo;
    mica_lanes top = (mica_lanes){0} + (float)(shape->n_levels - 1);
    y = y + (0.5f - lo);
    y = keep(y, y > 0.0f); /* NaN gives the lowest */
    mask inside = y < top;
    y = keep(y, inside) + keep(top, ~inside);
    return __builtin_convertvector(__builtin_convertvector(y, mask), mica_lanes) + lo;
}

static inline float add_lanes(mica_lanes s) { return (s[0] + s[2]) + (s[1] + s[3]); }

/* Weighted sums over a group, from which the least-squares solutions and their errors follow. */
typedef struct sums {
    float w, x, v, xx, xv, vv; /* v: levels */
} sums;

static inline sums sum_group(const mica_search_shape *shape, const mica_search_group *group, float inverse, float offset)
{
    mica_lanes s_v = {0}, s_xv = {0}, s_vv = {0};
    for (int i = 0; i < shape->group / MICA_LANES; i++) {
        mica_lanes v = nearest_levels(shape, group->x[i], inverse, offset), wv = group->w[i] * v;
        s_v += wv;
        s_xv += group->x[i] * wv;
        s_vv += v * wv;
    }
    return (sums){group->sum_w, group->sum_x, add_lanes(s_v), group->sum_xx, add_lanes(s_xv), add_lanes(s_vv)};
}

/* What a format's offset may be. */
typedef enum offset_rule { NO_OFFSET, OFFSET_BELOW_0, ANY_OFFSET } offset_rule;

static mica_search_fit solve_scale(const sums *s) { return (mica_search_fit){s->vv > 0.0f ? s->xv / s->vv : 0.0f, 0.0f}; }

/* In double: the differences of products of sums cancel. */
static mica_search_fit solve_offset(const sums *s, offset_rule rule)
{
    double w = s->w, v = s->v, vv = s->vv, x = s->x, xv = s->xv, determinant = w * vv - v * v;
    mica_search_fit fit = {0.0f, w > 0.0 ? (float)(x / w) : 0.0f};
    if (determinant > 1e-6 * w * vv) { /* less is rounding: all levels are equal */
        fit.scale = (float)((w * xv - v * x) / determinant);
        fit.offset = (float)((vv * x - v * xv) / determinant);
    }
    if (fit.offset > 0.0f && rule != ANY_OFFSET)
        fit = solve_scale(s);
    if (fit.scale < 0.0f)
        fit.scale = 0.0f;
    return fit;
}

static double error_of(const sums *s, mica_search_fit f)
{
    double scale = f.scale, offset = f.offset;
    return s->xx + scale * (scale * s->vv - 2.0 * s->xv + 2.0 * offset * s->v) + offset * (offset * s->w - 2.0 * s->x);
}

/* The best fit so far. */
typedef struct candidate {
    mica_search_fit fit;
    double error;
} candidate;

/* Chooses levels with the start scale 1/inverse and offset, solves for scale and offset, keeps them if they are better. */
static inline bool improve(const mica_search_shape *shape, const mica_search_group *group, float inverse, float offset,
                           offset_rule rule, candidate *best)
{
    sums s = sum_group(shape, group, inverse, offset);
    mica_search_fit fit = rule == NO_OFFSET ? solve_scale(&s) : solve_offset(&s, rule);
    double error = error_of(&s, fit);
    if (!(error < best->error - (double)(NOISE * s.xx)))
        return false;
    best->fit = fit;
    best->error = error;
    return true;
}

static mica_search_fit refine(const mica_search_shape *shape, const mica_search_group *group, offset_rule rule,
                              candidate *best)
{
    for (int i = 0; i < MAX_REFINEMENTS && best->fit.scale != 0.0f; i++)
        if (!improve(shape, group, 1.0f / best->fit.scale, best->fit.offset, rule, best))
            break;
    return best->fit;
}

static float weight_at(const mica_search_group *group, int i) { return group->x[i / MICA_LANES][i % MICA_LANES]; }

mica_search_fit mica_search_fit_scale(const mica_search_shape *shape, const mica_search_group *group)
{
    float largest = 0.0f;
    for (int i = 0; i < shape->group; i++)
        largest = fabsf(weight_at(group, i)) > fabsf(largest) ? weight_at(group, i) : largest;
    if (largest == 0.0f || !isfinite(largest))
        return (mica_search_fit){0.0f, 0.0f};
    candidate best = {{0.0f, 0.0f}, INFINITY};
    /* The extreme weight near either end of the levels: their sets are not symmetric. */
    float ends[2] = {lowest_level(shape), highest_level(shape)};
    for (int end = 0; end < 2; end++)
        for (float more = shape->start_lo; more <= shape->start_hi; more += shape->start_step)
            improve(shape, group, (ends[end] + (end ? more : -more)) / largest, 0.0f, NO_OFFSET, &best);
    return refine(shape, group, NO_OFFSET, &best);
}

mica_search_fit mica_search_fit_offset(const mica_search_shape *shape, const mica_search_group *group, bool any_sign)
{
    float lo = any_sign ? weight_at(group, 0) : 0.0f, hi = weight_at(group, 0);
    for (int i = 0; i < shape->group; i++) {
        lo = weight_at(group, i) < lo ? weight_at(group, i) : lo;
        hi = weight_at(group, i) > hi ? weight_at(group, i) : hi;
    }
    if (!isfinite(hi - lo))
        return (mica_search_fit){0.0f, 0.0f};
    if (hi == lo)
        return (mica_search_fit){0.0f, lo};
    candidate best = {{0.0f, lo}, INFINITY};
    offset_rule rule = any_sign ? ANY_OFFSET : OFFSET_BELOW_0;
    float range = highest_level(shape) - lowest_level(shape);
    for (float more = shape->start_lo; more <= shape->start_hi; more += shape->start_step)
        improve(shape, group, (range + more) / (hi - lo), lo, rule, &best);
    return refine(shape, group, rule, &best);
}

/* The power of two that makes the largest of the weights 1 to 2; 1 if there is none. */
static double unit_of(const float *x, int n)
{
    float largest = 0.0f;
    int exponent;
    for (int i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    if (largest == 0.0f || !isfinite(largest))
        return 1.0;
    frexpf(largest, &exponent);
    return ldexp(1.0, exponent - 1);
}

/* The mean importance; 0 if it says nothing. */
static double mean_importance(const float *importance, int n)
{
    double total = 0.0;
    for (int i = 0; i < n && importance; i++)
        total += importance[i] > 0.0f ? importance[i] : 0.0;
    return total > 0.0 && isfinite(total) ? total / n : 0.0;
}

static void sum_weights(const mica_search_shape *shape, mica_search_group *group)
{
    mica_lanes w = {0}, x = {0}, xx = {0};
    for (int i = 0; i < shape->group / MICA_LANES; i++) {
        mica_lanes wx = group->w[i] * group->x[i];
        w += group->w[i];
        x += wx;
        xx += wx * group->x[i];
    }
    group->sum_w = add_lanes(w);
    group->sum_x = add_lanes(x);
    group->sum_xx = add_lanes(xx);
}

double mica_search_load(const mica_search_shape *shape, const float *x, const float *importance, int n, mica_search_group *groups)
{
    double unit = unit_of(x, n), mean = mean_importance(importance, n), per_unit = 1.0 / unit, per_mean = mean > 0.0 ? 1.0 / mean : 0.0;
    for (int first = 0; first < n; first += shape->group) {
        mica_search_group *group = &groups[first / shape->group];
        for (int i = 0; i < shape->group; i++) {
            float w = mean > 0.0 ? (float)(importance[first + i] * per_mean) : 1.0f;
            group->x[i / MICA_LANES][i % MICA_LANES] = (float)(x[first + i] * per_unit);
            group->w[i / MICA_LANES][i % MICA_LANES] = w > 1e-6f ? w : 1e-6f; /* NaN too */
        }
        sum_weights(shape, group);
    }
    return unit;
}

float mica_search_error(const mica_search_shape *shape, const mica_search_group *group, mica_search_fit fit)
{
    float inverse = fit.scale != 0.0f ? 1.0f / fit.scale : 0.0f;
    mica_lanes sum = {0};
    for (int i = 0; i < shape->group / MICA_LANES; i++) {
        mica_lanes v = nearest_levels(shape, group->x[i], inverse, fit.offset), miss = (group->x[i] - fit.offset) - fit.scale * v;
        sum += group->w[i] * miss * miss;
    }
    return add_lanes(sum);
}

void mica_search_levels(const mica_search_shape *shape, const mica_search_group *group, mica_search_fit fit, int8_t *q)
{
    float inverse = fit.scale != 0.0f ? 1.0f / fit.scale : 0.0f;
    for (int i = 0; i < shape->group / MICA_LANES; i++) {
        mica_lanes v = nearest_levels(shape, group->x[i], inverse, fit.offset);
        for (int l = 0; l < MICA_LANES; l++)
            q[MICA_LANES * i + l] = (int8_t)v[l];
    }
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
    double unit = mica_search_load(shape, x, importance, 32, &group);
    mica_search_fit fit = mica_search_fit_scale(shape, &group);
    out->d = mica_search_half(fit.scale * unit);
    out->m = 0.0f;
    mica_search_levels(shape, &group, (mica_search_fit){(float)(out->d / unit), 0.0f}, out->q);
    for (int i = 0; i < 2; i++)
        out->scale[i] = 1, out->min[i] = 0;
}

void mica_search_offset(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out)
{
    mica_search_group group;
    double unit = mica_search_load(shape, x, importance, 32, &group);
    mica_search_fit fit = mica_search_fit_offset(shape, &group, true);
    out->d = mica_search_half(fit.scale * unit);
    out->m = mica_search_half(fit.offset * unit);
    mica_search_levels(shape, &group, (mica_search_fit){(float)(out->d / unit), (float)(out->m / unit)}, out->q);
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
