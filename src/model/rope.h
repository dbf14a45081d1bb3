/* rope.h - rotary position embedding (Su et al. 2021): the angles. The rotation itself is a kernel. */
#ifndef MICA_MODEL_ROPE_H
#define MICA_MODEL_ROPE_H
#include "model/arch.h"

/** Frequencies theta_i, dim / 2 of them: base^(-2i/dim) * scale / factor_i. `out` has dim / 2 doubles. */
void mica_rope_frequencies(const mica_rope *rope, int32_t dim, double *out);

/** Cosines, then sines, dim / 2 each, of position `pos`. */
void mica_rope_angles(const double *frequencies, float magnitude, int32_t dim, int32_t pos, float *cs);

#endif
