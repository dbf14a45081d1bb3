#include "bench/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/archive.h"
#include "bench/report_impl.h"
#include "bench/summary.h"
#include "bench/verify.h"

mica_status mica_report_new(mica_usd_per_kwh electricity, const char *electricity_from, mica_report **out, mica_error *err)
{
    mica_report *report = calloc(1, sizeof *report);
    if (!report)
        return mica_fail_nomem(err, sizeof *report, "a report");
    report->electricity = electricity;
    snprintf(report->electricity_from, sizeof report->electricity_from, "%s", electricity_from);
    *out = report;
    return MICA_OK;
}

static void free_run(mica_report_run *run)
{
    json_decref(run->head);
    json_decref(run->figures);
    json_decref(run->complaints);
    json_decref(run->charts);
    free(run->archive);
}

void mica_report_free(mica_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->n; i++)
        free_run(&report->run[i]);
    free(report->run);
    free(report);
}

/* ---- A run ---- */

static void set_real(json_t *object, const char *name, double value)
{
    json_object_set_new(object, name, isfinite(value) ? json_real(value) : json_null());
}

static double figure(const json_t *figures, const char *name)
{
    const json_t *value = json_object_get(figures, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* What a million tokens take: energy where it was measured, money where electricity has a price. Hardware is mica cost's. */
static void add_costs(const mica_report *report, json_t *figures)
{
    mica_device_cost cost;
    double steady = figure(figures, "steady_tps"), per_1k = figure(figures, "energy_wh_per_1k");
    double rate = isfinite(steady) ? steady : figure(figures, "decode_tps");
    double seconds = rate > 0.0 ? mica_time_of_tokens((mica_tokens){1e6}, (mica_tokens_per_s){rate}, (mica_part){1.0}).v : NAN;
    mica_device_cost_input in = {.rate.v = rate,
                                 .power.v = NAN,
                                 .electricity = report->electricity,
                                 .life.v = 1.0,
                                 .duty.v = 1.0,
                                 .battery.v = NAN,
                                 .measured_energy.v = 1000.0 * per_1k};
    bool known = rate > 0.0 && per_1k > 0.0 && mica_cost_device(&in, &cost, NULL) == MICA_OK;
    set_real(figures, "energy_joules_per_token", known ? cost.energy_per_token.v : NAN);
    set_real(figures, "energy_wh_per_million", known ? cost.wh.v : NAN);
    set_real(figures, "energy_usd_per_million", known ? cost.energy.v : NAN);
    set_real(figures, "hours_per_million", seconds / 3600.0);
}

/* The summary from the samples. One that cannot be made is no failure of the report: the complaints say why. */
static mica_status make_figures(const mica_record *record, mica_report_run *run, mica_error *err)
{
    mica_error own;
    json_t *summary = NULL;
    mica_status status = mica_summary_make(record, &summary, &own);
    if (status == MICA_OUT_OF_MEMORY)
        return mica_fail(err, status, "%s", own.message);
    if (status && !record->summary) /* else mica_verify_record() has told it */
        json_array_append_new(run->complaints, json_string(own.message));
    run->figures = status ? json_object() : summary;
    return run->figures ? MICA_OK : mica_fail_nomem(err, 1024, "a report");
}

static mica_status make_archive(const mica_record *record, mica_report_run *run, mica_error *err)
{
    json_t *archive;
    mica_status status = mica_archive_write(record, &archive, err);
    if (status)
        return status;
    run->archive = mica_json_dumps(archive, JSON_COMPACT);
    run->archive_length = run->archive ? strlen(run->archive) : 0;
    json_decref(archive);
    return run->archive ? MICA_OK : mica_fail_nomem(err, 1024, "a report");
}

static mica_status make_run(const mica_report *report, const mica_record *record, mica_report_run *run, mica_error *err)
{
    run->head = json_incref(record->head);
    run->complaints = json_array();
    if (!run->complaints)
        return mica_fail_nomem(err, 1024, "a report");
    mica_status status = mica_verify_record(record, run->complaints, err);
    if (!status)
        status = make_figures(record, run, err);
    if (!status) {
        add_costs(report, run->figures);
        status = mica_report_charts(record, run->figures, &run->charts, err);
    }
    return status ? status : make_archive(record, run, err);
}

mica_status mica_report_add(mica_report *report, const mica_record *record, mica_error *err)
{
    if (report->n == report->capacity) {
        size_t capacity = report->capacity ? 2 * report->capacity : 16;
        mica_report_run *grown = realloc(report->run, capacity * sizeof *grown);
        if (!grown)
            return mica_fail_nomem(err, capacity * sizeof *grown, "a report");
        report->run = grown;
        report->capacity = capacity;
    }
    mica_report_run *run = &report->run[report->n];
    *run = (mica_report_run){.head = NULL};
    snprintf(run->id, sizeof run->id, "%s", record->id);
    mica_status status = make_run(report, record, run, err);
    if (status)
        free_run(run);
    else
        report->n++;
    return status;
}

/* ---- The table of runs ---- */

const char *mica_report_text(const json_t *head, const char *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object ? json_object_get(head, object) : head, member));
    return text ? text : "";
}

enum { MAX_PROMPTS = 4 };

/* The lengths of prompts whose time to first token is there ("ttft_512_ms"), longest first. */
static int find_prompts(const mica_report *report, int prompts[MAX_PROMPTS])
{
    int found = 0;
    for (size_t i = 0; i < report->n; i++) {
        const char *key;
        json_t *value;
        json_object_foreach(report->run[i].figures, key, value)
        {
            int prompt, at = 0;
            if (!mica_column_prompt(key, &prompt))
                continue;
            while (at < found && prompts[at] > prompt)
                at++;
            if (found == MAX_PROMPTS || (at < found && prompts[at] == prompt))
                continue;
            memmove(&prompts[at + 1], &prompts[at], (size_t)(found - at) * sizeof *prompts);
            prompts[at] = prompt;
            found++;
        }
    }
    return found;
}

int mica_report_columns(const mica_report *report, mica_column columns[MICA_REPORT_COLUMNS])
{
    int n = 0, prompts[MAX_PROMPTS], found = find_prompts(report, prompts);
    for (int i = 0; i < found; i++)
        mica_column_add_ttft(columns, &n, "TTFT %d, median / p95 (ms)", prompts[i]);
    mica_column_add(columns, &n, "cold (tok/s)", "cold_tps", "", 1, 1);
    mica_column_add(columns, &n, "steady (tok/s)", "steady_tps", "", 1, 1);
    mica_column_add(columns, &n, "all decode (tok/s)", "decode_tps", "", 1, 1);
    mica_column_add(columns, &n, "TPOT (ms)", "tpot_ms", "", 1, 2);
    mica_column_add(columns, &n, "ITL, p50 / p95 (ms)", "itl_p50_ms", "itl_p95_ms", 1, 2);
    mica_column_add(columns, &n, "throttle (%)", "throttle_depth_pct", "", 1, 1);
    mica_column_add(columns, &n, "peak RSS (MiB)", "peak_rss_bytes", "", 1 << 20, 0);
    mica_column_add(columns, &n, "anon. / file (MiB)", "rss_anon_bytes", "rss_file_bytes", 1 << 20, 0);
    mica_column_add(columns, &n, "model file (MiB)", "file_bytes", "", 1 << 20, 0);
    mica_column_add(columns, &n, "load, cold / warm (ms)", "load_cold_ms", "load_warm_ms", 1, 0);
    mica_column_add(columns, &n, "roofline (%)", "roofline_pct", "", 1, 0);
    mica_column_add(columns, &n, "energy (Wh/1000)", "energy_wh_per_1k", "", 1, 4);
    mica_column_add(columns, &n, "electricity ($/million)", "energy_usd_per_million", "", 1, 4);
    return n;
}

void mica_report_cell(char out[MICA_REPORT_CELL], const mica_report_run *run, const mica_column *column,
                      const char *none)
{
    char first[40], second[40];
    mica_column_number(first, sizeof first, run->figures, column, 0, none);
    mica_column_number(second, sizeof second, run->figures, column, 1, none);
    bool two = *column->metric[1] && (strcmp(first, none) != 0 || strcmp(second, none) != 0);
    snprintf(out, MICA_REPORT_CELL, "%s%s%s", first, two ? " / " : "", two ? second : "");
}

/* ---- Writing ---- */

mica_status mica_report_write(const mica_report *report, mica_report_format format, mica_buf *out, mica_error *err)
{
    static void (*const writers[])(const mica_report *, mica_buf *) = {
        [MICA_REPORT_HTML] = mica_report_html,         [MICA_REPORT_JSON] = mica_report_json,
        [MICA_REPORT_CSV] = mica_report_csv,           [MICA_REPORT_MD] = mica_report_markdown,
        [MICA_REPORT_OPENMETRICS] = mica_report_openmetrics,
    };
    if ((size_t)format >= sizeof writers / sizeof *writers)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no report format %d", (int)format);
    writers[format](report, out);
    if (out->failed)
        return mica_fail(err, MICA_OUT_OF_MEMORY, "the report fits neither %zu bytes nor the memory that is there",
                         out->maximum);
    return MICA_OK;
}
