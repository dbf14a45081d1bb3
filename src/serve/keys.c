#include "serve/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static mica_status add(mica_keys *keys, const char *text, size_t n, mica_error *err)
{
    if (keys->n == MICA_SERVE_KEYS_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there are more than %d API keys", MICA_SERVE_KEYS_MAX);
    if (n == 0 || n >= MICA_SERVE_KEY_BYTES)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "an API key has 1 to %d bytes, key %zu does not", MICA_SERVE_KEY_BYTES - 1,
                         keys->n + 1);
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return mica_fail(err, MICA_INVALID_ARGUMENT, "API key %zu has a blank or a character that is not ASCII",
                             keys->n + 1);
    memset(keys->key[keys->n], 0, MICA_SERVE_KEY_BYTES);
    memcpy(keys->key[keys->n++], text, n);
    return MICA_OK;
}

mica_status mica_keys_set(mica_keys *keys, const char *key, mica_error *err)
{
    mica_keys made = {.n = 0};
    mica_status status = add(&made, key, strlen(key), err);
    if (!status)
        *keys = made;
    return status;
}

static mica_status read_lines(FILE *in, mica_keys *keys, const char *path, mica_error *err)
{
    char line[1024];
    mica_status status = MICA_OK;
    while (!status && fgets(line, sizeof line, in)) {
        char *start = line + strspn(line, " \t");
        size_t n = strcspn(start, "\r\n");
        if (start[n] == '\0' && !feof(in))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "a line of %s is longer than 1,000 bytes", path);
        while (n > 0 && strchr(" \t", start[n - 1]))
            n--;
        if (n > 0 && *start != '#')
            status = add(keys, start, n, err);
    }
    if (!status && ferror(in))
        return mica_fail(err, MICA_IO_ERROR, "cannot read the API keys in %s: %s", path, strerror(errno));
    if (!status && keys->n == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no API key in %s", path);
    return status;
}

mica_status mica_keys_load(mica_keys *keys, const char *path, mica_error *err)
{
    mica_keys made = {.n = 0};
    FILE *in = fopen(path, "r");
    if (!in)
        return mica_fail(err, MICA_IO_ERROR, "cannot open the file of API keys %s: %s", path, strerror(errno));
    mica_status status = read_lines(in, &made, path, err);
    fclose(in);
    if (!status)
        *keys = made;
    return status;
}

bool mica_keys_allow(const mica_keys *keys, const char *authorization)
{
    unsigned char given[MICA_SERVE_KEY_BYTES] = {0};
    unsigned found = 0;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return false;
    const char *key = authorization + 7 + strspn(authorization + 7, " ");
    size_t n = strlen(key);
    if (n == 0 || n >= sizeof given)
        return false;
    memcpy(given, key, n);
    for (size_t i = 0; i < keys->n; i++) {
        volatile unsigned differ = 0; /* every byte of every key, whatever the first ones say */
        for (size_t b = 0; b < sizeof given; b++)
            differ = differ | (unsigned)(given[b] ^ keys->key[i][b]);
        found |= differ == 0;
    }
    return found != 0;
}
