/* hadamard.h - the Walsh-Hadamard transform of blocks of 32, without its factor 1/sqrt(32): twice is 32 times the identity. Only
 * additions in a fixed order, so that every build gives the same bits. */
#ifndef MICA_MODEL_HADAMARD_H
#define MICA_MODEL_HADAMARD_H
#include <stdint.h>

#define MICA_HADAMARD 32

static inline void mica_hadamard_block(float *x)
{
    for (int step = 1; step < MICA_HADAMARD; step *= 2) {
        for (int i = 0; i < MICA_HADAMARD; i += 2 * step) {
            for (int j = i; j < i + step; j++) {
                float a = x[j], b = x[j + step];
                x[j] = a + b;
                x[j + step] = a - b;
            }
        }
    }
}

/** n is a multiple of MICA_HADAMARD. */
static inline void mica_hadamard(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += MICA_HADAMARD)
        mica_hadamard_block(x + i);
}

#endif
