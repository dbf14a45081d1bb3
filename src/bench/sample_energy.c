#include "bench/sample_energy.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "device/energy.h"

static double number(const json_t *sample, const char *name)
{
    const json_t *value = json_object_get(sample, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t time_of(const json_t *sample)
{
    return json_integer_value(json_object_get(sample, "t_ns"));
}

/* ---- Between two samples ---- */

static double counter_joules(const json_t *a, const json_t *b)
{
    const json_t *before = json_object_get(a, "energy_uj"), *after = json_object_get(b, "energy_uj");
    const json_t *ranges = json_object_get(b, "energy_range_uj");
    double sum = 0.0;
    if (json_array_size(before) == 0 || json_array_size(before) != json_array_size(after))
        return NAN;
    for (size_t i = 0; i < json_array_size(after); i++) {
        int64_t step =
            mica_rapl_step(json_integer_value(json_array_get(before, i)), json_integer_value(json_array_get(after, i)),
                           json_integer_value(json_array_get(ranges, i)));
        sum += step >= 0 ? (double)step : NAN;
    }
    return sum / 1e6;
}

static double power_joules(const json_t *a, const json_t *b)
{
    return (number(a, "battery_w") + number(b, "battery_w")) / 2.0 * (double)(time_of(b) - time_of(a)) / 1e9;
}

static double charge_joules(const json_t *a, const json_t *b)
{
    return mica_energy_of_charge(number(a, "battery_j"), number(b, "battery_j"), number(a, "battery_as"),
                                 number(b, "battery_as"), (number(a, "battery_v") + number(b, "battery_v")) / 2.0);
}

/* ---- Charge, which goes in steps ---- */

/* Many gauges show charge in steps of a hundredth of the battery: what lies between the first and the last step is known, and
 * stands for the whole time in proportion. */
typedef struct charge_steps {
    int64_t first_ns, last_ns; /* of a step; 0: none yet */
    double joules, smallest;   /* after the first step */
} charge_steps;

static void add_charge(charge_steps *c, const json_t *a, const json_t *b)
{
    double joules = charge_joules(a, b);
    if (!(joules >= 0.0)) {
        c->joules = NAN;
    } else if (joules > 0.0) {
        c->smallest = c->smallest > 0.0 ? fmin(c->smallest, joules) : joules;
        c->joules += c->first_ns ? joules : 0.0;
        c->first_ns = c->first_ns ? c->first_ns : time_of(b);
        c->last_ns = time_of(b);
    }
}

static double charge_total(const charge_steps *c, const mica_sample_energy *e)
{
    double steps_s = (double)(c->last_ns - c->first_ns);
    return c->first_ns && steps_s > 0.0 ? c->joules * (double)(e->last_ns - e->first_ns) / steps_s : NAN;
}

/* ---- The whole ---- */

static bool counts(const json_t *domains, const char *name)
{
    for (size_t i = 0; i < json_array_size(domains); i++) {
        const char *domain = json_string_value(json_array_get(domains, i));
        if (domain && strncmp(domain, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static void tell_counters(const json_t *domains, mica_sample_energy *e)
{
    bool old = json_array_size(domains) == 0; /* records of before other domains were read */
    if (old || counts(domains, "package"))
        snprintf(e->source, sizeof e->source,
                 "RAPL, processor packages %sof the whole machine; %sboard and supply are not in it",
                 counts(domains, "dram") ? "and memory " : "", counts(domains, "dram") ? "" : "memory, ");
    else
        snprintf(e->source, sizeof e->source, "RAPL, the platform (psys); the supply is not in it");
    e->error = old ? NAN : mica_energy_error(MICA_ENERGY_RAPL);
}

static void tell_battery(double joules, double step, mica_sample_energy *e)
{
    double error = mica_energy_error(MICA_ENERGY_CHARGE);
    e->joules = joules;
    e->error =
        step > 0.0 ? sqrt(error * error + step * step / 6.0 / (joules * joules)) : error; /* two ends, each within a step */
    snprintf(e->source, sizeof e->source, "battery, %s; the whole device, display and radio included",
             step > 0.0 ? "steps of the charge left in it" : "power out of it");
}

void mica_sample_energy_of(const json_t *samples, int64_t from_ns, int64_t to_ns, mica_sample_energy *out)
{
    double counters = 0, power = 0;
    charge_steps charge = {.joules = 0};
    const json_t *before = NULL, *sample, *domains = NULL;
    size_t i, n = 0;
    *out = (mica_sample_energy){.joules = NAN, .error = NAN};
    json_array_foreach((json_t *)(uintptr_t)samples, i, sample)
    {
        if (time_of(sample) < from_ns || time_of(sample) > to_ns)
            continue;
        if (before) {
            counters += counter_joules(before, sample);
            power += power_joules(before, sample);
            add_charge(&charge, before, sample);
        }
        out->first_ns = n++ ? out->first_ns : time_of(sample);
        out->last_ns = time_of(sample);
        domains = json_object_get(sample, "energy_domains");
        before = sample;
    }
    if (n < 2)
        return;
    double left = charge_total(&charge, out);
    if (isfinite(counters)) {
        out->joules = counters;
        tell_counters(domains, out);
    } else if (isfinite(power)) {
        tell_battery(power, 0.0, out);
    } else if (isfinite(left)) {
        tell_battery(left, charge.smallest, out);
    }
}
