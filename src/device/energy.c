#include "device/energy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define POWER_GAP_NS INT64_C(30000000000)
#define MOST_RAPL_W  400.0 /* of one domain: a counter that has wrapped once may have wrapped twice after range / this */
#define RAPL_STEP_J  1e-3  /* the counters go on about once a millisecond, by less than that at the power of a laptop */

void mica_energy_init(mica_energy *e)
{
    memset(e, 0, sizeof *e);
    e->source = "";
    e->step_j = NAN;
}

double mica_energy_error(mica_energy_kind kind)
{
    /* RAPL models on parts before Haswell, and fuel gauges without calibration, are off by about so much. */
    return kind == MICA_ENERGY_NONE ? NAN : 0.05;
}

double mica_energy_of_charge(double energy_j_before, double energy_j, double charge_as_before, double charge_as, double volts)
{
    double joules = energy_j_before - energy_j;
    return isnan(joules) ? (charge_as_before - charge_as) * volts : joules;
}

/* ---- Which source ---- */

static const char *rapl_name(const mica_rapl *rapl)
{
    bool package = false, dram = false;
    for (int i = 0; i < rapl->n; i++) {
        package |= rapl->domain[i].counted && rapl->domain[i].name[0] == 'p' && rapl->domain[i].name[1] == 'a';
        dram |= rapl->domain[i].counted && rapl->domain[i].name[0] == 'd';
    }
    return !package ? "rapl:psys" : dram ? "rapl:package+dram" : "rapl:package";
}

static mica_energy_kind choose(const mica_rapl *rapl, const mica_power *power)
{
    for (int i = 0; i < rapl->n; i++)
        if (rapl->domain[i].counted)
            return MICA_ENERGY_RAPL;
    if (!isnan(power->draw_w))
        return MICA_ENERGY_POWER;
    bool alone = power->status == MICA_BATTERY_DISCHARGING && power->external != MICA_YES;
    return alone && !isnan(mica_energy_of_charge(power->energy_j, power->energy_j, power->charge_as, power->charge_as,
                                                 power->volts))
               ? MICA_ENERGY_CHARGE
               : MICA_ENERGY_NONE;
}

static void explain(mica_energy *e, const mica_rapl *rapl, const mica_power *power)
{
    static const char *const names[] = {"", "", "battery:power", "battery:charge"};
    e->source = e->kind == MICA_ENERGY_RAPL ? rapl_name(rapl) : names[e->kind];
    if (e->kind != MICA_ENERGY_NONE)
        e->reason[0] = '\0';
    else if (rapl->denied)
        snprintf(e->reason, sizeof e->reason, "this user may not read the energy counters (only root may, since 2020); %.80s",
                 power->reason);
    else
        snprintf(e->reason, sizeof e->reason, "%s%.130s", rapl->n == 0 ? "no energy counters; " : "", power->reason);
}

/* ---- Adding ---- */

/** Joules since the reading before, NAN if they cannot be told. */
static double rapl_joules(const mica_energy *e, int64_t now_ns, const mica_rapl *rapl)
{
    double joules = 0;
    if (rapl->n != e->rapl.n)
        return NAN;
    for (int i = 0; i < rapl->n; i++) {
        const mica_rapl_domain *d = &rapl->domain[i], *before = &e->rapl.domain[i];
        if (d->counted != before->counted || strcmp(d->zone, before->zone) != 0)
            return NAN;
        if (!d->counted)
            continue;
        int64_t step = mica_rapl_step(before->uj, d->uj, d->range);
        if (step < 0 || (d->range > 0 && (double)(now_ns - e->time_ns) / 1e9 * MOST_RAPL_W > (double)d->range / 1e6))
            return NAN;
        joules += (double)step / 1e6;
    }
    return joules;
}

static double joules_since(mica_energy *e, int64_t now_ns, const mica_rapl *rapl, const mica_power *power)
{
    if (e->kind == MICA_ENERGY_RAPL)
        return rapl_joules(e, now_ns, rapl);
    if (e->kind == MICA_ENERGY_POWER)
        return now_ns - e->time_ns <= POWER_GAP_NS ? (e->watts + power->draw_w) / 2.0 * (double)(now_ns - e->time_ns) / 1e9
                                                   : NAN;
    double joules =
        mica_energy_of_charge(e->energy_j, power->energy_j, e->charge_as, power->charge_as, (e->volts + power->volts) / 2.0);
    if (joules > 0.0)
        e->step_j = isnan(e->step_j) ? joules : fmin(e->step_j, joules);
    return joules >= 0.0 ? joules : NAN;
}

void mica_energy_add(mica_energy *e, int64_t now_ns, const mica_rapl *rapl, const mica_power *power)
{
    mica_energy_kind before = e->kind;
    bool first = e->time_ns == 0;
    e->kind = choose(rapl, power);
    double joules = first || e->kind != before || e->kind == MICA_ENERGY_NONE ? NAN : joules_since(e, now_ns, rapl, power);
    if (!isnan(joules)) {
        e->joules += joules;
    } else if (!first && (e->kind != before || e->kind != MICA_ENERGY_NONE)) {
        e->epoch++;
    }
    if (isnan(joules))
        e->step_j = e->kind == MICA_ENERGY_RAPL ? RAPL_STEP_J : e->kind == MICA_ENERGY_POWER ? 0.0 : NAN;
    explain(e, rapl, power);
    e->time_ns = now_ns;
    e->rapl = *rapl;
    e->watts = power->draw_w;
    e->charge_as = power->charge_as;
    e->energy_j = power->energy_j;
    e->volts = power->volts;
}
