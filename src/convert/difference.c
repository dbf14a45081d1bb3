/* difference.c - how far the weights of two files are apart; see quantize.h. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "convert/quantize.h"

/* Sums over one matrix: of (a - b)^2 and of a^2. `rows`: room for two rows. */
static void add_matrix(const mica_gguf_tensor *a, const mica_gguf_tensor *b, float *rows, double sums[2])
{
    size_t cols = (size_t)a->dims[0], a_bytes = mica_quant_bytes(a->quant, cols), b_bytes = mica_quant_bytes(b->quant, cols);
    for (int64_t r = 0; r < a->dims[1] * a->dims[2] * a->dims[3]; r++) {
        a->quant->decode(a->quant, a->data + (size_t)r * a_bytes, rows, cols);
        b->quant->decode(b->quant, b->data + (size_t)r * b_bytes, rows + cols, cols);
        for (size_t i = 0; i < cols; i++) {
            double x = (double)rows[i], miss = x - (double)rows[cols + i];
            sums[0] += miss * miss;
            sums[1] += x * x;
        }
    }
    mica_map_forget(a->data, (size_t)a->n_bytes);
    mica_map_forget(b->data, (size_t)b->n_bytes);
}

static const mica_gguf_tensor *find_same(const mica_gguf *g, const mica_gguf_tensor *t)
{
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++) {
        const mica_gguf_tensor *other = mica_gguf_tensor_at(g, i);
        if (other->name.length == t->name.length && memcmp(other->name.data, t->name.data, t->name.length) == 0)
            return memcmp(other->dims, t->dims, sizeof t->dims) == 0 ? other : NULL;
    }
    return NULL;
}

mica_status mica_quantize_difference(const mica_gguf *a, const mica_gguf *b, double *out, mica_error *err)
{
    double sums[2] = {0.0, 0.0};
    for (size_t i = 0; i < mica_gguf_tensor_count(a); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(a, i), *other = find_same(b, t);
        if (!mica_recipe_is_matrix(t))
            continue;
        if (!other)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "%s has no matrix %.*s of the shape that %s has: they are not files of one model",
                             mica_gguf_path(b), (int)t->name.length, t->name.data, mica_gguf_path(a));
        float *rows = malloc(2 * (size_t)t->dims[0] * sizeof *rows);
        if (!rows)
            return mica_fail_nomem(err, 2 * (size_t)t->dims[0] * sizeof *rows, "rows of weights");
        add_matrix(t, other, rows, sums);
        free(rows);
    }
    *out = sums[1] > 0.0 ? sqrt(sums[0] / sums[1]) : NAN;
    return MICA_OK;
}
