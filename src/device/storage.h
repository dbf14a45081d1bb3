/* storage.h - how fast the disk under a file is. Called by probe. */
#ifndef MICA_DEVICE_STORAGE_H
#define MICA_DEVICE_STORAGE_H
#include "base/error.h"

typedef struct mica_storage {
    double bytes_per_s;
    int64_t bytes; /* that were read */
    double seconds;
    char method[16];     /* "O_DIRECT": past the page cache; "fadvise": after the file's pages were dropped from it */
    double still_cached; /* fadvise: part of the pages that the system kept all the same, 0..1. NAN: O_DIRECT */
    char disk[32];       /* "nvme0n1"; "" if unknown */
    int rotational;      /* MICA_YES, MICA_NO, MICA_UNKNOWN of mica_device.h */
} mica_storage;

/** Reads the file from its begin in pieces of 1 MiB, for at most about `seconds`. MICA_UNSUPPORTED: the file is too small to
 * tell, or its pages stay in memory. */
mica_status mica_storage_read(const char *path, double seconds, mica_storage *out, mica_error *err);

#endif
