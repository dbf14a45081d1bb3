/* slice.h - the sets of ordinary characters by which vocabularies are sorted.
 *
 * A token of slice s consists of whole characters of that slice only. A place in a grammar where any number of such characters
 * may follow (the inside of a JSON string) takes the slice's tokens at once. The slices are nested: LOWER in WORD in ASCII in
 * TEXT.
 */
#ifndef MICA_CONSTRAINT_SLICE_H
#define MICA_CONSTRAINT_SLICE_H
#include <stdint.h>

enum {
    MICA_SLICE_LOWER, /* a-z */
    MICA_SLICE_WORD,  /* A-Z a-z */
    MICA_SLICE_ASCII, /* what JSON strings hold as it is, of ASCII: no controls, no DEL, no quote, no backslash */
    MICA_SLICE_TEXT,  /* and all other code points, in well-formed UTF-8 */
    MICA_SLICES,
};
#define MICA_SLICE_ENDLESS 255

/** A piece of the automaton of one character: bytes from low to high lead from state `from` to `to`; 0 is the boundary between
 * characters.. */
typedef struct mica_slice_piece {
    uint8_t from, low, high, to;
} mica_slice_piece;

#define MICA_SLICE_UTF8_STATES 8
/** The pieces of a slice. */
const mica_slice_piece *mica_slice_pieces(int slice, int *n);
/** The state after one more byte; -1: not of this slice. */
int mica_slice_step(int slice, int state, uint8_t byte);

#endif
