#include "bench/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void mica_column_add(mica_column *columns, int *n, const char *title, const char *metric, const char *second, double scale,
                     int digits)
{
    mica_column *c = &columns[(*n)++];
    snprintf(c->title, sizeof c->title, "%s", title);
    snprintf(c->metric[0], sizeof c->metric[0], "%s", metric);
    snprintf(c->metric[1], sizeof c->metric[1], "%s", second);
    c->scale = scale;
    c->digits = digits;
}

void mica_column_add_ttft(mica_column *columns, int *n, const char *title, int prompt)
{
    char text[MICA_COLUMN_TITLE], metric[MICA_COLUMN_NAME], p95[MICA_COLUMN_NAME];
    const char *number = strstr(title, "%d");
    snprintf(text, sizeof text, "%.*s%d%s", (int)(number - title), title, prompt, number + 2);
    snprintf(metric, sizeof metric, "ttft_%d_ms", prompt);
    snprintf(p95, sizeof p95, "ttft_%d_p95_ms", prompt);
    mica_column_add(columns, n, text, metric, p95, 1, 1);
}

bool mica_column_prompt(const char *figure, int *prompt)
{
    int used = 0;
    return sscanf(figure, "ttft_%9d_ms%n", prompt, &used) == 1 && used > 0 && figure[used] == '\0';
}

void mica_column_number(char *out, size_t size, const json_t *figures, const mica_column *column, int which, const char *none)
{
    const json_t *figure = json_object_get(figures, column->metric[which]);
    double value = json_is_number(figure) ? json_number_value(figure) / column->scale : NAN;
    if (!isfinite(value))
        snprintf(out, size, "%s", none);
    else
        snprintf(out, size, fabs(value) < 1e15 ? "%.*f" : "%.*g", column->digits, value);
}
