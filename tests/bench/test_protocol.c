/* Protocols: those that come with the program, what is refused, what may be called sustained; cooling down, by a fake clock;
 * the texts of prompts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "bench/protocol.h"
#include "bench/words.h"

static void open_shared(const char *name, mica_protocol *p)
{
    char path[600];
    mica_error err;
    snprintf(path, sizeof path, "%s/protocols/%s.json", MICA_SHARE_DIR, name);
    if (mica_protocol_open(path, p, &err))
        fail_msg("%s", err.message);
    assert_string_equal(p->name, name);
}

static void test_shared(void **state)
{
    (void)state;
    mica_protocol p;
    const char *why;
    open_shared("sustained", &p);
    assert_true(mica_protocol_sustained(&p, &why));
    assert_true(mica_protocol_decode(&p)->min_s >= 480.0 && p.steady_s == 180.0 && p.cold_s == 60.0 && p.ttft_ratio > 1.0);
    mica_protocol_free(&p);
    open_shared("quick", &p);
    assert_false(mica_protocol_sustained(&p, &why));
    assert_non_null(strstr(why, "8 minutes"));
    mica_protocol_free(&p);
    open_shared("smoke", &p);
    assert_false(mica_protocol_sustained(&p, NULL));
    mica_protocol_free(&p);
}

#define HEAD "\"version\": 1, \"name\": \"x\", \"description\": \"y\", \"n_ctx\": 128, \"cold_s\": 1, \"steady_s\": 1"
#define LOAD "{\"kind\": \"load\", \"cache\": \"warm\"}"

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"", "not JSON"},
        {"[]", "no JSON object"},
        {"{" HEAD ", \"phases\": []}", "phases"},
        {"{" HEAD "}", "phases"},
        {"{" HEAD ", \"phases\": [" LOAD "], \"speed\": 1}", "not known"},
        {"{" HEAD ", \"phases\": [{\"kind\": \"load\", \"cache\": \"warm\", \"x\": 1}]}",
         "phase 1 has a member that is not known"},
        {"{" HEAD ", \"phases\": [{\"kind\": \"load\", \"cache\": \"lukewarm\"}]}", "cold or warm"},
        {"{" HEAD ", \"phases\": [{\"kind\": \"nap\"}]}", "kind"},
        {"{" HEAD ", \"phases\": [3]}", "no object"},
        {"{" HEAD ", \"phases\": [{\"kind\": \"ttft\", \"prompt\": 8, \"reply\": 2, \"repeat\": 1}]}",
         "no phase before it loads"},
        {"{" HEAD ", \"phases\": [" LOAD ", {\"kind\": \"ttft\", \"prompt\": 128, \"reply\": 2, \"repeat\": 1}]}",
         "more than n_ctx"},
        {"{" HEAD ", \"phases\": [" LOAD ", {\"kind\": \"ttft\", \"prompt\": 8.5, \"reply\": 2, \"repeat\": 1}]}",
         "whole number"},
        {"{" HEAD ", \"phases\": [" LOAD ", {\"kind\": \"ttft\", \"prompt\": 8, \"reply\": 2}]}", "repeat"},
        {"{" HEAD ", \"phases\": [" LOAD
         ", {\"kind\": \"bandwidth\", \"repeat\": 3}, {\"kind\": \"decode\", \"prompt\": 8, \"reply\": 2, "
         "\"min_s\": 1}]}",
         "no phase before it loads"},
        {"{" HEAD ", \"phases\": [" LOAD
         ", {\"kind\": \"decode\", \"prompt\": 8, \"reply\": 2, \"min_s\": 1}, {\"kind\": \"decode\", "
         "\"prompt\": 8, \"reply\": 2, \"min_s\": 1}]}",
         "two phases"},
        {"{\"version\": 2, \"name\": \"x\"}", "version"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_protocol p;
        mica_error err;
        mica_status status = mica_protocol_read(cases[i].json, strlen(cases[i].json), &p, &err);
        if (status != MICA_BAD_TEXT || !strstr(err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].json, status ? err.message : "was taken");
    }
}

/* Each condition of "sustained", taken away. */
static void test_sustained_needs_all(void **state)
{
    (void)state;
    mica_protocol p;
    open_shared("sustained", &p);
    for (int32_t i = 0; i < p.n_phases; i++) {
        mica_phase kept = p.phase[i];
        bool matters = kept.kind != MICA_PHASE_LOAD && kept.kind != MICA_PHASE_BANDWIDTH;
        p.phase[i] = (mica_phase){.kind = MICA_PHASE_LOAD};
        assert_int_equal(mica_protocol_sustained(&p, NULL), !matters);
        p.phase[i] = kept;
    }
    p.steady_s = 100;
    assert_false(mica_protocol_sustained(&p, NULL));
    mica_protocol_free(&p);
}

/* ---- Cooling down ---- */

#define S 1000000000LL

static mica_sensors one_zone(double celsius)
{
    mica_sensors s = {.n_zones = 1, .cooling_active = -1};
    snprintf(s.zone[0].name, sizeof s.zone[0].name, "cpu#0");
    s.zone[0].celsius = celsius;
    return s;
}

static const mica_cooldown_rules rules = {.within_c = 2, .settle_s = 60, .max_s = 1800, .blind_s = 30, .poll_s = 2};

/* A device that cools by a tenth of the distance to `idle` each 10 s. Gives the second at which it was let through. */
static int cool(mica_cooldown *c, double from, double idle, mica_cooldown_state *last)
{
    for (int second = 1; second < 4000; second++) {
        double t = idle + (from - idle) * (1.0 / (1.0 + second / 60.0));
        mica_sensors s = one_zone(t);
        *last = mica_cooldown_step(c, &s, second * S);
        if (*last != MICA_COOLDOWN_WAIT)
            return second;
    }
    return -1;
}

static void test_waits_for_the_known_idle_reading(void **state)
{
    (void)state;
    mica_cooldown c;
    mica_cooldown_state last;
    mica_cooldown_begin(&c, &rules);
    mica_cooldown_know(&c, "cpu#0", 40.0);
    int second = cool(&c, 80.0, 38.0, &last); /* 42 C are reached when 42 / (1 + t / 60) is 4: at 570 s */
    assert_int_equal(last, MICA_COOLDOWN_COOL);
    assert_in_range(second, 569, 571);
}

static void test_settles_without_a_known_reading(void **state)
{
    (void)state;
    mica_cooldown c;
    mica_cooldown_state last;
    mica_cooldown_begin(&c, &rules);
    int second = cool(&c, 80.0, 40.0, &last); /* by then it falls by less than 2 degrees a minute */
    assert_int_equal(last, MICA_COOLDOWN_COOL);
    assert_true(second > 180 && second < 500);
    assert_true(c.zone[0].idle_c > 40.0 && c.zone[0].idle_c < 52.0);
}

static void test_gives_up(void **state)
{
    (void)state;
    mica_cooldown c;
    mica_cooldown_state last;
    mica_cooldown_begin(&c, &rules);
    mica_cooldown_know(&c, "cpu#0", 20.0);
    int second = cool(&c, 80.0, 40.0, &last);
    assert_int_equal(last, MICA_COOLDOWN_TIMEOUT);
    assert_in_range(second, 1800, 1802);
}

static void test_cooling_devices_count(void **state)
{
    (void)state;
    mica_cooldown c;
    mica_sensors s = one_zone(40.0);
    mica_cooldown_begin(&c, &rules);
    mica_cooldown_know(&c, "cpu#0", 40.0);
    s.cooling_active = 2;
    assert_int_equal(mica_cooldown_step(&c, &s, 1 * S), MICA_COOLDOWN_WAIT);
    assert_non_null(strstr(c.why, "cooling"));
    s.cooling_active = 0;
    assert_int_equal(mica_cooldown_step(&c, &s, 2 * S), MICA_COOLDOWN_COOL);
}

static void test_blind(void **state)
{
    (void)state;
    mica_cooldown c;
    mica_sensors s = {.n_zones = 0, .cooling_active = -1};
    mica_cooldown_begin(&c, &rules);
    assert_int_equal(mica_cooldown_step(&c, &s, 1 * S), MICA_COOLDOWN_WAIT);
    assert_int_equal(mica_cooldown_step(&c, &s, 30 * S), MICA_COOLDOWN_WAIT);
    assert_int_equal(mica_cooldown_step(&c, &s, 31 * S), MICA_COOLDOWN_BLIND);
    assert_non_null(strstr(c.why, "no temperature"));
}

/* ---- Prompts ---- */

static void test_words(void **state)
{
    (void)state;
    mica_buf a, b, c;
    mica_error err;
    mica_buf_init(&a, 1 << 20);
    mica_buf_init(&b, 1 << 20);
    mica_buf_init(&c, 1 << 20);
    assert_int_equal(mica_words_text(5, 5000, &a, &err), MICA_OK); /* enough for every word to come */
    assert_int_equal(mica_words_text(5, 5000, &b, &err), MICA_OK);
    assert_int_equal(mica_words_text(6, 5000, &c, &err), MICA_OK);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.data, b.data, a.length);
    size_t same = 0, words = 1;
    while (same < a.length && same < c.length && a.data[same] == c.data[same])
        same++;
    assert_true(same < 20); /* another seed: other words from the beginning on */
    for (size_t i = 0; i < a.length; i++) {
        words += a.data[i] == ' ';
        assert_true(strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .", a.data[i]) != NULL);
        assert_false(i > 0 && a.data[i] == ' ' && a.data[i - 1] == ' ');
    }
    assert_int_equal(words, 5000);
    mica_buf_free(&a);
    mica_buf_free(&b);
    mica_buf_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sustained_needs_all),
        cmocka_unit_test(test_waits_for_the_known_idle_reading),
        cmocka_unit_test(test_settles_without_a_known_reading),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_cooling_devices_count),
        cmocka_unit_test(test_blind),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
