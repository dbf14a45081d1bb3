/* cmd_report.c - mica report: stored runs as one page, a table or metrics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/report.h"
#include "base/newfile.h"
#include "commands.h"
#include "load.h"
#include "prices.h"
#include "runs_file.h"
#include "sign_key.h"

/* ---- Input ---- */

typedef struct reading {
    const mica_opt_list *ids; /* beginnings of the runs that are wanted; none: all */
    mica_report *report;
    size_t n;
} reading;

static bool is_wanted(const mica_opt_list *ids, const char *id)
{
    bool wanted = ids->n == 0;
    for (size_t i = 0; i < ids->n; i++)
        wanted |= strncmp(id, ids->item[i], strlen(ids->item[i])) == 0;
    return wanted;
}

static int add_run(void *user, mica_record *run, const char *id, const char *why)
{
    reading *r = user;
    mica_error err;
    if (!is_wanted(r->ids, id))
        return CODE_OK;
    if (!run)
        return mica_term_error("the run %s cannot be read: %s", id, why);
    r->n++;
    return mica_report_add(r->report, run, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* ---- Output ---- */

static int write_stream(const char *path, const mica_buf *text)
{
    FILE *f = fopen(path, "wb");
    bool written = f && fwrite(text->data, 1, text->length, f) == text->length;
    int error = errno;
    if (f && fclose(f) != 0 && written) {
        written = false;
        error = errno;
    }
    return written ? CODE_OK : mica_term_error("%s cannot be written: %s", path, strerror(error));
}

static int write_out(const char *path, const mica_buf *text)
{
    if (!path || strcmp(path, "-") == 0)
        return mica_term_write(text->data, text->length) ? CODE_OK : CODE_FAILED; /* mica_term_finish() says why */
    mica_error err;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a pipe, a device: nothing to keep */
        return write_stream(path, text);
    return mica_newfile_put(path, MICA_NEWFILE_SHARED, text->data, text->length, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* The report must not take the place of what it is made from. */
static int check_out(const mica_opts *o)
{
    struct stat out, in;
    for (int i = 0; o->out && i < o->n_args; i++)
        if (stat(o->out, &out) == 0 && stat(o->args[i], &in) == 0 && out.st_dev == in.st_dev && out.st_ino == in.st_ino)
            return mica_term_usage("--out %s is the file that is read", o->out);
    return CODE_OK;
}

static mica_report_format format_of(const char *word)
{
    static const char *const words[] = {"html", "json", "csv", "md", "openmetrics"}; /* in the order of the enumeration */
    int i = 0;
    while (i < MICA_REPORT_OPENMETRICS && strcmp(words[i], word) != 0)
        i++;
    return (mica_report_format)i;
}

/* Only a file has a signature beside it. */
static int check_sign(const mica_opts *o)
{
    if (o->sign && (!o->out || strcmp(o->out, "-") == 0))
        return mica_term_usage("--sign signs a file: name it with --out");
    return !o->sign && (o->password_file || o->comment) ? mica_term_usage("--password-file and --comment go with --sign") : CODE_OK;
}

static int write_report(const mica_opts *o, const mica_report *report)
{
    mica_buf text;
    mica_error err;
    mica_buf_init(&text, MICA_REPORT_MAX);
    int code = mica_report_write(report, format_of(o->report_format), &text, &err) ? mica_load_failed(&err)
                                                                                   : write_out(o->out, &text);
    mica_buf_free(&text);
    return code;
}

int mica_cmd_report(const mica_opts *o)
{
    mica_usd_per_kwh price;
    char from[80];
    reading r = {.ids = &o->run_ids};
    mica_error err;
    int code = check_out(o);
    if (code == CODE_OK)
        code = check_sign(o);
    if (code == CODE_OK)
        code = mica_prices_electricity(o, &price, from);
    if (code != CODE_OK)
        return code;
    if (mica_report_new(price, from, &r.report, &err))
        return mica_load_failed(&err);
    for (int i = 0; i < o->n_args && code == CODE_OK; i++)
        code = mica_runs_each(o->args[i], add_run, &r);
    if (code == CODE_OK && r.n == 0)
        code = mica_term_error("no run has an id that begins so (mica verify lists them)");
    if (code == CODE_OK)
        code = write_report(o, r.report);
    if (code == CODE_OK && o->sign)
        code = mica_sign_with(o, o->out, o->sign);
    mica_report_free(r.report);
    return code;
}
