/* Cost of an own device, break-even points, price tables. The often quoted products are in test_arithmetic.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica/mica_ops.h"

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

static mica_device_cost_input usual(void)
{
    return (mica_device_cost_input){.rate.v = 12,
                                    .power.v = 4,
                                    .electricity.v = 0.20,
                                    .device.v = 400,
                                    .life.v = 3,
                                    .duty.v = 0.2,
                                    .battery.v = 13.9,
                                    .measured_energy.v = NAN};
}

static mica_device_cost cost_of(const mica_device_cost_input *in)
{
    mica_device_cost c;
    mica_error err = {0};
    if (mica_cost_device(in, &c, &err))
        fail_msg("%s", err.message);
    return c;
}

static void energy_and_hardware_add_up(void **state)
{
    mica_device_cost_input in = usual();
    (void)state;
    mica_device_cost c = cost_of(&in);
    assert_true(near(c.energy_per_token.v, 4.0 / 12) && near(c.wh.v, 4.0 / 12 * 1e6 / 3600));
    assert_true(near(c.energy.v, c.wh.v / 1000 * 0.20) && near(c.hardware.v, 400 / (12 * 0.2 * 3 * 365 * 86400 / 1e6)));
    assert_true(near(c.total.v, c.energy.v + c.hardware.v) && c.total.v > 1.77 && c.total.v < 1.79);
    assert_true(near(c.charges_per_million.v, c.wh.v / 13.9) && c.idle_wh.v == 0);
}

/* In an hour at a duty of 20 %: 720 s at 4 W and 2880 s at 1 W, for 720 x 12 tokens. */
static void idle_power_counts(void **state)
{
    mica_device_cost_input in = usual();
    (void)state;
    in.idle_power.v = 1;
    mica_device_cost c = cost_of(&in);
    assert_true(near(c.wh.v, (720 * 4.0 + 2880 * 1.0) / 3600 / (720 * 12.0) * 1e6));
    assert_true(near(c.idle_wh.v, 2880 * 1.0 / 3600 / (720 * 12.0) * 1e6));
    in.duty.v = 1;
    assert_true(cost_of(&in).idle_wh.v == 0);
}

static void measured_energy_takes_the_place_of_power(void **state)
{
    mica_device_cost_input in = usual();
    (void)state;
    in.measured_energy.v = 50;
    in.power.v = NAN;
    mica_device_cost c = cost_of(&in);
    assert_true(near(c.wh.v, 50) && near(c.energy_per_token.v, 0.18) && near(c.energy.v, 0.01));
}

/* What is not known is not 0. */
static void unknown_inputs_stay_unknown(void **state)
{
    mica_device_cost_input in = usual();
    (void)state;
    in.power.v = NAN;
    mica_device_cost c = cost_of(&in);
    assert_true(isnan(c.wh.v) && isnan(c.energy.v) && isnan(c.total.v) && isnan(c.charges_per_million.v) &&
                isfinite(c.hardware.v));
    in = usual();
    in.electricity.v = NAN;
    c = cost_of(&in);
    assert_true(isfinite(c.wh.v) && isnan(c.energy.v) && isnan(c.total.v));
}

static void refused(mica_device_cost_input in, const char *what)
{
    mica_device_cost c;
    mica_error err = {0};
    assert_int_equal(mica_cost_device(&in, &c, &err), MICA_INVALID_ARGUMENT);
    if (!strstr(err.message, what))
        fail_msg("\"%s\" does not name %s", err.message, what);
}

static void inputs_out_of_range(void **state)
{
    mica_device_cost_input in;
    (void)state;
#define REFUSED(field, value, what) (in = usual(), in.field.v = (value), refused(in, what))
    REFUSED(rate, 0, "rate");
    REFUSED(rate, -1, "rate");
    REFUSED(rate, INFINITY, "rate");
    REFUSED(power, -1, "power");
    REFUSED(idle_power, -0.1, "idle power");
    REFUSED(electricity, -1, "electricity");
    REFUSED(device, -1, "device");
    REFUSED(device, INFINITY, "device");
    REFUSED(life, 0, "life");
    REFUSED(duty, 0, "duty");
    REFUSED(duty, 1.01, "duty");
    REFUSED(battery, 0, "battery");
    REFUSED(measured_energy, -1, "measured");
}

/* ---- Break-even ---- */

static mica_break_even even_of(const mica_device_cost_input *in, double cloud)
{
    mica_break_even e;
    mica_error err = {0};
    if (mica_cost_break_even(in, (mica_usd_per_million){cloud}, &e, &err))
        fail_msg("%s", err.message);
    return e;
}

/* Put each answer back: the total must be the cloud's price. */
static void answers_put_back(mica_device_cost_input in, double cloud)
{
    mica_break_even e = even_of(&in, cloud);
    mica_device_cost_input at;
    assert_true(near(e.price.v, cost_of(&in).total.v));
    if (isfinite(e.duty.v) && e.duty.v > 0) {
        at = in;
        at.duty = e.duty;
        assert_true(near(cost_of(&at).total.v, cloud));
    }
    if (isfinite(e.rate.v)) {
        at = in;
        at.rate = e.rate;
        assert_true(near(cost_of(&at).total.v, cloud));
    }
    if (isfinite(e.device.v)) {
        at = in;
        at.device = e.device;
        assert_true(near(cost_of(&at).total.v, cloud));
    }
}

static void break_even_points_are_exact(void **state)
{
    mica_device_cost_input in = usual();
    (void)state;
    answers_put_back(in, 1.0);
    answers_put_back(in, 3.0);
    in.idle_power.v = 0.5;
    answers_put_back(in, 1.0);
    in.measured_energy.v = 50;
    in.power.v = NAN;
    answers_put_back(in, 1.0);
    mica_break_even e = even_of(&in, 1.0);
    assert_true(isfinite(e.duty.v) && isfinite(e.rate.v) && isfinite(e.device.v));
}

static void where_there_is_none(void **state)
{
    mica_device_cost_input in = usual();
    (void)state;
    mica_break_even e = even_of(&in, 0.2625); /* the duty would have to be 144 % */
    assert_true(isnan(e.duty.v) && isfinite(e.rate.v) && e.rate.v > 80 && e.rate.v < 82 && e.device.v > 50 && e.device.v < 60);
    e = even_of(&in, 0.01); /* less than the energy alone */
    assert_true(isnan(e.duty.v) && isnan(e.device.v));
    in.device.v = 0;
    e = even_of(&in, 0.2625); /* a device that is there anyway is cheaper at any duty */
    assert_true(e.duty.v == 0);
    assert_true(isnan(even_of(&in, 0.01).duty.v));
}

/* ---- Price tables ---- */

static mica_status read_prices(const char *json, mica_prices **p, mica_error *err)
{
    return mica_prices_read(json, strlen(json), p, err);
}

#define HEAD                                                                                                                   \
    "{\"date\": \"2026-01-01\", \"electricity_usd_per_kwh\": 0.3, \"blend\": {\"input\": 3, \"output\": 1}, \"prices\": ["
#define ROW  "{\"name\": \"a\", \"provider\": \"b\", \"date\": \"2026-01-01\", \"input\": 1, \"output\": 2}"

static void tables_are_read(void **state)
{
    mica_prices *p;
    mica_error err = {0};
    (void)state;
    assert_int_equal(read_prices(HEAD ROW "]}", &p, &err), MICA_OK);
    assert_true(p->n == 1 && p->rows[0].in.v == 1 && p->rows[0].out.v == 2 && p->electricity.v == 0.3 && p->blend_in == 3);
    assert_string_equal(p->rows[0].name, "a");
    assert_string_equal(p->date, "2026-01-01");
    mica_free(p);
}

static void wrong_tables_are_refused(void **state)
{
    static const char *const wrong[][2] = {
        {"[]", "no JSON object"},
        {"{", "line 1"},
        {HEAD "1]}", "price 0"},
        {HEAD ROW ", {}]}", "price 1"},
        {HEAD "{\"name\": \"a\", \"provider\": \"b\", \"date\": \"x\", \"input\": -1, \"output\": 2}]}",
         "\"input\" of price 0"},
        {HEAD "{\"name\": \"a\", \"provider\": \"b\", \"date\": \"x\", \"input\": 1}]}", "\"output\" of price 0"},
        {HEAD "{\"name\": \"a\", \"provider\": \"b\", \"date\": \"x\", \"input\": 1, \"ouput\": 1, \"output\": 2}]}", "ouput"},
        {HEAD "{\"name\": \"a\", \"provider\": \"b\", \"date\": \"longer than a date is\", \"input\": 1, \"output\": 2}]}",
         "\"date\""},
        {"{\"date\": \"x\", \"electricity_usd_per_kwh\": 0.3, \"blend\": {\"input\": 0, \"output\": 0}, \"prices\": []}",
         "blend"},
        {"{\"date\": \"x\", \"electricity_usd_per_kwh\": 0.3, \"blend\": {\"input\": 3, \"output\": 1}, \"prices\": {}}",
         "list"},
        {"{\"date\": \"x\", \"blend\": {\"input\": 3, \"output\": 1}, \"prices\": []}", "electricity"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mica_prices *p;
        mica_error err = {0};
        assert_int_equal(read_prices(wrong[i][0], &p, &err), MICA_BAD_TEXT);
        assert_null(p);
        if (!strstr(err.message, wrong[i][1]))
            fail_msg("case %zu: \"%s\" does not name %s", i, err.message, wrong[i][1]);
    }
}

static void too_many_rows(void **state)
{
    size_t size = 200 + 80 * (MICA_PRICE_ROWS_MAX + 1);
    char *text = malloc(size), *at = text;
    mica_prices *p;
    (void)state;
    assert_non_null(text);
    at += sprintf(at, "%s", HEAD);
    for (int i = 0; i <= MICA_PRICE_ROWS_MAX; i++)
        at += sprintf(at, "%s%s", i ? "," : "", ROW);
    sprintf(at, "]}");
    assert_int_equal(read_prices(text, &p, NULL), MICA_BAD_TEXT);
    free(text);
}

/* The table that is installed: dated, with sources, and the blends that docs/claims.md speaks of. */
static void the_installed_table(void **state)
{
    char text[16384];
    mica_prices *p;
    mica_error err = {0};
    FILE *in = fopen(MICA_SHARE_DIR "/prices.json", "rb");
    (void)state;
    assert_non_null(in);
    size_t n = fread(text, 1, sizeof text, in);
    fclose(in);
    assert_true(n > 0 && n < sizeof text);
    if (mica_prices_read(text, n, &p, &err))
        fail_msg("%s", err.message);
    assert_true(p->n >= 4 && strlen(p->date) == 10);
    for (size_t i = 0; i < p->n; i++)
        assert_true(strlen(p->rows[i].date) == 10 && strlen(p->rows[i].name) > 0);
    assert_string_equal(p->rows[0].name, "gpt-4o-mini");
    assert_true(near(mica_usd_blend(p->rows[0].in, p->rows[0].out, (mica_tokens){3}, (mica_tokens){1}).v, 0.2625));
    mica_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_and_hardware_add_up), cmocka_unit_test(idle_power_counts),
        cmocka_unit_test(measured_energy_takes_the_place_of_power), cmocka_unit_test(unknown_inputs_stay_unknown),
        cmocka_unit_test(inputs_out_of_range), cmocka_unit_test(break_even_points_are_exact),
        cmocka_unit_test(where_there_is_none), cmocka_unit_test(tables_are_read),
        cmocka_unit_test(wrong_tables_are_refused), cmocka_unit_test(too_many_rows),
        cmocka_unit_test(the_installed_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
