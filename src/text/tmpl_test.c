#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_strfn.h"
#include "text/tmpl_text.h"

#include <string.h>

/* Tests: what stands behind `is`. */

#define TEST(name) static bool name(mica_run *run, const mica_val *v, const mica_val *bound, bool *out)
#define UNUSED (void)run, (void)bound

static bool remainder_is(mica_run *run, const mica_val *v, const mica_val *divisor, int64_t wanted, bool *out)
{
    mica_val rest, expected = mica_val_int(wanted);
    return mica_op_binary(run, MICA_OP_MOD, v, divisor, &rest) && mica_val_equal(run, &rest, &expected, out);
}

TEST(t_odd) { (void)bound; mica_val two = mica_val_int(2); return remainder_is(run, v, &two, 1, out); }
TEST(t_even) { (void)bound; mica_val two = mica_val_int(2); return remainder_is(run, v, &two, 0, out); }
TEST(t_divisibleby) { return remainder_is(run, v, &bound[0], 0, out); }

TEST(t_defined) { UNUSED; *out = v->type != MICA_V_UNDEFINED; return true; }
TEST(t_undefined) { UNUSED; *out = v->type == MICA_V_UNDEFINED; return true; }
TEST(t_none) { UNUSED; *out = v->type == MICA_V_NONE; return true; }
TEST(t_boolean) { UNUSED; *out = v->type == MICA_V_BOOL; return true; }
TEST(t_true) { UNUSED; *out = v->type == MICA_V_BOOL && v->b; return true; }
TEST(t_false) { UNUSED; *out = v->type == MICA_V_BOOL && !v->b; return true; }
TEST(t_integer) { UNUSED; *out = v->type == MICA_V_INT; return true; }
TEST(t_float) { UNUSED; *out = v->type == MICA_V_FLOAT; return true; }
TEST(t_number) { UNUSED; *out = mica_val_is_number(v); return true; }
TEST(t_string) { UNUSED; *out = v->type == MICA_V_STR; return true; }
TEST(t_mapping) { UNUSED; *out = v->type == MICA_V_DICT; return true; }
TEST(t_escaped) { UNUSED; *out = v->type == MICA_V_STR && (v->flags & MICA_VF_MARKUP); return true; }
TEST(t_iterable) { UNUSED; *out = mica_val_is_iterable(v); return true; }

TEST(t_sequence)
{
    UNUSED;
    *out = v->type == MICA_V_STR || v->type == MICA_V_LIST || v->type == MICA_V_TUPLE || v->type == MICA_V_DICT ||
           v->type == MICA_V_RANGE || v->type == MICA_V_UNDEFINED;
    return true;
}

TEST(t_callable)
{
    UNUSED;
    *out = v->type == MICA_V_FUNCTION || v->type == MICA_V_METHOD || v->type == MICA_V_MACRO || v->type == MICA_V_LOOP ||
           v->type == MICA_V_JOINER || v->type == MICA_V_UNDEFINED;
    return true;
}

static bool cased(mica_run *run, const mica_val *v, bool upper, bool *out)
{
    mica_val text, result;
    if (!mica_text_str(run, v, &text) || !mica_strfn_is_cased(run, &text, upper, &result))
        return false;
    *out = result.b;
    return true;
}

TEST(t_lower) { (void)bound; return cased(run, v, false, out); }
TEST(t_upper) { (void)bound; return cased(run, v, true, out); }

/* Identity: of numbers and strings, which Python may or may not share, the nearest thing is the same type and value. */
TEST(t_sameas)
{
    const mica_val *o = &bound[0];
    *out = false;
    if (v->type != o->type)
        return true;
    if (v->type == MICA_V_LIST || v->type == MICA_V_TUPLE || v->type == MICA_V_DICT || v->type == MICA_V_NAMESPACE) {
        *out = v->seq == o->seq;
        return true;
    }
    return mica_val_equal(run, v, o, out);
}

TEST(t_in) { return mica_val_contains(run, &bound[0], v, out); }
TEST(t_eq) { return mica_op_compare(run, MICA_OP_EQ, v, &bound[0], out); }
TEST(t_ne) { return mica_op_compare(run, MICA_OP_NE, v, &bound[0], out); }
TEST(t_lt) { return mica_op_compare(run, MICA_OP_LT, v, &bound[0], out); }
TEST(t_le) { return mica_op_compare(run, MICA_OP_LE, v, &bound[0], out); }
TEST(t_gt) { return mica_op_compare(run, MICA_OP_GT, v, &bound[0], out); }
TEST(t_ge) { return mica_op_compare(run, MICA_OP_GE, v, &bound[0], out); }

TEST(t_filter)
{
    UNUSED;
    *out = v->type == MICA_V_STR && mica_filter_find(v->s, v->len);
    return true;
}

TEST(t_test)
{
    UNUSED;
    *out = v->type == MICA_V_STR && mica_test_find(v->s, v->len);
    return true;
}

static const mica_test_def tests[] = {
    {"boolean", t_boolean, "", 0}, {"callable", t_callable, "", 0}, {"defined", t_defined, "", 0},
    {"divisibleby", t_divisibleby, "num", 1}, {"escaped", t_escaped, "", 0}, {"even", t_even, "", 0}, {"false", t_false, "", 0},
    {"filter", t_filter, "", 0}, {"float", t_float, "", 0}, {"in", t_in, "seq", 1}, {"integer", t_integer, "", 0},
    {"iterable", t_iterable, "", 0}, {"lower", t_lower, "", 0}, {"mapping", t_mapping, "", 0}, {"none", t_none, "", 0},
    {"number", t_number, "", 0}, {"odd", t_odd, "", 0}, {"sameas", t_sameas, "other", 1}, {"sequence", t_sequence, "", 0},
    {"string", t_string, "", 0}, {"test", t_test, "", 0}, {"true", t_true, "", 0}, {"undefined", t_undefined, "", 0},
    {"upper", t_upper, "", 0},
    {"eq", t_eq, "0", 1}, {"equalto", t_eq, "0", 1}, {"==", t_eq, "0", 1}, {"ne", t_ne, "0", 1}, {"!=", t_ne, "0", 1},
    {"lt", t_lt, "0", 1}, {"lessthan", t_lt, "0", 1}, {"<", t_lt, "0", 1}, {"le", t_le, "0", 1}, {"<=", t_le, "0", 1},
    {"gt", t_gt, "0", 1}, {"greaterthan", t_gt, "0", 1}, {">", t_gt, "0", 1}, {"ge", t_ge, "0", 1}, {">=", t_ge, "0", 1},
};

const mica_test_def *mica_test_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (strlen(tests[i].name) == length && memcmp(tests[i].name, name, length) == 0)
            return &tests[i];
    }
    return NULL;
}

bool mica_test_apply(mica_run *run, const mica_test_def *test, const mica_val *value, const mica_args *args, bool *out)
{
    mica_val bound[MICA_MAX_PARAMS];
    return mica_args_bind(run, args, test->name, test->params, test->required, bound) && test->call(run, value, bound, out);
}
