/* prices.h - the price table that a command computes with. Called by cmd_cost.c, cmd_campaign.c and cmd_report.c. */
#ifndef MICA_PROGRAMS_PRICES_H
#define MICA_PROGRAMS_PRICES_H
#include "mica/mica_ops.h"
#include "opts.h"

/** --prices FILE, else the table that comes with the program; *table is the caller's (mica_free), NULL if there is none. Returns
 * an exit code. */
int mica_prices_load(const mica_opts *o, mica_prices **table);

/** The price of electricity: --usd-per-kwh, else that of the price table; NAN if there is none. `from` (may be NULL) says where
 * it is from, or is "". Returns an exit code. */
int mica_prices_electricity(const mica_opts *o, mica_usd_per_kwh *price, char from[80]);

#endif
