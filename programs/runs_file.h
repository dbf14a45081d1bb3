/* runs_file.h - the runs in a file: a database of mica bench, or JSON lines of mica bench --format json. Called by cmd_verify.c,
 * cmd_compare.c and cmd_report.c. */
#ifndef MICA_PROGRAMS_RUNS_FILE_H
#define MICA_PROGRAMS_RUNS_FILE_H
#include "bench/record.h"

/** Gets a run, which is freed afterwards; of one that cannot be read, its id ("" if unknown) and why. Returns an exit code:
 * anything but CODE_OK ends the reading. */
typedef int (*mica_runs_visit)(void *user, mica_record *run, const char *id, const char *why);

/** All runs of the file, the oldest first. Returns an exit code; a file without runs is a failure. */
int mica_runs_each(const char *path, mica_runs_visit visit, void *user);

#endif
