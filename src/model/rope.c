#include "model/rope.h"

#include "kern/fmath.h"

void mica_rope_frequencies(const mica_rope *rope, int32_t dim, double *out)
{
    double log_base = mica_log((double)rope->base);
    for (int32_t i = 0; i < dim / 2; i++) {
        double factor = rope->factors ? (double)rope->factors[i] : 1.0;
        out[i] = mica_exp(-2.0 * i / dim * log_base) * (double)rope->scale / factor;
    }
}

void mica_rope_angles(const double *frequencies, float magnitude, int32_t dim, int32_t pos, float *cs)
{
    for (int32_t i = 0; i < dim / 2; i++) {
        double sine, cosine;
        mica_sincos(pos * frequencies[i], &sine, &cosine);
        cs[i] = (float)(cosine * (double)magnitude);
        cs[dim / 2 + i] = (float)(sine * (double)magnitude);
    }
}
