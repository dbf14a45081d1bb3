/* relaxed.c - the set with relaxed vector instructions, whose results the standard leaves open in cases: whether a
 * multiply-add is fused (asked by mica_cpu_has_fused_madd(), and without that the set is not used), and what a product of
 * bytes does with a weight beyond 127 or a sum beyond 16 bits. Weights are 0..63 here, 2 * 63 * 127 fits: so there is one
 * result, and it is exact. Formats of signed bytes are multiplied as in simd128.c.
 */
#if defined(__wasm_relaxed_simd__)
#include "kern/fills.h"
#include "kern/wasm/wasm.h"

MICA_INLINE v128_t fma4(v128_t a, v128_t b, v128_t c) { return wasm_f32x4_relaxed_madd(a, b, c); }

MICA_INLINE int vectors_of(bool wide) { return wide ? 4 : 2; }

MICA_INLINE vec32 as_they_are(bytes32 b) { return (vec32){{b.a, b.b, b.a, b.b}}; }

MICA_INLINE vec32 weights32(bool wide, bytes32 w) { return wide ? signed_words(w) : as_they_are(w); }
MICA_INLINE vec32 acts32(bool wide, const int8_t *x) { return wide ? signed_words(load32(x)) : as_they_are(load32(x)); }

MICA_INLINE v128_t dot16(bool wide, const vec32 *w, const vec32 *x, int h)
{
    if (wide)
        return words_dot16(w, x, h);
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x->v[h], w->v[h], wasm_i32x4_const_splat(0));
}

MICA_INLINE v128_t dot32(bool wide, const vec32 *w, const vec32 *x)
{
    if (wide)
        return wasm_i32x4_add(words_dot16(w, x, 0), words_dot16(w, x, 1));
    return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x->v[1], w->v[1], dot16(wide, w, x, 0));
}

#include "kern/wasm/wasm_fill.h"

void mica_kernels_fill_relaxed(mica_kernels *k) { fill(k); }
#endif
