/* newfile.h - replaces a file in one step: its name holds the old content or the whole of the new one, whatever happens
 * between.
 *
 *     mica_newfile file;
 *     status = mica_newfile_open(path, MICA_NEWFILE_PRIVATE, &file, err);
 *     if (!status) status = mica_newfile_write(&file, data, length, err);      // as often as needed
 *     if (!status) status = mica_newfile_commit(&file, err);
 *     mica_newfile_discard(&file);                                             // always; does nothing after a commit
 *
 * The content goes to a temporary file PATH.tmp-XXXXXX in the same folder, which commit brings to the disk and renames. A
 * process that is killed before leaves that file behind and the old one untouched; the next one that writes PATH takes it away.
 * Owns the descriptor, which has the file's lock (flock), and the temporary file. Called by whatever keeps files. */
#ifndef MICA_BASE_NEWFILE_H
#define MICA_BASE_NEWFILE_H
#include <sys/types.h>

#include "base/error.h"

#define MICA_NEWFILE_PRIVATE 0600 /* for its owner only */
#define MICA_NEWFILE_SHARED  0666 /* less the umask; a file that is replaced keeps its permissions */

typedef struct mica_newfile {
    int fd;
    char *path, *temporary; /* path: where a symbolic link leads */
    uint8_t *buffer;        /* small writes are collected */
    size_t held;
} mica_newfile;

/** Refuses to replace what is not a regular file. On failure *file may still be discarded. */
mica_status mica_newfile_open(const char *path, mode_t mode, mica_newfile *file, mica_error *err);
mica_status mica_newfile_write(mica_newfile *file, const void *data, size_t length, mica_error *err);
/** Writes what is held, syncs the file, renames it, syncs the folder. */
mica_status mica_newfile_commit(mica_newfile *file, mica_error *err);
void mica_newfile_discard(mica_newfile *file);

/** All of it at once. */
mica_status mica_newfile_put(const char *path, mode_t mode, const void *data, size_t length, mica_error *err);

#endif
