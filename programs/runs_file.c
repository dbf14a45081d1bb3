#include "runs_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/archive.h"
#include "bench/store.h"
#include "load.h"

typedef struct reading {
    mica_runs_visit visit;
    void *user;
    mica_store *store;
    size_t n;
    int code;
} reading;

/* Hands a run over, or the reason why there is none. */
static void hand_over(reading *r, mica_record *run, const char *id, const char *why)
{
    r->n++;
    r->code = r->visit(r->user, run, id, why);
}

/* ---- A database ---- */

static bool read_stored(void *user, const char *id)
{
    reading *r = user;
    mica_record run;
    mica_error err;
    if (mica_store_read(r->store, id, &run, &err)) {
        hand_over(r, NULL, id, err.message);
    } else {
        hand_over(r, &run, id, NULL);
        mica_record_free(&run);
    }
    return r->code == CODE_OK;
}

static void read_database(const char *path, reading *r)
{
    mica_error err;
    if (mica_store_open_readonly(path, &r->store, &err)) {
        r->code = mica_load_failed(&err);
        return;
    }
    if (mica_store_list(r->store, read_stored, r, &err))
        r->code = mica_load_failed(&err);
    mica_store_close(r->store);
}

/* ---- JSON lines ---- */

static void read_line(const char *path, size_t number, const char *line, size_t length, reading *r)
{
    json_error_t reason;
    mica_record run;
    mica_error err;
    json_t *archive = mica_json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);
    if (!archive) {
        r->code = mica_term_error("%s, line %zu, is not JSON: %s", path, number, reason.text);
        return;
    }
    mica_status status = mica_archive_read(archive, &run, &err);
    json_decref(archive);
    if (status) {
        r->code = mica_term_error("%s, line %zu: %s", path, number, err.message);
        return;
    }
    hand_over(r, &run, run.id, NULL);
    mica_record_free(&run);
}

static void read_lines(const char *path, reading *r)
{
    char *text;
    size_t length, number = 1;
    r->code = mica_load_file(path, &text, &length);
    if (r->code != CODE_OK)
        return;
    for (size_t at = 0; at < length && r->code == CODE_OK; number++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        if (n > 0)
            read_line(path, number, text + at, n, r);
        at += n + 1;
    }
    free(text);
}

static bool is_database(const char *path)
{
    char magic[16] = "";
    FILE *f = strcmp(path, "-") == 0 ? NULL : fopen(path, "rb");
    size_t n = 0;
    do { /* an interrupted read goes on */
        if (f)
            clearerr(f);
        n += f ? fread(magic + n, 1, sizeof magic - n, f) : 0;
    } while (f && ferror(f) && errno == EINTR);
    bool is = n == sizeof magic && memcmp(magic, "SQLite format 3", sizeof magic) == 0;
    if (f)
        fclose(f);
    return is;
}

int mica_runs_each(const char *path, mica_runs_visit visit, void *user)
{
    reading r = {.visit = visit, .user = user};
    if (is_database(path))
        read_database(path, &r);
    else
        read_lines(path, &r);
    return r.code != CODE_OK ? r.code : r.n > 0 ? CODE_OK : mica_term_error("%s holds no run", path);
}
