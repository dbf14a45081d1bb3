/* slo_file.h - --slo FILE: limits that figures must keep, and what is broken on standard error. Called by cmd_bench.c,
 * cmd_campaign.c. */
#ifndef MICA_PROGRAMS_SLO_FILE_H
#define MICA_PROGRAMS_SLO_FILE_H
#include <jansson.h>

#include "bench/store.h"
#include "opts.h"

/** *slo is yours: json_decref(); NULL without the option. Returns an exit code. */
int mica_slo_file_open(const mica_opts *o, json_t **slo);

/** Judges the summary of a run. Every limit that is broken is told; then CODE_FAILED. `slo` NULL: nothing is judged. */
int mica_slo_file_judge(const json_t *slo, const char *name, const json_t *summary);

/** The same of a stored campaign: its figures are computed from the raw samples of all shards that are done. */
int mica_slo_file_judge_campaign(const json_t *slo, mica_store *store, const char *id, const char *name);

#endif
