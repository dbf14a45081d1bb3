#include "pull/entry.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#define URL_MAX_BYTES  2000
#define FILE_BYTES_MAX ((int64_t)1 << 46) /* 64 TiB: more is a mistake, and sums with it cannot overflow */
#define CHUNK_LEAST    ((int64_t)1 << 16)
#define CHUNK_MOST     ((int64_t)1 << 30)

bool mica_name_good(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(name);
    return n > 0 && n < sizeof((mica_pull_entry *)0)->name && strspn(name, allowed) == n && *name != '.' && *name != '-';
}

bool mica_sha256_good(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* http or https, and nothing that could end a line of a request or of the file that remembers where a part came from. */
static bool is_url(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0, n = strlen(url);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] <= ' ' || (unsigned char)url[i] >= 0x7F)
            return false;
    return scheme > 0 && n > scheme && n <= URL_MAX_BYTES && !memchr(url + scheme, '@', strcspn(url + scheme, "/?#"));
}

void mica_pull_entry_free(mica_pull_entry *entry)
{
    for (size_t i = 0; i < entry->n_urls; i++)
        free(entry->url[i]);
    free(entry->chunk);
    *entry = (mica_pull_entry){.bytes = -1};
}

static mica_status add_url(mica_pull_entry *entry, const char *url, mica_error *err)
{
    if (!(entry->url[entry->n_urls] = strdup(url)))
        return mica_fail_nomem(err, strlen(url), "an address");
    entry->n_urls++;
    return MICA_OK;
}

/* ---- Members of a registry file ---- */

static mica_status check_keys(json_t *root, const char *file, mica_error *err)
{
    static const char *const keys[] = {"schema", "name",        "description", "urls",   "bytes",
                                       "sha256", "chunk_bytes", "chunks",      "licence"};
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        size_t i = 0;
        while (i < sizeof keys / sizeof *keys && strcmp(keys[i], key) != 0)
            i++;
        if (i == sizeof keys / sizeof *keys)
            return mica_fail(err, MICA_BAD_TEXT, "%s: a registry file has no member \"%s\"", file,
                             mica_name_good(key) ? key : "?");
    }
    return MICA_OK;
}

/* A text of least..room - 1 bytes without control characters but line ends; `least` 0: it may be absent. */
static mica_status read_text(const json_t *root, const char *file, const char *key, size_t least, char *out, size_t room,
                             mica_error *err)
{
    const json_t *value = json_object_get(root, key);
    const char *text = json_string_value(value);
    size_t n = text ? json_string_length(value) : 0;
    bool good = value ? text && n >= least && n < room : least == 0;
    for (size_t i = 0; i < n; i++)
        good = good && (text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7F));
    if (!good)
        return mica_fail(err, MICA_BAD_TEXT, "%s: \"%s\" must be a text of %zu to %zu bytes", file, key, least, room - 1);
    memcpy(out, n ? text : "", n);
    out[n] = '\0';
    return MICA_OK;
}

static mica_status read_number(const json_t *root, const char *file, const char *key, int64_t low, int64_t high, int64_t *out,
                               mica_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return mica_fail(err, MICA_BAD_TEXT, "%s: \"%s\" must be a whole number from %lld to %lld", file, key, (long long)low,
                         (long long)high);
    *out = json_integer_value(value);
    return MICA_OK;
}

static mica_status read_urls(const json_t *root, const char *file, mica_pull_entry *entry, mica_error *err)
{
    const json_t *list = json_object_get(root, "urls");
    size_t n = json_array_size(list);
    if (n < 1 || n > MICA_ENTRY_URLS)
        return mica_fail(err, MICA_BAD_TEXT, "%s: \"urls\" must be a list of 1 to %d addresses", file, MICA_ENTRY_URLS);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const char *url = json_string_value(item);
        if (!url || strlen(url) != json_string_length(item) || !is_url(url))
            return mica_fail(err, MICA_BAD_TEXT,
                             "%s: address %zu of \"urls\" is no http:// or https:// address without a user's name", file,
                             i + 1);
        mica_status status = add_url(entry, url, err);
        if (status)
            return status;
    }
    return MICA_OK;
}

static mica_status read_chunks(const json_t *root, const char *file, mica_pull_entry *entry, mica_error *err)
{
    const json_t *list = json_object_get(root, "chunks");
    if (!list && !json_object_get(root, "chunk_bytes"))
        return MICA_OK;
    mica_status status = read_number(root, file, "chunk_bytes", CHUNK_LEAST, CHUNK_MOST, &entry->chunk_bytes, err);
    if (status)
        return status;
    int64_t n = (entry->bytes + entry->chunk_bytes - 1) / entry->chunk_bytes;
    if (n > MICA_ENTRY_CHUNKS || (int64_t)json_array_size(list) != n)
        return mica_fail(err, MICA_BAD_TEXT, "%s: \"chunks\" must be a list of %lld hashes, at most %d, one for each chunk",
                         file, (long long)n, MICA_ENTRY_CHUNKS);
    if (!(entry->chunk = mica_new_array((size_t)n, sizeof *entry->chunk)))
        return mica_fail_nomem(err, (size_t)n * sizeof *entry->chunk, "the hashes of chunks");
    for (size_t i = 0; i < (size_t)n; i++) {
        const char *sum = json_string_value(json_array_get(list, i));
        if (!sum || !mica_sha256_good(sum))
            return mica_fail(err, MICA_BAD_TEXT,
                             "%s: hash %zu of \"chunks\" is no SHA-256 of 64 hexadecimal digits in lower case", file, i + 1);
        memcpy(entry->chunk[i], sum, MICA_SHA256_TEXT);
    }
    entry->n_chunks = (size_t)n;
    return MICA_OK;
}

static mica_status read_members(json_t *root, const char *file, mica_pull_entry *entry, mica_error *err)
{
    int64_t schema;
    mica_status status = check_keys(root, file, err);
    if (!status)
        status = read_number(root, file, "schema", 1, 1, &schema, err);
    if (!status)
        status = read_text(root, file, "name", 1, entry->name, sizeof entry->name, err);
    if (!status && !mica_name_good(entry->name))
        status = mica_fail(err, MICA_BAD_TEXT, "%s: \"name\" may have letters, digits, '.', '_' and '-' only", file);
    if (!status)
        status = read_text(root, file, "description", 0, entry->description, sizeof entry->description, err);
    if (!status)
        status = read_text(root, file, "licence", 0, entry->licence, sizeof entry->licence, err);
    if (!status)
        status = read_text(root, file, "sha256", 64, entry->sha256, sizeof entry->sha256, err);
    if (!status && !mica_sha256_good(entry->sha256))
        status = mica_fail(err, MICA_BAD_TEXT, "%s: \"sha256\" must have 64 hexadecimal digits in lower case", file);
    if (!status)
        status = read_number(root, file, "bytes", 1, FILE_BYTES_MAX, &entry->bytes, err);
    if (!status)
        status = read_urls(root, file, entry, err);
    return status ? status : read_chunks(root, file, entry, err);
}

mica_status mica_pull_entry_parse(const char *text, size_t length, const char *file, mica_pull_entry *entry, mica_error *err)
{
    json_error_t where;
    *entry = (mica_pull_entry){.bytes = -1};
    if (length > MICA_ENTRY_BYTES)
        return mica_fail(err, MICA_BAD_TEXT, "%s has more than %zu bytes: it is no registry file", file, MICA_ENTRY_BYTES);
    json_t *root = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (!root && mica_json_no_memory(&where))
        return mica_fail_nomem(err, length, "the registry file");
    if (!json_is_object(root)) {
        json_decref(root);
        return root ? mica_fail(err, MICA_BAD_TEXT, "%s: a registry file is a JSON object", file)
                    : mica_fail_at(err, MICA_BAD_TEXT, where.position, "%s is not JSON: see line %d, column %d", file,
                                   where.line, where.column);
    }
    mica_status status = read_members(root, file, entry, err);
    json_decref(root);
    if (status)
        mica_pull_entry_free(entry);
    return status;
}

mica_status mica_pull_entry_open(const char *path, mica_pull_entry *entry, mica_error *err)
{
    mica_map map;
    *entry = (mica_pull_entry){.bytes = -1};
    mica_status status = mica_map_open(path, &map, err);
    if (status)
        return status;
    status = mica_pull_entry_parse((const char *)map.data, map.length, mica_path_tail(path), entry, err);
    mica_map_close(&map);
    return status;
}

/* ---- From the command line ---- */

/* The last part of the path, without what follows '?' or '#', as far as there is room. */
static void name_of_url(const char *url, char *out, size_t room)
{
    const char *path = strstr(url, "://") + 3;
    size_t end = strcspn(path, "?#"), begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    size_t n = end - begin < room - 1 ? end - begin : room - 1;
    memcpy(out, path + begin, n);
    out[n] = '\0';
}

mica_status mica_pull_entry_from_url(const char *url, const char *name, const char *sha256, mica_pull_entry *entry,
                                     mica_error *err)
{
    *entry = (mica_pull_entry){.bytes = -1};
    if (!is_url(url))
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "this is no http:// or https:// address without blanks and a user's name (a token goes "
                         "into a file)");
    if (sha256 && !mica_sha256_good(sha256))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a SHA-256 has 64 hexadecimal digits in lower case");
    if (name && !mica_name_good(name))
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "a model's name may have letters, digits, '.', '_' and '-' only, and at most 127");
    name_of_url(url, entry->name, sizeof entry->name);
    if (name)
        memcpy(entry->name, name, strlen(name) + 1);
    if (!mica_name_good(entry->name))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the address does not end in a name for the model: give one");
    memcpy(entry->sha256, sha256 ? sha256 : "", sha256 ? MICA_SHA256_TEXT : 1);
    return add_url(entry, url, err);
}
