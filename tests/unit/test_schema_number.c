/* The digit automata against arithmetic on scaled integers: every text of a few digits, with bounds of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "constraint/number.h"

#define SCALE 10000 /* values are multiples of 1 / SCALE */

static bool fsm_accepts(const mica_fsm *fsm, const char *text)
{
    int32_t state = 0;
    for (; *text; text++) {
        int32_t next = -1;
        for (int32_t i = 0; i < fsm->n_edges; i++)
            if (fsm->edges[i].from == state && (uint8_t)*text >= fsm->edges[i].low && (uint8_t)*text <= fsm->edges[i].high) {
                assert_int_equal(next, -1); /* one edge for a byte */
                next = fsm->edges[i].to;
            }
        if (next < 0)
            return false;
        state = next;
    }
    return fsm->accepts[state];
}

/* Every state leads to acceptance, and edges are sorted. */
static void check_shape(const mica_fsm *fsm)
{
    bool useful[4096] = {false};
    assert_true(fsm->n_states <= 4096);
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < fsm->n_edges; i++)
            if (!useful[fsm->edges[i].from] && (useful[fsm->edges[i].to] || fsm->accepts[fsm->edges[i].to]))
                changed = useful[fsm->edges[i].from] = true;
    }
    for (int32_t s = 1; s < fsm->n_states; s++)
        assert_true(useful[s] || fsm->accepts[s]);
    for (int32_t i = 1; i < fsm->n_edges; i++)
        assert_true(fsm->edges[i - 1].from <= fsm->edges[i].from);
}

typedef struct bound {
    bool there, open;
    int value; /* times SCALE */
    char text[32], digits[32];
    mica_decimal decimal;
} bound;

static void set_bound(bound *b, int value)
{
    b->there = true;
    b->value = value;
    int magnitude = abs(value);
    snprintf(b->text, sizeof b->text, "%s%d.%04d", value < 0 ? "-" : "", magnitude / SCALE, magnitude % SCALE);
    assert_true(mica_decimal_read(b->text, strlen(b->text), b->digits, &b->decimal));
}

static void random_bound(mica_rng *rng, bool there, bound *b)
{
    static const int units[] = {10000, 5000, 1000, 100, 1};
    *b = (bound){.open = mica_rng_next(rng) % 3 == 0};
    if (there)
        set_bound(b, ((int)(mica_rng_next(rng) % 401) - 200) * units[mica_rng_next(rng) % 5]);
}

typedef struct trial {
    bound low, high;
    mica_number_spec spec;
    int step; /* times SCALE; 0: none */
    mica_fsm fsm;
    int wrong, n, accepted;
} trial;

static bool is_within(const trial *t, int value)
{
    if (t->low.there && (value < t->low.value || (value == t->low.value && t->low.open)))
        return false;
    if (t->high.there && (value > t->high.value || (value == t->high.value && t->high.open)))
        return false;
    return !t->step || value % t->step == 0;
}

static void check_text(trial *t, const char *text, int value)
{
    bool negative = text[0] == '-',
         zero_first = text[negative] == '0' && text[negative + 1] != '\0' && text[negative + 1] != '.';
    bool expected = !zero_first && !(negative && value == 0) && !(t->spec.integer && strchr(text, '.')) && is_within(t, value);
    const char *point = strchr(text, '.');
    if (t->step && point && (int32_t)strlen(point + 1) > t->spec.places)
        expected = false; /* digits behind the step's are not written, though they might be 0 */
    t->n++;
    t->accepted += expected;
    if (fsm_accepts(&t->fsm, text) == expected)
        return;
    if (t->wrong++ < 3)
        fprintf(stderr, "%s %s %c%s..%s%c step %d / %d: should %sallow %s\n", t->spec.integer ? "integers" : "numbers", "in",
                t->low.open ? ']' : '[', t->low.there ? t->low.text : "", t->high.there ? t->high.text : "",
                t->high.open ? '[' : ']', (int)t->spec.step, (int)t->spec.places, expected ? "" : "not ", text);
}

/* All texts of up to 3 digits before the point and 2 behind it, a few of them with 4. */
static void check_texts(trial *t)
{
    char text[32];
    for (int sign = 0; sign < 2; sign++)
        for (int whole = 0; whole < 1000; whole += whole < 130 ? 1 : 37) {
            const char *minus = sign ? "-" : "";
            int value = (sign ? -1 : 1) * whole * SCALE;
            snprintf(text, sizeof text, "%s%d", minus, whole);
            check_text(t, text, value);
            snprintf(text, sizeof text, "%s0%d", minus, whole);
            check_text(t, text, value);
            for (int behind = 0; behind < 100; behind += whole < 22 ? 1 : 29) {
                int part = (sign ? -1 : 1) * behind * (SCALE / 100);
                snprintf(text, sizeof text, "%s%d.%02d", minus, whole, behind);
                check_text(t, text, value + part);
                snprintf(text, sizeof text, "%s%d.%02d07", minus, whole, behind);
                check_text(t, text, value + part + (sign ? -7 : 7));
                if (behind % 10 == 0) {
                    snprintf(text, sizeof text, "%s%d.%d", minus, whole, behind / 10);
                    check_text(t, text, value + part);
                }
            }
        }
}

static void test_bounds(void **state)
{
    (void)state;
    static const int steps[][3] = {{0, 0, 0},    {0, 0, 0},       {3, 0, 30000}, {25, 2, 2500},
                                   {7, 1, 7000}, {10, 0, 100000}, {1, 2, 100}};
    mica_rng rng;
    int wrong = 0, n = 0, accepted = 0;
    mica_rng_seed(&rng, 5);
    for (int i = 0; i < 400; i++) {
        trial t = {.spec.integer = i & 1};
        const int *step = steps[mica_rng_next(&rng) % (sizeof steps / sizeof *steps)];
        random_bound(&rng, i % 8 != 2, &t.low);
        random_bound(&rng, i % 8 != 4, &t.high);
        if (i % 16 == 9)
            t.high = t.low;
        t.spec.low = t.low.there ? &t.low.decimal : NULL;
        t.spec.high = t.high.there ? &t.high.decimal : NULL;
        t.spec.low_open = t.low.open;
        t.spec.high_open = t.high.open;
        t.spec.step = (uint32_t)step[0];
        t.spec.places = step[1];
        t.step = step[2];
        assert_int_equal(mica_number_fsm(&t.spec, &t.fsm, NULL), MICA_OK);
        check_shape(&t.fsm);
        check_texts(&t);
        mica_fsm_clear(&t.fsm);
        wrong += t.wrong;
        n += t.n;
        accepted += t.accepted;
    }
    printf("%d texts, %d of them in bounds, %d wrong\n", n, accepted, wrong);
    assert_true(accepted > n / 20 && accepted < n);
    assert_int_equal(wrong, 0);
}

static const struct decimal_row {
    const char *text, *digits;
    int32_t point;
    bool negative;
    const char *printed;
} decimals[] = {
    {"0", "", 0, false, "0"},
    {"-0.00e5", "", 0, false, "0"},
    {"1", "1", 1, false, "1"},
    {"-120", "12", 3, true, "-120"},
    {"0.00120", "12", -2, false, "0.0012"},
    {"12.50", "125", 2, false, "12.5"},
    {"1e3", "1", 4, false, "1000"},
    {"1.5E-3", "15", -2, false, "0.0015"},
    {"120e-1", "12", 2, false, "12"},
    {"98249283749234923498293171823948729348710298301928331", "98249283749234923498293171823948729348710298301928331", 53,
     false, "98249283749234923498293171823948729348710298301928331"},
};

static void test_decimals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof decimals / sizeof *decimals; i++) {
        const struct decimal_row *row = &decimals[i];
        char digits[80], out[80];
        mica_decimal d;
        assert_true(mica_decimal_read(row->text, strlen(row->text), digits, &d));
        assert_int_equal(d.n, strlen(row->digits));
        assert_memory_equal(d.digits, row->digits, (size_t)d.n);
        assert_int_equal(d.point, row->point);
        assert_int_equal(d.negative, row->negative);
        assert_int_equal(mica_decimal_print(&d, out, sizeof out), strlen(row->printed));
        assert_string_equal(out, row->printed);
        assert_int_equal(mica_decimal_print(&d, out, strlen(row->printed)), 0);
    }
    char digits[8];
    mica_decimal d;
    assert_false(mica_decimal_read("1e999999999999", 14, digits, &d));
    assert_false(mica_decimal_read("1e-500", 6, digits, &d));
    assert_true(mica_decimal_read("0e999999999999", 14, digits, &d));
}

static void test_order(void **state)
{
    (void)state;
    static const char *const ascending[] = {"-1e30", "-12.5", "-12.4999", "-1", "-0.01", "0",   "0.0099",
                                            "0.01",  "1",     "1.0001",   "2",  "10",    "1e30"};
    enum { N = sizeof ascending / sizeof *ascending };
    char digits[N][40];
    mica_decimal d[N];
    for (int i = 0; i < N; i++)
        assert_true(mica_decimal_read(ascending[i], strlen(ascending[i]), digits[i], &d[i]));
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            assert_int_equal(mica_decimal_compare(&d[i], &d[k]), (i > k) - (i < k));
}

/* 64-bit limits where no bound is given; exact far beyond them where one is. */
static void test_large(void **state)
{
    (void)state;
    char digits[2][80];
    mica_decimal low, high;
    mica_fsm fsm;
    mica_number_spec spec = {.integer = true};
    assert_int_equal(mica_number_fsm(&spec, &fsm, NULL), MICA_OK);
    assert_true(fsm_accepts(&fsm, "9223372036854775807"));
    assert_false(fsm_accepts(&fsm, "9223372036854775808"));
    assert_true(fsm_accepts(&fsm, "-9223372036854775808"));
    assert_false(fsm_accepts(&fsm, "-9223372036854775809"));
    assert_false(fsm_accepts(&fsm, ""));
    assert_false(fsm_accepts(&fsm, "-"));
    mica_fsm_clear(&fsm);
    const char *a = "98249283749234923498293171823948729348710298301928331",
               *b = "98249283749234923498293171823948729348710298301928341";
    assert_true(mica_decimal_read(a, strlen(a), digits[0], &low) && mica_decimal_read(b, strlen(b), digits[1], &high));
    spec.low = &low;
    spec.high = &high;
    spec.high_open = true;
    assert_int_equal(mica_number_fsm(&spec, &fsm, NULL), MICA_OK);
    assert_true(fsm_accepts(&fsm, a));
    assert_true(fsm_accepts(&fsm, "98249283749234923498293171823948729348710298301928340"));
    assert_false(fsm_accepts(&fsm, b));
    assert_false(fsm_accepts(&fsm, "98249283749234923498293171823948729348710298301928330"));
    mica_fsm_clear(&fsm);
    spec = (mica_number_spec){.integer = true, .step = MICA_NUMBER_MAX_STEP - 3};
    assert_int_equal(mica_number_fsm(&spec, &fsm, NULL), MICA_OK);
    assert_true(fsm_accepts(&fsm, "997"));
    assert_true(fsm_accepts(&fsm, "-99999999998879"));
    assert_false(fsm_accepts(&fsm, "-99999999998880"));
    mica_fsm_clear(&fsm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
