/* electricity.h - the price of electricity that a command computes with. Called by cmd_campaign.c and
 * cmd_report.c. */
#ifndef MICA_PROGRAMS_ELECTRICITY_H
#define MICA_PROGRAMS_ELECTRICITY_H
#include "mica/mica_ops.h"
#include "opts.h"

/** --usd-per-kwh, else that of the price table; NAN if there is none. `from` (may be NULL) says where it is from, or is "".
 * Returns an exit code. */
int mica_electricity_price(const mica_opts *o, mica_usd_per_kwh *price, char from[80]);

#endif
