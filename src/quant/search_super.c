/* search_super.c - the integers of a super-block of 256 weights: a half d (and m) for all, a small integer scale (and min) for
 * each group, a level for each weight; see search.h.
 *
 * 1. Each group alone gets its best real scale and offset (search.c).
 * 2. d and m are set so that the largest scale and offset meet the ends of the integer ranges.
 * 3. For that d and m, each group takes the integers nearest to its real scale and offset, or their neighbours if those give less error.
 * 4. For those integers and their levels, d and m are solved by least squares, rounded to halves, and step 3 is repeated; the
 *    best round is kept.
 *
 * Where there are mins a group has eight neighbours, which take most of the time: there the rounds only round, and the neighbours are
 * looked at once, at the end (0.5 % more error on Gaussian weights, half the time).
 */
#include "quant/search.h"
#include <math.h>

enum {
    MAX_ROUNDS = 3, /* of steps 3 and 4: a fourth improves Gaussian weights by less than 0.1 % */
    MAX_CLIMB = 4,  /* moves to a better neighbour in step 3 */
};

/* Everything about one super-block while it is searched. */
typedef struct super {
    const mica_search_shape *shape;
    mica_search_group group[16];
    mica_search_fit fit[16]; /* real, of each group alone */
    int n_groups;
    double unit, per_unit; /* of the groups' weights, and 1 / unit */
} super;

/* One round's outcome. Offsets are m * min with m <= 0. */
typedef struct choice {
    float d, m;
    int scale[16], min[16];
    double error;
} choice;

static int clamp_round(double v, int lo, int hi)
{
    if (!(v > lo)) /* NaN too */
        return lo;
    return v < hi ? (int)lrint(v) : hi;
}

/* As the decoder computes it, in the groups' unit. */
static mica_search_fit fit_of(const super *s, const choice *c, int scale, int min)
{
    return (mica_search_fit){(float)(c->d * (float)scale * s->per_unit), (float)(c->m * (float)min * s->per_unit)};
}

/* Step 2. The sign of d is free: the group with the largest scale gets the integer of larger magnitude, scale_lo, if ranges are
 * signed. */
static void choose_start(const super *s, choice *c)
{
    double scale = 0.0, offset = 0.0;
    for (int g = 0; g < s->n_groups; g++) {
        scale = fabs(s->fit[g].scale) > fabs(scale) ? s->fit[g].scale : scale;
        offset = s->fit[g].offset < offset ? s->fit[g].offset : offset;
    }
    c->d = mica_search_half(scale * s->unit / (s->shape->scale_lo < 0 ? s->shape->scale_lo : s->shape->scale_hi));
    c->m = s->shape->min_hi ? mica_search_half(offset * s->unit / s->shape->min_hi) : 0.0f;
}

/* Moves the integers of a group to the best of their neighbours; true if one was better. */
static bool climb(const super *s, int g, choice *c, double *error)
{
    const mica_search_shape *shape = s->shape;
    int scale = c->scale[g], min = c->min[g], reach = c->m != 0.0f ? 1 : 0;
    bool better = false;
    for (int ds = -1; ds <= 1; ds++)
        for (int dm = -reach; dm <= reach; dm++) {
            int try_scale = scale + ds, try_min = min + dm;
            if ((!ds && !dm) || try_scale < shape->scale_lo || try_scale > shape->scale_hi || try_min < 0 ||
                try_min > shape->min_hi)
                continue;
            double e = mica_search_error(shape, &s->group[g], fit_of(s, c, try_scale, try_min));
            if (e < *error) {
                *error = e;
                c->scale[g] = try_scale;
                c->min[g] = try_min;
                better = true;
            }
        }
    return better;
}

/* Step 3, with so many moves to a neighbour. */
static void choose_integers(const super *s, choice *c, int climbs)
{
    c->error = 0.0;
    for (int g = 0; g < s->n_groups; g++) {
        c->scale[g] = c->d != 0.0f ? clamp_round(s->fit[g].scale * s->unit / c->d, s->shape->scale_lo, s->shape->scale_hi) : 0;
        c->min[g] = c->m != 0.0f ? clamp_round(s->fit[g].offset * s->unit / c->m, 0, s->shape->min_hi) : 0;
        double error = mica_search_error(s->shape, &s->group[g], fit_of(s, c, c->scale[g], c->min[g]));
        for (int i = 0; i < climbs && climb(s, g, c, &error); i++)
            continue;
        c->error += error;
    }
}

/* Step 4: least squares of x ~ d * (scale * level) + m * min. */
static void solve_factors(const super *s, choice *c)
{
    double aa = 0.0, ab = 0.0, bb = 0.0, xa = 0.0, xb = 0.0;
    int8_t q[32];
    for (int g = 0; g < s->n_groups; g++) {
        const mica_search_group *group = &s->group[g];
        mica_search_levels(s->shape, group, fit_of(s, c, c->scale[g], c->min[g]), q);
        double b = c->min[g];
        for (int i = 0; i < s->shape->group; i++) {
            double w = group->w[i / MICA_LANES][i % MICA_LANES], a = (double)c->scale[g] * q[i], x = group->x[i / MICA_LANES][i % MICA_LANES];
            aa += w * a * a;
            ab += w * a * b;
            bb += w * b * b;
            xa += w * x * a;
            xb += w * x * b;
        }
    }
    double determinant = aa * bb - ab * ab;
    if (determinant > 0.0) {
        double m = (aa * xb - ab * xa) / determinant;
        c->d = mica_search_half((bb * xa - ab * xb) / determinant * s->unit);
        c->m = m < 0.0 ? mica_search_half(m * s->unit) : 0.0f;
    } else if (aa > 0.0) {
        c->d = mica_search_half(xa / aa * s->unit);
        c->m = 0.0f;
    }
}

static void write_ints(const super *s, const choice *c, mica_block_ints *out)
{
    int n = s->shape->group;
    out->d = c->d;
    out->m = c->m;
    for (int g = 0; g < s->n_groups; g++)
        mica_search_levels(s->shape, &s->group[g], fit_of(s, c, c->scale[g], c->min[g]), out->q + g * n);
    for (int i = 0; i < 16; i++) { /* one for 16 weights: a group of 32 has two equal ones */
        out->scale[i] = (int16_t)c->scale[i * 16 / n];
        out->min[i] = (int16_t)c->min[i * 16 / n];
    }
}

/* The neighbours, for the integers that are there. */
static void climb_integers(const super *s, choice *c)
{
    for (int g = 0; g < s->n_groups; g++) {
        double error = mica_search_error(s->shape, &s->group[g], fit_of(s, c, c->scale[g], c->min[g]));
        for (int i = 0; i < MAX_CLIMB && climb(s, g, c, &error); i++)
            continue;
    }
}

void mica_search_super(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out)
{
    super s = {.shape = shape, .n_groups = 256 / shape->group};
    s.unit = mica_search_load(shape, x, importance, 256, s.group);
    s.per_unit = 1.0 / s.unit;
    for (int g = 0; g < s.n_groups; g++)
        s.fit[g] = shape->min_hi ? mica_search_fit_offset(shape, &s.group[g], false)
                                 : mica_search_fit_scale(shape, &s.group[g]);
    choice best, c;
    int climbs = shape->min_hi ? 0 : MAX_CLIMB;
    choose_start(&s, &c);
    choose_integers(&s, &c, climbs);
    best = c;
    for (int round = 1; round < MAX_ROUNDS; round++) {
        solve_factors(&s, &c);
        if (c.d == best.d && c.m == best.m)
            break;
        choose_integers(&s, &c, climbs);
        if (!(c.error < best.error))
            break;
        best = c;
    }
    if (shape->min_hi)
        climb_integers(&s, &best);
    write_ints(&s, &best, out);
}
