/* cost_text.c - mica cost for people: tables, and with --explain every step with its units. */
#include <math.h>
#include <stdio.h>

#include "cost_report.h"
#include "router/cost.h"

/* A number with some digits behind the point in `width` columns, or what stands for an unknown one. */
static void print_cell(int width, int digits, double value, const char *unknown)
{
    if (isfinite(value))
        printf("%*.*f", width, digits, value);
    else
        printf("%*s", width, unknown);
}

/* ---- An own device ---- */

static void print_device(const cost_report *r)
{
    const mica_device_cost *d = &r->device;
    puts("Own device, dollars per million tokens");
    if (isfinite(d->wh.v)) {
        printf("  energy    ");
        print_cell(10, 4, d->energy.v, "unknown");
        if (isfinite(r->in.electricity.v))
            printf("   %.4g Wh at $%.4g per kWh\n", d->wh.v, r->in.electricity.v);
        else
            printf("   %.4g Wh; what they cost takes --usd-per-kwh\n", d->wh.v);
    }
    printf("  hardware  ");
    print_cell(10, 4, d->hardware.v, "unknown");
    if (r->in.device.v > 0)
        printf("   $%.6g over %.5g million tokens\n", r->in.device.v, d->lifetime.v * 1e-6);
    else
        puts("   the device is there anyway (--device-usd)");
    printf("  total     ");
    print_cell(10, 4, d->total.v, "unknown");
    puts(isfinite(d->total.v) ? "" : "   the energy is missing: --watts or --wh-per-million, and --usd-per-kwh");
    if (isfinite(d->charges_per_million.v))
        printf("  a battery of %.4g Wh is charged %.4g times for a million tokens\n", r->in.battery.v,
               d->charges_per_million.v);
}

static void print_workload(const cost_report *r)
{
    printf("Workload of %.0f tokens on it:", r->tokens.v);
    if (isfinite(r->device_total.v))
        printf(" $%.2f,", r->device_total.v);
    if (isfinite(r->workload_wh.v))
        printf(" %.4g kWh,", r->workload_wh.v * 1e-3);
    if (isfinite(r->charges.v))
        printf(" %.4g charges,", r->charges.v);
    if (isfinite(r->time.v))
        printf(" %.4g days of one device at a duty of %.3g %%\n", mica_days_of(r->time), r->in.duty.v * 100);
    else
        puts(" time unknown (--tok-s)");
}

/* ---- The steps ---- */

static void explain_energy(const cost_report *r)
{
    const mica_device_cost *d = &r->device;
    if (isfinite(r->in.measured_energy.v))
        printf("  measured: %.6g Wh per million tokens = %.6g J/token\n", r->in.measured_energy.v, d->energy_per_token.v);
    else
        printf("  %.6g W / %.6g tokens/s = %.6g J/token\n", r->in.power.v, r->in.rate.v, d->energy_per_token.v);
    if (d->idle_wh.v > 0)
        printf("  idle: %.6g W x (1 - %.4g) / %.4g = %.6g W beside the work = %.6g Wh per million tokens\n", r->in.idle_power.v,
               r->in.duty.v, r->in.duty.v, r->in.idle_power.v * (1 - r->in.duty.v) / r->in.duty.v, d->idle_wh.v);
    printf("  %.6g J/token x 1000000 / 3600 J/Wh%s = %.6g Wh per million tokens\n", d->energy_per_token.v,
           d->idle_wh.v > 0 ? " + idle" : "", d->wh.v);
    if (isfinite(r->in.electricity.v))
        printf("  %.6g Wh / 1000 x $%.6g per kWh = $%.6g per million tokens\n", d->wh.v, r->in.electricity.v, d->energy.v);
    if (isfinite(r->in.battery.v))
        printf("  %.6g Wh / %.6g Wh = %.6g charges per million tokens\n", d->wh.v, r->in.battery.v, d->charges_per_million.v);
}

static void explain_hardware(const cost_report *r)
{
    const mica_device_cost *d = &r->device;
    printf("  %.6g tokens/s x 86400 s x 365 x %.4g years x duty %.4g = %.6g million tokens in its life\n", r->in.rate.v,
           r->in.life.v, r->in.duty.v, d->lifetime.v * 1e-6);
    printf("  $%.6g / %.6g million = $%.6g per million tokens\n", r->in.device.v, d->lifetime.v * 1e-6, d->hardware.v);
}

static void explain_cloud(const cost_report *r)
{
    for (size_t i = 0; i < r->n_rows; i++) {
        const cost_row *row = &r->rows[i];
        if (isfinite(row->in.v))
            printf("  %s: (%.6g x $%.6g + %.6g x $%.6g) / %.6g = $%.6g per million tokens\n", row->name, r->blend_in.v,
                   row->in.v, r->blend_out.v, row->out.v, r->blend_in.v + r->blend_out.v, row->price.v);
        if (isfinite(row->total.v))
            printf("  %s: $%.6g x %.6g million = $%.6g\n", row->name, row->price.v, r->tokens.v * 1e-6, row->total.v);
    }
}

static void explain(const cost_report *r)
{
    puts("Steps");
    if (isfinite(r->device.wh.v))
        explain_energy(r);
    if (r->has_device && r->in.device.v > 0)
        explain_hardware(r);
    if (isfinite(r->time.v))
        printf("  %.0f tokens / (%.6g tokens/s x duty %.4g) / 86400 s = %.6g days\n", r->tokens.v, r->in.rate.v, r->in.duty.v,
               mica_days_of(r->time));
    explain_cloud(r);
    putchar('\n');
}

/* ---- The cloud ---- */

static void print_cloud(const cost_report *r)
{
    bool own = r->n_rows > 0 && !*r->rows[0].date;
    printf("Cloud, dollars per million tokens, input:output %.6g:%.6g", r->blend_in.v, r->blend_out.v);
    printf(r->table && !(own && r->n_rows == 1) ? ", list prices of %s\n" : "\n", r->table ? r->table->date : "");
    printf("  %-20s%10s%14s", "", "price", "workload, $");
    puts(r->has_device ? "   own/cloud   equal at: duty     tokens/s   device, $" : "");
    for (size_t i = 0; i < r->n_rows; i++) {
        const cost_row *row = &r->rows[i];
        printf("  %-20.20s", row->name);
        print_cell(10, 4, row->price.v, "");
        print_cell(14, 2, row->total.v, "");
        if (r->has_device) {
            print_cell(12, 3, row->ratio, "");
            const char *none = isfinite(r->device.total.v) ? "never" : "unknown";
            print_cell(16, 3, row->even.duty.v, none);
            print_cell(13, 1, row->even.rate.v, none);
            print_cell(12, 2, row->even.device.v, none);
        }
        putchar('\n');
    }
}

/* ---- Curves ---- */

/* The cloud rows that are dearer than `total`, a letter each: a is the first row. */
static void print_beaten(const cost_report *r, double total)
{
    for (size_t i = 0; i < r->n_rows && i < 26; i++)
        putchar(total <= r->rows[i].price.v ? 'a' + (int)i : '.');
}

static void print_curves(const cost_report *r)
{
    static const double duties[] = {0.05, 0.1, 0.2, 0.5, 1}, factors[] = {0.5, 1, 2, 4, 8, 16};
    int letters = (int)(r->n_rows < 26 ? r->n_rows : 26);
    puts("\nOwn device, total per million tokens over duty and rate at the same power; letters: the cloud rows that are no "
         "cheaper");
    printf("  tokens/s ");
    for (size_t k = 0; k < sizeof duties / sizeof *duties; k++) {
        char head[24];
        snprintf(head, sizeof head, "duty %.0f %%", duties[k] * 100);
        printf("%*s", 11 + letters, head);
    }
    putchar('\n');
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        printf("  %8.4g ", r->in.rate.v * factors[i]);
        for (size_t k = 0; k < sizeof duties / sizeof *duties; k++) {
            mica_device_cost_input in = r->in;
            mica_device_cost cost;
            in.rate.v *= factors[i];
            in.duty.v = duties[k];
            if (mica_cost_device(&in, &cost, NULL))
                cost.total.v = NAN;
            print_cell(10, 4, cost.total.v, "unknown");
            putchar(' ');
            print_beaten(r, cost.total.v);
        }
        putchar('\n');
    }
    for (size_t i = 0; i < r->n_rows && i < 26; i++)
        printf("  %c  %s, $%.4f\n", 'a' + (int)i, r->rows[i].name, r->rows[i].price.v);
}

void mica_cost_print(const mica_opts *o, const cost_report *r)
{
    if (o->explain)
        explain(r);
    if (r->has_device)
        print_device(r);
    if (r->has_device && isfinite(r->tokens.v))
        print_workload(r);
    if (r->has_device && r->n_rows > 0)
        putchar('\n');
    if (r->n_rows > 0)
        print_cloud(r);
    if (o->break_even && r->has_device)
        print_curves(r);
    if (!r->has_device && r->n_rows == 0)
        puts("Nothing to compute: give --tok-s and --watts, or a price (mica cost --help).");
}
