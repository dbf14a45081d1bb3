/* rng.h - random numbers that are the same on every machine. Owns nothing; the state is the caller's. Called by text/sampler.
 *
 * xoshiro256** 1.0 by D. Blackman and S. Vigna ("Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47, 2021), its
 * state filled by SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) as its authors recommend: close seeds give unrelated
 * streams, and no seed gives the all-zero state that xoshiro cannot leave. Not for secrets.
 */
#ifndef MICA_BASE_RNG_H
#define MICA_BASE_RNG_H
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct mica_rng {
    uint64_t state[4];
} mica_rng;

static inline uint64_t mica_splitmix64(uint64_t *x)
{
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline void mica_rng_seed(mica_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rng->state[i] = mica_splitmix64(&seed);
}

static inline uint64_t mica_rotl64(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

/** The next 64 bits. */
static inline uint64_t mica_rng_next(mica_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = mica_rotl64(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = mica_rotl64(s[3], 45);
    return result;
}

/** Uniform in [0, 1): a multiple of 2^-53, exact in double. */
static inline double mica_rng_unit(mica_rng *rng) { return (double)(mica_rng_next(rng) >> 11) * 0x1p-53; }

/** A seed from the system's entropy in [0, 2^53): it survives JSON readers that keep numbers as doubles. False if the system
 * has none to give. */
static inline bool mica_rng_fresh_seed(int64_t *seed)
{
    uint64_t bits;
    long got;
    do
        got = syscall(SYS_getrandom, &bits, sizeof bits, 0); /* Android has the function only since API level 28 */
    while (got < 0 && errno == EINTR);
    if (got != (long)sizeof bits)
        return false;
    *seed = (int64_t)(bits >> 11);
    return true;
}

#endif
