/* share.h - files that come with the program, or that a user has put in their place: $XDG_DATA_HOME/mica/NAME (or
 * ~/.local/share/mica/NAME), then PREFIX/share/mica/NAME for the programs PREFIX/bin/mica and PREFIX/libexec/mica/mica-ops, so that
 * an installed tree can be moved. Called by task_file.c, prices.c and cmd_bench.c. */
#ifndef MICA_PROGRAMS_SHARE_H
#define MICA_PROGRAMS_SHARE_H
#include <stdbool.h>

/** The path that a file or folder has in place `i`: 0 the user's, 1 what came with the program. False: there is no such place. */
bool mica_share_place(int i, const char *name, char path[4096]);

/** Finds a file or folder that can be read. */
bool mica_share_find(const char *name, char path[4096]);

/** The path of a file of the user's own, its folders made: $XDG_DATA_HOME/mica/NAME. False if it has no place or cannot be
 * made. */
bool mica_share_own(const char *name, char path[4096]);

/** The same for a file that can be made again: $XDG_CACHE_HOME/mica/NAME, or ~/.cache/mica/NAME. */
bool mica_share_cache(const char *name, char path[4096]);

/** Makes the folders above a file. */
bool mica_share_make_folders(char *path);

#endif
