#include "convert/hf_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

char *mica_hf_path(const char *dir, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

/* Maps DIR/NAME. *found false: there is none, and that is fine. */
static mica_status map_file(const char *dir, const char *name, bool required, mica_map *map, bool *found, mica_error *err)
{
    char *path = mica_hf_path(dir, name);
    *map = (mica_map){0};
    if (!path)
        return mica_fail_nomem(err, strlen(dir), "a path");
    *found = required || access(path, F_OK) == 0 || errno != ENOENT;
    mica_status status = *found ? mica_map_open(path, map, err) : MICA_OK;
    free(path);
    return status;
}

static mica_status parse(const char *dir, const char *name, bool reals, const mica_map *map, json_t **out, mica_error *err)
{
    json_error_t why;
    size_t flags = JSON_REJECT_DUPLICATES | (reals ? JSON_DECODE_INT_AS_REAL : 0);
    *out = mica_json_loadb((const char *)map->data, map->length, flags, &why);
    if (!*out && mica_json_no_memory(&why))
        return mica_fail_nomem(err, map->length, name);
    if (!*out)
        return mica_fail_at(err, MICA_BAD_FILE, why.position, "%s/%s is no JSON: line %d: %s", mica_path_tail(dir), name, why.line, why.text);
    if (json_is_object(*out))
        return MICA_OK;
    json_decref(*out);
    *out = NULL;
    return mica_fail(err, MICA_BAD_FILE, "%s/%s holds no JSON object", mica_path_tail(dir), name);
}

mica_status mica_hf_load(const char *dir, const char *name, bool required, bool reals, json_t **out, mica_error *err)
{
    mica_map map;
    bool found;
    *out = NULL;
    mica_status status = map_file(dir, name, required, &map, &found, err);
    if (!status && found)
        status = parse(dir, name, reals, &map, out, err);
    mica_map_close(&map);
    return status;
}

mica_status mica_hf_text_file(const char *dir, const char *name, char **out, mica_error *err)
{
    mica_map map;
    bool found;
    *out = NULL;
    mica_status status = map_file(dir, name, false, &map, &found, err);
    if (!status && found) {
        *out = memchr(map.data, '\0', map.length) ? NULL : strndup((const char *)map.data, map.length);
        if (!*out)
            status = mica_fail(err, MICA_BAD_FILE, "%s/%s is no text", mica_path_tail(dir), name);
    }
    mica_map_close(&map);
    return status;
}

const json_t *mica_hf_get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

const char *mica_hf_text(const json_t *object, const char *key) { return json_string_value(json_object_get(object, key)); }

static mica_status fail_missing(const char *file, const char *key, mica_error *err)
{
    return mica_fail(err, MICA_BAD_FILE, "%s: the key %s is missing", file, key);
}

mica_status mica_hf_get_i64(const char *file, const json_t *object, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
                            mica_error *err)
{
    const json_t *value = mica_hf_get(object, key);
    if (!value)
        return required ? fail_missing(file, key, err) : MICA_OK;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max)
        return mica_fail(err, MICA_BAD_FILE, "%s: %s is not a whole number from %lld to %lld", file, key, (long long)min, (long long)max);
    *out = json_integer_value(value);
    return MICA_OK;
}

mica_status mica_hf_get_f64(const char *file, const json_t *object, const char *key, bool required, double *out, mica_error *err)
{
    const json_t *value = mica_hf_get(object, key);
    if (!value)
        return required ? fail_missing(file, key, err) : MICA_OK;
    if (!json_is_number(value))
        return mica_fail(err, MICA_BAD_FILE, "%s: %s is not a number", file, key);
    *out = json_number_value(value);
    return MICA_OK;
}

mica_status mica_hf_get_floats(const char *file, const json_t *object, const char *key, size_t n, float **out, mica_error *err)
{
    const json_t *value = mica_hf_get(object, key);
    if (!json_is_array(value) || json_array_size(value) != n)
        return mica_fail(err, MICA_BAD_FILE, "%s: %s is not an array of %zu numbers", file, key, n);
    float *floats = mica_new_array(n, sizeof *floats);
    if (!floats)
        return mica_fail_nomem(err, n * sizeof *floats, key);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        floats[i] = json_is_number(item) ? (float)json_number_value(item) : NAN;
        if (!isfinite(floats[i])) {
            free(floats);
            return mica_fail(err, MICA_BAD_FILE, "%s: entry %zu of %s is not a number", file, i, key);
        }
    }
    *out = floats;
    return MICA_OK;
}
