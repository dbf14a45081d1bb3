/* dry.c - DRY ("don't repeat yourself"), as its author p-e-w describes it in text-generation-webui pull request 5677: a token
 * that would extend a sequence that ends the text now, and that occurred before, loses
 *     multiplier * base^(length - allowed_length)
 * of its logit, length being that of the longest such sequence, from allowed_length on. Sequence breakers are left out: they
 * are strings, and this level knows only ids.
 */
#include "text/sampler_impl.h"

/* For every token in the window: the length of the longest earlier occurrence of the text's end that the token followed. The
 * Z algorithm over the reversed window (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.4) finds all in one pass:
 * z[j] is the length of the match that ends j tokens before the last one. */
static void mark_matches(const int32_t *history, size_t n, size_t window, int32_t *mark, int32_t *z)
{
    const int32_t *last = history + (n - 1);
    size_t left = 0, right = 0; /* the match that reaches farthest is reversed [left, right) */
    for (size_t j = 1; j < window; j++) {
        size_t length = 0;
        if (j < right) {
            length = (size_t)z[j - left];
            if (length > right - j)
                length = right - j;
        }
        while (j + length < window && last[-(ptrdiff_t)length] == last[-(ptrdiff_t)(j + length)])
            length++;
        if (j + length > right) {
            left = j;
            right = j + length;
        }
        z[j] = (int32_t)length;
        int32_t next = last[-(ptrdiff_t)j + 1];
        if (z[j] > mark[next])
            mark[next] = z[j];
    }
}

/* base^exponent by squaring; infinity when it is too large, which the caller caps. base >= 1, so 0 * inf cannot happen. */
static double power(double base, int32_t exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

void mica_dry_apply(const mica_sampling *o, const int32_t *history, size_t n, int32_t *mark, int32_t *z, float *logits)
{
    size_t window = mica_window(o->dry_last_n, n);
    if (window < 2)
        return;
    mark_matches(history, n, window, mark, z);
    for (size_t i = n - window; i < n; i++) {
        int32_t id = history[i], length = mark[id];
        mark[id] = 0;
        if (length == 0 || length < o->dry_allowed_length)
            continue;
        double penalty = (double)o->dry_multiplier * power((double)o->dry_base, length - o->dry_allowed_length);
        logits[id] = mica_edit_logit(logits[id], (double)logits[id] - penalty);
    }
}
