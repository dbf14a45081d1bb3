/* pagecache.h - how much of a file the system holds in memory, and letting go of it: what "cold" means. Called by storage.c and
 * bench/measure.c. */
#ifndef MICA_DEVICE_PAGECACHE_H
#define MICA_DEVICE_PAGECACHE_H
#include "base/error.h"

/** Part of the pages of a file (or of all files in a folder) that are in memory, 0..1. */
mica_status mica_pagecache_resident(const char *path, double *part, mica_error *err);

/** Asks the system to drop the file's pages and looks whether it did: *part is what is still there. Pages that some process
 * maps stay. */
mica_status mica_pagecache_drop(const char *path, double *part, mica_error *err);

#endif
