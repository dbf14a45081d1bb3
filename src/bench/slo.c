#include "bench/slo.h"

#include <string.h>

#include "bench/json_file.h"

static bool is_number_or_absent(const json_t *value)
{
    return !value || json_is_number(value);
}

mica_status mica_slo_open(const char *path, json_t **slo, mica_error *err)
{
    mica_status status = mica_json_open("the limits", path, slo, err);
    if (!status && (status = mica_slo_check(*slo, err))) {
        json_decref(*slo);
        *slo = NULL;
    }
    return status;
}

mica_status mica_slo_check(const json_t *slo, mica_error *err)
{
    const json_t *limits = json_object_get(slo, "limits"), *limit;
    size_t i;
    if (json_integer_value(json_object_get(slo, "version")) != 1 || !json_is_array(limits) || json_array_size(limits) == 0)
        return mica_fail(err, MICA_BAD_TEXT, "the limits must be {\"version\": 1, \"limits\": [...]} with at least one limit");
    json_array_foreach(limits, i, limit)
    {
        const char *metric = json_string_value(json_object_get(limit, "metric"));
        const json_t *low = json_object_get(limit, "min"), *high = json_object_get(limit, "max");
        size_t known = 1u + (low != NULL) + (high != NULL);
        if (!metric || strlen(metric) > 60 || !is_number_or_absent(low) || !is_number_or_absent(high) || (!low && !high) ||
            json_object_size(limit) != known)
            return mica_fail(err, MICA_BAD_TEXT,
                             "limit %zu must have \"metric\", and \"min\" or \"max\" or both, and nothing else", i + 1);
    }
    return MICA_OK;
}

bool mica_slo_judge(const json_t *slo, const json_t *summary, json_t *broken)
{
    size_t i, before = json_array_size(broken);
    const json_t *limit;
    json_array_foreach(json_object_get(slo, "limits"), i, limit)
    {
        const char *metric = json_string_value(json_object_get(limit, "metric"));
        const json_t *low = json_object_get(limit, "min"), *high = json_object_get(limit, "max");
        const json_t *value = json_object_get(summary, metric);
        double x = json_number_value(value);
        if (!json_is_number(value))
            mica_json_say(broken, "%.60s is not known", metric);
        else if (low && x < json_number_value(low))
            mica_json_say(broken, "%.60s is %.6g, below %.6g", metric, x, json_number_value(low));
        else if (high && x > json_number_value(high))
            mica_json_say(broken, "%.60s is %.6g, above %.6g", metric, x, json_number_value(high));
    }
    return json_array_size(broken) == before;
}
