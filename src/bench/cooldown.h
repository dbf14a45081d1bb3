/* cooldown.h - when is a machine cool enough to begin? A pure state machine over readings and times, so that tests need no
 * hours; measure.c feeds it every few seconds.
 *
 * Cool: every thermal zone is within `within_c` of its idle reading, and no cooling device of the processor is active. The idle
 * reading of a zone is the lowest that this database ever saw on this machine. A zone without one counts as cool when it has
 * moved by less than within_c for settle_s; what it then shows becomes its idle reading. No zone at all: blind_s are waited,
 * and the record says so. */
#ifndef MICA_BENCH_COOLDOWN_H
#define MICA_BENCH_COOLDOWN_H
#include "base/error.h"
#include "bench/sensors.h"

typedef struct mica_cooldown_rules {
    double within_c, settle_s, max_s, blind_s, poll_s;
} mica_cooldown_rules;

typedef struct mica_idle_zone {
    char name[32];
    double idle_c;     /* NAN: not known yet */
    double low, high;  /* since the window began */
    int64_t window_ns; /* its beginning */
} mica_idle_zone;

typedef enum mica_cooldown_state {
    MICA_COOLDOWN_WAIT = 0,
    MICA_COOLDOWN_COOL = 1,
    MICA_COOLDOWN_BLIND = 2,   /* no sensor: the time was waited */
    MICA_COOLDOWN_TIMEOUT = 3, /* still hot after max_s */
} mica_cooldown_state;

typedef struct mica_cooldown {
    mica_cooldown_rules rules;
    int64_t start_ns; /* 0: not begun */
    int n_zones;
    mica_idle_zone zone[MICA_ZONES];
    char why[120]; /* what is waited for, or what decided */
} mica_cooldown;

/** "wait", "cool", "blind", "timeout". Static. */
const char *mica_cooldown_state_name(mica_cooldown_state state);

/** Idle readings that are known are set in zone[] before the first step (mica_cooldown_know). */
void mica_cooldown_begin(mica_cooldown *c, const mica_cooldown_rules *rules);
void mica_cooldown_know(mica_cooldown *c, const char *zone, double idle_c);
/** One reading. Anything but WAIT ends it; lower readings have then become the zones' idle_c. */
mica_cooldown_state mica_cooldown_step(mica_cooldown *c, const mica_sensors *now, int64_t now_ns);

#endif
