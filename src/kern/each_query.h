/* each_query.h - attention of several queries, one after another, by the set's own qk_one() and pv_one(). Included behind both, inside the
 * set's target. */
#ifndef MICA_KERN_EACH_QUERY_H
#define MICA_KERN_EACH_QUERY_H

static void qk(const float *q, int64_t n_q, const float *k, int64_t n_t, int64_t dim, float factor, float *s)
{
    for (int64_t j = 0; j < n_q; j++)
        qk_one(q + j * dim, k, n_t, dim, factor, s + j * MICA_ATTN_TILE);
}

static void pv(float *o, int64_t n_q, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    for (int64_t j = 0; j < n_q; j++)
        pv_one(o + j * dim, alpha[j], p + j * MICA_ATTN_TILE, v, n_t, dim);
}

#endif
