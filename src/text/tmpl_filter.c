#include "text/tmpl_attr.h"
#include "text/tmpl_builtin.h"
#include "text/tmpl_num.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_text.h"

#include <stdio.h>
#include <string.h>

/* The lookup of filters, and those that work on single values. */

#define FILTER(name) \
    static bool name(mica_run *run, const mica_val *v, const mica_args *args, const mica_val *bound, mica_val *out)

/* ---- Defaults, attributes, JSON ---- */

FILTER(f_default)
{
    (void)args, (void)run;
    bool replace = v->type == MICA_V_UNDEFINED || (mica_val_truth(&bound[1]) && !mica_val_truth(v));
    *out = !replace ? *v : mica_arg_given(&bound[0]) ? bound[0] : mica_val_literal("");
    return true;
}

FILTER(f_attr)
{
    (void)args;
    mica_val name;
    if (!mica_arg_text(run, &bound[0], "name", &name))
        return false;
    return mica_attr_only(run, v, &name, out);
}

static bool json_text(mica_run *run, const mica_val *v, const char *what, const char *standard, mica_val *out)
{
    if (!mica_arg_given(v)) {
        *out = mica_val_literal(standard);
        return true;
    }
    return mica_arg_text(run, v, what, out);
}

/* separators=(item, key); the standard ones depend on whether lines are broken. */
static bool json_separators(mica_run *run, const mica_val *v, mica_json_style *style)
{
    mica_val item = MICA_MISSING, key = MICA_MISSING;
    if (mica_arg_given(v) && v->type != MICA_V_NONE) {
        if ((v->type != MICA_V_LIST && v->type != MICA_V_TUPLE) || v->seq->n != 2)
            return mica_run_fail(run, "separators of tojson must be two strings");
        item = v->seq->items[0];
        key = v->seq->items[1];
    }
    return json_text(run, &item, "separators", style->pretty ? "," : ", ", &style->item_separator) &&
           json_text(run, &key, "separators", ": ", &style->key_separator);
}

FILTER(f_tojson)
{
    (void)args;
    static const char spaces[] = "                                ";
    mica_json_style style = {.ensure_ascii = mica_val_truth(&bound[0]), .sort_keys = mica_val_truth(&bound[3])};
    const mica_val *indent = &bound[1];
    style.indent = mica_val_literal("");
    style.pretty = mica_arg_given(indent) && indent->type != MICA_V_NONE;
    if (style.pretty && indent->type == MICA_V_STR) {
        style.indent = *indent;
    } else if (style.pretty) {
        int64_t n;
        if (!mica_arg_int(run, indent, "indent", 0, &n))
            return false;
        if (n > (int64_t)sizeof spaces - 1)
            return mica_run_fail(run, "an indent of more than %zu spaces is not supported", sizeof spaces - 1);
        style.indent = mica_val_text(spaces, n > 0 ? (size_t)n : 0);
    }
    return json_separators(run, &bound[2], &style) && mica_text_json(run, v, &style, out);
}

/* ---- Numbers ---- */

FILTER(f_abs)
{
    (void)args, (void)bound;
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (!mica_val_is_number(v))
        return mica_run_fail(run, "bad operand type for abs(): '%s'", mica_val_type_name(v));
    if (v->type == MICA_V_FLOAT)
        *out = mica_val_float(__builtin_fabs(v->f));
    else
        return mica_op_unary(run, mica_val_as_int(v) < 0 ? MICA_OP_NEG : MICA_OP_POS, v, out);
    return true;
}

/* int(v): NONE where Python raises TypeError or ValueError. */
static bool to_int(mica_run *run, const mica_val *v, int64_t base, mica_val *out)
{
    int64_t i = 0;
    double f;
    mica_num_status status = MICA_NUM_INVALID;
    *out = MICA_NONE;
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (mica_val_is_int(v)) {
        *out = mica_val_int(mica_val_as_int(v));
        return true;
    }
    if (v->type == MICA_V_STR) {
        if (base == 0 || (base >= 2 && base <= 36))
            status = mica_num_parse_int(v->s, v->len, (int)base, &i);
        if (status == MICA_NUM_INVALID && mica_num_parse_float(v->s, v->len, &f) && !mica_num_is_inf(f))
            status = mica_num_truncate(f, &i);
    } else if (v->type == MICA_V_FLOAT) {
        if (mica_num_is_inf(v->f)) /* the filter itself does not expect this one */
            return mica_run_fail(run, "cannot convert float infinity to integer");
        status = mica_num_truncate(v->f, &i);
    }
    if (status == MICA_NUM_TOO_BIG)
        return mica_run_fail(run, "the integer does not fit 64 bits");
    if (status == MICA_NUM_OK)
        *out = mica_val_int(i);
    return true;
}

FILTER(f_int)
{
    (void)args;
    int64_t base;
    if (!mica_arg_int(run, &bound[1], "base", 10, &base) || !to_int(run, v, base, out))
        return false;
    if (out->type == MICA_V_NONE)
        *out = mica_arg_given(&bound[0]) ? bound[0] : mica_val_int(0);
    return true;
}

FILTER(f_float)
{
    (void)args;
    double f = 0;
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (v->type == MICA_V_FLOAT)
        *out = *v;
    else if (mica_val_is_int(v))
        *out = mica_val_float((double)mica_val_as_int(v));
    else if (v->type == MICA_V_STR && mica_num_parse_float(v->s, v->len, &f))
        *out = mica_val_float(f);
    else
        *out = mica_arg_given(&bound[0]) ? bound[0] : mica_val_float(0);
    return true;
}

/* An integer rounded to a power of ten; ties go to the even multiple. */
static bool round_int(mica_run *run, int64_t i, int64_t digits, mica_val *out)
{
    int64_t unit = 1;
    if (digits >= 0) {
        *out = mica_val_int(i);
        return true;
    }
    if (digits < -18) {
        *out = mica_val_int(0);
        return true;
    }
    for (; digits < 0; digits++)
        unit *= 10;
    int64_t rest = i % unit, base = i - rest, up = rest < 0 ? -unit : unit, twice = (rest < 0 ? -rest : rest) * 2 - unit;
    if (twice > 0 || (twice == 0 && (base / unit) % 2 != 0)) {
        if (__builtin_add_overflow(base, up, &base))
            return mica_run_fail(run, "the integer result does not fit 64 bits");
    }
    *out = mica_val_int(base);
    return true;
}

static bool float_to_int(mica_run *run, double f, mica_val *out)
{
    int64_t whole;
    if (mica_num_truncate(f, &whole) != MICA_NUM_OK)
        return mica_run_fail(run, "the float does not fit 64 bits as an integer");
    *out = mica_val_int(whole);
    return true;
}

/* ceil or floor of v * 10**digits, divided by 10**digits, as the filter does it. */
static bool round_directed(mica_run *run, const mica_val *v, int64_t digits, bool up, mica_val *out)
{
    mica_val ten = mica_val_int(10), power = mica_val_int(digits), unit, scaled;
    if (!mica_op_binary(run, MICA_OP_POW, &ten, &power, &unit) || !mica_op_binary(run, MICA_OP_MUL, v, &unit, &scaled))
        return false;
    if (scaled.type == MICA_V_FLOAT) {
        double f = up ? -mica_num_floor(-scaled.f) : mica_num_floor(scaled.f);
        if (!float_to_int(run, f, &scaled))
            return false;
    }
    return mica_op_binary(run, MICA_OP_DIV, &scaled, &unit, out);
}

FILTER(f_round)
{
    (void)args;
    int64_t digits;
    mica_val method = mica_val_literal("common");
    if (mica_arg_given(&bound[1]) && !mica_arg_text(run, &bound[1], "method", &method))
        return false;
    bool common = mica_val_is(&method, "common", 6), up = mica_val_is(&method, "ceil", 4);
    if (!common && !up && !mica_val_is(&method, "floor", 5))
        return mica_run_fail(run, "method must be common, ceil or floor");
    if (common && v->type == MICA_V_FLOAT && bound[0].type == MICA_V_NONE) /* round(f, None) is an integer */
        return float_to_int(run, mica_num_round(v->f, 0), out);
    const mica_val *precision = common && bound[0].type == MICA_V_NONE ? &(mica_val){.type = MICA_V_MISSING} : &bound[0];
    if (!mica_arg_int(run, precision, "precision", 0, &digits))
        return false;
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (!mica_val_is_number(v))
        return mica_run_fail(run, "type %s cannot be rounded", mica_val_type_name(v));
    if (!common)
        return round_directed(run, v, digits, up, out);
    if (mica_val_is_int(v))
        return round_int(run, mica_val_as_int(v), digits, out);
    *out = mica_val_float(mica_num_round(v->f, digits));
    return true;
}

FILTER(f_filesizeformat)
{
    (void)args;
    static const char prefixes[] = "kMGTPEZY";
    mica_val number = MICA_NONE;
    char text[64], digits[MICA_NUM_TEXT];
    bool binary = mica_val_truth(&bound[0]);
    mica_val none[1] = {MICA_NONE};
    if (!f_float(run, v, args, none, &number))
        return false;
    if (number.type == MICA_V_NONE)
        return mica_run_fail(run, "filesizeformat needs a number");
    double bytes = number.f, base = binary ? 1024 : 1000, unit = base;
    if (bytes == 1)
        return mica_val_copy(run, "1 Byte", 6, out);
    size_t i = 0, n;
    if (bytes < base) {
        if (mica_num_is_nan(bytes) || mica_num_is_inf(bytes))
            return mica_run_fail(run, "cannot convert this float to an integer");
        n = mica_num_format(bytes < 0 ? 0 - mica_num_floor(-bytes) : mica_num_floor(bytes), 'f', 0, false, digits);
        mica_val s = mica_val_text(digits, n), word = mica_val_literal(" Bytes");
        return mica_val_concat(run, &s, &word, out);
    }
    for (unit *= base; i < 7 && bytes >= unit; i++)
        unit *= base;
    n = mica_num_format(base * bytes / unit, 'f', 1, false, digits);
    snprintf(text, sizeof text, " %c%sB", binary && i == 0 ? 'K' : prefixes[i], binary ? "i" : "");
    mica_val s = mica_val_text(digits, n), word = mica_val_literal(text);
    return mica_val_concat(run, &s, &word, out);
}

const mica_filter_def mica_filters_value[] = {
    {"abs", f_abs, "", 0},
    {"attr", f_attr, "name", 1},
    {"d", f_default, "default_value,boolean", 0},
    {"default", f_default, "default_value,boolean", 0},
    {"filesizeformat", f_filesizeformat, "binary", 0},
    {"float", f_float, "default", 0},
    {"int", f_int, "default,base", 0},
    {"round", f_round, "precision,method", 0},
    {"tojson", f_tojson, "ensure_ascii,indent,separators,sort_keys", 0},
    {NULL, NULL, NULL, 0},
};

/* ---- Lookup ---- */

static const mica_filter_def *find_in(const mica_filter_def *table, const char *name, size_t length)
{
    for (; table->name; table++) {
        if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
            return table;
    }
    return NULL;
}

const mica_filter_def *mica_filter_find(const char *name, size_t length)
{
    const mica_filter_def *f = find_in(mica_filters_value, name, length);
    f = f ? f : find_in(mica_filters_text, name, length);
    return f ? f : find_in(mica_filters_seq, name, length);
}

bool mica_filter_apply(mica_run *run, const mica_filter_def *filter, const mica_val *value, const mica_args *args,
                       mica_val *out)
{
    mica_val bound[MICA_MAX_PARAMS], v = *value;
    if (!filter->params)
        return filter->call(run, &v, args, NULL, out);
    return mica_args_bind(run, args, filter->name, filter->params, filter->required, bound) &&
           filter->call(run, &v, args, bound, out);
}
