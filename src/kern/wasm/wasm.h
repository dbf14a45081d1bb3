/* wasm.h - the WebAssembly kernel sets. Both are the same text, compiled twice: simd128.c and relaxed.c define how floats
 * are fused and how bytes are multiplied (the *parts* below) and then include
 *
 *     wasm_formats.h   the weights of a block as bytes, its scales
 *     wasm_rows.h      eight rows at once: scales, sums, the float chain
 *     wasm_gemv.h, wasm_gemm.h, wasm_float.h    products
 *     wasm_vector.h    all else
 *
 * A module with relaxed instructions is refused whole by an engine without them, so there are two modules
 * (web/CMakeLists.txt), and the one with them has both sets.
 */
#ifndef MICA_KERN_WASM_WASM_H
#define MICA_KERN_WASM_WASM_H
#include <wasm_simd128.h>

#include "base/selection.h"
#include "kern/kern.h"
#include "kern/target.h"

/** Type id and name of the formats of wasm_formats.h. */
#define WASM_FORMATS(F) \
    WASM_ROW(F, Q4_0, q4_0) WASM_ROW(F, Q4_1, q4_1) WASM_ROW(F, Q5_0, q5_0) WASM_ROW(F, Q5_1, q5_1) WASM_ROW(F, Q8_0, q8_0) \
    WASM_ROW(F, IQ4_NL, iq4_nl) WASM_ROW(F, Q2_K, q2_k) WASM_ROW(F, Q3_K, q3_k) WASM_ROW(F, Q4_K, q4_k) \
    WASM_ROW(F, Q5_K, q5_k) WASM_ROW(F, Q6_K, q6_k) WASM_ROW(F, IQ4_XS, iq4_xs)
#define WASM_ROW(F, type, name) MICA_ROW(PRODUCT_##name, F(type, name)) /* unless the build leaves it out */

typedef struct bytes32 { /* 32 weights, in order */
    v128_t a, b;
} bytes32;

/** 32 weights or activations as a set multiplies them: v[0] and v[1] are of the first 16, v[2] and v[3] of the others; or,
 * where bytes are multiplied as they are, v[0] and v[1] are all. */
typedef struct vec32 {
    v128_t v[4];
} vec32;

/* ---- The parts that a set defines ---- */

/* a * b + c, rounded once. */
MICA_INLINE v128_t fma4(v128_t a, v128_t b, v128_t c);

/* `wide`: weights are -128..127; else 0..63. */
MICA_INLINE vec32 weights32(bool wide, bytes32 w);
MICA_INLINE vec32 acts32(bool wide, const int8_t *x);
/* How many vectors of a vec32 are used. */
MICA_INLINE int vectors_of(bool wide);
/* The products of half h (16 of each), and of all 32, summed to four int32 lanes in any way. */
MICA_INLINE v128_t dot16(bool wide, const vec32 *w, const vec32 *x, int h);
MICA_INLINE v128_t dot32(bool wide, const vec32 *w, const vec32 *x);

/* ---- Bytes as int16: elements 2i in one vector, 2i + 1 in the other. The order of a sum of integers is free ---- */

MICA_INLINE vec32 unsigned_words(bytes32 w)
{
    const v128_t low = wasm_i16x8_const_splat(0xFF);
    return (vec32){{wasm_v128_and(w.a, low), wasm_u16x8_shr(w.a, 8), wasm_v128_and(w.b, low), wasm_u16x8_shr(w.b, 8)}};
}

MICA_INLINE vec32 signed_words(bytes32 w)
{
    return (vec32){{wasm_i16x8_shr(wasm_i16x8_shl(w.a, 8), 8), wasm_i16x8_shr(w.a, 8),
                    wasm_i16x8_shr(wasm_i16x8_shl(w.b, 8), 8), wasm_i16x8_shr(w.b, 8)}};
}

MICA_INLINE bytes32 load32(const int8_t *x) { return (bytes32){wasm_v128_load(x), wasm_v128_load(x + 16)}; }

/* |w| <= 128 and |x| <= 127: a lane is at most 4 * 128 * 127. */
MICA_INLINE v128_t words_dot16(const vec32 *w, const vec32 *x, int h)
{
    return wasm_i32x4_add(wasm_i32x4_dot_i16x8(w->v[2 * h], x->v[2 * h]),
                          wasm_i32x4_dot_i16x8(w->v[2 * h + 1], x->v[2 * h + 1]));
}

#endif
