#include "text/tmpl_num.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_text.h"

#include <string.h>

static const char *const signs[] = {[MICA_OP_ADD] = "+", [MICA_OP_SUB] = "-", [MICA_OP_MUL] = "*", [MICA_OP_DIV] = "/",
                                    [MICA_OP_FLOORDIV] = "//", [MICA_OP_MOD] = "%", [MICA_OP_POW] = "** or pow()",
                                    [MICA_OP_NEG] = "-", [MICA_OP_POS] = "+"};

static bool too_big(mica_run *run) { return mica_run_fail(run, "the integer result does not fit 64 bits"); }

static bool unsupported(mica_run *run, mica_op op, const mica_val *a, const mica_val *b)
{
    if (op == MICA_OP_ADD && a->type == MICA_V_STR)
        return mica_run_fail(run, "can only concatenate str (not \"%s\") to str", mica_val_type_name(b));
    return mica_run_fail(run, "unsupported operand type(s) for %s: '%s' and '%s'", signs[op], mica_val_type_name(a),
                         mica_val_type_name(b));
}

/* ---- Numbers ---- */

static bool integer_power(mica_run *run, int64_t base, int64_t n, mica_val *out)
{
    int64_t result = 1;
    if (n < 0) {
        if (base == 0)
            return mica_run_fail(run, "0.0 cannot be raised to a negative power");
        *out = mica_val_float(mica_num_power((double)base, n));
        return true;
    }
    if (base == 0 || base == 1 || base == -1) {
        *out = mica_val_int(n == 0 ? 1 : base == -1 ? (n & 1 ? -1 : 1) : base);
        return true;
    }
    for (; n; n--) { /* overflows after at most 63 steps */
        if (__builtin_mul_overflow(result, base, &result))
            return too_big(run);
    }
    *out = mica_val_int(result);
    return true;
}

static bool integer_divide(mica_run *run, mica_op op, int64_t a, int64_t b, mica_val *out)
{
    if (b == 0)
        return mica_run_fail(run, op == MICA_OP_DIV ? "division by zero" : "integer division or modulo by zero");
    if (op == MICA_OP_DIV) {
        *out = mica_val_float((double)a / (double)b);
        return true;
    }
    if (b == -1) { /* INT64_MIN / -1 traps */
        int64_t q;
        if (op == MICA_OP_FLOORDIV && __builtin_sub_overflow((int64_t)0, a, &q))
            return too_big(run);
        *out = mica_val_int(op == MICA_OP_FLOORDIV ? q : 0);
        return true;
    }
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    *out = mica_val_int(op == MICA_OP_FLOORDIV ? q : r);
    return true;
}

static bool integers(mica_run *run, mica_op op, int64_t a, int64_t b, mica_val *out)
{
    int64_t r;
    bool overflow;
    switch (op) {
    case MICA_OP_ADD:
        overflow = __builtin_add_overflow(a, b, &r);
        break;
    case MICA_OP_SUB:
        overflow = __builtin_sub_overflow(a, b, &r);
        break;
    case MICA_OP_MUL:
        overflow = __builtin_mul_overflow(a, b, &r);
        break;
    case MICA_OP_POW:
        return integer_power(run, a, b, out);
    default:
        return integer_divide(run, op, a, b, out);
    }
    if (overflow)
        return too_big(run);
    *out = mica_val_int(r);
    return true;
}

/* Python's float division: the remainder has the sign of the divisor. */
static void float_divmod(double a, double b, double *quotient, double *remainder)
{
    double mod = mica_num_fmod(a, b), div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = __builtin_copysign(0.0, b);
    }
    if (div != 0) {
        double floor = mica_num_floor(div);
        if (div - floor > 0.5)
            floor += 1;
        div = floor;
    } else {
        div = __builtin_copysign(0.0, a / b);
    }
    *quotient = div;
    *remainder = mod;
}

static bool floats(mica_run *run, mica_op op, double a, double b, mica_val *out)
{
    double quotient, remainder;
    int64_t n;
    switch (op) {
    case MICA_OP_ADD:
        *out = mica_val_float(a + b);
        return true;
    case MICA_OP_SUB:
        *out = mica_val_float(a - b);
        return true;
    case MICA_OP_MUL:
        *out = mica_val_float(a * b);
        return true;
    case MICA_OP_POW:
        if (a == 0 && b < 0)
            return mica_run_fail(run, "0.0 cannot be raised to a negative power");
        if (mica_num_truncate(b, &n) != MICA_NUM_OK || (double)n != b)
            return mica_run_fail(run, "** with an exponent that is not a whole number is not supported");
        *out = mica_val_float(mica_num_power(a, n));
        return true;
    default:
        if (b == 0)
            return mica_run_fail(run, op == MICA_OP_MOD ? "float modulo" : "float division by zero");
        if (op == MICA_OP_DIV) {
            *out = mica_val_float(a / b);
            return true;
        }
        float_divmod(a, b, &quotient, &remainder);
        *out = mica_val_float(op == MICA_OP_MOD ? remainder : quotient);
        return true;
    }
}

static double as_float(const mica_val *v) { return v->type == MICA_V_FLOAT ? v->f : (double)mica_val_as_int(v); }

/* ---- Sequences ---- */

static bool repeat_text(mica_run *run, const mica_val *s, int64_t count, mica_val *out)
{
    char *bytes;
    size_t n;
    if (count <= 0 || s->len == 0) {
        *out = mica_val_sub(s, 0, 0);
        return true;
    }
    if (__builtin_mul_overflow((size_t)s->len, (size_t)count, &n))
        n = SIZE_MAX;
    if (!mica_val_new_text(run, n, &bytes, out))
        return false;
    for (size_t at = 0; at < n; at += s->len)
        memcpy(bytes + at, s->s, s->len);
    out->flags = s->flags;
    return true;
}

static bool repeat_items(mica_run *run, const mica_val *list, int64_t count, mica_val *out)
{
    const mica_seq *from = list->seq;
    size_t n = 0;
    if (count > 0 && (__builtin_mul_overflow(from->n, (size_t)count, &n) || n > MICA_TMPL_MAX_STEPS))
        return mica_run_fail(run, "the repeated list would be too long");
    if (!mica_seq_new(run, list->type, n, out) || !mica_run_charge(run, n * 64))
        return false;
    for (; out->seq->n < n; out->seq->n += from->n)
        memcpy(out->seq->items + out->seq->n, from->items, from->n * sizeof *from->items);
    return true;
}

static bool join_items(mica_run *run, const mica_val *a, const mica_val *b, mica_val *out)
{
    size_t n = a->seq->n + b->seq->n;
    mica_val left = *a, right = *b;
    if (!mica_seq_new(run, left.type, n, out) || !mica_run_charge(run, n * 16))
        return false;
    if (left.seq->n)
        memcpy(out->seq->items, left.seq->items, left.seq->n * sizeof *left.seq->items);
    if (right.seq->n)
        memcpy(out->seq->items + left.seq->n, right.seq->items, right.seq->n * sizeof *left.seq->items);
    out->seq->n = n;
    return true;
}

static bool add_text(mica_run *run, const mica_val *a, const mica_val *b, mica_val *out)
{
    mica_val left = *a, right = *b;
    bool markup = ((a->flags | b->flags) & MICA_VF_MARKUP) != 0;
    if (markup && (!mica_text_escape(run, a, &left) || !mica_text_escape(run, b, &right)))
        return false;
    if (!mica_val_concat(run, &left, &right, out))
        return false;
    if (markup)
        out->flags |= MICA_VF_MARKUP;
    return true;
}

static bool is_sequence(const mica_val *v) { return v->type == MICA_V_LIST || v->type == MICA_V_TUPLE; }

static bool multiply(mica_run *run, const mica_val *a, const mica_val *b, mica_val *out)
{
    const mica_val *thing = mica_val_is_int(a) ? b : a, *count = thing == a ? b : a;
    if (!mica_val_is_int(count))
        return unsupported(run, MICA_OP_MUL, a, b);
    if (thing->type == MICA_V_STR)
        return repeat_text(run, thing, mica_val_as_int(count), out);
    if (is_sequence(thing))
        return repeat_items(run, thing, mica_val_as_int(count), out);
    return unsupported(run, MICA_OP_MUL, a, b);
}

bool mica_op_binary(mica_run *run, mica_op op, const mica_val *a, const mica_val *b, mica_val *out)
{
    if (mica_val_is_int(a) && mica_val_is_int(b))
        return integers(run, op, mica_val_as_int(a), mica_val_as_int(b), out);
    if (mica_val_is_number(a) && mica_val_is_number(b))
        return floats(run, op, as_float(a), as_float(b), out);
    if (op == MICA_OP_MOD && a->type == MICA_V_STR)
        return mica_text_percent(run, a, b, out);
    if (op == MICA_OP_ADD && a->type == MICA_V_STR && b->type == MICA_V_STR)
        return add_text(run, a, b, out);
    if (a->type == MICA_V_UNDEFINED || b->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, a->type == MICA_V_UNDEFINED ? a : b);
    if (op == MICA_OP_ADD && is_sequence(a) && a->type == b->type)
        return join_items(run, a, b, out);
    if (op == MICA_OP_MUL)
        return multiply(run, a, b, out);
    return unsupported(run, op, a, b);
}

bool mica_op_unary(mica_run *run, mica_op op, const mica_val *a, mica_val *out)
{
    if (a->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, a);
    if (a->type == MICA_V_FLOAT) {
        *out = mica_val_float(op == MICA_OP_NEG ? -a->f : a->f);
        return true;
    }
    if (!mica_val_is_int(a))
        return mica_run_fail(run, "bad operand type for unary %s: '%s'", signs[op], mica_val_type_name(a));
    int64_t i = mica_val_as_int(a);
    if (op == MICA_OP_NEG && __builtin_sub_overflow((int64_t)0, i, &i))
        return too_big(run);
    *out = mica_val_int(i);
    return true;
}
