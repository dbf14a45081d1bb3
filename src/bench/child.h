/* child.h - a process that is talked to in lines. Owns the process, the pipes, and a line buffer of MICA_LINE_MAX bytes; keeps
 * the end of what the process says on standard error.
 *
 * The child gets a session of its own: ending it ends what it started too. It is killed when it must be waited for longer than
 * a deadline, never left behind: mica_child_end() is called in every case. Called by adapter_proc.c. */
#ifndef MICA_BENCH_CHILD_H
#define MICA_BENCH_CHILD_H
#include <sys/types.h>

#include "base/error.h"

#define MICA_LINE_MAX ((size_t)1 << 20) /* bytes with the line end */

typedef enum mica_child_outcome {
    MICA_CHILD_OK = 0,
    MICA_CHILD_LATE,    /* the deadline passed */
    MICA_CHILD_CLOSED,  /* it closed its output, or takes no input */
    MICA_CHILD_LONG,    /* a line beyond MICA_LINE_MAX */
    MICA_CHILD_STOPPED, /* stop() said so */
} mica_child_outcome;

typedef struct mica_child {
    pid_t pid; /* 0: none, or gone */
    int in, out, err;
    char *buffer; /* bytes [taken, length) are not handed out yet; [taken, scanned) have no line end */
    size_t taken, length, scanned;
    char words[65536]; /* the end of standard error */
    size_t n_words;
    bool (*stop)(void *user);
    void *user;
} mica_child;

/** argv[0] is a path, or looked for in PATH. On failure *child may still be ended. */
mica_status mica_child_start(char *const *argv, mica_child *child, mica_error *err);

mica_child_outcome mica_child_write(mica_child *child, const char *data, size_t length, int64_t deadline_ns);

/** The next line without its end, terminated; borrowed until the next call. *read_ns: when its end was there. */
mica_child_outcome mica_child_line(mica_child *child, int64_t deadline_ns, char **line, size_t *length, int64_t *read_ns);

/** Closes the pipes and waits until deadline_ns for it to end by itself, then kills its process group. Gives the wait status,
 * -1 if there was no process. */
int mica_child_end(mica_child *child, int64_t deadline_ns);

/** The last line that it said on standard error, controls as '?'; "" if none. */
void mica_child_last_words(mica_child *child, char out[200]);

#endif
