/* summary.h - every number that is reported of a run, computed from its record and nothing else. Pure: the same record gives
 * the same summary on every machine, which is what mica verify checks. Called by measure.c, programs and tests.
 *
 * The summary is a flat JSON object; docs/bench.md lists its members. Numbers that cannot be told are null. Beside them:
 *   "problems"  texts: why the figures cannot stand; a run with any has failed
 *   "flags"     texts: under what conditions they were taken; the run is kept all the same
 *   "throttle"  null, or the step that was found
 */
#ifndef MICA_BENCH_SUMMARY_H
#define MICA_BENCH_SUMMARY_H
#include "bench/record.h"

/** *summary is the caller's: json_decref(). MICA_BAD_FILE: the record contradicts itself. */
mica_status mica_summary_make(const mica_record *record, json_t **summary, mica_error *err);

/** The times of all decode replies put behind one another, the prompts between them left out: nanoseconds spent decoding. Of a
 * runtime whose events are no tokens, its count spread evenly over each reply. *times is yours: free(); n may be 0. */
mica_status mica_summary_join(const mica_record *record, int64_t **times, size_t *n, mica_error *err);

/** Compares a stored summary with one that was computed again. Differences are added to `complaints`, an array of texts;
 * numbers may differ by a part of 1e-9, which is the rounding of their text. True if there is none. */
bool mica_summary_same(const json_t *stored, const json_t *computed, json_t *complaints);

#endif
