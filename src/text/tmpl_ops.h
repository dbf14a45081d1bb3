/* tmpl_ops.h - operators over values, with Python's meaning. Called by the evaluator, filters, tests and methods. */
#ifndef MICA_TEXT_TMPL_OPS_H
#define MICA_TEXT_TMPL_OPS_H
#include "text/tmpl_value.h"

typedef enum mica_op {
    MICA_OP_ADD, MICA_OP_SUB, MICA_OP_MUL, MICA_OP_DIV, MICA_OP_FLOORDIV, MICA_OP_MOD, MICA_OP_POW,
    MICA_OP_EQ, MICA_OP_NE, MICA_OP_LT, MICA_OP_LE, MICA_OP_GT, MICA_OP_GE, MICA_OP_IN, MICA_OP_NOT_IN,
    MICA_OP_NEG, MICA_OP_POS,
} mica_op;

bool mica_val_truth(const mica_val *v);
bool mica_op_binary(mica_run *run, mica_op op, const mica_val *a, const mica_val *b, mica_val *out);
bool mica_op_unary(mica_run *run, mica_op op, const mica_val *a, mica_val *out);
/** One of the comparisons or memberships. */
bool mica_op_compare(mica_run *run, mica_op op, const mica_val *a, const mica_val *b, bool *out);
bool mica_val_equal(mica_run *run, const mica_val *a, const mica_val *b, bool *out);
/** a < b, as sorted() asks. */
bool mica_val_less(mica_run *run, const mica_val *a, const mica_val *b, bool *out);
bool mica_val_contains(mica_run *run, const mica_val *container, const mica_val *item, bool *out);
bool mica_val_hash(mica_run *run, const mica_val *v, uint64_t *hash);
/** len(); fails for what has none. */
bool mica_val_length(mica_run *run, const mica_val *v, int64_t *n);
/** Stable sort of n values by keys (NULL: by themselves). */
bool mica_val_sort(mica_run *run, mica_val *items, mica_val *keys, size_t n, bool reverse);

#endif
