#include "bench/cooldown.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *mica_cooldown_state_name(mica_cooldown_state state)
{
    static const char *const names[] = {"wait", "cool", "blind", "timeout"};
    return names[state];
}

void mica_cooldown_begin(mica_cooldown *c, const mica_cooldown_rules *rules)
{
    memset(c, 0, sizeof *c);
    c->rules = *rules;
}

static mica_idle_zone *find_zone(mica_cooldown *c, const char *name)
{
    for (int i = 0; i < c->n_zones; i++)
        if (strcmp(c->zone[i].name, name) == 0)
            return &c->zone[i];
    if (c->n_zones == MICA_ZONES)
        return NULL;
    mica_idle_zone *z = &c->zone[c->n_zones++];
    *z = (mica_idle_zone){.idle_c = NAN, .low = NAN, .high = NAN};
    snprintf(z->name, sizeof z->name, "%s", name);
    return z;
}

void mica_cooldown_know(mica_cooldown *c, const char *zone, double idle_c)
{
    mica_idle_zone *z = find_zone(c, zone);
    if (z)
        z->idle_c = idle_c;
}

/* Whether this zone is cool. A reading below the idle one is the new idle one. */
static bool zone_is_cool(mica_cooldown *c, const mica_zone *reading, int64_t now_ns)
{
    mica_idle_zone *z = find_zone(c, reading->name);
    double t = reading->celsius;
    if (!z) /* more zones than there is room for: those that fit decide */
        return true;
    if (t < z->idle_c)
        z->idle_c = t;
    if (!isnan(z->idle_c))
        return t <= z->idle_c + c->rules.within_c;
    if (!(z->high - z->low < c->rules.within_c) || !(fmax(z->high, t) - fmin(z->low, t) < c->rules.within_c)) {
        z->low = z->high = t; /* it moved, or this is the first reading */
        z->window_ns = now_ns;
    }
    z->low = fmin(z->low, t);
    z->high = fmax(z->high, t);
    if ((double)(now_ns - z->window_ns) < c->rules.settle_s * 1e9)
        return false;
    z->idle_c = t;
    return true;
}

mica_cooldown_state mica_cooldown_step(mica_cooldown *c, const mica_sensors *now, int64_t now_ns)
{
    if (!c->start_ns)
        c->start_ns = now_ns;
    double waited_s = (double)(now_ns - c->start_ns) / 1e9;
    if (now->n_zones == 0) {
        snprintf(c->why, sizeof c->why, "no temperature can be read: %.0f s waited", c->rules.blind_s);
        return waited_s >= c->rules.blind_s ? MICA_COOLDOWN_BLIND : MICA_COOLDOWN_WAIT;
    }
    bool cool = true;
    for (int i = 0; i < now->n_zones; i++) {
        if (!zone_is_cool(c, &now->zone[i], now_ns) && cool) {
            cool = false;
            snprintf(c->why, sizeof c->why, "%s has %.1f C", now->zone[i].name, now->zone[i].celsius);
        }
    }
    if (cool && now->cooling_active > 0) {
        cool = false;
        snprintf(c->why, sizeof c->why, "%d cooling devices of the processor are active", now->cooling_active);
    }
    if (cool) {
        snprintf(c->why, sizeof c->why, "%d zones within %.1f C of idle", now->n_zones, c->rules.within_c);
        return MICA_COOLDOWN_COOL;
    }
    return waited_s >= c->rules.max_s ? MICA_COOLDOWN_TIMEOUT : MICA_COOLDOWN_WAIT;
}
