/* thermal.h - the machine's temperatures, its trip points, and what it does against heat. Reads /sys under a root prefix;
 * changes nothing. Called by device.c, serve, and bench/sensors.
 *
 * The kernel's files are in thousandths of a degree. Some drivers write whole degrees or tenths all the same, so the size of
 * the number decides: from 1000 on thousandths, up to 150 whole degrees, between them tenths. That is wrong only for a sensor
 * in thousandths between 0.001 and 0.999 degrees, and one in tenths that is below 15.1 degrees or above 99.9. 0, -1, negative
 * numbers above -1000, and anything outside of -40 to 150 degrees come from sensors that are off: no reading. */
#ifndef MICA_DEVICE_THERMAL_H
#define MICA_DEVICE_THERMAL_H
#include <stdbool.h>
#include <stdint.h>

#include "mica/mica_device.h"

/* Phones have up to about 100 zones and 60 cooling devices; a zone has up to 12 trip points, of which the kernel's names go on.
 */
enum { MICA_THERMAL_ZONES = 128, MICA_THERMAL_COOLING = 64, MICA_THERMAL_TRIPS = 8 };

typedef enum mica_zone_kind {
    MICA_ZONE_OTHER = 0, /* modems, chargers, GPUs; "acpitz", which is a constant on many boards */
    MICA_ZONE_SOC = 1,   /* the processor */
    MICA_ZONE_SKIN = 2,  /* the case */
    MICA_ZONE_BATTERY = 3,
} mica_zone_kind;

typedef enum mica_trip_kind {
    MICA_TRIP_ACTIVE = 0,  /* a fan */
    MICA_TRIP_PASSIVE = 1, /* the processor slows down */
    MICA_TRIP_HOT = 2,
    MICA_TRIP_CRITICAL = 3, /* the system goes off */
} mica_trip_kind;

typedef struct mica_trip {
    mica_trip_kind kind;
    int32_t mc; /* thousandths of a degree */
} mica_trip;

typedef struct mica_thermal_zone {
    char type[32]; /* what the kernel calls it */
    int index;     /* thermal_zoneN; hwmonN for a chip */
    bool chip;     /* of /sys/class/hwmon */
    mica_zone_kind kind;
    int32_t mc; /* MICA_UNKNOWN_MC: no file, or no reading that can be true */
    int n_trips;
    mica_trip trip[MICA_THERMAL_TRIPS]; /* those that can be true */
} mica_thermal_zone;

typedef struct mica_cooling {
    char type[32];
    int index;
    bool processor;         /* it slows the processor down */
    int32_t state, highest; /* -1: unknown (intel_powerclamp writes -1 while it is idle) */
} mica_cooling;

typedef struct mica_thermal {
    int n_zones, n_cooling;
    mica_thermal_zone zone[MICA_THERMAL_ZONES];
    mica_cooling cooling[MICA_THERMAL_COOLING];
} mica_thermal;

/** Thermal zones; chips of hwmon that are processors, where no zone is one; cooling devices. `trips`: read these too. */
void mica_thermal_read(const char *sysroot, bool trips, mica_thermal *out);

/** The hottest zone of a kind with a reading; NULL if there is none. */
const mica_thermal_zone *mica_thermal_hottest(const mica_thermal *t, mica_zone_kind kind);

/** The same for a caller that wants the processor only: celsius and the sensor's name. False if the machine does not tell. */
bool mica_thermal_processor(const char *sysroot, double *celsius, char source[32]);

#endif
