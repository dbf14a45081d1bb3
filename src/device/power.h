/* power.h - the machine's batteries and what else feeds it. Reads /sys/class/power_supply under a root prefix; changes nothing.
 * Called by device.c, energy.c and bench/sensors.
 *
 * Which supply is the machine's battery: one of the type Battery that is not a part of a peripheral (scope Device) and present.
 * Phones show the same cell through several drivers ("bms", "fg", "main"); there it is the one that Android's health service
 * takes, "battery". Elsewhere every such battery counts.
 *
 * The sign of current_now differs from driver to driver, and so does the unit: the kernel's interface says microamperes,
 * negative while it discharges, and some makers write milliamperes, or never a sign. So the magnitude counts and `status` gives
 * the direction; and a machine that computes draws more than 20 mA from its battery, so a smaller number while it discharges is
 * one in milliamperes. Above 200 W nothing is believed. */
#ifndef MICA_DEVICE_POWER_H
#define MICA_DEVICE_POWER_H
#include <stdbool.h>
#include <stdint.h>

#include "mica/mica_device.h"

enum { MICA_POWER_SUPPLIES = 32, MICA_POWER_BATTERIES = 4 };

/** NAN and MICA_UNKNOWN_MC for what it does not tell. */
typedef struct mica_battery {
    char name[64];
    mica_battery_status status;
    double level;                   /* 0..1 */
    double volts, amps, watts;      /* amps and watts: magnitudes */
    double charge_as, full_as;      /* charge left and when full, in ampere-seconds */
    double energy_j, energy_full_j; /* energy left and when full */
    int32_t temp_mc;
    char source[32]; /* the file that the power is from: "power_now", "current_now", "current_avg" */
} mica_battery;

typedef struct mica_power {
    int n_batteries;
    mica_battery battery[MICA_POWER_BATTERIES];
    int external;               /* external power: MICA_YES, MICA_NO, MICA_UNKNOWN */
    char external_name[64];     /* the supply that is on; "" */
    mica_battery_status status; /* of all batteries: discharging if any is */
    double level;               /* of all, 0..1 */
    double flow_w;              /* power into or out of the batteries, by their status */
    double draw_w;              /* the same if they discharge and no external power is on: what the device takes. Else NAN */
    double charge_as, energy_j; /* left in all of them */
    double volts;               /* mean */
    int32_t temp_mc;            /* the hottest */
    char source[104];           /* "BAT0/power_now": what flow_w is from; "" */
    char reason[160];           /* why draw_w is unknown; "" if it is not */
} mica_power;

void mica_power_read(const char *sysroot, mica_power *out);

#endif
