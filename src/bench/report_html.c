/* report_html.c - a report as one page: tables in HTML, which need no script, and behind them the data and the script that draw
 * the charts. The page's sources are in report_page/.
 *
 * A text of a run reaches the page through put_text() (content and quoted attributes), put_script_data() (the JSON of the
 * charts) or as base64; there is no other way. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report_impl.h"
#include "base/json.h"
#include "bench/report_page/assets.h"

enum { COLOURS = 8 }; /* of report.css */

/* ---- Texts ---- */

static void put_text(mica_buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        switch (c) {
        case '<':
            mica_buf_puts(out, "&lt;");
            break;
        case '>':
            mica_buf_puts(out, "&gt;");
            break;
        case '&':
            mica_buf_puts(out, "&amp;");
            break;
        case '"':
            mica_buf_puts(out, "&quot;");
            break;
        case '\'':
            mica_buf_puts(out, "&#39;");
            break;
        default:
            if (c < 0x20 || c == 0x7f)
                mica_buf_puts(out, c == '\n' || c == '\t' ? " " : "\xef\xbf\xbd"); /* U+FFFD */
            else
                mica_buf_putc(out, (char)c);
        }
    }
}

/* Isolated: marks that turn the direction of writing do not reach what follows. */
static void put_foreign(mica_buf *out, const char *text)
{
    mica_buf_puts(out, "<bdi>");
    put_text(out, text);
    mica_buf_puts(out, "</bdi>");
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* JSON inside a script element: a "<" occurs in its texts only, where it may be spelled otherwise. */
static void put_script_data(mica_buf *out, const json_t *data)
{
    char *text = mica_json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
    if (!text)
        out->failed = true;
    for (const char *p = text; p && *p; p++) {
        if (*p == '<')
            mica_buf_puts(out, "\\u003c");
        else
            mica_buf_putc(out, *p);
    }
    free(text);
}

static void put_base64(mica_buf *out, const char *data, size_t length)
{
    size_t size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(size);
    if (text)
        mica_buf_puts(out, sodium_bin2base64(text, size, (const uint8_t *)data, length, sodium_base64_VARIANT_ORIGINAL));
    else
        out->failed = true;
    free(text);
}

static void put_packed(mica_buf *out, const uint8_t *bytes, size_t packed)
{
    char *text = NULL;
    size_t length;
    if (mica_unpack_text(bytes, packed, &text, &length, NULL))
        out->failed = true; /* no memory: the bytes are ours */
    else
        mica_buf_append(out, text, length);
    free(text);
}

/* ---- The table of runs ---- */

static void put_name(mica_buf *out, const mica_report_run *run, size_t i)
{
    const char *state = mica_report_text(run->head, NULL, "state");
    mica_buf_printf(out, "<th scope=\"row\"><a href=\"#run-%zu\"><span class=\"dot c%zu\"></span>", i + 1, i % COLOURS);
    put_foreign(out, mica_report_text(run->head, NULL, "name"));
    mica_buf_puts(out, "</a><br><span class=\"soft\">");
    put_foreign(out, base_of(mica_report_text(run->head, "model", "path")));
    mica_buf_puts(out, ", ");
    put_foreign(out, mica_report_text(run->head, "protocol", "name"));
    mica_buf_puts(out, "</span>");
    if (strcmp(state, "done") != 0) {
        mica_buf_puts(out, "<br><span class=\"bad\">");
        put_foreign(out, state);
        mica_buf_puts(out, "</span>");
    }
    if (json_array_size(run->complaints) > 0)
        mica_buf_puts(out, "<br><span class=\"bad\">does not verify</span>");
    mica_buf_puts(out, "</th>");
}

/* Up to the last column's title; the table stays open. */
static void put_titles(mica_buf *out, const char *id, const char *title, const mica_column *columns, int n)
{
    mica_buf_printf(out,
                    "<section id=\"%s\"><h2>%s</h2>\n<div class=\"scroll\"><table class=\"wide\"><thead><tr>"
                    "<th>runtime</th>",
                    id, title);
    for (int c = 0; c < n; c++)
        mica_buf_printf(out, "<th scope=\"col\">%s</th>", columns[c].title);
}

static void put_cells(mica_buf *out, const mica_report_run *run, size_t i, const mica_column *columns, int n)
{
    mica_buf_puts(out, "<tr>");
    put_name(out, run, i);
    for (int c = 0; c < n; c++) {
        char cell[MICA_REPORT_CELL];
        mica_report_cell(cell, run, &columns[c], "–");
        mica_buf_printf(out, "<td data-label=\"%s\">%s</td>", columns[c].title, cell);
    }
}

static void put_summary(const mica_report *report, mica_buf *out)
{
    mica_column columns[MICA_REPORT_COLUMNS];
    int n = mica_report_columns(report, columns);
    put_titles(out, "summary", "Summary", columns, n);
    mica_buf_puts(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < report->n; i++) {
        put_cells(out, &report->run[i], i, columns, n);
        mica_buf_puts(out, "</tr>\n");
    }
    mica_buf_puts(out, "</tbody></table></div>\n<p class=\"soft\">A dash: not known. TTFT: time to first token after a prompt "
                       "of so many tokens; TPOT: mean time per further token; ITL: times between tokens; percentiles: "
                       MICA_STAT_PERCENTILE_RULE ". Cold: the first minute of decoding, steady: the last three of at least "
                       "eight, unless the protocol sets other times.</p></section>\n");
}

/* ---- Facts of a run ---- */

/* A member of the head, of an object in it, or of the figures; numbers are divided by `scale`. */
typedef struct fact {
    const char *label, *object, *member; /* object "": the head itself; NULL: the figures */
    double scale;
    int digits;
    const char *unit;
} fact;

static const fact run_facts[] = {
    {"Runtime", "runtime", "name", 1, 0, ""},
    {"Version", "runtime", "version", 1, 0, ""},
    {"Backend asked for", "", "backend", 1, 0, ""},
    {"Backend confirmed", "loaded", "backend", 1, 0, ""},
    {"Device", "loaded", "device", 1, 0, ""},
    {"Threads", "loaded", "threads", 1, 0, ""},
    {"Context limit", "loaded", "context_limit", 1, 0, "tokens"},
    {"KV cache", "loaded", "kv_type", 1, 0, ""},
    {"Model SHA-256", "model", "sha256", 1, 0, ""},
    {"Weights", NULL, "weight_bytes", 1 << 20, 1, "MiB"},
    {"Bits per weight", NULL, "bits_per_weight", 1, 2, ""},
    {"Protocol", "protocol", "name", 1, 0, ""},
    {"", "protocol", "description", 1, 0, ""},
    {"Begun", "", "created", 1, 0, ""},
    {"Measured by mica", "harness", "mica", 1, 0, ""},
    {"Build id", "harness", "build", 1, 0, ""},
    {"Numerics", "harness", "numerics", 1, 0, ""},
    {"State", "", "state", 1, 0, ""},
    {"Reason", "", "reason", 1, 0, ""},
};

static const fact machine_facts[] = {
    {"Processor", "machine", "cpu", 1, 0, ""},
    {"CPUs", "machine", "cores", 1, 0, ""},
    {"", "machine", "cores_reason", 1, 0, ""},
    {"Memory", "machine", "memory_bytes", 1 << 30, 1, "GiB"},
    {"System", "machine", "system", 1, 0, ""},
    {"Kernel", "machine", "kernel", 1, 0, ""},
    {"Architecture", "machine", "architecture", 1, 0, ""},
    {"Cooled down", "cooldown", "state", 1, 0, ""},
    {"", "cooldown", "why", 1, 0, ""},
    {"Waited to cool", "cooldown", "waited_s", 1, 0, "s"},
    {"Hottest while decoding", NULL, "hottest_c", 1, 1, "°C"},
    {"Taken by other processes", NULL, "other_cpu", 1, 2, "CPUs"},
    {"Memory rate measured", NULL, "read_bytes_per_s", 1e9, 2, "GB/s"},
};

static const fact figure_facts[] = {
    {"Decoded", NULL, "decode_tokens", 1, 0, "tokens"},
    {"Decode time", NULL, "decode_s", 1, 1, "s"},
    {"Time between tokens, p50", NULL, "itl_p50_ms", 1, 2, "ms"},
    {"p95", NULL, "itl_p95_ms", 1, 2, "ms"},
    {"p99", NULL, "itl_p99_ms", 1, 2, "ms"},
    {"longest", NULL, "itl_max_ms", 1, 2, "ms"},
    {"Read per token", NULL, "bytes_per_token", 1e6, 2, "MB"},
    {"Peak resident memory", NULL, "peak_rss_bytes", 1 << 20, 1, "MiB"},
    {"of it anonymous", NULL, "rss_anon_bytes", 1 << 20, 1, "MiB"},
    {"of it from files", NULL, "rss_file_bytes", 1 << 20, 1, "MiB"},
    {"of it shared", NULL, "rss_shared_bytes", 1 << 20, 1, "MiB"},
};

static const fact throttle_facts[] = {
    {"Throttled from", "throttle", "start_s", 1, 1, "s of decoding"},
    {"until", "throttle", "end_s", 1, 1, "s"},
    {"before", "throttle", "before_tps", 1, 1, "tokens/s"},
    {"after", "throttle", "after_tps", 1, 1, "tokens/s"},
    {"slower by", "throttle", "depth_pct", 1, 1, "%"},
    {"Confidence", "throttle", "confidence", 1, 3, ""},
};

static void put_pair(mica_buf *out, const char *label, const char *value, const char *unit)
{
    mica_buf_puts(out, "<tr><th scope=\"row\">");
    put_text(out, label);
    mica_buf_puts(out, "</th><td>");
    put_foreign(out, value);
    mica_buf_printf(out, "%s%s</td></tr>\n", *unit ? " " : "", unit);
}

/* What is not known is left out here: the tables above have a dash for it. */
static void put_facts(mica_buf *out, const mica_report_run *run, const char *title, const fact *facts, size_t n)
{
    mica_buf_printf(out, "<h4>%s</h4><table class=\"pairs\">\n", title);
    for (size_t i = 0; i < n; i++) {
        const fact *f = &facts[i];
        const json_t *object = !f->object ? run->figures : *f->object ? json_object_get(run->head, f->object) : run->head;
        if (facts == throttle_facts)
            object = json_object_get(run->figures, "throttle");
        const json_t *value = json_object_get(object, f->member);
        char number[64];
        snprintf(number, sizeof number, "%.*f", f->digits, json_number_value(value) / f->scale);
        if (json_is_number(value))
            put_pair(out, f->label, number, f->unit);
        else if (json_is_string(value) && *json_string_value(value))
            put_pair(out, f->label, json_string_value(value), "");
    }
    mica_buf_puts(out, "</table>\n");
}

/* ---- What a run was like ---- */

static void put_list(mica_buf *out, const char *title, const char *kind, const json_t *texts)
{
    const json_t *text;
    size_t i;
    if (json_array_size(texts) == 0)
        return;
    mica_buf_printf(out, "<h4>%s</h4><ul class=\"%s\">\n", title, kind);
    json_array_foreach((json_t *)(uintptr_t)texts, i, text)
    {
        mica_buf_puts(out, "<li>");
        put_foreign(out, json_string_value(text) ? json_string_value(text) : "");
        mica_buf_puts(out, "</li>\n");
    }
    mica_buf_puts(out, "</ul>\n");
}

/* What the user said of what no sensor tells. */
static void put_conditions(mica_buf *out, const json_t *conditions)
{
    const char *key;
    json_t *value;
    if (json_object_size(conditions) == 0)
        return;
    mica_buf_puts(out, "<h4>Conditions, as told</h4><table class=\"pairs\">\n");
    json_object_foreach((json_t *)(uintptr_t)conditions, key, value)
        put_pair(out, key, json_string_value(value) ? json_string_value(value) : "?", "");
    mica_buf_puts(out, "</table>\n");
}

static void put_loads(mica_buf *out, const json_t *loads)
{
    json_t *load;
    size_t i;
    if (json_array_size(loads) == 0)
        return;
    mica_buf_puts(out, "<h4>Loads</h4><table class=\"pairs\">\n");
    json_array_foreach((json_t *)(uintptr_t)loads, i, load)
    {
        char number[64];
        snprintf(number, sizeof number, "%.1f", json_number_value(json_object_get(load, "ms")));
        put_pair(out, mica_report_text(load, NULL, "cache"), number, "ms");
    }
    mica_buf_puts(out, "</table>\n");
}

static void put_partition(mica_buf *out, const json_t *partition)
{
    json_t *part;
    size_t i;
    mica_buf_puts(out, "<h4>What ran where</h4>\n");
    if (!json_is_true(json_object_get(partition, "known")))
        mica_buf_puts(out, "<p>The runtime does not tell.</p>\n");
    if (json_array_size(json_object_get(partition, "parts")) > 0) {
        mica_buf_puts(out, "<div class=\"scroll\"><table class=\"partition\"><thead><tr><th>backend</th><th>");
        put_foreign(out, mica_report_text(partition, NULL, "unit"));
        mica_buf_puts(out, "</th><th class=\"text\">what</th></tr></thead><tbody>\n");
    }
    json_array_foreach(json_object_get(partition, "parts"), i, part)
    {
        mica_buf_puts(out, "<tr><td class=\"text\">");
        put_foreign(out, mica_report_text(part, NULL, "backend"));
        mica_buf_printf(out, "</td><td>%" JSON_INTEGER_FORMAT "</td><td class=\"text\">",
                        json_integer_value(json_object_get(part, "n")));
        put_foreign(out, mica_report_text(part, NULL, "what"));
        mica_buf_puts(out, "</td></tr>\n");
    }
    if (i > 0)
        mica_buf_printf(out, "</tbody></table></div>\n<p class=\"soft\">%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                             " fell back to another backend than the one asked for.</p>\n",
                        json_integer_value(json_object_get(partition, "fallback")),
                        json_integer_value(json_object_get(partition, "total")));
    if (*mica_report_text(partition, NULL, "note")) {
        mica_buf_puts(out, "<p class=\"soft\">");
        put_foreign(out, mica_report_text(partition, NULL, "note"));
        mica_buf_puts(out, "</p>\n");
    }
}

static void put_run(mica_buf *out, const mica_report_run *run, size_t i)
{
#define FACTS(title, list) put_facts(out, run, title, list, sizeof list / sizeof *list)
    mica_buf_printf(out, "<article class=\"card\" id=\"run-%zu\"><h3><span class=\"dot c%zu\"></span>", i + 1, i % COLOURS);
    put_foreign(out, mica_report_text(run->head, NULL, "name"));
    mica_buf_puts(out, "</h3><p class=\"soft\">");
    put_foreign(out, base_of(mica_report_text(run->head, "model", "path")));
    mica_buf_puts(out, "</p>\n");
    put_list(out, "What mica verify finds wrong", "complaints bad", run->complaints);
    put_list(out, "Why the figures cannot stand", "problems bad", json_object_get(run->figures, "problems"));
    put_list(out, "Under what conditions they were taken", "flags", json_object_get(run->figures, "flags"));
    put_conditions(out, json_object_get(run->head, "conditions"));
    if (json_is_object(json_object_get(run->figures, "throttle")))
        FACTS("Throttling", throttle_facts);
    put_partition(out, json_object_get(run->head, "partition"));
    FACTS("Decoding and memory", figure_facts);
    put_loads(out, json_object_get(run->head, "loads"));
    FACTS("The run", run_facts);
    FACTS("The machine", machine_facts);
    mica_buf_puts(out, "<p class=\"download\"><a download=\"mica-");
    put_text(out, run->id);
    mica_buf_puts(out, ".json\" href=\"data:application/json;base64,");
    put_base64(out, run->archive, run->archive_length);
    mica_buf_printf(out,
                    "\">Raw samples</a> (%zu KiB; <code>mica verify</code> computes the figures from them again)</p>"
                    "</article>\n",
                    (run->archive_length + 1023) / 1024);
#undef FACTS
}

/* ---- Energy and cost ---- */

static void put_energy(const mica_report *report, mica_buf *out)
{
    static const mica_column columns[] = {
        {"power while decoding (W)", {"power_w", ""}, 1, 2},
        {"per token (J)", {"energy_joules_per_token", ""}, 1, 4},
        {"per 1000 tokens (Wh)", {"energy_wh_per_1k", ""}, 1, 4},
        {"per million tokens (Wh)", {"energy_wh_per_million", ""}, 1, 1},
        {"electricity ($ per million)", {"energy_usd_per_million", ""}, 1, 4},
        {"time for a million (h)", {"hours_per_million", ""}, 1, 1},
    };
    enum { N = sizeof columns / sizeof *columns };
    put_titles(out, "energy", "Energy and cost", columns, N);
    mica_buf_puts(out, "<th scope=\"col\" class=\"text\">source</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < report->n; i++) {
        const char *source = mica_report_text(report->run[i].figures, NULL, "energy_source");
        put_cells(out, &report->run[i], i, columns, N);
        mica_buf_puts(out, "<td class=\"text\" data-label=\"source\">");
        put_foreign(out, *source ? source : "no sensor: not known");
        mica_buf_puts(out, "</td></tr>\n");
    }
    mica_buf_puts(out, "</tbody></table></div>\n<p class=\"soft\">Energy is measured or not known, never estimated. ");
    if (report->electricity.v >= 0.0)
        mica_buf_printf(out, "Electricity at $%.4g per kWh", report->electricity.v);
    else
        mica_buf_puts(out, "The price of electricity is not known");
    if (*report->electricity_from) {
        mica_buf_puts(out, ", ");
        put_foreign(out, report->electricity_from);
    }
    mica_buf_puts(out, ". A device that is bought for this costs more than its electricity: see <code>mica cost</code>.</p>"
                       "</section>\n");
}

/* ---- The page ---- */

static bool same_text(const mica_report_run *a, const mica_report_run *b, const char *object, const char *member)
{
    return strcmp(base_of(mica_report_text(a->head, object, member)), base_of(mica_report_text(b->head, object, member))) == 0;
}

/* A name for legends: with the model's file, or its place in the table, where another run has the same. */
static json_t *label_of(const mica_report *report, size_t i)
{
    const mica_report_run *run = &report->run[i];
    const char *name = mica_report_text(run->head, NULL, "name");
    bool twin = false, namesake = false;
    for (size_t k = 0; k < report->n; k++) {
        bool same = k != i && same_text(run, &report->run[k], NULL, "name");
        namesake |= same;
        twin |= same && same_text(run, &report->run[k], "model", "path");
    }
    if (twin)
        return json_sprintf("%s, run %zu", name, i + 1);
    return namesake ? json_sprintf("%s, %s", name, base_of(mica_report_text(run->head, "model", "path"))) : json_string(name);
}

static void put_charts(const mica_report *report, mica_buf *out)
{
    json_t *runs = json_array(), *all = json_pack("{s:O}", "runs", runs);
    for (size_t i = 0; i < report->n; i++) {
        json_t *run = json_copy(report->run[i].charts), *figures = json_object();
        const char *wanted[] = {"itl_p50_ms",     "itl_p95_ms",   "itl_p99_ms",
                                "peak_rss_bytes", "roofline_pct", "throttle_depth_pct"};
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            json_t *value = json_object_get(report->run[i].figures, wanted[k]);
            json_object_set(figures, wanted[k], value ? value : json_null());
        }
        json_object_set_new(run, "i", json_integer((json_int_t)i));
        json_object_set_new(run, "name", label_of(report, i));
        json_object_set_new(run, "figures", figures);
        json_array_append_new(runs, run);
    }
    mica_buf_puts(out, "<script type=\"application/json\" id=\"data\">");
    if (all && json_array_size(runs) == report->n)
        put_script_data(out, all);
    else
        out->failed = true;
    mica_buf_puts(out, "</script>\n");
    json_decref(runs);
    json_decref(all);
}

static void put_head(const mica_report *report, mica_buf *out)
{
    mica_buf_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "script-src " MICA_REPORT_JS_ALLOWED "; style-src " MICA_REPORT_CSS_ALLOWED "; "
                       "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'\">\n"
                       "<meta name=\"referrer\" content=\"no-referrer\">\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                       "<title>mica: benchmark report</title>\n<style>");
    put_packed(out, report_css, sizeof report_css);
    mica_buf_printf(out,
                    "</style>\n</head>\n<body>\n<header><h1>Benchmark report</h1><p class=\"soft\">%zu run%s; figures computed "
                    "by mica %s from the raw samples",
                    report->n, report->n == 1 ? "" : "s", mica_version());
    if (report->n > 0) {
        mica_buf_puts(out, "; first begun ");
        put_foreign(out, mica_report_text(report->run[0].head, NULL, "created"));
    }
    mica_buf_puts(out, ".</p></header>\n<main>\n");
}

void mica_report_html(const mica_report *report, mica_buf *out)
{
    put_head(report, out);
    put_summary(report, out);
    mica_buf_puts(out, "<noscript><p class=\"soft\">The charts need JavaScript; all figures are in the tables.</p></noscript>\n"
                       "<section id=\"charts\" hidden><h2>Charts</h2><ul class=\"legend\" id=\"legend\"></ul>"
                       "<div id=\"plots\"></div></section>\n");
    put_energy(report, out);
    mica_buf_puts(out, "<section id=\"runs\"><h2>Runs</h2>\n");
    for (size_t i = 0; i < report->n; i++)
        put_run(out, &report->run[i], i);
    mica_buf_puts(out, "</section>\n</main>\n"
                       "<footer><p>Charts are drawn with uPlot (MIT licence, in this file).</p></footer>\n");
    put_charts(report, out);
    mica_buf_puts(out, "<script>");
    put_packed(out, report_js, sizeof report_js);
    mica_buf_puts(out, "</script>\n</body>\n</html>\n");
}
