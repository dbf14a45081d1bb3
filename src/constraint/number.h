/* number.h - decimal numbers exactly as JSON writes them, and the automata of the numbers between two of them.
 *
 * Nothing here goes through floating point: a bound of 0.1 is a tenth and one of 2^64 is that. Called by schema*.c. */
#ifndef MICA_CONSTRAINT_NUMBER_H
#define MICA_CONSTRAINT_NUMBER_H
#include "constraint/grammar.h"

/** The value +-0.d1 d2 .. dn * 10^point; no leading or trailing zeros, so equal numbers have equal fields. Zero has n 0. */
typedef struct mica_decimal {
    const char *digits; /* '0' to '9'; borrowed from the text that was read */
    int32_t n, point;
    bool negative; /* never of zero */
} mica_decimal;

#define MICA_DECIMAL_MAX_DIGITS 400 /* also of the zeros before or behind: |point| */

/** Reads a number in JSON's notation, which the caller has checked. `digits` has room for `length` bytes and must live as long
 * as *out. False: more digits, or a larger exponent, than MICA_DECIMAL_MAX_DIGITS. */
bool mica_decimal_read(const char *text, size_t length, char *digits, mica_decimal *out);
int mica_decimal_compare(const mica_decimal *a, const mica_decimal *b);
bool mica_decimal_is_integer(const mica_decimal *a);
/** Without exponent, "-0.25", terminated. Returns the length; 0: it needs more than `capacity` bytes. */
size_t mica_decimal_print(const mica_decimal *a, char *out, size_t capacity);

/** Which numbers. Without a bound on one side, that of 64-bit integers holds (or, if the other bound is beyond it, one digit
 * more). */
typedef struct mica_number_spec {
    bool integer;
    const mica_decimal *low, *high; /* NULL: none */
    bool low_open, high_open;       /* the bound itself is excluded */
    uint32_t step;                  /* multiples of step / 10^places; 0: all numbers */
    int32_t places;
} mica_number_spec;

#define MICA_NUMBER_PLACES     16     /* the most digits behind the point, unless a bound has as many */
#define MICA_NUMBER_MAX_STATES 200000 /* of the automaton before it is made small */
#define MICA_NUMBER_MAX_STEP   1000u  /* the automaton has a state for each remainder, at each length */

/** The automaton of their texts: digits with at most one point, no leading zero, no plus, no exponent, no minus zero. A state
 * leads to acceptance or is not there; no numbers at all give one state that does not accept. Free with mica_fsm_clear().
 * MICA_INVALID_ARGUMENT: too large. */
mica_status mica_number_fsm(const mica_number_spec *spec, mica_fsm *out, mica_error *err);
void mica_fsm_clear(mica_fsm *fsm);
/** Whether a number is one of them. */
bool mica_number_allows(const mica_number_spec *spec, const mica_decimal *value);

#endif
