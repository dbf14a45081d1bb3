#include "bench/manifest.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static const struct {
    const char *name;
    size_t offset;
} limit_names[] = {
#define LIMIT(name)                                                                                                            \
    {                                                                                                                          \
#name, offsetof(mica_adapter_limits, name)                                                                             \
    }
    LIMIT(hello_s),       LIMIT(load_s),  LIMIT(partition_s), LIMIT(start_s),
    LIMIT(first_token_s), LIMIT(token_s), LIMIT(unload_s),    LIMIT(quit_s),
#undef LIMIT
};

#define MAX_LIMIT_S 86400.0

static mica_status read_limits(const json_t *timeouts, const char *name, mica_adapter_limits *limits, mica_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)timeouts, key, value)
    {
        double seconds = json_is_number(value) ? json_number_value(value) : NAN;
        size_t i = 0, n = sizeof limit_names / sizeof *limit_names;
        while (i < n && strcmp(limit_names[i].name, key) != 0)
            i++;
        if (i == n || !(seconds > 0.0 && seconds <= MAX_LIMIT_S))
            return mica_fail(err, MICA_BAD_TEXT,
                             "the manifest of the adapter %s has a timeout \"%.40s\" that is unknown or not 0 to 86400 s", name,
                             key);
        *(double *)((char *)limits + limit_names[i].offset) = seconds;
    }
    return MICA_OK;
}

static mica_status read_command(const char *folder, const json_t *command, mica_manifest *out, mica_error *err)
{
    size_t n = json_array_size(command);
    if (n < 1 || n > MICA_MANIFEST_WORDS)
        return mica_fail(err, MICA_BAD_TEXT, "the manifest of the adapter %s has no \"command\" of 1 to %d words", out->name,
                         MICA_MANIFEST_WORDS);
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_array_get(command, i));
        size_t size = strlen(folder) + (word ? strlen(word) : 0) + 2;
        if (!word || !*word)
            return mica_fail(err, MICA_BAD_TEXT, "the command of the adapter %s has a word that is no text", out->name);
        out->argv[i] = malloc(size);
        if (!out->argv[i])
            return mica_fail_nomem(err, size, "an adapter's command");
        if (i == 0 && strncmp(word, "./", 2) == 0)
            snprintf(out->argv[i], size, "%s/%s", folder, word + 2);
        else
            snprintf(out->argv[i], size, "%s", word);
    }
    return MICA_OK;
}

static mica_status read_members(const char *folder, const json_t *root, mica_manifest *out, mica_error *err)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    const json_t *timeouts = json_object_get(root, "timeouts");
    if (!name || !*name || strlen(name) >= sizeof out->name)
        return mica_fail(err, MICA_BAD_TEXT, "%s/manifest.json has no \"name\" of 1 to 63 bytes", mica_path_tail(folder));
    snprintf(out->name, sizeof out->name, "%s", name);
    if (json_integer_value(json_object_get(root, "protocol")) != MICA_ADAPTER_PROTOCOL)
        return mica_fail(err, MICA_UNSUPPORTED, "the adapter %s does not speak protocol %d", name, MICA_ADAPTER_PROTOCOL);
    if (timeouts && !json_is_object(timeouts))
        return mica_fail(err, MICA_BAD_TEXT, "\"timeouts\" in the manifest of the adapter %s is no object", name);
    mica_status status = timeouts ? read_limits(timeouts, name, &out->limits, err) : MICA_OK;
    return status ? status : read_command(folder, json_object_get(root, "command"), out, err);
}

mica_status mica_manifest_read(const char *folder, const mica_adapter_limits *limits, mica_manifest *out, mica_error *err)
{
    char path[4096];
    json_error_t reason;
    memset(out, 0, sizeof *out);
    out->limits = *limits;
    if (snprintf(path, sizeof path, "%s/manifest.json", folder) >= (int)sizeof path)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the adapter's folder is too long");
    errno = 0;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &reason);
    if (!root && json_error_code(&reason) == json_error_cannot_open_file)
        return mica_fail(err, MICA_IO_ERROR, "there is no adapter in %s: it has no manifest.json", mica_path_tail(folder));
    if (!root && (errno == EIO || errno == ENOMEM))
        return mica_fail(err, errno == EIO ? MICA_IO_ERROR : MICA_OUT_OF_MEMORY, "cannot read %s: %s", mica_path_tail(path),
                         strerror(errno));
    if (!root)
        return mica_fail(err, MICA_BAD_TEXT, "%s is not JSON: line %d: %.100s", mica_path_tail(path), reason.line, reason.text);
    mica_status status = read_members(folder, root, out, err);
    json_decref(root);
    return status;
}

void mica_manifest_free(mica_manifest *manifest)
{
    for (size_t i = 0; i < MICA_MANIFEST_WORDS; i++)
        free(manifest->argv[i]);
    memset(manifest, 0, sizeof *manifest);
}
