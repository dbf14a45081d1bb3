/* cost.c - what tokens cost: energy, amortised hardware, a cloud's list price, and where they are equal. Pure functions.
 *
 * Each quantity has a type of its own (mica_ops.h), so that joules cannot be taken for watt-hours, nor dollars per kWh for
 * dollars per million tokens; the powers of ten are here and nowhere else. A year has 365 days. What is unknown is NAN and
 * stays so. */
#include "router/cost.h"

#include <math.h>

#include "base/error.h"

#define JOULES_PER_WH   3600.0
#define WH_PER_KWH      1000.0
#define MILLION         1e6
#define SECONDS_PER_DAY 86400.0

/* ---- Units ---- */

mica_watt_hours mica_wh_of_joules(mica_joules j) { return (mica_watt_hours){j.v / JOULES_PER_WH}; }

mica_joules_per_token mica_energy_per_token(mica_watts power, mica_tokens_per_s rate)
{
    return (mica_joules_per_token){power.v / rate.v};
}

mica_wh_per_million mica_wh_of_token(mica_joules_per_token j)
{
    return (mica_wh_per_million){mica_wh_of_joules((mica_joules){j.v * MILLION}).v};
}

mica_usd_per_million mica_usd_of_energy(mica_wh_per_million wh, mica_usd_per_kwh price)
{
    return (mica_usd_per_million){wh.v / WH_PER_KWH * price.v};
}

mica_charges mica_charges_of(mica_wh_per_million wh, mica_tokens tokens, mica_watt_hours battery)
{
    return (mica_charges){wh.v * (tokens.v / MILLION) / battery.v};
}

mica_usd mica_usd_of_tokens(mica_usd_per_million price, mica_tokens tokens)
{
    return (mica_usd){price.v * (tokens.v / MILLION)};
}

mica_seconds mica_time_of_tokens(mica_tokens tokens, mica_tokens_per_s rate, mica_part duty)
{
    return (mica_seconds){tokens.v / (rate.v * duty.v)};
}

mica_tokens mica_lifetime_tokens(mica_tokens_per_s rate, mica_years life, mica_part duty)
{
    return (mica_tokens){rate.v * duty.v * life.v * MICA_SECONDS_PER_YEAR};
}

mica_usd_per_million mica_usd_of_device(mica_usd price, mica_tokens lifetime)
{
    return (mica_usd_per_million){price.v == 0 ? 0 : price.v / (lifetime.v / MILLION)};
}

mica_usd_per_million mica_usd_blend(mica_usd_per_million in, mica_usd_per_million out, mica_tokens n_in, mica_tokens n_out)
{
    return (mica_usd_per_million){(in.v * n_in.v + out.v * n_out.v) / (n_in.v + n_out.v)};
}

double mica_days_of(mica_seconds s) { return s.v / SECONDS_PER_DAY; }

/* ---- An own device ---- */

/* NAN is unknown and passes; infinity and what is below `low` do not. */
static mica_status check(double value, double low, double high, const char *name, mica_error *err)
{
    if (isnan(value) || (value >= low && value <= high))
        return MICA_OK;
    return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %g, outside %g..%g", name, value, low, high);
}

static mica_status check_positive(double value, const char *name, mica_error *err)
{
    if (isnan(value) || (value > 0 && isfinite(value)))
        return MICA_OK;
    return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %g: it must be above 0", name, value);
}

static mica_status check_input(const mica_device_cost_input *in, mica_error *err)
{
    const double most = 1e15; /* far beyond what anyone owns; keeps products finite */
    mica_status status = check_positive(in->rate.v, "the rate in tokens/s", err);
    if (!status)
        status = check(in->power.v, 0, most, "the power in W", err);
    if (!status)
        status = check(in->idle_power.v, 0, most, "the idle power in W", err);
    if (!status)
        status = check(in->electricity.v, 0, most, "the price of electricity per kWh", err);
    if (!status)
        status = check(in->device.v, 0, most, "the price of the device", err);
    if (!status)
        status = check_positive(in->life.v, "the life of the device in years", err);
    if (!status)
        status = check_positive(in->duty.v, "the duty", err);
    if (!status)
        status = check(in->duty.v, 0, 1, "the duty", err);
    if (!status)
        status = check_positive(in->battery.v, "the battery in Wh", err);
    return status ? status : check(in->measured_energy.v, 0, most, "the measured energy in Wh per million tokens", err);
}

/* For each second of work the device idles (1 - duty) / duty seconds. */
static mica_joules_per_token idle_energy(const mica_device_cost_input *in)
{
    if (in->idle_power.v == 0)
        return (mica_joules_per_token){0};
    return mica_energy_per_token((mica_watts){in->idle_power.v * (1 - in->duty.v) / in->duty.v}, in->rate);
}

mica_status mica_cost_device(const mica_device_cost_input *in, mica_device_cost *out, mica_error *err)
{
    mica_status status = check_input(in, err);
    if (status)
        return status;
    out->energy_per_token = isnan(in->measured_energy.v)
                                ? mica_energy_per_token(in->power, in->rate)
                                : (mica_joules_per_token){in->measured_energy.v * JOULES_PER_WH / MILLION};
    out->idle_wh = mica_wh_of_token(idle_energy(in));
    out->wh = (mica_wh_per_million){mica_wh_of_token(out->energy_per_token).v + out->idle_wh.v};
    out->energy = mica_usd_of_energy(out->wh, in->electricity);
    out->lifetime = mica_lifetime_tokens(in->rate, in->life, in->duty);
    out->hardware = mica_usd_of_device(in->device, out->lifetime);
    out->total = (mica_usd_per_million){out->energy.v + out->hardware.v};
    out->charges_per_million = mica_charges_of(out->wh, (mica_tokens){MILLION}, in->battery);
    return MICA_OK;
}

/* ---- Break-even ---- */

/* What is to be found, if it is a number above 0. */
static double positive(double x) { return x > 0 && isfinite(x) ? x : NAN; }

/* With u = tokens per second x duty, the total is energy while working + (idle power (1 - duty) + device / life) / u, all in
 * dollars per million tokens; solved for one input after the other. */
mica_status mica_cost_break_even(const mica_device_cost_input *in, mica_usd_per_million cloud, mica_break_even *out,
                                 mica_error *err)
{
    mica_device_cost cost;
    mica_status status = mica_cost_device(in, &cost, err);
    if (!status)
        status = check(cloud.v, 0, 1e15, "the cloud's price per million tokens", err);
    if (status)
        return status;
    double usd_per_joule = in->electricity.v / (JOULES_PER_WH * WH_PER_KWH);
    double working = mica_usd_of_energy(mica_wh_of_token(cost.energy_per_token), in->electricity).v; /* per million */
    double device_per_s = in->device.v == 0 ? 0 : in->device.v / (in->life.v * MICA_SECONDS_PER_YEAR);
    double idle_per_s = in->idle_power.v == 0 ? 0 : in->idle_power.v * usd_per_joule;
    double per_million = MILLION / in->rate.v; /* seconds of work */

    /* cloud = working - idle + (idle + device) / duty, the last two per million tokens */
    double duty = positive((idle_per_s + device_per_s) * per_million / (cloud.v - working + idle_per_s * per_million));
    out->duty = (mica_part){duty <= 1 ? duty : NAN};
    if (device_per_s + idle_per_s == 0)
        out->duty.v = working <= cloud.v ? 0 : NAN; /* nothing is spent while it does not work */

    /* At a given power all of the total is inversely proportional to the rate; measured energy per token is not. */
    double fixed = isnan(in->measured_energy.v) ? 0 : working;
    out->rate = (mica_tokens_per_s){positive(in->rate.v * (cost.total.v - fixed) / (cloud.v - fixed))};
    out->device = (mica_usd){positive((cloud.v - cost.energy.v) * cost.lifetime.v / MILLION)};
    out->price = cost.total;
    return MICA_OK;
}
