/* sampler_options.c - the ranges of the sampling options: one table row each. The message names the field, its value and the
 * range. NaN is in no range.
 */
#include "text/sampler_impl.h"

#include <float.h>
#include <inttypes.h>

typedef struct real_range {
    const char *field;
    float value, lowest, highest;
    bool open; /* `lowest` itself is not allowed */
    const char *text;
} real_range;

typedef struct whole_range {
    const char *field;
    int64_t value, lowest;
    const char *text;
} whole_range;

static mica_status check_reals(const mica_sampling *o, mica_error *err)
{
    const real_range rows[] = {
        {"temperature", o->temperature, 0.0f, FLT_MAX, false, "a finite number of at least 0 (0 takes the best token)"},
        {"top_p", o->top_p, 0.0f, 1.0f, false, "in [0, 1] (1 switches it off)"},
        {"min_p", o->min_p, 0.0f, 1.0f, false, "in [0, 1] (0 switches it off)"},
        {"typical_p", o->typical_p, 0.0f, 1.0f, true, "above 0 and at most 1 (1 switches it off)"},
        {"repeat_penalty", o->repeat_penalty, 0.0f, FLT_MAX, true, "a finite number above 0 (1 switches it off)"},
        {"frequency_penalty", o->frequency_penalty, -2.0f, 2.0f, false, "in [-2, 2] (0 switches it off)"},
        {"presence_penalty", o->presence_penalty, -2.0f, 2.0f, false, "in [-2, 2] (0 switches it off)"},
        {"dry_multiplier", o->dry_multiplier, 0.0f, FLT_MAX, false, "a finite number of at least 0 (0 switches DRY off)"},
        {"dry_base", o->dry_base, 1.0f, FLT_MAX, false, "a finite number of at least 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const real_range *r = &rows[i];
        bool inside = r->value <= r->highest && (r->open ? r->value > r->lowest : r->value >= r->lowest);
        if (!inside)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %g, but must be %s", r->field, (double)r->value, r->text);
    }
    return MICA_OK;
}

static mica_status check_wholes(const mica_sampling *o, mica_error *err)
{
    const whole_range rows[] = {
        {"top_k", o->top_k, 0, "at least 0 (0 switches it off)"},
        {"penalty_last_n", o->penalty_last_n, -1, "-1 (the whole history), 0 (off) or a number of tokens"},
        {"dry_allowed_length", o->dry_allowed_length, 0, "at least 0"},
        {"dry_last_n", o->dry_last_n, -1, "-1 (the whole history), 0 (off) or a number of tokens"},
        {"seed", o->seed, -1, "-1 (a fresh one) or at least 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value < rows[i].lowest)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is %" PRId64 ", but must be %s", rows[i].field, rows[i].value,
                             rows[i].text);
    return MICA_OK;
}

static mica_status check_bias(const mica_sampling *o, int32_t n_vocab, mica_error *err)
{
    if (o->n_logit_bias > MICA_SAMPLER_MAX_BIAS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "logit_bias has %zu entries, but at most %d are allowed", o->n_logit_bias,
                         MICA_SAMPLER_MAX_BIAS);
    if (o->n_logit_bias > 0 && !o->logit_bias)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "logit_bias is NULL, but n_logit_bias is %zu: it must be 0 then",
                         o->n_logit_bias);
    for (size_t i = 0; i < o->n_logit_bias; i++) {
        mica_logit_bias b = o->logit_bias[i];
        if (b.token < 0 || b.token >= n_vocab)
            return mica_fail(err, MICA_INVALID_ARGUMENT,
                             "logit_bias entry %zu names token %" PRId32 ", but tokens must be in [0, %" PRId32 "]", i, b.token,
                             n_vocab - 1);
        if (!(b.bias <= FLT_MAX)) /* NaN or +inf */
            return mica_fail(err, MICA_INVALID_ARGUMENT,
                             "logit_bias entry %zu (token %" PRId32 ") is %g, but must be a finite number, or -inf for a ban",
                             i, b.token, (double)b.bias);
    }
    return MICA_OK;
}

mica_status mica_sampling_check(const mica_sampling *o, int32_t n_vocab, mica_error *err)
{
    mica_status status = check_reals(o, err);
    if (status == MICA_OK)
        status = check_wholes(o, err);
    if (status == MICA_OK)
        status = check_bias(o, n_vocab, err);
    return status;
}
