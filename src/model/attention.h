/* attention.h - attention over the KV cache, in tiles of fixed absolute positions. Called by forward.c on every thread. */
#ifndef MICA_MODEL_ATTENTION_H
#define MICA_MODEL_ATTENTION_H
#include "model/forward.h"

#define MICA_ATTN_TILE 64 /* positions; fixed by the numerics law: the online softmax is updated tile by tile */

/** Scratch of one thread. */
size_t mica_attention_scratch(const mica_hparams *h);

/** Workspace for the parts of a step that is split over groups of positions. */
size_t mica_attention_parts_bytes(const mica_hparams *h);

/** e->attn = softmax(q k / sqrt(d)) v for the n_rows tokens of the spans in a layer, whose q is in e->q and whose k, v are in the
 * caches. All threads call it; they share the work by mica_pool_next(). Afterwards (behind a barrier) mica_attention_join() must
 * be called once for every row: in steps of few rows it puts the groups' parts together. */
void mica_attention(const mica_exec *e, int32_t layer, const mica_span *spans, int32_t n_spans, int32_t n_rows, void *scratch);
void mica_attention_join(const mica_exec *e, int32_t layer, int32_t row, int32_t n_rows);

#endif
