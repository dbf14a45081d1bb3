/* cmd_verify.c - mica verify: computes the figures of stored runs again from their raw samples. */
#include <stdio.h>
#include <string.h>

#include "bench/sign.h"
#include "bench/verify.h"
#include "commands.h"
#include "load.h"
#include "runs_file.h"
#include "term.h"

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "?";
}

/* One run: a line, and one for each thing that is wrong. A run that was killed has no figures: it is named, and no fault. */
static int check(void *user, mica_record *run, const char *id, const char *why)
{
    size_t *bad = user, i;
    mica_error err;
    if (!run) {
        printf("BAD   %s  %s\n", id, why);
        ++*bad;
        return CODE_OK;
    }
    if (!run->summary && strcmp(text_of(run->head, "state"), "running") == 0) {
        printf("open  %s  %s: not finished, %zu replies\n", id, text_of(run->head, "name"), run->n_series);
        return CODE_OK;
    }
    json_t *complaints = json_array(), *text;
    if (mica_verify_record(run, complaints, &err))
        json_array_append_new(complaints, json_string(err.message));
    bool good = json_array_size(complaints) == 0;
    printf("%s  %s  %s, %s: %zu figures from %zu replies and %zu samples\n", good ? "good" : "BAD ", id,
           text_of(run->head, "name"), text_of(run->head, "state"), json_object_size(run->summary), run->n_series,
           json_array_size(run->samples));
    json_array_foreach(complaints, i, text) printf("      %s\n", json_string_value(text));
    *bad += !good;
    json_decref(complaints);
    return CODE_OK;
}

/* Whose file it is: told before anything in it is read. */
static int check_signature(const mica_opts *o)
{
    char path[MICA_SIGN_PATH], comment[MICA_SIGN_COMMENT], id[17];
    mica_public_key key;
    mica_error err;
    mica_status status = o->signature ? MICA_OK : mica_signature_path(o->args[0], path, &err);
    if (!status)
        status = mica_public_key_read(o->pubkey, &key, &err);
    if (!status)
        status = mica_file_check(o->args[0], o->signature ? o->signature : path, &key, comment, &err);
    if (status)
        return mica_load_failed(&err);
    mica_key_id(key.id, id);
    printf("good  signature of the key %s; trusted comment: %s\n", id, comment);
    return CODE_OK;
}

int mica_cmd_verify(const mica_opts *o)
{
    size_t bad = 0;
    if (!o->pubkey && (o->signature || o->signature_only))
        return mica_term_usage("--signature and --signature-only go with --pubkey");
    int code = o->pubkey ? check_signature(o) : CODE_OK;
    if (code != CODE_OK || o->signature_only)
        return code;
    code = mica_runs_each(o->args[0], check, &bad);
    return code != CODE_OK ? code : bad > 0 ? CODE_FAILED : CODE_OK;
}
