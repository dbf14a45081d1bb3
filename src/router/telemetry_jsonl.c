/* telemetry_jsonl.c - the sink that is a file of JSON lines. A line is one write: several processes may share a file. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "router/telemetry.h"

#define WAIT_MS 50 /* between two looks at the deadline while a pipe is full */

typedef struct file {
    int fd;
    char *path;
} file;

static void close_file(void *sink)
{
    file *f = sink;
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

/* Not blocking, or a pipe that nobody reads would hold the thread for ever. Readable by its owner only. */
static mica_status open_file(const mica_sink_setup *setup, void **out, mica_error *err)
{
    file *f = mica_new_array(1, sizeof *f);
    char *path = strdup(setup->target);
    if (!f || !path) {
        free(f);
        free(path);
        return mica_fail_nomem(err, strlen(setup->target) + sizeof *f, "a telemetry sink");
    }
    *f = (file){.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600), .path = path};
    if (f->fd >= 0) {
        *out = f;
        return MICA_OK;
    }
    int reason = errno;
    close_file(f);
    return mica_fail(err, MICA_IO_ERROR, "cannot write telemetry to %s: %s", mica_path_tail(setup->target),
                     reason == ENXIO ? "it is a pipe that nobody reads" : strerror(reason));
}

static mica_status write_line(const file *f, const char *text, size_t length, const _Atomic int64_t *deadline, mica_error *err)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = write(f->fd, text + done, length - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            return mica_fail(err, MICA_IO_ERROR, "cannot write telemetry to %s: %s", mica_path_tail(f->path), strerror(errno));
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
    const file *f = sink;
    mica_status status = MICA_OK;
    for (*written = 0; *written < n && !status;) {
        json_t *object = mica_event_json(events[*written]);
        char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
        size_t length = text ? strlen(text) : 0;
        json_decref(object);
        if (!text)
            return mica_fail_nomem(err, sizeof *events[0], "an event's line");
        text[length] = '\n'; /* instead of its end */
        status = write_line(f, text, length + 1, deadline, err);
        free(text);
        *written += !status;
    }
    return status;
}

const mica_sink_kind mica_sink_jsonl = {"jsonl", 0, open_file, write_events, close_file};
