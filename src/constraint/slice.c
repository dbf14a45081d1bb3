#include "constraint/slice.h"

/* Well-formed UTF-8: table 3-7 of the Unicode Standard. States: 1, 2, 3: so many continuation bytes are missing; 4 to 7: after
 * E0, ED, F0, F4, where the next byte has bounds of its own. */
static const mica_slice_piece TEXT[] = {
    {0, 0x20, 0x21, 0}, {0, 0x23, 0x5B, 0}, {0, 0x5D, 0x7E, 0}, {0, 0xC2, 0xDF, 1}, {0, 0xE0, 0xE0, 4}, {0, 0xE1, 0xEC, 2},
    {0, 0xED, 0xED, 5}, {0, 0xEE, 0xEF, 2}, {0, 0xF0, 0xF0, 6}, {0, 0xF1, 0xF3, 3}, {0, 0xF4, 0xF4, 7}, {1, 0x80, 0xBF, 0},
    {2, 0x80, 0xBF, 1}, {3, 0x80, 0xBF, 2}, {4, 0xA0, 0xBF, 1}, {5, 0x80, 0x9F, 1}, {6, 0x90, 0xBF, 2}, {7, 0x80, 0x8F, 2},
};
static const mica_slice_piece WORD[] = {{0, 'a', 'z', 0}, {0, 'A', 'Z', 0}}; /* LOWER has the first piece only */
#define ASCII_PIECES 3

const mica_slice_piece *mica_slice_pieces(int slice, int *n)
{
    if (slice <= MICA_SLICE_WORD) {
        *n = slice == MICA_SLICE_WORD ? 2 : 1;
        return WORD;
    }
    *n = slice == MICA_SLICE_ASCII ? ASCII_PIECES : (int)(sizeof TEXT / sizeof *TEXT);
    return TEXT;
}

int mica_slice_step(int slice, int state, uint8_t byte)
{
    int n;
    const mica_slice_piece *p = mica_slice_pieces(slice, &n);
    for (int i = 0; i < n; i++)
        if (p[i].from == state && byte >= p[i].low && byte <= p[i].high)
            return p[i].to;
    return -1;
}
