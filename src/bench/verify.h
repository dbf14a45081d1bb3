/* verify.h - can a run's figures be true? Computes them again from the raw samples, and looks whether the samples agree with
 * each other. Called by programs/cmd_verify.c. */
#ifndef MICA_BENCH_VERIFY_H
#define MICA_BENCH_VERIFY_H
#include "bench/record.h"

/** Adds what is wrong to `complaints`, an array of texts. The status is about the check itself. */
mica_status mica_verify_record(const mica_record *record, json_t *complaints, mica_error *err);

#endif
