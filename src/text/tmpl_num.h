/* tmpl_num.h - numbers as text, in Python's form and in no locale: repr, float(), int(), round(). Pure functions; no libm. */
#ifndef MICA_TEXT_TMPL_NUM_H
#define MICA_TEXT_TMPL_NUM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MICA_NUM_MAX_PRECISION 300  /* decimals of a formatted float; Python allows more, no text needs them */
#define MICA_NUM_TEXT 704           /* bytes that any number takes: 309 digits, the decimals, sign, point, exponent */

/** repr(f): the shortest text that reads back as f. Terminated; returns the length. */
size_t mica_num_repr(double f, char out[MICA_NUM_TEXT]);
/** The C conversions e, f, g, E, F, G with a precision of at most MICA_NUM_MAX_PRECISION; `alternate` is the # flag. */
size_t mica_num_format(double f, char conversion, int precision, bool alternate, char out[MICA_NUM_TEXT]);
/** As float() reads text: white space, underscores between digits, inf and nan. */
bool mica_num_parse_float(const char *text, size_t length, double *out);

typedef enum mica_num_status { MICA_NUM_OK, MICA_NUM_INVALID, MICA_NUM_TOO_BIG } mica_num_status;
/** As int() reads text in `base` (0, 2 to 36). */
mica_num_status mica_num_parse_int(const char *text, size_t length, int base, int64_t *out);
/** int(f): towards zero. */
mica_num_status mica_num_truncate(double f, int64_t *out);
/** Largest integer <= f, as a double. */
double mica_num_floor(double f);
/** C's fmod, exactly. b != 0. */
double mica_num_fmod(double a, double b);
/** round(f, digits): correctly rounded, ties to even. */
double mica_num_round(double f, int64_t digits);
/** f to an integer power. */
double mica_num_power(double f, int64_t n);

static inline bool mica_num_is_nan(double f) { return f != f; }
static inline bool mica_num_is_inf(double f) { return f == __builtin_inf() || f == -__builtin_inf(); }

#endif
