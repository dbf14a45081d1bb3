/* sampler_testing.h - what the three tests of the sampler share. */
#ifndef SAMPLER_TESTING_H
#define SAMPLER_TESTING_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "text/sampler.h"

/* Everything off, temperature 1. */
static inline mica_sampling plain(void)
{
    return (mica_sampling){.temperature = 1.0f, .top_p = 1.0f, .typical_p = 1.0f, .repeat_penalty = 1.0f, .penalty_last_n = 64,
                           .dry_base = 1.75f, .dry_allowed_length = 2, .dry_last_n = -1, .seed = 1};
}

static inline mica_sampling greedy(void)
{
    mica_sampling o = plain();
    o.temperature = 0.0f;
    return o;
}

static inline mica_sampler *make(int32_t n_vocab)
{
    mica_sampler *s;
    mica_error err;
    assert_int_equal(mica_sampler_new(n_vocab, 4096, &s, &err), MICA_OK);
    return s;
}

static inline void start(mica_sampler *s, mica_sampling o)
{
    mica_error err = {.message = ""};
    if (mica_sampler_start(s, &o, NULL, &err) != MICA_OK)
        fail_msg("%s", err.message);
}

static inline int32_t pick_after(mica_sampler *s, const float *logits, const int32_t *history, size_t n)
{
    int32_t token = -1;
    mica_error err = {.message = ""};
    if (mica_sampler_pick(s, logits, history, n, &token, &err) != MICA_OK)
        fail_msg("%s", err.message);
    return token;
}

static inline int32_t pick(mica_sampler *s, const float *logits) { return pick_after(s, logits, NULL, 0); }

/* Approximately normal with standard deviation `scale`; grain > 0 puts them on a grid, so that there are ties. */
static inline void random_logits(mica_rng *rng, float *x, size_t n, double scale, double grain)
{
    for (size_t i = 0; i < n; i++) {
        double g = -6.0;
        for (int k = 0; k < 12; k++)
            g += mica_rng_unit(rng);
        x[i] = (float)(grain > 0.0 ? rint(g * scale / grain) * grain : g * scale);
    }
}

#endif
