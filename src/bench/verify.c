#include "bench/verify.h"

#include "bench/json_file.h"
#include "bench/summary.h"

/* One reply: time runs forwards, and the counts fit. */
static void check_series(const mica_series *x, size_t i, json_t *complaints)
{
    int64_t before = x->started_ns;
    for (size_t k = 0; k <= x->n; k++) {
        int64_t t = k < x->n ? x->times[k] : x->done_ns;
        if (t < before) {
            mica_json_say(complaints, "reply %zu (%s): time runs backwards at token %zu", i, x->phase, k);
            break;
        }
        before = t;
    }
    if (x->exact && (int64_t)x->n != x->gen_n)
        mica_json_say(complaints, "reply %zu (%s): %zu token times, but %lld tokens", i, x->phase, x->n, (long long)x->gen_n);
    if (x->gen_n > x->n_asked)
        mica_json_say(complaints, "reply %zu (%s): %lld tokens where %d were asked for", i, x->phase, (long long)x->gen_n,
                 x->n_asked);
    if (x->cached_n > x->prompt_n)
        mica_json_say(complaints, "reply %zu (%s): more tokens from a cache than the prompt has", i, x->phase);
}

/* Replies follow one another. */
static void check_order(const mica_record *record, json_t *complaints)
{
    for (size_t i = 1; i < record->n_series; i++)
        if (record->series[i].started_ns < record->series[i - 1].done_ns) {
            mica_json_say(complaints, "reply %zu began before reply %zu was done", i, i - 1);
            return;
        }
}

static void check_samples(const mica_record *record, json_t *complaints)
{
    json_int_t before = 0;
    json_t *sample;
    size_t i;
    json_array_foreach(record->samples, i, sample)
    {
        json_int_t t = json_integer_value(json_object_get(sample, "t_ns"));
        if (t <= before) {
            mica_json_say(complaints, "sample %zu of the machine is not after the one before", i);
            return;
        }
        before = t;
    }
}

mica_status mica_verify_record(const mica_record *record, json_t *complaints, mica_error *err)
{
    json_t *computed;
    for (size_t i = 0; i < record->n_series; i++)
        check_series(&record->series[i], i, complaints);
    check_order(record, complaints);
    check_samples(record, complaints);
    if (!record->summary) {
        mica_json_say(complaints, "the run has no summary: it was not finished");
        return MICA_OK;
    }
    mica_error own;
    mica_status status = mica_summary_make(record, &computed, &own);
    if (status == MICA_OUT_OF_MEMORY)
        return mica_fail(err, status, "%s", own.message);
    if (status) { /* samples of which no figure can be computed: all reported ones are false */
        mica_json_say(complaints, "%.280s", own.message);
        return MICA_OK;
    }
    mica_summary_same(record->summary, computed, complaints);
    json_decref(computed);
    return MICA_OK;
}
