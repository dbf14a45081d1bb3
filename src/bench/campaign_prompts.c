#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/json.h"
#include "base/mem.h"
#include "bench/campaign.h"

static mica_status add_text(mica_prompts *p, const json_t *value, const char *path, size_t line, mica_error *err)
{
    const json_t *text = json_object_get(value, "text");
    text = text ? text : json_object_get(value, "prompt");
    size_t length = json_string_length(text), room = p->capacity ? 2 * p->capacity : 256;
    if (length == 0)
        return mica_fail(err, MICA_BAD_TEXT,
                         "%s, line %zu: this is no object with a \"text\" (or \"prompt\") that is not empty",
                         mica_path_tail(path), line);
    if (p->n == p->capacity) {
        char **texts = realloc(p->text, room * sizeof *texts);
        p->text = texts ? texts : p->text;
        size_t *lengths = texts ? realloc(p->length, room * sizeof *lengths) : NULL;
        p->length = lengths ? lengths : p->length;
        if (!lengths)
            return mica_fail_nomem(err, room * sizeof *texts, "the prompts");
        p->capacity = room;
    }
    char *copy = malloc(length + 1);
    if (!copy)
        return mica_fail_nomem(err, length + 1, "a prompt");
    memcpy(copy, json_string_value(text), length + 1);
    p->text[p->n] = copy;
    p->length[p->n++] = length;
    return MICA_OK;
}

static mica_status read_lines(const char *data, size_t length, const char *path, mica_prompts *out, mica_error *err)
{
    mica_status status = MICA_OK;
    size_t line = 0;
    for (size_t at = 0, end; at < length && !status; at = end + 1) {
        json_error_t reason;
        const char *found = memchr(data + at, '\n', length - at);
        end = found ? (size_t)(found - data) : length;
        line++;
        if (end == at || (end == at + 1 && data[at] == '\r'))
            continue;
        json_t *value = mica_json_loadb(data + at, end - at, 0, &reason);
        status = value                         ? add_text(out, value, path, line, err)
                 : mica_json_no_memory(&reason) ? mica_fail_nomem(err, end - at, "a prompt")
                       : mica_fail(err, MICA_BAD_TEXT, "%s, line %zu: %.100s", mica_path_tail(path), line, reason.text);
        json_decref(value);
    }
    if (!status && out->n == 0)
        status = mica_fail(err, MICA_BAD_TEXT, "%s has no prompts", mica_path_tail(path));
    return status;
}

mica_status mica_prompts_read(const char *data, size_t length, const char *name, const char *sha256, mica_prompts *out,
                              mica_error *err)
{
    uint8_t digest[32];
    char hex[65];
    memset(out, 0, sizeof *out);
    if (length > MICA_PROMPTS_MAX)
        return mica_fail(err, MICA_UNSUPPORTED, "%s has more than 256 MiB of prompts", mica_path_tail(name));
    crypto_hash_sha256(digest, (const uint8_t *)data, length);
    sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
    if (strcmp(hex, sha256) != 0)
        return mica_fail(err, MICA_BAD_FILE, "%s is not the prompt set that the manifest names: its SHA-256 is %s",
                         mica_path_tail(name), hex);
    mica_status status = read_lines(data, length, name, out, err);
    if (status)
        mica_prompts_free(out);
    return status;
}

mica_status mica_prompts_open(const char *path, const char *sha256, mica_prompts *out, mica_error *err)
{
    mica_map map;
    memset(out, 0, sizeof *out);
    mica_status status = mica_map_open(path, &map, err);
    if (!status)
        status = mica_prompts_read((const char *)map.data, map.length, path, sha256, out, err);
    mica_map_close(&map);
    return status;
}

void mica_prompts_free(mica_prompts *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->text[i]);
    free(p->text);
    free(p->length);
    memset(p, 0, sizeof *p);
}
