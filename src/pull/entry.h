/* entry.h - what is known of a model that can be fetched: a file of the registry (share/mica/registry, docs/models.md), or an
 * address and perhaps a checksum from the command line.
 *
 * A registry file comes from outside: it is read strictly (no unknown member, no member twice, bounds on everything), and
 * nothing of it goes into a path or a message unchecked. Called by pull.c, part.c, transfer.c and the programs. */
#ifndef MICA_PULL_ENTRY_H
#define MICA_PULL_ENTRY_H
#include <stdbool.h>

#include "base/error.h"
#include "base/sha256.h"

#define MICA_ENTRY_URLS   8
#define MICA_ENTRY_CHUNKS 65536             /* 256 GiB in chunks of 4 MiB; their hashes take 4 MiB */
#define MICA_ENTRY_BYTES  ((size_t)8 << 20) /* of a registry file: as many chunks as there may be */

typedef struct mica_pull_entry {
    char name[128];                /* mica_name_good() */
    char description[400];         /* "": none */
    char licence[4000];            /* "": not told */
    char sha256[MICA_SHA256_TEXT]; /* "": not known */
    int64_t bytes;                 /* -1: not known */
    char *url[MICA_ENTRY_URLS];    /* the same file at several places, tried in turn */
    size_t n_urls;
    int64_t chunk_bytes; /* every chunk but the last has so many */
    char (*chunk)[MICA_SHA256_TEXT];
    size_t n_chunks; /* 0: the chunks have no hashes; else as many as `bytes` need */
} mica_pull_entry;

/** The text of a registry file; `file` is for messages. On failure *entry is empty. mica_pull_entry_free() in either case. */
mica_status mica_pull_entry_parse(const char *text, size_t length, const char *file, mica_pull_entry *entry, mica_error *err);
/** The same of a file. */
mica_status mica_pull_entry_open(const char *path, mica_pull_entry *entry, mica_error *err);
/** An address alone; the name is its last part unless one is given. `sha256`: NULL if it is not known. */
mica_status mica_pull_entry_from_url(const char *url, const char *name, const char *sha256, mica_pull_entry *entry,
                                     mica_error *err);
void mica_pull_entry_free(mica_pull_entry *entry);

/** 1 to 127 letters, digits, '.', '_' and '-', the first no '.' or '-': safe in a path and in a message. */
bool mica_name_good(const char *name);
/** 64 hexadecimal digits in lower case. */
bool mica_sha256_good(const char *text);

#endif
