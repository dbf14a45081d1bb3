#include "bench/keep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/figures.h"

static double figure(const json_t *summary, const char *name)
{
    const json_t *value = json_object_get(summary, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text(const json_t *of, const char *name)
{
    const char *value = json_string_value(json_object_get(of, name));
    return value ? value : "";
}

bool mica_bench_keeps(const mica_record *r)
{
    return strcmp(text(json_object_get(r->head, "runtime"), "adapter"), "mica") == 0 &&
           strcmp(text(r->head, "state"), "done") == 0 && json_is_true(json_object_get(r->summary, "sustained")) &&
           json_array_size(json_object_get(r->summary, "problems")) == 0;
}

mica_status mica_bench_keep(const mica_record *record, const char *model_path, const char *store, mica_error *err)
{
    char key[MICA_FIGURES_KEY], kernels[32] = "";
    mica_figures f;
    const json_t *s = record->summary, *loaded = json_object_get(record->head, "loaded");
    mica_figures_clear(&f);
    sscanf(text(loaded, "device"), "%31[^ ] kernels", kernels); /* "avx2 kernels, 2 threads" */
    mica_figures_context_here(NULL, kernels, &f.context);
    snprintf(f.source, sizeof f.source, "bench");
    f.measured_unix = json_integer_value(json_object_get(record->head, "created_unix"));
    f.threads = (int32_t)json_integer_value(json_object_get(loaded, "threads"));
    f.decode_tps = figure(s, "steady_tps");
    f.cold_tps = figure(s, "cold_tps");
    f.prefill_tps = figure(s, "prefill_512_tps");
    f.measured_s = figure(s, "decode_s");
    f.joules_per_token = figure(s, "energy_wh_per_1k") * 3.6;
    double peak = figure(s, "peak_rss_bytes");
    f.peak_rss_bytes = isnan(peak) ? -1 : (int64_t)peak;
    mica_status status = mica_figures_key(model_path, key, err);
    return status ? status : mica_figures_save(store, key, &f, err);
}
