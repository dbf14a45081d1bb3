/* tmpl_data.h - what the template tests share: files, requests of the public cases, one rendering compared. */
#ifndef MICA_TESTS_TMPL_DATA_H
#define MICA_TESTS_TMPL_DATA_H
#include "mica/mica.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK 1741529106 /* 2025-03-09 14:05:06 UTC, the clock of tests/data/templates/make.py */

/* The whole file, terminated; NULL if it cannot be read. */
static inline char *data_read(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    *length = 0;
    if (!f)
        return NULL;
    char *data = NULL;
    size_t n = 0, capacity = 0;
    do {
        if (capacity - n < 4096) {
            capacity = capacity ? capacity * 2 : 65536;
            data = realloc(data, capacity + 1);
        }
        n += fread(data + n, 1, capacity - n, f);
    } while (!feof(f) && !ferror(f));
    fclose(f);
    data[n] = '\0';
    *length = n;
    return data;
}

static inline json_t *data_json(const char *path)
{
    json_error_t e;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &e);
    if (!json)
        fprintf(stderr, "%s: %s (line %d)\n", path, e.text, e.line);
    return json;
}

/* Renders and compares: `expect` is a string, or NULL for an error whose message must have `error` in it ("*": any). */
static inline bool data_check(const char *where, const char *text, size_t length, json_t *request, int64_t now, json_t *expect,
                              const char *error)
{
    mica_error err = {0};
    char *out, *json = json_dumps(request, 0);
    size_t n;
    mica_status status = mica_template_render(text, length, json, strlen(json), "<s>", "</s>", now, &out, &n, &err);
    bool ok;
    if (expect)
        ok = status == MICA_OK && n == json_string_length(expect) && memcmp(out, json_string_value(expect), n) == 0;
    else
        ok = status == MICA_BAD_TEMPLATE && err.code == status && err.message[0] &&
            (error[0] == '*' || strstr(err.message, error));
    if (!ok)
        fprintf(stderr, "%s\n  template: %.400s\n  expected: %s\n  got:      %s %s\n", where, text,
                expect ? json_string_value(expect) : error, status == MICA_OK ? out : mica_status_name(status), err.message);
    free(json);
    free(out);
    return ok;
}

/* "2025-03-09T14:05:06" of a public case, or the standard clock. */
static inline int64_t data_clock(json_t *request)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int y, month, day, h, m, s;
    const char *now = json_string_value(json_object_get(request, "now"));
    if (!now || sscanf(now, "%d-%d-%dT%d:%d:%d", &y, &month, &day, &h, &m, &s) != 6)
        return CLOCK;
    int64_t days = (y - 1970) * 365LL + (y - 1969) / 4 + before[month - 1] + day - 1 + (month > 2 &&
                                                                                        y % 4 == 0); /* 1970 to 2099 */
    return ((days * 24 + h) * 60 + m) * 60 + s;
}

/* All entries of cases.json against one template; returns the number of failures, and adds to *n. */
static inline int data_cases(const char *cases_path, const char *text, size_t length, int *n)
{
    json_t *cases = data_json(cases_path), *one;
    size_t i;
    int failed = 0;
    json_array_foreach(cases, i, one)
    {
        char where[700];
        json_t *request = json_object_get(one, "request");
        const char *error = json_string_value(json_object_get(one, "expect_error"));
        snprintf(where, sizeof where, "%s entry %zu", cases_path, i);
        failed += !data_check(where, text, length, request, data_clock(request), json_object_get(one, "expect"),
                              error ? error : "*");
        ++*n;
    }
    json_decref(cases);
    return failed;
}

#endif
