/* utf8.c - see utf8.h. */
#include "text/utf8.h"

#include <string.h>

/* Length of the valid sequence at text[0..n), 0 if there is none. */
static unsigned sequence_length(const unsigned char *text, size_t n)
{
    unsigned length = mica_utf8_length(text[0]);
    if (length > n) {
        return 0;
    }
    for (unsigned k = 1; k < length; k++) {
        if (!mica_utf8_continues(text[0], k, text[k])) {
            return 0;
        }
    }
    return length;
}

size_t mica_utf8_check(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        if (n - i >= sizeof(eight)) { /* most text is ASCII: eight bytes at a time */
            memcpy(&eight, p + i, sizeof(eight));
            if (!(eight & UINT64_C(0x8080808080808080))) {
                i += sizeof(eight);
                continue;
            }
        }
        unsigned length = sequence_length(p + i, n - i);
        if (!length) {
            return i;
        }
        i += length;
    }
    return n;
}
