/* cache.h - models on this disk: a folder of names, each a link to a file that is called by its checksum.
 *
 *     FOLDER/NAME.gguf -> blobs/sha256-HEX    two names may lead to one blob; it goes with the last of them
 *     FOLDER/blobs/sha256-HEX.ok              its size and time when its checksum was last found right
 *     FOLDER/blobs/NAME.part, NAME.part.from  what is being fetched (part.h)
 *
 * A file whose size or time is not that of its .ok is hashed before it is used, so that a byte that was changed is found before
 * it is loaded; what changed without a trace is found by mica_cache_verify(). Files in FOLDER that are no such links are models
 * without a known checksum: they are listed and otherwise left alone. Called by pull.c and the programs. */
#ifndef MICA_PULL_CACHE_H
#define MICA_PULL_CACHE_H
#include "base/error.h"
#include "base/sha256.h"
#include "pull/options.h"

typedef enum mica_cache_state {
    MICA_CACHE_GOOD,      /* as it was when its checksum was found right */
    MICA_CACHE_UNCHECKED, /* touched since, or never checked */
    MICA_CACHE_MISSING,   /* the link leads nowhere */
    MICA_CACHE_FILE,      /* no link: nothing says what its checksum should be */
} mica_cache_state;

typedef struct mica_cache_model {
    char name[160]; /* of the file */
    char sha256[MICA_SHA256_TEXT];
    int64_t bytes;
    mica_cache_state state;
} mica_cache_model;

/** By name; *list is yours: free(). A folder that is not there has no models. */
mica_status mica_cache_list(const char *folder, mica_cache_model **list, size_t *n, mica_error *err);
/** Takes a name away, and its blob if no other leads to it; *freed bytes. A plain file is refused. */
mica_status mica_cache_remove(const char *folder, const char *name, int64_t *freed, mica_error *err);
/** Takes away blobs without a name, and downloads that nobody carries on at the moment. */
mica_status mica_cache_prune(const char *folder, int64_t *freed, mica_error *err);

/** Does the path lead to a blob, in any folder? Its checksum is `sum` then. */
bool mica_cache_is_blob(const char *path, char sum[MICA_SHA256_TEXT]);
/** MICA_BAD_FILE: the path leads to a blob that is not what its name says. Reads it only if it was touched since the last
 * check. */
mica_status mica_cache_check(const char *path, const mica_pull_options *o, mica_error *err);
/** The same, but reads it in any case. */
mica_status mica_cache_verify(const char *path, const mica_pull_options *o, mica_error *err);

/** The path of a name's file, with or without its ".gguf"; false if there is none. */
bool mica_cache_find(const char *folder, const char *name, char path[4096]);

/* For pull.c and cache_list.c. The lock: shared while a blob gets its name, alone while blobs without one are removed; a
 * descriptor to close, or -1. */
int mica_cache_lock(const char *folder, bool alone);
bool mica_cache_is_stamped(const char *path);
mica_status mica_cache_make(const char *folder, mica_error *err);
bool mica_cache_blob(const char *folder, const char *sum, char path[4096]);
void mica_cache_stamp(const char *blob);
mica_status mica_cache_link(const char *folder, const char *name, const char *sum, char path[4096], mica_error *err);
mica_status mica_cache_hash(const char *path, const mica_pull_options *o, char sum[MICA_SHA256_TEXT], mica_error *err);

#endif
