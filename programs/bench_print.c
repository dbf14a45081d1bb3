#include "bench_print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "bench/archive.h"
#include "bench/columns.h"
#include "bench/report.h"
#include "load.h"

/* ---- Cells ---- */

enum { CELL = 40, MAX_COLUMNS = 16 };

/* The lengths of prompts whose TTFT is there: "ttft_512_ms". */
static int find_prompts(const mica_record *runs, size_t n, int prompts[4])
{
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        const char *key;
        json_t *value;
        json_object_foreach(runs[i].summary, key, value)
        {
            int prompt, known = 0;
            if (!mica_column_prompt(key, &prompt))
                continue;
            for (int k = 0; k < found; k++)
                known |= prompts[k] == prompt;
            if (!known && found < 4)
                prompts[found++] = prompt;
        }
    }
    return found;
}

static int choose_columns(const mica_record *runs, size_t n_runs, mica_column *columns)
{
    int n = 0, prompts[4], found = find_prompts(runs, n_runs, prompts);
    mica_column_add(columns, &n, "load cold/warm ms", "load_cold_ms", "load_warm_ms", 1, 0);
    for (int i = 0; i < found; i++)
        mica_column_add_ttft(columns, &n, "TTFT %d /p95 ms", prompts[i]);
    mica_column_add(columns, &n, "cold tok/s", "cold_tps", "", 1, 1);
    mica_column_add(columns, &n, "steady tok/s", "steady_tps", "", 1, 1);
    mica_column_add(columns, &n, "itl p50/p95 ms", "itl_p50_ms", "itl_p95_ms", 1, 2);
    mica_column_add(columns, &n, "peak RSS MiB", "peak_rss_bytes", "", 1 << 20, 0);
    mica_column_add(columns, &n, "file MiB", "file_bytes", "", 1 << 20, 0);
    mica_column_add(columns, &n, "roofline %", "roofline_pct", "", 1, 0);
    mica_column_add(columns, &n, "Wh/1k", "energy_wh_per_1k", "", 1, 4);
    return n;
}

static void fill_cell(char out[2 * CELL + 2], const json_t *summary, const mica_column *c)
{
    char first[CELL], second[CELL] = "";
    mica_column_number(first, sizeof first, summary, c, 0, "-");
    if (*c->metric[1])
        mica_column_number(second, sizeof second, summary, c, 1, "-");
    snprintf(out, 2 * CELL + 2, "%s%s%s", first, *second ? "/" : "", second);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* ---- Table ---- */

/* What ran, and what has to be known about its figures. Of a run that failed the reason is enough. */
static void print_notes(const mica_record *run)
{
    const json_t *head = run->head, *flag;
    size_t i;
    const char *name = text_of(head, "name");
    const char *version = text_of(json_object_get(head, "runtime"), "version");
    const char *device = text_of(json_object_get(head, "loaded"), "device");
    printf("  %s: %s%s%s%sprotocol %s, %s\n", name, version, *version ? ", " : "", device, *device ? ", " : "",
           text_of(json_object_get(head, "protocol"), "name"), text_of(head, "state"));
    if (*text_of(head, "reason")) {
        printf("  %s: %s\n", name, text_of(head, "reason"));
        return;
    }
    json_array_foreach(json_object_get(run->summary, "flags"), i, flag)
        printf("  %s: %s\n", name, json_string_value(flag));
}

static int print_table(const mica_record *runs, size_t n)
{
    mica_column columns[MAX_COLUMNS];
    int n_columns = choose_columns(runs, n, columns);
    int name_width = 7;
    for (size_t i = 0; i < n; i++)
        if ((int)strlen(text_of(runs[i].head, "name")) > name_width)
            name_width = (int)strlen(text_of(runs[i].head, "name"));
    printf("%-*s", name_width, "runtime");
    for (int c = 0; c < n_columns; c++)
        printf("  %s", columns[c].title);
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        printf("%-*s", name_width, text_of(runs[i].head, "name"));
        for (int c = 0; c < n_columns; c++) {
            char cell[2 * CELL + 2];
            fill_cell(cell, runs[i].summary, &columns[c]);
            printf("  %*s", (int)strlen(columns[c].title), cell);
        }
        putchar('\n');
    }
    putchar('\n');
    for (size_t i = 0; i < n; i++)
        print_notes(&runs[i]);
    return CODE_OK;
}

/* ---- Markdown and CSV, as mica report has them ---- */

static int print_report(mica_report_format format, const mica_record *runs, size_t n)
{
    mica_report *report;
    mica_buf text;
    mica_error err;
    mica_status status = mica_report_new((mica_usd_per_kwh){NAN}, "", &report, &err);
    if (status)
        return mica_load_failed(&err);
    mica_buf_init(&text, MICA_REPORT_MAX);
    for (size_t i = 0; i < n && !status; i++)
        status = mica_report_add(report, &runs[i], &err);
    if (!status)
        status = mica_report_write(report, format, &text, &err);
    bool done = !status && mica_term_write(text.data, text.length);
    mica_buf_free(&text);
    mica_report_free(report);
    return status ? mica_load_failed(&err) : done ? CODE_OK : CODE_FAILED; /* mica_term_finish() says why */
}

/* ---- JSON ---- */

int mica_bench_print_archive(const mica_record *run)
{
    json_t *archive;
    mica_error err;
    if (mica_archive_write(run, &archive, &err))
        return mica_load_failed(&err);
    bool done = json_dumpf(archive, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    json_decref(archive);
    return done ? CODE_OK : mica_term_error("the run cannot be written");
}

int mica_bench_print(const char *format, const mica_record *runs, size_t n)
{
    int code = CODE_OK;
    if (strcmp(format, "table") == 0)
        return print_table(runs, n);
    if (strcmp(format, "json") != 0)
        return print_report(strcmp(format, "csv") == 0 ? MICA_REPORT_CSV : MICA_REPORT_MD, runs, n);
    for (size_t i = 0; i < n && code == CODE_OK; i++)
        code = mica_bench_print_archive(&runs[i]);
    return code;
}
