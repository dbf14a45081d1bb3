/* Decisions, one situation after the other. */
#include "route_util.h"

static mica_route_request request_of(mica_route_class value)
{
    mica_route_request r = mica_route_request_default();
    r.route_class = value;
    r.prompt_tokens = 100;
    return r;
}

static void expect_order(const char *policy, const mica_route_request *r, const phone *p, const char *wanted)
{
    mica_route_decision d;
    decide(policy, r, &p->state, &d);
    if (strcmp(order_of(&d), wanted) != 0)
        fail_msg("%s, wanted %s: %s", order_of(&d), wanted, d.message);
}

static const char allowed[] = POLICY("true", "");
static const char denied[] = POLICY("false", "");

static void test_narrow_takes_the_smallest_that_is_good_enough(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_NARROW);
    phone p;
    phone_make(&p);
    expect_order(denied, &r, &p, "small big");
    expect_order(allowed, &r, &p, "small big server");
    static const char strict[] = "{\"schema\":1,\"name\":\"p\",\"version\":\"1\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},"
                                 "\"ladder\":" LADDER ",\"classes\":{\"narrow\":{\"order\":\"smallest\",\"min_quality\":0.7,\"output_tokens\":9},"
                                 "\"complex\":{\"order\":\"ladder\",\"output_tokens\":9},\"unknown\":{\"order\":\"ladder\",\"output_tokens\":9}}}";
    expect_order(strict, &r, &p, "big");
    r.task = "redact"; /* small is known to do this one well */
    expect_order(strict, &r, &p, "small big");
}

static void test_complex_goes_to_the_server_if_it_may(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_COMPLEX);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    expect_order(allowed, &r, &p, "server");
    decide(denied, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "refuse");
    assert_int_equal(reason_of(&d, "server"), MICA_ROUTE_EGRESS_DENIED);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_LOW_QUALITY);
    assert_non_null(strstr(d.message, "allow_egress"));
    assert_non_null(strstr(d.message, "big its quality for this is 0.50, wanted is 0.70"));
    r.is_private = true;
    decide(allowed, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "server"), MICA_ROUTE_IS_PRIVATE);
    assert_int_equal(d.action, MICA_ROUTE_REFUSE);
}

static void test_unknown_takes_the_ladder(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    phone_make(&p);
    expect_order(allowed, &r, &p, "big small server");
}

/* ---- No network ---- */

static void test_offline(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_COMPLEX);
    phone p;
    mica_route_decision d;
    mica_error err;
    phone_make(&p);
    p.state.network = MICA_NO;
    mica_route_policy *policy = policy_of(POLICY("true", ",\"offline\":{\"degraded_prompt\":\"Be brief.\"}"));
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_OK);
    assert_string_equal(order_of(&d), "big small"); /* the least quality is waived: it is that or nothing */
    assert_true(d.degraded);
    assert_string_equal(d.degraded_prompt, "Be brief.");
    r.route_class = MICA_CLASS_NARROW;
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_OK);
    assert_string_equal(order_of(&d), "small big");
    assert_false(d.degraded);
    mica_route_policy_release(policy);
    p.rung[0].file = p.rung[1].file = MICA_NO;
    expect_order(allowed, &r, &p, "refuse");
    expect_order(POLICY("true", ",\"offline\":{\"queue_when_nothing_fits\":true}"), &r, &p, "queue");
    expect_order(POLICY("false", ",\"offline\":{\"queue_when_nothing_fits\":true}"), &r, &p, "refuse"); /* it would never go */
    r.is_private = true;
    expect_order(POLICY("true", ",\"offline\":{\"queue_when_nothing_fits\":true}"), &r, &p, "refuse");
}

static void test_queue_rather_than_a_small_model(void **state)
{
    (void)state;
    static const char policy[] =
        "{\"schema\":1,\"name\":\"p\",\"version\":\"1\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},\"allow_egress\":true,"
        "\"ladder\":" LADDER ",\"classes\":{\"narrow\":{\"order\":\"smallest\",\"output_tokens\":9},\"complex\":{\"order\":\"ladder\","
        "\"prefer\":\"remote\",\"offline\":\"queue\",\"output_tokens\":9},\"unknown\":{\"order\":\"ladder\",\"output_tokens\":9}}}";
    mica_route_request r = request_of(MICA_CLASS_COMPLEX);
    phone p;
    phone_make(&p);
    expect_order(policy, &r, &p, "server big small");
    p.state.network = MICA_NO;
    expect_order(policy, &r, &p, "queue");
    p.state.network = MICA_UNKNOWN; /* it may be tried */
    expect_order(policy, &r, &p, "server big small");
}

/* ---- Memory ---- */

static void test_memory(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    p.state.device.ram_bytes = 3999999999;
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_LOW_RAM);
    p.state.device.ram_bytes = 4000000000; /* 2.13 GB of 0.55 * 4 = 2.2 */
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_FITS);
    assert_int_equal(d.candidates[0].memory_bytes, 2000000000 + 100000000 + 300 * 100000);
    r.prompt_tokens = 3000; /* the KV cache makes it 2.42 GB */
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_OVER_BUDGET);
    p.state.device.ram_bytes = -1;
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "small"), MICA_ROUTE_LOW_RAM);
    assert_int_equal(d.action, MICA_ROUTE_REFUSE);
}

static void test_memory_now(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    p.state.device.available_bytes = 2000000000;
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_NO_MEMORY_NOW);
    assert_string_equal(order_of(&d), "small");
    p.rung[1].resident = MICA_YES; /* it can make room: 2.00 + 0.55 */
    decide(denied, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "big small");
    p.rung[1].resident = MICA_NO;
    p.rung[0].resident = MICA_YES;
    p.rung[0].file = MICA_UNKNOWN;
    decide(denied, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "big small");
    p.rung[0].resident = MICA_UNKNOWN;
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_NO_FILE);
}

/* What was planned from the rung's file counts, and the refusal is the one of mica_budget_check(). */
static void test_planned_memory(void **state)
{
    (void)state;
    static const char refusal[] = "a context of 4096 needs 2.4 GiB at its peak, over the budget of 2 GiB";
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    p.rung[0].memory_bytes = 2500000000;
    p.rung[0].free_bytes = 600000000;
    p.state.device.available_bytes = 1000000000;
    decide(denied, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "big small"); /* weights are pages of a file */
    assert_int_equal(d.candidates[0].memory_bytes, 2500000000);
    p.state.device.available_bytes = 590000000;
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_NO_MEMORY_NOW);
    p.rung[1].resident = MICA_YES;
    p.rung[1].free_bytes = 20000000; /* that is what unloading it gives back */
    decide(denied, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "big small");
    p.rung[0].memory_bytes = 4500000000; /* more than 0.55 of 8 GB */
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_OVER_BUDGET);
    p.rung[0].memory_bytes = 2500000000;
    p.rung[0].refusal = refusal;
    decide(denied, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_OVER_BUDGET);
    assert_string_equal(d.candidates[0].why, refusal);
    p.rung[0].resident = MICA_YES; /* it is there already */
    decide(denied, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "big small");
}

/* A secret is found wherever it stands, in texts that are ASCII and in those that are not, and by the rules of Unicode there. */
static void test_patterns_of_ascii_and_other_texts(void **state)
{
    (void)state;
    static const char policy[] =
        POLICY("true", ",\"rules\":[{\"name\":\"s\",\"pattern\":\"(?i)\\\\bkey\\\\b\",\"private\":true},"
                       "{\"name\":\"u\",\"pattern\":\"\\\\x{e9}t\\\\x{e9}\",\"private\":true}]");
    static const struct {
        const char *end;
        bool is_private;
    } cases[] = {{"a KEY", true},          {"a keyhole", false},          {"\xc3\xa4 key", true}, {"x\xe2\x84\xaa" "ey", true},
                 {"\xc3\xa9t\xc3\xa9", true}, {"\xff key", true}, {"\xc3\xa4 monkey", false}, {"ete", false}};
    static char text[60000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
        phone p;
        mica_route_decision d;
        phone_make(&p);
        memset(text, ' ', sizeof text);
        r.length = 50000 + i + strlen(cases[i].end);
        memcpy(text + 50000 + i, cases[i].end, strlen(cases[i].end));
        r.text = text;
        decide(policy, &r, &p.state, &d);
        if (d.is_private != cases[i].is_private)
            fail_msg("%zu: \"%s\" is private: %d", i, cases[i].end, d.is_private);
    }
}

/* ---- What a request asks for ---- */

static void test_limits(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    decide(allowed, &r, &p.state, &d);
    assert_true(fabs(d.candidates[0].ttft_ms - (2000 + 1000)) < 1e-6);           /* load, 100 / 100 */
    assert_true(fabs(d.candidates[0].total_ms - (3000 + 20000)) < 1e-6);         /* 200 / 10 */
    assert_true(fabs(d.candidates[0].joules - 4 * 21) < 1e-9);                   /* 4 W for 21 s: loading is the disk's */
    assert_true(fabs(d.candidates[2].total_ms - (700 + 4000)) < 1e-6);
    assert_true(fabs(d.candidates[2].usd - (100 * 1e-6 + 200 * 4e-6)) < 1e-12);
    assert_true(isnan(d.candidates[0].usd));                                     /* no price of electricity */
    r.deadline_ms = 6000;
    decide(allowed, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "small server");
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_TOO_SLOW);
    p.rung[0].decode_tps = 100; /* measured here: 2 s for the reply */
    p.rung[0].resident = MICA_YES;
    expect_order(allowed, &r, &p, "big small server");
    p.rung[0].wait_ms = 3500;
    expect_order(allowed, &r, &p, "small server");
    r.deadline_ms = -1;
    r.max_joules = 10;
    expect_order(allowed, &r, &p, "server"); /* 1 W for 4.7 s; small 3 W for 5.25 s, big 4 W for 3 s */
    r.max_joules = NAN;
    r.max_usd = 0.0005;
    decide(allowed, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "server"), MICA_ROUTE_TOO_DEAR);
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_TOO_DEAR); /* unknown cannot be promised */
}

static void test_abilities(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    phone_make(&p);
    r.has_tools = true;
    expect_order(allowed, &r, &p, "big server"); /* small has no tools */
    r.has_tools = false;
    r.prompt_tokens = 1900;
    expect_order(allowed, &r, &p, "big server"); /* context 2048 */
    r.prompt_tokens = 100;
    p.rung[0].healthy = MICA_NO;
    expect_order(allowed, &r, &p, "small server");
    r.rung = "server";
    expect_order(allowed, &r, &p, "server");
    expect_order(denied, &r, &p, "refuse"); /* naming it opens nothing */
    r.rung = "auto";
    expect_order(allowed, &r, &p, "small server");
    expect_order(POLICY("true", ",\"hops\":1"), &r, &p, "small");
}

/* ---- Hot, low, sparing ---- */

static const char careful[] =
    POLICY("true",
           ",\"when\":[{\"name\":\"hot\",\"thermal_at_least\":\"severe\",\"output_tokens_at_least\":150,\"forbid\":\"local\"},"
                   "{\"name\":\"warm\",\"thermal_at_least\":\"moderate\",\"max_weights_bytes\":600000000,\"max_output_tokens\":64},"
                   "{\"name\":\"low\",\"on_battery\":true,\"battery_below\":0.2,\"order\":\"smallest\",\"yield_tokens\":16},"
                   "{\"name\":\"paid\",\"metered\":true,\"forbid\":\"remote\"}]");

static void test_states(void **state)
{
    (void)state;
    mica_route_request r = request_of(MICA_CLASS_UNKNOWN);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    p.state.device.thermal = MICA_THERMAL_MODERATE;
    decide(careful, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "small server");
    assert_string_equal(d.states, "warm");
    assert_int_equal(d.output_tokens, 64);
    p.state.device.thermal = MICA_THERMAL_SEVERE; /* the reply is wanted with 200 tokens: the cap comes after */
    expect_order(careful, &r, &p, "server");
    r.output_tokens = 100;
    expect_order(careful, &r, &p, "small server");
    phone_make(&p);
    p.state.device.battery = 0.19;
    p.state.device.on_battery = MICA_YES;
    decide(careful, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "small big server");
    assert_int_equal(d.yield_tokens, 16);
    p.state.device.on_battery = MICA_UNKNOWN; /* what is unknown does not hold */
    expect_order(careful, &r, &p, "big small server");
    p.state.metered = MICA_YES;
    decide(careful, &r, &p.state, &d);
    assert_int_equal(reason_of(&d, "server"), MICA_ROUTE_STATE_FORBIDS);
    assert_string_equal(d.states, "paid");
}

/* ---- Orders ---- */

static void test_score(void **state)
{
    (void)state;
    static const char policy[] =
        "{\"schema\":1,\"name\":\"p\",\"version\":\"1\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},\"allow_egress\":true,"
        "\"ladder\":" LADDER ",\"classes\":{\"narrow\":{\"order\":\"score\",\"per_joule\":1,\"output_tokens\":200},\"complex\":{\"order\":"
        "\"score\",\"per_second\":1,\"per_quality\":20,\"output_tokens\":200},\"unknown\":{\"order\":\"score\",\"per_usd\":1,\"output_tokens\":9}}}";
    mica_route_request r = request_of(MICA_CLASS_NARROW);
    phone p;
    mica_route_decision d;
    phone_make(&p);
    expect_order(policy, &r, &p, "server small big"); /* 4.7, 15.75, 84 J */
    r.route_class = MICA_CLASS_COMPLEX;
    decide(policy, &r, &p.state, &d);
    assert_string_equal(order_of(&d), "server small big");
    assert_true(fabs(d.candidates[2].score - (4.7 + 20 * 0.1)) < 1e-9);
    assert_true(fabs(d.candidates[1].score - (5.75 + 20 * 0.8)) < 1e-9);
    r.route_class = MICA_CLASS_UNKNOWN; /* only the server's price is known: what is not comes last, in the ladder's order */
    expect_order(policy, &r, &p, "server big small");
}

/* ---- Classes by rules ---- */

static const char ruled[] =
    POLICY("true", ",\"rules\":[{\"name\":\"tasks\",\"task\":[\"classify\",\"extract\"],\"class\":\"narrow\"},"
                   "{\"name\":\"code\",\"pattern\":\"(?i)\\\\bimplement\\\\b\",\"class\":\"complex\"},"
                   "{\"name\":\"form\",\"has_schema\":true,\"prompt_tokens_at_most\":500,\"class\":\"narrow\"},"
                   "{\"name\":\"long\",\"output_tokens_at_least\":1000,\"class\":\"complex\"},"
                   "{\"name\":\"secret\",\"pattern\":\"password\",\"private\":true}]");

static void expect_class(mica_route_request *r, mica_route_class value, const char *by, const char *rule)
{
    phone p;
    mica_route_decision d;
    phone_make(&p);
    r->length = r->text ? strlen(r->text) : 0;
    decide(ruled, r, &p.state, &d);
    assert_int_equal(d.route_class, value);
    assert_string_equal(d.class_by, by);
    assert_string_equal(d.rule, rule);
}

static void test_rules(void **state)
{
    (void)state;
    mica_route_request r = mica_route_request_default();
    phone p;
    mica_route_decision d;
    expect_class(&r, MICA_CLASS_UNKNOWN, "none", "");
    r.task = "extract";
    expect_class(&r, MICA_CLASS_NARROW, "rule", "tasks");
    r.task = "Extract";
    expect_class(&r, MICA_CLASS_UNKNOWN, "none", "");
    r.text = "Please IMPLEMENT a queue";
    expect_class(&r, MICA_CLASS_COMPLEX, "rule", "code");
    r.route_class = MICA_CLASS_NARROW; /* what the request says comes first */
    expect_class(&r, MICA_CLASS_NARROW, "request", "");
    r.route_class = MICA_CLASS_AUTO;
    r.text = "implementation";
    r.has_schema = true;
    expect_class(&r, MICA_CLASS_NARROW, "rule", "form");
    r.prompt_tokens = 501;
    expect_class(&r, MICA_CLASS_UNKNOWN, "none", "");
    r.output_tokens = 1000;
    expect_class(&r, MICA_CLASS_COMPLEX, "rule", "long");
    r.text = "my password is\xff\xfe not UTF-8"; /* a broken text must not get past the rule */
    r.length = strlen(r.text);
    phone_make(&p);
    decide(ruled, &r, &p.state, &d);
    assert_true(d.is_private);
    assert_int_equal(reason_of(&d, "server"), MICA_ROUTE_IS_PRIVATE);
}

/* A pattern that back-tracks for ever is given up: "private" then holds, a class does not. */
static void test_pattern_without_end(void **state)
{
    (void)state;
    static const char policy[] = POLICY("true", ",\"rules\":[{\"name\":\"a\",\"pattern\":\"^(a+)+$\",\"class\":\"narrow\"},"
                                                "{\"name\":\"b\",\"pattern\":\"^(a+)+$\",\"private\":true}]");
    char text[200];
    mica_route_request r = mica_route_request_default();
    phone p;
    mica_route_decision d;
    phone_make(&p);
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';
    r.text = text;
    r.length = sizeof text;
    decide(policy, &r, &p.state, &d);
    assert_int_equal(d.route_class, MICA_CLASS_UNKNOWN);
    assert_true(d.is_private);
}

/* ---- What is no request ---- */

static void test_refused_requests(void **state)
{
    (void)state;
    mica_route_request r = mica_route_request_default();
    mica_route_decision d;
    mica_error err;
    phone p;
    phone_make(&p);
    mica_route_policy *policy = policy_of(allowed);
    r.prompt_tokens = -2;
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_INVALID_ARGUMENT);
    r = mica_route_request_default();
    r.rung = "nowhere";
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "nowhere"));
    r = mica_route_request_default();
    r.struct_size = 0;
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_INVALID_ARGUMENT);
    r = mica_route_request_default();
    r.max_usd = -1;
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_INVALID_ARGUMENT);
    r.max_usd = NAN;
    p.rung[0].decode_tps = 0;
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_INVALID_ARGUMENT);
    mica_route_policy_release(policy);
}

static void test_device_of_a_reading(void **state)
{
    (void)state;
    mica_device_state reading;
    mica_route_device d;
    memset(&reading, 0, sizeof reading);
    reading.memory_total = 8000000000;
    reading.memory_limit = 3000000000;
    reading.memory_available = 1000000000;
    reading.thermal = MICA_THERMAL_LIGHT;
    reading.battery = MICA_BATTERY_DISCHARGING;
    reading.battery_level = 0.5;
    reading.on_mains = MICA_UNKNOWN;
    reading.power_save = MICA_YES;
    mica_route_device_of(&reading, &d);
    assert_int_equal(d.ram_bytes, 3000000000);
    assert_int_equal(d.available_bytes, 1000000000);
    assert_int_equal(d.on_battery, MICA_YES);
    assert_int_equal(d.power_save, MICA_YES);
    reading.memory_limit = -1;
    reading.battery = MICA_BATTERY_UNKNOWN;
    reading.battery_level = NAN;
    mica_route_device_of(&reading, &d);
    assert_int_equal(d.ram_bytes, 8000000000);
    assert_int_equal(d.on_battery, MICA_UNKNOWN);
    reading.on_mains = MICA_YES;
    mica_route_device_of(&reading, &d);
    assert_int_equal(d.on_battery, MICA_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow_takes_the_smallest_that_is_good_enough),
        cmocka_unit_test(test_complex_goes_to_the_server_if_it_may),
        cmocka_unit_test(test_unknown_takes_the_ladder),
        cmocka_unit_test(test_offline),
        cmocka_unit_test(test_queue_rather_than_a_small_model),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_now),
        cmocka_unit_test(test_planned_memory),
        cmocka_unit_test(test_patterns_of_ascii_and_other_texts),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_abilities),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_pattern_without_end),
        cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_device_of_a_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
