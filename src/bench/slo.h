/* slo.h - limits that a run must keep, for anyone's CI: {"version": 1, "limits": [{"metric": "steady_tps", "min": 20},
 * {"metric": "ttft_512_p95_ms", "max": 900}]}. A metric is a member of the summary, or of a campaign's figures
 * (campaign_figures.h). Called by programs/slo_file.c. */
#ifndef MICA_BENCH_SLO_H
#define MICA_BENCH_SLO_H
#include <jansson.h>

#include "base/error.h"

/** From a file. *slo is yours: json_decref(). */
mica_status mica_slo_open(const char *path, json_t **slo, mica_error *err);

/** Whether `slo` can be used: MICA_BAD_TEXT says what is wrong in it. */
mica_status mica_slo_check(const json_t *slo, mica_error *err);

/** Adds a text for every limit that the summary breaks; a number that is not known breaks it too. True if none does. */
bool mica_slo_judge(const json_t *slo, const json_t *summary, json_t *broken);

#endif
