/* attention.h - attention over the KV cache, in tiles of fixed absolute positions. Called by forward.c on every thread. */
#ifndef MICA_MODEL_ATTENTION_H
#define MICA_MODEL_ATTENTION_H
#include "model/forward.h"


/** Scratch of one thread. */
size_t mica_attention_scratch(const mica_hparams *h);

/** Workspace for the parts of a step that is split over groups of positions. */
size_t mica_attention_parts_bytes(const mica_hparams *h);

/** e->attn = softmax(q k / sqrt(d)) v for the n_rows tokens of the spans in a layer, whose q is in e->q and whose k, v are in the
 * caches. All threads call it; they share the work by mica_pool_next(). Afterwards, behind a barrier,
 * mica_attention_join() gives the rows. */
void mica_attention(const mica_exec *e, int32_t layer, const mica_span *spans, int32_t n_spans, int32_t n_rows, void *scratch);
/** Where the result of a row is: in e->attn already; or, if the step was split over groups of positions, in `out`
 * ([n_heads][head_dim]; may be the row of e->attn), where their parts are put together now. All rows of a step are in e->attn,
 * or none. */
const float *mica_attention_join(const mica_exec *e, int32_t layer, int32_t row, int32_t n_rows, float *out);

#endif
