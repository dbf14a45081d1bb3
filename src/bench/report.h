/* report.h - stored runs as something to look at: one HTML file that needs nothing else, Markdown, CSV, JSON, OpenMetrics.
 *
 *     mica_report_new(price, "price table of 2026-11-01", &report, &err);
 *     mica_report_add(report, &record, &err);                     // for each run; the record may go afterwards
 *     mica_report_write(report, MICA_REPORT_HTML, &buf, &err);
 *     mica_report_free(report);
 *
 * Invariants:
 *  1. Figures come from mica_summary_make(), the function by which mica verify checks them, never from what the run says of
 *     itself; where the two differ, the report says so beside the run (mica_verify_record()). Costs follow from these figures
 *     through mica_ops.h.
 *  2. The same runs give the same bytes.
 *  3. Texts of a run are those of a stranger: each is escaped for where it stands. The page loads nothing and its policy
 *     forbids that it does.
 * Called by programs/cmd_report.c and bench_print.c. */
#ifndef MICA_BENCH_REPORT_H
#define MICA_BENCH_REPORT_H
#include "base/buf.h"
#include "bench/record.h"
#include "mica/mica_ops.h"

#define MICA_REPORT_MAX ((size_t)1 << 30) /* bytes of a report */

typedef struct mica_report mica_report;

typedef enum mica_report_format {
    MICA_REPORT_HTML = 0,
    MICA_REPORT_JSON = 1,
    MICA_REPORT_CSV = 2,
    MICA_REPORT_MD = 3,
    MICA_REPORT_OPENMETRICS = 4,
} mica_report_format;

/** `electricity`: what energy costs, NAN if unknown; `electricity_from` says where that is from, "" for nothing. */
mica_status mica_report_new(mica_usd_per_kwh electricity, const char *electricity_from, mica_report **out, mica_error *err);
void mica_report_free(mica_report *report);

/** Computes all that is shown of a run. A run whose figures cannot be computed is in the report too, with the reason. */
mica_status mica_report_add(mica_report *report, const mica_record *record, mica_error *err);

/** Appends the report to `out`, whose maximum bounds it. */
mica_status mica_report_write(const mica_report *report, mica_report_format format, mica_buf *out, mica_error *err);

#endif
