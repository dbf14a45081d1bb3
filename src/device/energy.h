/* energy.h - joules from what the machine has to count them with. A pure state machine over readings and times, so that tests
 * need no hours. Called by device.c.
 *
 * The best source of a reading, in this order:
 *  1. RAPL counters (rapl.h): the processors' own, whoever uses them.
 *  2. power out of the battery, if it discharges and nothing else feeds the machine: the integral by trapezoids.
 *  3. charge or energy left in the battery, by its steps: some gauges tell no current.
 * On external power a battery says nothing, so 2 and 3 are refused there.
 *
 * An epoch is a time without a gap: the same source, readings that follow one another closely enough (30 s for power, which is
 * not known between readings; before a RAPL counter can have wrapped twice). Energy is only added within one. */
#ifndef MICA_DEVICE_ENERGY_H
#define MICA_DEVICE_ENERGY_H
#include "device/power.h"
#include "device/rapl.h"

typedef enum mica_energy_kind {
    MICA_ENERGY_NONE = 0,
    MICA_ENERGY_RAPL = 1,
    MICA_ENERGY_POWER = 2,
    MICA_ENERGY_CHARGE = 3,
} mica_energy_kind;

typedef struct mica_energy {
    mica_energy_kind kind;
    double joules; /* of all epochs */
    double step_j; /* NAN: not seen yet */
    int32_t epoch;
    const char *source; /* static; "" without one */
    char reason[160];   /* why there is none */
    /* of the reading before */
    int64_t time_ns; /* 0: there was none */
    mica_rapl rapl;
    double watts, charge_as, energy_j, volts;
} mica_energy;

void mica_energy_init(mica_energy *e);

/** Takes in a reading. `now_ns` grows from call to call. */
void mica_energy_add(mica_energy *e, int64_t now_ns, const mica_rapl *rapl, const mica_power *power);

/** Joules that left the battery between two readings of what is in it (energy, else charge at the mean voltage); NAN if neither
 * is known in both. Below 0 if it gained. */
double mica_energy_of_charge(double energy_j_before, double energy_j, double charge_as_before, double charge_as, double volts);

/** How far a source may be off, as a part of its value: what is assumed where nobody has calibrated the machine at hand. */
double mica_energy_error(mica_energy_kind kind);

#endif
