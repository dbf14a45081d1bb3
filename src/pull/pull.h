/* pull.h - `mica pull`: brings a model's file here, whole and right or not at all.
 *
 *     mica_pull_entry entry;                                                  // entry.h: from the registry, or an address
 *     status = mica_pull_entry_open("share/mica/registry/NAME.json", &entry, err);
 *     if (!status) status = mica_pull_model(&entry, folder, &options, path, err);   // into the cache
 *     if (!status) status = mica_pull_file(&entry, "model.gguf", &options, sum, err); // or anywhere
 *     mica_pull_entry_free(&entry);
 *
 * What has come is kept (part.h) and continued next time, also after kill -9. Addresses are tried in turn; a server that breaks
 * off is asked for the rest for as long as it brings anything new. A file whose checksum is wrong is fetched once more from its
 * first byte. Called by programs/cmd_pull.c. */
#ifndef MICA_PULL_PULL_H
#define MICA_PULL_PULL_H
#include "pull/entry.h"
#include "pull/options.h"

/** Into the cache (cache.h) in `folder`, under entry->name; `path` is the name's link. MICA_BAD_FILE: the servers have another
 * file. */
mica_status mica_pull_model(const mica_pull_entry *entry, const char *folder, const mica_pull_options *o, char path[4096],
                            mica_error *err);

/** To a file of any name, which is replaced. `sum`: its SHA-256. */
mica_status mica_pull_file(const mica_pull_entry *entry, const char *target, const mica_pull_options *o,
                           char sum[MICA_SHA256_TEXT], mica_error *err);

#endif
