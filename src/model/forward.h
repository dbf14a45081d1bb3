/* forward.h - one step through the transformer: tokens of one or many sequences in, logits out.
 *
 * mica_exec is the compute state: workspace and threads. Everything in it is allocated before the first step; a step allocates
 * nothing. The KV caches belong to the sequences. Invariant (docs/numerics.md): the logits of a position depend only on the model, the tokens up
 * to it and the KV type, never on threads, chunk or what else is computed in the same step.
 */
#ifndef MICA_MODEL_FORWARD_H
#define MICA_MODEL_FORWARD_H
#include <stdatomic.h>

#include "base/pool.h"
#include "kern/kern.h"
#include "model/kv.h"
#include "model/weights.h"

/* Steps of at most so many tokens (decode, small batches) prepare activations on every thread: a norm and a quantisation of a
 * row cost less than waiting for another thread to do it, up to a few rows. */
#define MICA_FEW_ROWS 4

/* Forms of activations that weights read: a mask. */
enum { MICA_ACT_FLOATS = 1, MICA_ACT_32 = 2, MICA_ACT_256 = 4 };

/** The form that a weight reads. */
unsigned mica_act_form(const mica_weight *w);

/** Activations in the forms that the weights reading them want; those not wanted are NULL. */
typedef struct mica_act_set {
    float *f;               /* [rows][k] */
    int8_t *q32, *q256;     /* [rows][k] */
    float *d32, *d256;      /* [rows][k / 32], [rows][k / 256] */
    int16_t *sum32, *sum256; /* [rows][k / 16] */
} mica_act_set;

/** Consecutive tokens of one sequence: positions pos..pos+n-1, whose keys and values go to kv. */
typedef struct mica_span {
    mica_kv *kv;
    const int32_t *tokens; /* [n], valid ids */
    int32_t n, pos;        /* n >= 1, pos + n <= kv->n_ctx; mica_kv_can_resume(kv, pos) */
    int32_t n_logits;      /* the logits of the last n_logits tokens are wanted */
} mica_span;

/** Where a token of the step belongs. */
typedef struct mica_row {
    const mica_kv *kv;
    int32_t token, pos;
} mica_row;

/** What one thread has for itself. */
typedef struct mica_own {
    char *scratch; /* of a kernel or of attention */
    /* in steps of few rows, R = MICA_FEW_ROWS: a copy of what the threads share otherwise */
    float *x;              /* [R][E] */
    float *branch;         /* [E] a normed branch */
    float *cs, *cs_window; /* [R][rope_dim] */
    mica_act_set act;      /* floats up to max(E, Q) */
} mica_own;

typedef struct mica_exec {
    const mica_weights *w;
    const mica_kernels *kern;
    mica_pool *pool;
    int32_t chunk;      /* most tokens in a step */
    int32_t logits_max; /* most positions of a step whose logits are computed */

    /* Workspace; shapes with C = chunk, E = n_embd, Q = n_heads * head_dim, K = n_kv_heads * head_dim, F = n_ff */
    mica_row *rows;      /* [C] the tokens of the step, span after span */
    int32_t *logit_rows; /* [logits_max] rows whose logits are wanted */
    atomic_int *head_rows; /* [heads of q, of k, of v] rows of the matrices that are computed, while some are missing */
    float *x;          /* [C][E] residual stream */
    float *branch;     /* [C][E] output of attention or feed-forward before it is added */
    float *q, *k, *v;  /* [C][Q], [C][K], [C][K] */
    float *attn;       /* [C][Q] */
    float *attn_parts; /* see attention.c */
    float *gate, *up;  /* [C][F] */
    float *cs, *cs_window; /* [C][rope_dim] cosines and sines of full and windowed layers */
    double *freq, *freq_window; /* [rope_dim / 2] */
    float rope_magnitude, rope_window_magnitude;
    mica_act_set act;  /* [C] floats of E; the rest up to max(E, Q, F) */
    float *logits;     /* [logits_max][n_vocab] */
    mica_own *own;     /* [MICA_MAX_THREADS], those of the pool's threads filled in */
    /** Shown what each matrix of the layers is about to read, n rows of m->cols floats, by one thread; NULL: nobody looks. */
    void (*observe)(void *user, const mica_weight *m, const float *x, int32_t n);
    void *observe_user;
} mica_exec;

/** Bytes of the workspace for these sizes; 0 if it does not fit size_t. */
size_t mica_exec_bytes(const mica_weights *w, int32_t chunk, int32_t logits_max, int32_t n_threads);

/** Lays the workspace out in `memory` (64-byte aligned, mica_exec_bytes() of it) and computes the RoPE frequencies for a
 * context of n_ctx. w, kern, pool, chunk and logits_max are set by the caller. */
void mica_exec_layout(mica_exec *e, void *memory, int32_t n_threads, int32_t n_ctx);

/** Bytes that each thread adds to mica_exec_bytes(); 0 if out of range. */
size_t mica_exec_own_bytes(const mica_weights *w);
/** Lays out what threads [first, first + n) have for themselves, n times mica_exec_own_bytes() in `memory`. */
void mica_exec_add_threads(mica_exec *e, void *memory, int32_t first, int32_t n);

/** Computes the spans, at most `chunk` tokens in all. The logits wanted (at most logits_max) come into e->logits, in the order of
 * the spans. Two spans must not share a KV cache. */
void mica_forward(mica_exec *e, const mica_span *spans, int32_t n_spans);

/** The same without logits (n_logits 0 everywhere): returns the states after the last norm, which the output matrix would read,
 * of all tokens in the order of the spans: [tokens][n_embd], in the workspace until the next step. */
const float *mica_forward_states(mica_exec *e, const mica_span *spans, int32_t n_spans);

#endif
