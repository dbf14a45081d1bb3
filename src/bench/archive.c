#include "bench/archive.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Write ---- */

static mica_status encode(const int64_t *values, size_t n, json_t **out, mica_error *err)
{
    void *bytes;
    size_t length;
    mica_status status = mica_pack_ints(values, n, &bytes, &length, err);
    if (status)
        return status;
    size_t size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(size);
    if (text)
        sodium_bin2base64(text, size, bytes, length, sodium_base64_VARIANT_ORIGINAL);
    *out = text ? json_string(text) : NULL;
    free(text);
    free(bytes);
    return *out ? MICA_OK : mica_fail_nomem(err, size, "an archive");
}

static mica_status write_series(const mica_series *x, json_t *list, mica_error *err)
{
    json_t *times = NULL, *tokens = NULL;
    mica_status status = encode(x->times, x->n, &times, err);
    if (!status)
        status = encode(x->tokens, x->n, &tokens, err);
    if (!status &&
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:O, s:O}", "phase", x->phase, "exact",
                            (int)x->exact, "prompt_asked", (int)x->prompt_asked, "n_asked", (int)x->n_asked, "seed",
                            (json_int_t)x->seed, "started_ns", (json_int_t)x->started_ns, "done_ns", (json_int_t)x->done_ns,
                            "prompt_n", (json_int_t)x->prompt_n, "cached_n", (json_int_t)x->cached_n, "gen_n",
                            (json_int_t)x->gen_n, "reason", x->reason, "times", times, "tokens", tokens)) != 0)
        status = mica_fail_nomem(err, 1024, "an archive");
    json_decref(times);
    json_decref(tokens);
    return status;
}

mica_status mica_archive_write(const mica_record *record, json_t **out, mica_error *err)
{
    json_t *list = json_array();
    mica_status status = list ? MICA_OK : mica_fail_nomem(err, 1024, "an archive");
    for (size_t i = 0; i < record->n_series && !status; i++)
        status = write_series(&record->series[i], list, err);
    if (!status) {
        *out = json_pack("{s:s, s:i, s:O, s:O?, s:O, s:O}", "format", MICA_ARCHIVE_FORMAT, "version", MICA_RECORD_VERSION,
                         "head", record->head, "summary", record->summary, "series", list, "samples", record->samples);
        status = *out ? MICA_OK : mica_fail_nomem(err, 1024, "an archive");
    }
    json_decref(list);
    return status;
}

/* ---- Read ---- */

static mica_status decode(const json_t *text, int64_t **values, size_t *n, mica_error *err)
{
    size_t length = json_string_length(text), room = length / 4 * 3 + 3;
    uint8_t *bytes = json_is_string(text) ? malloc(room) : NULL;
    if (json_is_string(text) && !bytes)
        return mica_fail_nomem(err, room, "an archive");
    mica_status status = MICA_BAD_FILE;
    if (bytes && sodium_base642bin(bytes, room, json_string_value(text), length, NULL, &length, NULL,
                                   sodium_base64_VARIANT_ORIGINAL) == 0)
        status = mica_unpack_ints(bytes, length, values, n, err);
    else
        mica_fail(err, MICA_BAD_FILE, "a series of the archive has samples that are not base64");
    free(bytes);
    return status;
}

static bool get_int(const json_t *object, const char *name, int64_t low, int64_t high, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= low && *out <= high;
}

static bool get_word(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));
    if (!text || strlen(text) >= size)
        return false;
    snprintf(out, size, "%s", text);
    return true;
}

static bool read_members(const json_t *object, mica_series *x)
{
    int64_t prompt, asked, seed;
    const json_t *exact = json_object_get(object, "exact");
    if (!get_word(object, "phase", x->phase, sizeof x->phase) || !get_word(object, "reason", x->reason, sizeof x->reason) ||
        !json_is_boolean(exact) || !get_int(object, "prompt_asked", 0, INT32_MAX, &prompt) ||
        !get_int(object, "n_asked", 0, INT32_MAX, &asked) || !get_int(object, "seed", INT64_MIN, INT64_MAX, &seed) ||
        !get_int(object, "started_ns", 0, INT64_MAX, &x->started_ns) ||
        !get_int(object, "done_ns", 0, INT64_MAX, &x->done_ns) || !get_int(object, "prompt_n", 0, INT32_MAX, &x->prompt_n) ||
        !get_int(object, "cached_n", -1, INT32_MAX, &x->cached_n) || !get_int(object, "gen_n", 0, INT32_MAX, &x->gen_n))
        return false;
    x->exact = json_is_true(exact);
    x->prompt_asked = (int32_t)prompt;
    x->n_asked = (int32_t)asked;
    x->seed = (uint64_t)seed;
    return true;
}

static mica_status read_series(const json_t *object, mica_record *out, mica_error *err)
{
    mica_series x = {.times = NULL};
    size_t n_tokens = 0;
    if (!read_members(object, &x))
        return mica_fail(err, MICA_BAD_FILE, "series %zu of the archive lacks a member, or has one out of its range",
                         out->n_series);
    mica_status status = decode(json_object_get(object, "times"), &x.times, &x.n, err);
    if (!status)
        status = decode(json_object_get(object, "tokens"), &x.tokens, &n_tokens, err);
    if (!status && n_tokens != x.n)
        status = mica_fail(err, MICA_BAD_FILE, "series %zu of the archive has %zu times and %zu tokens", out->n_series, x.n,
                           n_tokens);
    if (!status)
        status = mica_record_add(out, &x, err);
    mica_series_free(&x);
    return status;
}

static mica_status read_parts(const json_t *archive, mica_record *out, mica_error *err)
{
    json_t *head = json_object_get(archive, "head"), *samples = json_object_get(archive, "samples"),
           *series = json_object_get(archive, "series");
    json_t *summary = json_object_get(archive, "summary");
    const char *format = json_string_value(json_object_get(archive, "format")),
               *id = json_string_value(json_object_get(head, "id"));
    if (!format || strcmp(format, MICA_ARCHIVE_FORMAT) != 0)
        return mica_fail(err, MICA_BAD_FILE, "this is no run of mica bench: its \"format\" is not " MICA_ARCHIVE_FORMAT);
    if (json_integer_value(json_object_get(archive, "version")) != MICA_RECORD_VERSION)
        return mica_fail(err, MICA_UNSUPPORTED, "the run has version %lld of its format; this build reads %d",
                         (long long)json_integer_value(json_object_get(archive, "version")), MICA_RECORD_VERSION);
    if (!json_is_object(head) || !json_is_array(samples) || !json_is_array(series) ||
        (summary && !json_is_object(summary) && !json_is_null(summary)))
        return mica_fail(err, MICA_BAD_FILE, "the run lacks its head, series, samples or summary");
    json_decref(out->head);
    json_decref(out->samples);
    out->head = json_incref(head);
    out->samples = json_incref(samples);
    out->summary = json_is_object(summary) ? json_incref(summary) : NULL;
    snprintf(out->id, sizeof out->id, "%.32s", id ? id : "");
    mica_status status = MICA_OK;
    for (size_t i = 0; i < json_array_size(series) && !status; i++)
        status = read_series(json_array_get(series, i), out, err);
    return status;
}

mica_status mica_archive_read(const json_t *archive, mica_record *out, mica_error *err)
{
    mica_status status = mica_record_init(out, err);
    if (status)
        return status;
    status = read_parts(archive, out, err);
    if (status)
        mica_record_free(out);
    return status;
}
