/* sample_energy.h - joules from the samples of a run. Pure. Called by summary.c and campaign_plan.c.
 *
 * The source is the best that tells something between every two samples: energy counters (RAPL), power out of a battery, charge
 * left in a battery. A battery counts only where it feeds the device alone: on a charger there is no energy. */
#ifndef MICA_BENCH_SAMPLE_ENERGY_H
#define MICA_BENCH_SAMPLE_ENERGY_H
#include <jansson.h>
#include <stdint.h>

typedef struct mica_sample_energy {
    double joules; /* from the first to the last sample; NAN: no source */
    int64_t first_ns, last_ns;
    double error; /* how far the joules may be off, as a part of them; NAN: samples of old records do not say what they count */
    char source[160]; /* "" without one */
} mica_sample_energy;

/** Of the samples whose time is in [from_ns, to_ns]. */
void mica_sample_energy_of(const json_t *samples, int64_t from_ns, int64_t to_ns, mica_sample_energy *out);

#endif
