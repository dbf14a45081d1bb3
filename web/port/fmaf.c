/* fmaf.c - fmaf() in place of the C library's. There is no such instruction here, so that one goes by way of double, too;
 * but where the result is below 2^-126 it rounds twice. This one takes what the first rounding lost into the last bit
 * ("round to odd": S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Transactions on Computers 57,
 * 2008), after which a second rounding, to any width that a float has, is right. tests/web/fma.c has the case.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

float fmaf(float x, float y, float z)
{
    double p = (double)x * (double)y, c = (double)z, s = p + c; /* the product is exact */
    double of_p = s - c, error = (p - of_p) + (c - (s - of_p)); /* D. Knuth's: p + c = s + error, exactly */
    if (error > 0.0 || error < 0.0) { /* not a number: s is infinite or NaN */
        uint64_t bits;
        memcpy(&bits, &s, sizeof bits);
        if (!(bits & 1))
            bits = (error > 0.0) == (s > 0.0) ? bits + 1 : bits - 1;
        memcpy(&s, &bits, sizeof s);
    }
    return (float)s;
}
