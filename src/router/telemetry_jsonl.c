/* telemetry_jsonl.c - the sink that is a file of JSON lines. A line is one write: several processes may share a file, and give
 * it up together when it is full. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/append.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "router/telemetry.h"

#define WAIT_MS 50 /* between two looks at the deadline while a pipe is full */

typedef struct file {
    int fd;
    char *path, *older; /* path: where a symbolic link leads */
    bool regular;       /* no pipe, no device */
    int64_t limit;      /* bytes; 0: none, or it is not regular */
} file;

static void close_file(void *sink)
{
    file *f = sink;
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->older);
    free(f);
}

/* Not blocking, or a pipe that nobody reads would hold the thread for ever. Readable by its owner only. */
static int open_path(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
}

static mica_status fail(const file *f, int reason, mica_error *err)
{
    return mica_fail(err, MICA_IO_ERROR, "cannot write telemetry to %s: %s", mica_path_tail(f->path),
                     reason == ENXIO ? "it is a pipe that nobody reads" : strerror(reason));
}

/* A file that grows gets the name that it has itself, and one for what it gives up. */
static bool set_limit(file *f, int64_t limit)
{
    struct stat now;
    f->regular = fstat(f->fd, &now) == 0 && S_ISREG(now.st_mode);
    if (limit == 0 || !f->regular)
        return true;
    char *real = realpath(f->path, NULL);
    if (real) {
        free(f->path);
        f->path = real;
    }
    f->limit = limit;
    return real && asprintf(&f->older, "%s.1", real) > 0;
}

static mica_status open_file(const mica_sink_setup *setup, void **out, mica_error *err)
{
    file *f = mica_new_array(1, sizeof *f);
    char *path = strdup(setup->target);
    if (!f || !path) {
        free(f);
        free(path);
        return mica_fail_nomem(err, strlen(setup->target) + sizeof *f, "a telemetry sink");
    }
    *f = (file){.fd = open_path(path), .path = path};
    mica_status status = MICA_OK;
    if (f->fd < 0)
        status = fail(f, errno, err);
    else if (!set_limit(f, setup->max_bytes))
        status = mica_fail_nomem(err, strlen(path) + sizeof ".1", "a telemetry sink");
    if (status)
        close_file(f);
    else
        *out = f;
    return status;
}

/* ---- The limit ---- */

/* Whether the name still leads to our file; not, when another process has begun a new one. */
static bool is_current(const file *f, struct stat *ours)
{
    struct stat named;
    return fstat(f->fd, ours) == 0 && stat(f->path, &named) == 0 && ours->st_ino == named.st_ino &&
           ours->st_dev == named.st_dev;
}

/* Under the lock of the file that goes, and only while it has the name: so of several processes one does it. */
static bool give_up(const file *f)
{
    struct stat ours;
    int locked = flock(f->fd, LOCK_EX);
    bool good = locked == 0 && (!is_current(f, &ours) || rename(f->path, f->older) == 0);
    if (locked == 0)
        (void)flock(f->fd, LOCK_UN);
    return good;
}

/* Before `length` bytes are written. */
static mica_status make_room(file *f, size_t length, mica_error *err)
{
    struct stat ours;
    if (f->limit == 0)
        return MICA_OK;
    bool current = is_current(f, &ours);
    if (current && (ours.st_size == 0 || ours.st_size + (int64_t)length <= f->limit))
        return MICA_OK;
    if (current && !give_up(f))
        return mica_fail(err, MICA_IO_ERROR, "%s is full, and cannot become %s: %s", mica_path_tail(f->path),
                         mica_path_tail(f->older), strerror(errno));
    int fd = open_path(f->path);
    if (fd < 0)
        return fail(f, errno, err);
    close(f->fd);
    f->fd = fd;
    return MICA_OK;
}

/* ---- Lines ---- */

static mica_status write_line(const file *f, const char *text, size_t length, const _Atomic int64_t *deadline, mica_error *err)
{
    int error = f->regular ? mica_append_line_fd(f->fd, text, length - 1) : 0;
    if (error)
        return fail(f, error, err);
    if (f->regular)
        return MICA_OK;
    for (size_t done = 0; done < length;) {
        ssize_t n = write(f->fd, text + done, length - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            return fail(f, errno, err);
        else if (mica_deadline_is_over(deadline))
            return mica_fail(err, MICA_IO_ERROR, "%s took no more before everything ended", mica_path_tail(f->path));
        else if (n <= 0)
            (void)poll(&(struct pollfd){.fd = f->fd, .events = POLLOUT}, 1, WAIT_MS);
    }
    return MICA_OK;
}

static mica_status write_events(void *sink, mica_event *const *events, size_t n, const _Atomic int64_t *deadline,
                                size_t *written, mica_error *err)
{
    file *f = sink;
    mica_status status = MICA_OK;
    for (*written = 0; *written < n && !status;) {
        json_t *object = mica_event_json(events[*written]);
        char *text = object ? mica_json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
        size_t length = text ? strlen(text) : 0;
        json_decref(object);
        if (!text)
            return mica_fail_nomem(err, sizeof *events[0], "an event's line");
        text[length] = '\n'; /* instead of its end */
        status = make_room(f, length + 1, err);
        if (!status)
            status = write_line(f, text, length + 1, deadline, err);
        free(text);
        *written += !status;
    }
    return status;
}

const mica_sink_kind mica_sink_jsonl = {"jsonl", 0, open_file, write_events, close_file};
