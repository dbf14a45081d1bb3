#include "bench/json_file.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "base/map.h"

#define MAX_FILE ((size_t)1 << 20)

mica_status mica_json_read(const char *what, const char *text, size_t length, json_t **object, mica_error *err)
{
    json_error_t reason;
    *object = NULL;
    json_t *root = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    if (!root && mica_json_no_memory(&reason))
        return mica_fail_nomem(err, length, "a JSON file");
    if (!root)
        return mica_fail_at(err, MICA_BAD_TEXT, reason.position, "%s is not JSON: line %d, column %d: %.200s", what,
                            reason.line, reason.column, reason.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return mica_fail(err, MICA_BAD_TEXT, "%s is no JSON object", what);
    }
    *object = root;
    return MICA_OK;
}

mica_status mica_json_open(const char *what, const char *path, json_t **object, mica_error *err)
{
    mica_map map;
    *object = NULL;
    mica_status status = mica_map_open(path, &map, err);
    if (status)
        return status;
    if (map.length > MAX_FILE)
        status = mica_fail(err, MICA_BAD_TEXT, "%s has more than 1 MiB: it cannot be %s", mica_path_tail(path), what);
    else
        status = mica_json_read(what, (const char *)map.data, map.length, object, err);
    mica_map_close(&map);
    return status;
}

void mica_json_say(json_t *list, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(list, json_string(text));
}
