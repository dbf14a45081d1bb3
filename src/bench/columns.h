/* columns.h - columns of a table of runs: one figure of a summary, or two. Called by report.c, and by programs/bench_print.c, whose
 * tables have columns of their own. */
#ifndef MICA_BENCH_COLUMNS_H
#define MICA_BENCH_COLUMNS_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { MICA_COLUMN_TITLE = 64, MICA_COLUMN_NAME = 40 };

typedef struct mica_column {
    char title[MICA_COLUMN_TITLE];
    char metric[2][MICA_COLUMN_NAME]; /* the second may be "" */
    double scale;                     /* what the number is divided by */
    int digits;
} mica_column;

/** Adds one behind columns[0..*n). */
void mica_column_add(mica_column *columns, int *n, const char *title, const char *metric, const char *second, double scale,
                     int digits);
/** The time to first token of a prompt, and its p95; `title` has a %d for the prompt's length. */
void mica_column_add_ttft(mica_column *columns, int *n, const char *title, int prompt);

/** Whether this figure is the time to first token of a prompt ("ttft_512_ms"): of how many tokens. */
bool mica_column_prompt(const char *figure, int *prompt);

/** The column's first or second figure; `none` where it is not known. */
void mica_column_number(char *out, size_t size, const json_t *figures, const mica_column *column, int which, const char *none);

#endif
