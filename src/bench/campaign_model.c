#include <dirent.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "bench/campaign.h"
#include "bench/host.h"

static int is_wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By bytes: the order must not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mica_status add_file(const char *folder, const char *name, bool (*stop)(void *user), void *user,
                            crypto_hash_sha256_state *state, mica_error *err)
{
    char path[4096], hex[65];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of a file in %s is too long", mica_path_tail(folder));
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return mica_fail(err, MICA_UNSUPPORTED, "%s is no file: a model's folder must hold files only", mica_path_tail(path));
    mica_status status = mica_host_sha256(path, stop, user, hex, err);
    if (status)
        return status;
    crypto_hash_sha256_update(state, (const uint8_t *)name, strlen(name) + 1);
    crypto_hash_sha256_update(state, (const uint8_t *)hex, 64);
    return MICA_OK;
}

mica_status mica_campaign_model_sha256(const char *path, bool (*stop)(void *user), void *user, char out[65], mica_error *err)
{
    struct stat st;
    struct dirent **entries;
    uint8_t digest[32];
    crypto_hash_sha256_state state;
    mica_status status = MICA_OK;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return mica_host_sha256(path, stop, user, out, err);
    int n = scandir(path, &entries, is_wanted, by_name);
    if (n < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot read the folder %s: %s", mica_path_tail(path), strerror(errno));
    crypto_hash_sha256_init(&state);
    for (int i = 0; i < n; i++) {
        if (!status)
            status = add_file(path, entries[i]->d_name, stop, user, &state, err);
        free(entries[i]);
    }
    free(entries);
    crypto_hash_sha256_final(&state, digest);
    if (!status)
        sodium_bin2hex(out, 65, digest, sizeof digest);
    return status;
}
