/* report_impl.h - what the files of the report share: the runs as they are shown, the columns of their table, the writers.
 * Called by report*.c only. */
#ifndef MICA_BENCH_REPORT_IMPL_H
#define MICA_BENCH_REPORT_IMPL_H
#include "bench/columns.h"
#include "bench/report.h"

typedef struct mica_report_run {
    char id[40];
    json_t *head;
    json_t *figures;    /* the summary, computed again, and what energy and rate make of a million tokens */
    json_t *complaints; /* texts: what mica verify finds */
    json_t *charts;     /* what the page draws: report_charts.c */
    char *archive;      /* the run as JSON with its raw samples */
    size_t archive_length;
} mica_report_run;

struct mica_report {
    mica_usd_per_kwh electricity;
    char electricity_from[80];
    size_t n, capacity;
    mica_report_run *run;
};

enum { MICA_REPORT_CELL = 96, MICA_REPORT_COLUMNS = 20 };

/** The columns that these runs need; returns how many. */
int mica_report_columns(const mica_report *report, mica_column columns[MICA_REPORT_COLUMNS]);
/** "31.2 / 33.0"; `none` stands for what is not known. */
void mica_report_cell(char out[MICA_REPORT_CELL], const mica_report_run *run, const mica_column *column,
                      const char *none);

/** The member of a member, "" if it is no text: mica_report_text(head, "runtime", "version"); `object` NULL: of `head`
 * itself. */
const char *mica_report_text(const json_t *head, const char *object, const char *member);

/** The lines and points of a run's charts; *charts is the caller's. */
mica_status mica_report_charts(const mica_record *record, const json_t *figures, json_t **charts, mica_error *err);

/* A buffer that failed stays so: mica_report_write() looks at it once. */
void mica_report_html(const mica_report *report, mica_buf *out);
void mica_report_json(const mica_report *report, mica_buf *out);
void mica_report_csv(const mica_report *report, mica_buf *out);
void mica_report_markdown(const mica_report *report, mica_buf *out);
void mica_report_openmetrics(const mica_report *report, mica_buf *out);

#endif
