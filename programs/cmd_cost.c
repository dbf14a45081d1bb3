/* cmd_cost.c - mica cost: options and a price table become inputs of router/cost.c, its results JSON. cost_text.c prints them
 * for people. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "cost_report.h"
#include "load.h"
#include "prices.h"
#include "router/cost.h"

/* ---- The price table ---- */

static int load_prices(const mica_opts *o, mica_prices **table)
{
    int code = mica_prices_load(o, table);
    if (code == CODE_OK && !*table && o->cloud)
        return mica_term_error("no price table was found for --cloud %s: name one with --prices FILE", o->cloud);
    return code;
}

/* ---- Inputs ---- */

static double given(double value) { return value < 0 ? NAN : value; }

/* "3:1" */
static int read_blend(const char *text, mica_tokens *in, mica_tokens *out)
{
    char left[32] = "";
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (n > 0 && n < sizeof left)
        memcpy(left, text, n);
    if (!n || !mica_opt_read_real(left, &in->v) || !mica_opt_read_real(colon + 1, &out->v) || in->v < 0 || out->v < 0 ||
        in->v + out->v <= 0 || in->v + out->v > 1e15)
        return mica_term_usage("--blend: \"%s\" is not a proportion of input to output tokens like 3:1", text);
    return CODE_OK;
}

/* The workload and the blend of its tokens. */
static int read_workload(const mica_opts *o, cost_report *r)
{
    bool parts = o->input_tokens >= 0 || o->output_tokens >= 0;
    if (parts && (o->input_tokens < 0 || o->output_tokens < 0))
        return mica_term_usage("--input-tokens and --output-tokens go together");
    if (parts && (o->tokens >= 0 || o->blend))
        return mica_term_usage("--input-tokens and --output-tokens are the workload: --tokens and --blend do not go with them");
    r->tokens.v = o->tokens < 0 ? NAN : (double)o->tokens;
    r->blend_in.v = r->table ? r->table->blend_in : 3;
    r->blend_out.v = r->table ? r->table->blend_out : 1;
    if (parts)
        r->tokens.v = (double)o->input_tokens + (double)o->output_tokens;
    if (parts && r->tokens.v > 0) {
        r->blend_in.v = (double)o->input_tokens;
        r->blend_out.v = (double)o->output_tokens;
    }
    return o->blend ? read_blend(o->blend, &r->blend_in, &r->blend_out) : CODE_OK;
}

static int read_device(const mica_opts *o, cost_report *r)
{
    r->in = (mica_device_cost_input){.rate.v = given(o->tok_s), .power.v = given(o->watts), .idle_power.v = o->idle_watts,
                                     .electricity.v = given(o->usd_per_kwh), .device.v = o->device_usd, .life.v = o->years,
                                     .duty.v = o->duty, .battery.v = given(o->battery_wh),
                                     .measured_energy.v = given(o->wh_per_million)};
    if (isnan(r->in.electricity.v) && r->table)
        r->in.electricity = r->table->electricity;
    if (o->wh_per_million >= 0 && o->watts >= 0)
        return mica_term_usage(
            "--wh-per-million is what --watts and --tok-s would give: leave out --watts or --wh-per-million");
    if (o->watts >= 0 && o->tok_s < 0)
        return mica_term_usage("--watts alone tells no energy: add --tok-s");
    if (o->device_usd > 0 && o->tok_s < 0)
        return mica_term_usage("--device-usd needs --tok-s: how many tokens it makes in its life");
    r->has_device = o->wh_per_million >= 0 || o->tok_s >= 0;
    return CODE_OK;
}

/* ---- Results ---- */

static int add_row(cost_report *r, const char *name, const char *date, mica_usd_per_million in, mica_usd_per_million out,
                   mica_usd_per_million price)
{
    cost_row *row = &r->rows[r->n_rows++];
    mica_error err;
    *row = (cost_row){.name = name, .date = date, .in = in, .out = out, .price = price, .ratio = NAN,
                      .total = mica_usd_of_tokens(price, r->tokens), .even = {{NAN}, {NAN}, {NAN}, {NAN}}};
    if (!r->has_device)
        return CODE_OK;
    row->ratio = price.v > 0 ? r->device.total.v / price.v : NAN;
    return mica_cost_break_even(&r->in, price, &row->even, &err) ? mica_load_failed(&err) : CODE_OK;
}

static int add_own_price(const mica_opts *o, cost_report *r)
{
    mica_usd_per_million in = {given(o->usd_in)}, out = {given(o->usd_out)}, all = {given(o->usd_per_million)};
    if (isnan(in.v) != isnan(out.v))
        return mica_term_usage("--usd-in and --usd-out go together");
    if (!isnan(all.v) && !isnan(in.v))
        return mica_term_usage("--usd-per-million is one price for all tokens: leave out --usd-in and --usd-out");
    if (!isnan(all.v))
        return add_row(r, "given price", "", in, out, all);
    return isnan(in.v) ? CODE_OK : add_row(r, "given price", "", in, out, mica_usd_blend(in, out, r->blend_in, r->blend_out));
}

static int add_table(const mica_opts *o, cost_report *r)
{
    size_t before = r->n_rows;
    for (size_t i = 0; r->table && i < r->table->n; i++) {
        const mica_price_row *p = &r->table->rows[i];
        if (o->cloud && strcmp(o->cloud, p->name) != 0)
            continue;
        int code = add_row(r, p->name, p->date, p->in, p->out, mica_usd_blend(p->in, p->out, r->blend_in, r->blend_out));
        if (code != CODE_OK)
            return code;
    }
    if (o->cloud && r->n_rows == before)
        return mica_term_error("the price table has no row %s", o->cloud);
    return CODE_OK;
}

static int compute(const mica_opts *o, cost_report *r)
{
    mica_error err;
    int code = read_workload(o, r);
    if (code == CODE_OK)
        code = read_device(o, r);
    if (code != CODE_OK)
        return code;
    if (mica_cost_device(&r->in, &r->device, &err))
        return mica_load_failed(&err);
    if (r->has_device) {
        r->device_total = mica_usd_of_tokens(r->device.total, r->tokens);
        r->workload_wh.v = r->device.wh.v * r->tokens.v * 1e-6;
        r->charges = mica_charges_of(r->device.wh, r->tokens, r->in.battery);
        r->time = mica_time_of_tokens(r->tokens, r->in.rate, r->in.duty);
    } else {
        r->device_total.v = r->workload_wh.v = r->charges.v = r->time.v = NAN;
    }
    code = add_own_price(o, r);
    return code == CODE_OK ? add_table(o, r) : code;
}

/* ---- JSON ---- */

static json_t *json_row(const cost_row *row)
{
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}}", "name",
                     mica_json_text(row->name, strlen(row->name)), "date", row->date, "usd_in", mica_json_real(row->in.v),
                     "usd_out", mica_json_real(row->out.v), "usd_per_million", mica_json_real(row->price.v), "total_usd",
                     mica_json_real(row->total.v), "own_device_ratio", mica_json_real(row->ratio), "break_even", "duty",
                     mica_json_real(row->even.duty.v), "tok_s", mica_json_real(row->even.rate.v), "device_usd",
                     mica_json_real(row->even.device.v), "usd_per_million", mica_json_real(row->even.price.v));
}

/* The device's figures, the workload's, and those of a price that was given on the command line, which is the first row. */
static void set_numbers(json_t *all, const mica_opts *o, const cost_report *r)
{
    const mica_device_cost *d = &r->device;
    bool own = r->n_rows > 0 && !*r->rows[0].date;
    const struct { const char *name; double value;
    } numbers[] = {
        {"j_per_token", d->energy_per_token.v},
        {"wh_per_million", d->wh.v},
        {"idle_wh_per_million", d->idle_wh.v},
        {"usd_energy_per_million", d->energy.v},
        {"usd_hardware_per_million", r->has_device ? d->hardware.v : NAN},
        {"usd_per_million", d->total.v},
        {"charges_per_million", d->charges_per_million.v},
        {"lifetime_tokens", o->device_usd > 0 ? d->lifetime.v : NAN},
        {"tokens", r->tokens.v},
        {"wh", r->workload_wh.v},
        {"charges", r->charges.v},
        {"days", mica_days_of(r->time)},
        {"device_total_usd", r->device_total.v},
        {"total_usd", own ? r->rows[0].total.v : NAN},
        {"blended_usd_per_million", own ? r->rows[0].price.v : NAN},
        {"usd_per_kwh", r->in.electricity.v},
        {"tok_s", r->in.rate.v},
        {"watts", r->in.power.v},
        {"idle_watts", r->in.idle_power.v},
        {"device_usd", r->in.device.v},
        {"years", r->in.life.v},
        {"duty", r->in.duty.v},
        {"battery_wh", r->in.battery.v},
        {"blend_in", r->blend_in.v},
        {"blend_out", r->blend_out.v},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(all, numbers[i].name, mica_json_real(numbers[i].value));
}

static int print_json(const mica_opts *o, const cost_report *r)
{
    json_t *all = json_object(), *rows = json_array();
    for (size_t i = 0; i < r->n_rows; i++)
        json_array_append_new(rows, json_row(&r->rows[i]));
    set_numbers(all, o, r);
    json_object_set_new(all, "prices_date", r->table ? json_string(r->table->date) : json_null());
    json_object_set_new(all, "cloud", rows);
    return mica_json_line(all) ? CODE_OK : CODE_FAILED;
}

int mica_cmd_cost(const mica_opts *o)
{
    cost_report r = {0};
    int code = load_prices(o, &r.table);
    if (code == CODE_OK)
        code = compute(o, &r);
    if (code == CODE_OK && o->json)
        code = print_json(o, &r);
    else if (code == CODE_OK)
        mica_cost_print(o, &r);
    mica_free(r.table);
    return code;
}
