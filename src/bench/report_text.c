/* report_text.c - a report for programs and for documents: Markdown, CSV, JSON, OpenMetrics. What is not known is a dash in
 * Markdown and empty or null or left out elsewhere, never 0. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/report_impl.h"

/* ---- Markdown ---- */

/* What Markdown or HTML would read is set off; a control, of which a line end is one, becomes a blank. */
static void put_markdown(mica_buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '&')
            mica_buf_puts(out, c == '<' ? "&lt;" : "&amp;");
        else if (c < 0x20 || c == 0x7f)
            mica_buf_putc(out, ' ');
        else if (strchr("\\`*_[]|~#!>", c))
            mica_buf_printf(out, "\\%c", c);
        else
            mica_buf_putc(out, (char)c);
    }
}

static void put_notes(mica_buf *out, const mica_report_run *run, const char *prefix, const json_t *texts)
{
    const json_t *text;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)texts, i, text)
    {
        mica_buf_puts(out, "- ");
        put_markdown(out, mica_report_text(run->head, NULL, "name"));
        mica_buf_puts(out, prefix);
        put_markdown(out, json_string_value(text) ? json_string_value(text) : "");
        mica_buf_putc(out, '\n');
    }
}

static void put_about(mica_buf *out, const mica_report_run *run)
{
    const json_t *head = run->head;
    const char *parts[][2] = {{"runtime", "version"}, {"loaded", "device"}, {"machine", "cpu"}, {"protocol", "name"}};
    mica_buf_puts(out, "- ");
    put_markdown(out, mica_report_text(head, NULL, "name"));
    mica_buf_puts(out, ": ");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        put_markdown(out, mica_report_text(head, parts[i][0], parts[i][1]));
        if (*mica_report_text(head, parts[i][0], parts[i][1]))
            mica_buf_puts(out, "; ");
    }
    put_markdown(out, mica_report_text(head, NULL, "created"));
    mica_buf_puts(out, "; ");
    put_markdown(out, mica_report_text(head, NULL, "state"));
    if (*mica_report_text(head, NULL, "reason"))
        mica_buf_puts(out, ": ");
    put_markdown(out, mica_report_text(head, NULL, "reason"));
    mica_buf_putc(out, '\n');
}

void mica_report_markdown(const mica_report *report, mica_buf *out)
{
    mica_column columns[MICA_REPORT_COLUMNS];
    int n = mica_report_columns(report, columns);
    mica_buf_puts(out, "| runtime |");
    for (int c = 0; c < n; c++)
        mica_buf_printf(out, " %s |", columns[c].title);
    mica_buf_puts(out, "\n|---|");
    for (int c = 0; c < n; c++)
        mica_buf_puts(out, "---:|");
    mica_buf_putc(out, '\n');
    for (size_t i = 0; i < report->n; i++) {
        mica_buf_puts(out, "| ");
        put_markdown(out, mica_report_text(report->run[i].head, NULL, "name"));
        mica_buf_puts(out, " |");
        for (int c = 0; c < n; c++) {
            char cell[MICA_REPORT_CELL];
            mica_report_cell(cell, &report->run[i], &columns[c], "-");
            mica_buf_printf(out, " %s |", cell);
        }
        mica_buf_putc(out, '\n');
    }
    mica_buf_putc(out, '\n');
    for (size_t i = 0; i < report->n; i++) {
        const mica_report_run *run = &report->run[i];
        put_about(out, run);
        if (!*mica_report_text(run->head, NULL, "reason")) { /* else that is enough */
            put_notes(out, run, ": **problem**: ", json_object_get(run->figures, "problems"));
            put_notes(out, run, ": ", json_object_get(run->figures, "flags"));
        }
        put_notes(out, run, ": **does not verify**: ", run->complaints);
    }
}

/* ---- CSV ---- */

/* Quoted, quotes doubled; a text that a spreadsheet would take for a formula is set off by a blank. */
static void put_csv_text(mica_buf *out, const char *text)
{
    mica_buf_puts(out, *text && strchr("=+-@\t\r", *text) ? "\" " : "\"");
    for (; *text; text++) {
        if (*text == '"')
            mica_buf_putc(out, '"');
        mica_buf_putc(out, *text);
    }
    mica_buf_putc(out, '"');
}

static void put_csv_value(mica_buf *out, const json_t *value)
{
    if (json_is_integer(value))
        mica_buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        mica_buf_printf(out, "%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        mica_buf_puts(out, json_is_true(value) ? "true" : "false");
    else if (json_is_string(value))
        put_csv_text(out, json_string_value(value));
}

/* The members of all runs' figures that are numbers, texts or truth values, in the order in which the first run has them. Their
 * names are ours (summary.c), but for what a protocol calls its phases. The caller's. */
static json_t *scalar_names(const mica_report *report)
{
    json_t *names = json_object(), *value;
    const char *key;
    for (size_t i = 0; i < report->n; i++)
        json_object_foreach(report->run[i].figures, key, value)
        {
            bool plain = key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
            if (plain && !json_is_object(value) && !json_is_array(value))
                mica_json_set(&names, key, json_true());
        }
    return names;
}

void mica_report_csv(const mica_report *report, mica_buf *out)
{
    const char *key, *texts[][2] = {{NULL, "id"}, {NULL, "created"}, {NULL, "name"}, {NULL, "state"}, {"protocol", "name"}};
    json_t *names = scalar_names(report), *value;
    mica_buf_puts(out, "id,created,name,state,protocol");
    json_object_foreach(names, key, value) mica_buf_printf(out, ",%s", key);
    mica_buf_puts(out, ",flags,problems,complaints\n");
    for (size_t i = 0; i < report->n; i++) {
        const mica_report_run *run = &report->run[i];
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            if (k > 0)
                mica_buf_putc(out, ',');
            put_csv_text(out, mica_report_text(run->head, texts[k][0], texts[k][1]));
        }
        json_object_foreach(names, key, value)
        {
            mica_buf_putc(out, ',');
            put_csv_value(out, json_object_get(run->figures, key));
        }
        mica_buf_printf(out, ",%zu,%zu,%zu\n", json_array_size(json_object_get(run->figures, "flags")),
                        json_array_size(json_object_get(run->figures, "problems")), json_array_size(run->complaints));
    }
    json_decref(names);
}

/* ---- JSON ---- */

void mica_report_json(const mica_report *report, mica_buf *out)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < report->n; i++) {
        const mica_report_run *run = &report->run[i];
        mica_json_add(&runs, json_pack("{s:s, s:O, s:O, s:O}", "id", run->id, "head", run->head, "figures", run->figures,
                                              "complaints", run->complaints));
    }
    json_t *price = isfinite(report->electricity.v) ? json_real(report->electricity.v) : json_null();
    json_t *all = json_pack("{s:s, s:i, s:o, s:s, s:o}", "format", "mica-report", "version", 1, "usd_per_kwh", price,
                            "usd_per_kwh_from", report->electricity_from, "runs", runs);
    char *text = all && json_array_size(runs) == report->n ? mica_json_dumps(all, JSON_COMPACT) : NULL;
    if (!text || !mica_buf_puts(out, text) || !mica_buf_putc(out, '\n'))
        out->failed = true;
    free(text);
    json_decref(all);
}

/* ---- OpenMetrics ---- */

static void put_label(mica_buf *out, const char *name, const char *text)
{
    mica_buf_printf(out, "%s=\"", name);
    for (; *text; text++) {
        if (*text == '\n')
            mica_buf_puts(out, "\\n");
        else if (*text == '"' || *text == '\\')
            mica_buf_printf(out, "\\%c", *text);
        else
            mica_buf_putc(out, *text);
    }
    mica_buf_putc(out, '"');
}

static void put_labels(mica_buf *out, const mica_report_run *run)
{
    mica_buf_putc(out, '{');
    put_label(out, "run", run->id);
    mica_buf_putc(out, ',');
    put_label(out, "name", mica_report_text(run->head, NULL, "name"));
}

static void put_info(const mica_report *report, mica_buf *out)
{
    const char *labels[][3] = {{"state", NULL, "state"},         {"created", NULL, "created"},
                               {"protocol", "protocol", "name"}, {"version", "runtime", "version"},
                               {"backend", "loaded", "backend"}, {"device", "loaded", "device"},
                               {"sha256", "model", "sha256"},    {"cpu", "machine", "cpu"}};
    mica_buf_puts(out, "# TYPE mica_bench_run info\n# HELP mica_bench_run A run of mica bench.\n");
    for (size_t i = 0; i < report->n; i++) {
        mica_buf_puts(out, "mica_bench_run_info");
        put_labels(out, &report->run[i]);
        for (size_t k = 0; k < sizeof labels / sizeof *labels; k++) {
            mica_buf_putc(out, ',');
            put_label(out, labels[k][0], mica_report_text(report->run[i].head, labels[k][1], labels[k][2]));
        }
        mica_buf_puts(out, "} 1\n");
    }
}

static void put_counts(const mica_report *report, mica_buf *out, const char *name, const char *help, bool complaints)
{
    mica_buf_printf(out, "# TYPE mica_bench_%s gauge\n# HELP mica_bench_%s %s\n", name, name, help);
    for (size_t i = 0; i < report->n; i++) {
        const mica_report_run *run = &report->run[i];
        mica_buf_printf(out, "mica_bench_%s", name);
        put_labels(out, run);
        mica_buf_printf(out, "} %zu\n", json_array_size(complaints ? run->complaints : json_object_get(run->figures, name)));
    }
}

/* A family for each figure that is a number or a truth value of any run. */
static void put_family(const mica_report *report, mica_buf *out, const char *name)
{
    bool any = false;
    for (size_t i = 0; i < report->n; i++) {
        const json_t *value = json_object_get(report->run[i].figures, name);
        if (!json_is_number(value) && !json_is_boolean(value))
            continue;
        if (!any)
            mica_buf_printf(out, "# TYPE mica_bench_%s gauge\n# HELP mica_bench_%s The figure of that name of mica bench.\n",
                            name, name);
        any = true;
        mica_buf_printf(out, "mica_bench_%s", name);
        put_labels(out, &report->run[i]);
        mica_buf_printf(out, "} %.17g\n", json_is_number(value) ? json_number_value(value) : json_is_true(value) ? 1.0 : 0.0);
    }
}

void mica_report_openmetrics(const mica_report *report, mica_buf *out)
{
    json_t *names = scalar_names(report), *value;
    const char *key;
    put_info(report, out);
    json_object_foreach(names, key, value) put_family(report, out, key);
    put_counts(report, out, "flags", "Conditions that were not as they should be.", false);
    put_counts(report, out, "problems", "Reasons why the figures cannot stand.", false);
    put_counts(report, out, "complaints", "What differs between the samples and what was reported of them.", true);
    mica_buf_puts(out, "# EOF\n");
    json_decref(names);
}
