/* sysfile.h - bounded reads of the small text files of /proc, /sys and cgroups, under a root prefix. The contents are not
 * trusted: a fake tree may hold anything. Called by the rest of src/device.
 *
 * `sysroot` is a folder that stands for /, NULL or "" for the real one. Paths begin with '/'. */
#ifndef MICA_DEVICE_SYSFILE_H
#define MICA_DEVICE_SYSFILE_H
#include "base/error.h"

/* Longest path, root prefix included. cgroup paths may be long; the kernel's PATH_MAX. */
#define MICA_SYSPATH_MAX 4096

/** Fails unless sysroot is NULL, "" or a folder of reasonable length: a mistyped one must not look like an empty machine. */
mica_status mica_sysroot_check(const char *sysroot, mica_error *err);

/** Reads the whole file as terminated text. False if it is missing, unreadable, not a regular file, or does not fit. */
bool mica_sysfile_read(const char *sysroot, const char *path, char *text, size_t capacity);

/** Reads a file that begins with a decimal number, see mica_text_int(). */
bool mica_sysfile_int(const char *sysroot, const char *path, int64_t *value);

/** folder/name, for readers of folders with many small files. False also if the path is too long. */
bool mica_sysfile_int_in(const char *sysroot, const char *folder, const char *name, int64_t *value);

/** The first line of folder/name, what is not printable in it (and " and \\) made '?', cut to `size`. False if it is empty. */
bool mica_sysfile_word(const char *sysroot, const char *folder, const char *name, char *out, size_t size);

/** Whether the file is there, and this user may not read it. */
bool mica_sysfile_denied(const char *sysroot, const char *folder, const char *name);

/** Names of the entries of a folder, at most `capacity` of the first ones in the order of their bytes, but those that begin with
 * '.' or have more than 63 bytes. -1 if the folder cannot be read. */
int mica_sysfile_list(const char *sysroot, const char *folder, char (*names)[64], int capacity);

/** The text after "key:" (blanks skipped) at the start of a line; NULL if there is none. Not terminated at the line's end. */
const char *mica_text_field(const char *text, const char *key);

/** A decimal number, perhaps negative, after blanks. False if there is none, if it does not fit, or if a letter follows
 * directly. *end (may be NULL) is where it stopped. */
bool mica_text_int(const char *text, int64_t *value, const char **end);

#endif
