/* append.h - adds lines to a file that several processes may share, so that each line is there whole or not at all.
 *
 * Invariants, for a regular file on a file system with locks:
 * 1. Who writes has the file's lock: lines never mix.
 * 2. A line that cannot be written to its end is taken back.
 * 3. What a killed process left of a line is ended by the next writer, so that it spoils no other line.
 *
 * Pipes and devices get the line, and nothing of this. Called by the router and the programs. */
#ifndef MICA_BASE_APPEND_H
#define MICA_BASE_APPEND_H
#include "base/error.h"

/** `line` has no line end of its own. A new file is for its owner only. `what` names the file in messages: "the log". */
mica_status mica_append_line(const char *path, const char *what, const char *line, size_t length, mica_error *err);

/** The same for an open file: O_APPEND. Returns 0, or an errno. */
int mica_append_line_fd(int fd, const char *line, size_t length);

#endif
