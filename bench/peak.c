/* peak.c - the most byte products that one core can form: the instructions of each kernel set's inner loop on registers alone, nothing
 * loaded. What bench/micro calls prefill is to be read against it.
 *
 *     peak
 *
 * Prints GMAC/s for each set that this CPU runs; nothing on other processors than x86-64.
 */
#include <stdio.h>
#include <time.h>

#include "kern/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { CHAINS = 10, STEPS = 20 * 1000 * 1000 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The compiler may not know what is in v, nor drop what was computed. */
#define OPAQUE(v) __asm__ volatile("" : "+v"(v))

#define TEN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)

/* Ten independent chains in registers; gives the seconds. */
#define MEASURE(name, features, vector, zero, STEP)            \
    __attribute__((target(features))) static double name(void) \
    {                                                          \
        vector w = zero(), x = zero();                         \
        OPAQUE(w);                                             \
        OPAQUE(x);                                             \
        TEN(DECLARE_##vector)                                  \
        double start = now_s();                                \
        for (int step = 0; step < STEPS; step++) {             \
            TEN(STEP)                                          \
        }                                                      \
        double t = now_s() - start;                            \
        TEN(KEEP)                                              \
        OPAQUE(w);                                             \
        OPAQUE(x);                                             \
        return t;                                              \
    }

#define DECLARE___m256i(i) __m256i s##i = _mm256_setzero_si256();
#define DECLARE___m512i(i) __m512i s##i = _mm512_setzero_si512();
#define KEEP(i) OPAQUE(s##i);
#define STEP_AVX2(i) s##i = _mm256_add_epi16(s##i, _mm256_maddubs_epi16(w, x)); OPAQUE(s##i); OPAQUE(w);
#define STEP_AVXVNNI(i) s##i = _mm256_dpbusd_avx_epi32(s##i, w, x); OPAQUE(s##i);
#define STEP_AVX512(i) s##i = _mm512_dpbusd_epi32(s##i, w, x); OPAQUE(s##i);
MEASURE(run_avx2, "avx2", __m256i, _mm256_setzero_si256, STEP_AVX2)
MEASURE(run_avxvnni, "avx2,avxvnni", __m256i, _mm256_setzero_si256, STEP_AVXVNNI)
MEASURE(run_avx512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512, STEP_AVX512)

static void report(const char *name, int products, double (*run)(void))
{
    double best = run();
    for (int i = 0; i < 4; i++) {
        double t = run();
        best = t < best ? t : best;
    }
    printf("%-8s %6.0f GMAC/s\n", name, (double)products * CHAINS * STEPS / best * 1e-9);
}

int main(void)
{
    if (mica_cpu_has_avx2())
        report("avx2", 32, run_avx2);
    if (mica_cpu_has_avx_vnni())
        report("avxvnni", 32, run_avxvnni);
    if (mica_cpu_has_avx512_vnni())
        report("avx512", 64, run_avx512);
    return 0;
}
#else
int main(void) { return 0; }
#endif
