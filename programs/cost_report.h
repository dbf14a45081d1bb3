/* cost_report.h - what mica cost has computed, for the two ways of printing it. Filled by cmd_cost.c, read by cost_text.c. */
#ifndef MICA_PROGRAMS_COST_REPORT_H
#define MICA_PROGRAMS_COST_REPORT_H
#include "mica/mica_ops.h"
#include "opts.h"

/** A cloud price, and the own device beside it. */
typedef struct cost_row {
    const char *name, *date; /* date "": given on the command line */
    mica_usd_per_million in, out, price; /* price: blended; in and out NAN where only that was given */
    mica_usd total;           /* of the workload */
    double ratio;             /* own device / this */
    mica_break_even even;
} cost_row;

typedef struct cost_report {
    mica_prices *table;  /* NULL: none was found */
    mica_device_cost_input in;
    mica_device_cost device;
    bool has_device;     /* enough was given to tell the energy of a token */
    mica_tokens tokens;  /* of the workload; NAN: none was given */
    mica_tokens blend_in, blend_out; /* proportion */
    mica_usd device_total;
    mica_watt_hours workload_wh;
    mica_charges charges;
    mica_seconds time;
    size_t n_rows;
    cost_row rows[MICA_PRICE_ROWS_MAX + 1];
} cost_report;

void mica_cost_print(const mica_opts *o, const cost_report *r);

#endif
