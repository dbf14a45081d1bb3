/* bench_print.h - runs for people and programs: a table, Markdown, CSV, or JSON lines with the raw samples. Called by
 * cmd_bench.c. */
#ifndef MICA_PROGRAMS_BENCH_PRINT_H
#define MICA_PROGRAMS_BENCH_PRINT_H
#include "bench/record.h"

/** `format`: "table", "md", "csv" or "json". To standard output; an exit code. */
int mica_bench_print(const char *format, const mica_record *runs, size_t n);

/** One line of JSON on standard output, with all digits; an exit code. */
int mica_bench_print_archive(const mica_record *run);

#endif
