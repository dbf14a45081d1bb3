/* conditions.h - what no sensor tells, from the user: --condition NAME=TEXT, or, at a terminal, answers to a few questions that
 * are asked once for all runtimes of a measurement. The last answers are kept in the user's folder and offered again; they
 * count only when they are confirmed. Called by cmd_bench.c. */
#ifndef MICA_PROGRAMS_CONDITIONS_H
#define MICA_PROGRAMS_CONDITIONS_H
#include <jansson.h>

#include "opts.h"

/** *conditions is an object, yours: json_decref(); NULL: none is known. With `ask`, and without --condition and --no-questions,
 * the questions are put where standard input and standard error are terminals. Returns an exit code. */
int mica_conditions_read(const mica_opts *o, bool ask, json_t **conditions);

#endif
