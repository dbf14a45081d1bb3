/* mica_device.h - the machine under the model: how hot, how fast, how full and on what power it is.
 *
 *     mica_device *device;  mica_device_state now;
 *     mica_device_open(NULL, &device, &err);
 *     mica_device_read(device, &now, &err);             // from any thread, as often as wanted
 *     if (now.thermal >= MICA_THERMAL_SEVERE) ...
 *     mica_device_close(device);
 *
 * What a machine does not tell, or tells in a way that cannot be true, is unknown, never zero: MICA_UNKNOWN (-1) for enums and
 * answers of yes and no, MICA_UNKNOWN_MC for temperatures, -1 for bytes, NAN for real numbers.
 *
 * On Android and Apple systems an app may not read much of /sys and learns the rest from the system: it hands that to
 * mica_device_report(), and readers find it in the same structure. Nothing here changes the machine. */
#ifndef MICA_MICA_DEVICE_H
#define MICA_MICA_DEVICE_H
#include "mica/mica.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_UNKNOWN_MC INT32_MIN

/** Answers of yes and no. */
enum { MICA_UNKNOWN = -1, MICA_NO = 0, MICA_YES = 1 };

/** How hard the system slows itself down; the steps are Android's PowerManager.THERMAL_STATUS_*. Apple's thermalState nominal,
 * fair, serious, critical are NONE, LIGHT, SEVERE, CRITICAL. Where nobody reports it, the kernel's files say it: an active
 * cooling device of the processor is LIGHT, a passive trip point that is reached MODERATE, a hot one SEVERE, a critical one
 * SHUTDOWN. */
typedef enum mica_thermal_status {
    MICA_THERMAL_UNKNOWN = -1,
    MICA_THERMAL_NONE = 0,
    MICA_THERMAL_LIGHT = 1,
    MICA_THERMAL_MODERATE = 2,
    MICA_THERMAL_SEVERE = 3,
    MICA_THERMAL_CRITICAL = 4,
    MICA_THERMAL_EMERGENCY = 5,
    MICA_THERMAL_SHUTDOWN = 6,
} mica_thermal_status;

/** How urgently the system wants memory back. Android's onTrimMemory RUNNING_MODERATE, _LOW, _CRITICAL; Apple's memory warning
 * is CRITICAL. Background levels (40, 60, 80) are MODERATE, LOW, CRITICAL. */
typedef enum mica_trim_level {
    MICA_TRIM_UNKNOWN = -1, /* nobody reports it */
    MICA_TRIM_NONE = 0,
    MICA_TRIM_MODERATE = 1,
    MICA_TRIM_LOW = 2,
    MICA_TRIM_CRITICAL = 3,
} mica_trim_level;

typedef enum mica_battery_status {
    MICA_BATTERY_UNKNOWN = -1,
    MICA_BATTERY_NONE = 0, /* the machine has none */
    MICA_BATTERY_DISCHARGING = 1,
    MICA_BATTERY_CHARGING = 2,
    MICA_BATTERY_FULL = 3,
    MICA_BATTERY_IDLE = 4, /* "Not charging": on external power, held at its level */
} mica_battery_status;

/** What shows that the machine holds itself back, now. */
enum {
    MICA_THROTTLE_COOLING = 1 << 0,  /* a cooling device of the processor is above state 0 */
    MICA_THROTTLE_LIMIT = 1 << 1,    /* the highest clock allowed is below the highest that there is */
    MICA_THROTTLE_TRIP = 1 << 2,     /* a passive, hot or critical trip point is reached */
    MICA_THROTTLE_COUNTER = 1 << 3,  /* a counter of throttle events has grown in the last 2 s */
    MICA_THROTTLE_REPORTED = 1 << 4, /* the app reported MODERATE or worse */
    MICA_THROTTLE_QUOTA = 1 << 5,    /* a quota stopped this process in the last 2 s (cpu.stat of its control groups) */
};

typedef struct mica_device_state {
    size_t struct_size;  /* set by mica_device_read() */
    int64_t time_ns;     /* when it was read; monotonic clock */
    int64_t reported_ns; /* the app's last report; 0: none */

    /* Heat, in thousandths of a degree Celsius. */
    int32_t temp_max_mc;  /* the hottest of the next three: what is near the processor, the user, the battery */
    int32_t temp_soc_mc;  /* the hottest sensor of the processor */
    int32_t temp_skin_mc; /* of the case */
    int32_t temp_battery_mc;
    mica_thermal_status thermal; /* the worse of what the app reported and what trip points say */
    /** 0: 30 degrees or more below the point where throttling begins, 1: there, more: beyond. Reported, or from passive trip
     * points, the largest of them; it may be below 0. */
    double headroom;
    double cooling;     /* state of the processor's cooling devices as a part of the highest, 0..1: the largest of them */
    double clock;       /* clock now as a part of the highest that there is, 0..1: mean of the CPUs, by their speed */
    double clock_limit; /* highest clock allowed now, likewise; a limit is not always heat: see power_save */
    unsigned throttle;  /* MICA_THROTTLE_*; 0: nothing shows it (or nothing can be read) */

    /* Power. */
    double battery_level; /* 0..1 */
    double battery_w; /* power out of the battery; NAN unless it discharges: what charges it says nothing about the device */
    mica_battery_status battery;
    int on_mains;   /* external power is connected: MICA_YES, MICA_NO, MICA_UNKNOWN */
    int power_save; /* the system is in its power saver */
    int foreground; /* the app is in front of its user */
    /** Joules since the monitor's first reading, and what counts them: "rapl:package", "rapl:package+dram", "rapl:psys" (the
     * whole machine's processors, whoever uses them), "battery:power" or "battery:charge" (the whole device, display included).
     * NAN and
     * "" where nothing counts them: energy_reason says why. A difference between two states is an energy only if they have
     * the same energy_epoch: a new one begins when a source comes, goes or fails. */
    double energy_j;
    double energy_error;       /* how far the source may be off, as a part of the value (docs/device.md) */
    double energy_step_j;      /* the smallest amount that it can tell; NAN: not known yet */
    const char *energy_source; /* static */
    char energy_reason[160];   /* "on external power (usb): ..."; "" while energy_j is known */
    int32_t energy_epoch;

    /* Memory, in bytes; -1: unknown. */
    int64_t memory_total;     /* of the machine */
    int64_t memory_available; /* what this process may still take (docs/memory.md): the least that anybody leaves it */
    int64_t memory_limit;     /* of the control groups, the least; -1: none, or unknown */
    mica_trim_level trim;     /* as reported */
    /* Pressure: percent of the last 10 s in which some (all) tasks waited, 0..100. */
    double psi_memory_some10, psi_memory_full10, psi_cpu_some10, psi_io_some10;

    double cpu_quota; /* CPUs that control groups allow; NAN: no limit, or unknown */
} mica_device_state;

/** What an app knows from its system. Everything left as _default() made it is "not said": what was reported earlier stays. */
typedef struct mica_app_report {
    size_t struct_size;
    mica_thermal_status thermal;
    double headroom; /* Android: getThermalHeadroom(10) */
    int power_save;
    int foreground;
    mica_trim_level trim;
    double battery_level; /* these three: where /sys/class/power_supply cannot be read */
    mica_battery_status battery;
    int on_mains;
} mica_app_report;

typedef struct mica_device_options {
    size_t struct_size;
    const char *sysroot;     /* prefix of every read of /proc, /sys and control groups; NULL or "" for the real ones. Copied */
    int32_t min_interval_ms; /* mica_device_read() gives the reading before if it is younger; 0: always reads. Default 200 */
} mica_device_options;

/** A monitor of one machine. May be used from any number of threads. */
typedef struct mica_device mica_device;

MICA_API mica_device_options mica_device_options_default(void);

/** Takes no reading yet. Only a system root that is no folder, or lack of memory, is an error: a machine
 * that tells nothing is one on which everything is unknown. */
MICA_API mica_status mica_device_open(const mica_device_options *options, mica_device **out, mica_error *err);
/** NULL is fine. */
MICA_API void mica_device_close(mica_device *device);

/** The state now. Reads up to some hundred small files: for between tokens, not for every token. */
MICA_API mica_status mica_device_read(mica_device *device, mica_device_state *state, mica_error *err);

MICA_API mica_app_report mica_app_report_default(void);
/** Takes note of what the app reports. From any thread; never waits for a reading. */
MICA_API mica_status mica_device_report(mica_device *device, const mica_app_report *report, mica_error *err);

/** "none", "light", ... "shutdown"; "unknown". Static, as all of these. */
MICA_API const char *mica_thermal_status_name(mica_thermal_status status);
MICA_API const char *mica_battery_status_name(mica_battery_status status);
MICA_API const char *mica_trim_level_name(mica_trim_level level);

#ifdef __cplusplus
}
#endif
#endif
