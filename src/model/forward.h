/* forward.h - one step through the transformer: tokens of one or many sequences in, logits out.
 *
 * mica_exec is the compute state: workspace and threads. Everything in it is allocated before the first step; a step allocates
 * nothing. The KV caches belong to the sequences. Invariant (docs/numerics.md): the logits of a position depend only on the model, the tokens up
 * to it and the KV type, never on threads, chunk or what else is computed in the same step.
 */
#ifndef MICA_MODEL_FORWARD_H
#define MICA_MODEL_FORWARD_H
#include "base/pool.h"
#include "kern/kern.h"
#include "model/kv.h"
#include "model/weights.h"

/** Activations in the forms that the weights reading them want; those not wanted are NULL. */
typedef struct mica_act_set {
    float *f;               /* [chunk][k] */
    int8_t *q32, *q256;     /* [chunk][k] */
    float *d32, *d256;      /* [chunk][k / 32], [chunk][k / 256] */
    int16_t *sum32, *sum256; /* [chunk][k / 16] */
} mica_act_set;

/** Consecutive tokens of one sequence: positions pos..pos+n-1, whose keys and values go to kv. */
typedef struct mica_span {
    const mica_kv *kv;
    const int32_t *tokens; /* [n], valid ids */
    int32_t n, pos;        /* n >= 1, pos + n <= kv->n_ctx */
    int32_t n_logits;      /* the logits of the last n_logits tokens are wanted */
} mica_span;

/** Where a token of the step belongs. */
typedef struct mica_row {
    const mica_kv *kv;
    int32_t token, pos;
} mica_row;

typedef struct mica_exec {
    const mica_weights *w;
    const mica_kernels *kern;
    mica_pool *pool;
    int32_t chunk;      /* most tokens in a step */
    int32_t logits_max; /* most positions of a step whose logits are computed */

    /* Workspace; shapes with C = chunk, E = n_embd, Q = n_heads * head_dim, K = n_kv_heads * head_dim, F = n_ff */
    mica_row *rows;      /* [C] the tokens of the step, span after span */
    int32_t *logit_rows; /* [logits_max] rows whose logits are wanted */
    float *x;          /* [C][E] residual stream */
    float *branch;     /* [C][E] output of attention or feed-forward before it is added */
    float *q, *k, *v;  /* [C][Q], [C][K], [C][K] */
    float *attn;       /* [C][Q] */
    float *attn_parts; /* see attention.c */
    float *gate, *up;  /* [C][F] */
    float *cs, *cs_window; /* [C][rope_dim] cosines and sines of full and windowed layers */
    double *freq, *freq_window; /* [rope_dim / 2] */
    float rope_magnitude, rope_window_magnitude;
    mica_act_set act;  /* k up to max(E, Q, F) */
    float *logits;     /* [logits_max][n_vocab] */
    char *scratch;     /* one piece a thread */
    size_t scratch_stride;
    size_t workspace_bytes; /* all of the above */
} mica_exec;

/** Bytes of the workspace for these sizes; 0 if it does not fit size_t. */
size_t mica_exec_bytes(const mica_weights *w, int32_t chunk, int32_t logits_max, int32_t n_threads);

/** Lays the workspace out in `memory` (64-byte aligned, mica_exec_bytes() of it) and computes the RoPE frequencies for a
 * context of n_ctx. w, kern, pool, chunk and logits_max are set by the caller. */
void mica_exec_layout(mica_exec *e, void *memory, int32_t n_threads, int32_t n_ctx);

/** Computes the spans, at most `chunk` tokens in all. The logits wanted (at most logits_max) come into e->logits, in the order of
 * the spans. Two spans must not share a KV cache. */
void mica_forward(mica_exec *e, const mica_span *spans, int32_t n_spans);

#endif
