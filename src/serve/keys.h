/* keys.h - the API keys. One a line in a file; blank lines and those that begin with # are skipped. Reloaded by SIGHUP. Owned
 * by the HTTP thread. */
#ifndef MICA_SERVE_KEYS_H
#define MICA_SERVE_KEYS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "serve/limits.h"

typedef struct mica_keys {
    size_t n;
    unsigned char key[MICA_SERVE_KEYS_MAX][MICA_SERVE_KEY_BYTES]; /* padded with zeros */
} mica_keys;

/** Reads the file; on an error *keys stays what it was. A file without a key is an error: it would lock nothing. */
mica_status mica_keys_load(mica_keys *keys, const char *path, mica_error *err);
/** One key. */
mica_status mica_keys_set(mica_keys *keys, const char *key, mica_error *err);
/** Whether the value of an Authorization header is "Bearer KEY" with one of the keys. The time it takes depends neither on the
 * keys nor on how much of one is right. */
bool mica_keys_allow(const mica_keys *keys, const char *authorization);

#endif
