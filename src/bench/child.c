#include "bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { SLICE_MS = 100 }; /* how long a wait may last before stop() is asked */

extern char **environ;

/* ---- Start ---- */

typedef struct pipes {
    int in[2], out[2], err[2];
} pipes;

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

static bool make_pipes(pipes *p)
{
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(p->in, O_CLOEXEC) == 0 && pipe2(p->out, O_CLOEXEC) == 0 && pipe2(p->err, O_CLOEXEC) == 0)
        return true;
    close_pair(p->in);
    close_pair(p->out);
    close_pair(p->err);
    return false;
}

/* SIGPIPE is ignored in the program; a child must not inherit that, nor a mask. */
static int spawn(char *const *argv, const pipes *p, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    int reason = posix_spawn_file_actions_init(&files);
    if (reason)
        return reason;
    reason = posix_spawnattr_init(&attributes);
    if (!reason) {
        sigemptyset(&none);
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        sigaddset(&defaults, SIGINT);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawn_file_actions_adddup2(&files, p->in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, p->out[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, p->err[1], STDERR_FILENO);
        reason = posix_spawnp(pid, argv[0], &files, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return reason;
}

mica_status mica_child_start(char *const *argv, mica_child *child, mica_error *err)
{
    pipes p;
    child->pid = 0;
    child->in = child->out = child->err = -1;
    child->taken = child->length = child->scanned = child->n_words = 0;
    child->buffer = malloc(MICA_LINE_MAX + 1);
    if (!child->buffer)
        return mica_fail_nomem(err, MICA_LINE_MAX + 1, "the lines of an adapter");
    if (!make_pipes(&p))
        return mica_fail(err, MICA_IO_ERROR, "cannot make pipes to %.200s: %s", argv[0], strerror(errno));
    int reason = spawn(argv, &p, &child->pid);
    close(p.in[0]);
    close(p.out[1]);
    close(p.err[1]);
    child->in = p.in[1];
    child->out = p.out[0];
    child->err = p.err[0];
    if (reason) {
        child->pid = 0;
        return mica_fail(err, MICA_IO_ERROR, "cannot start %.300s: %s", argv[0], strerror(reason));
    }
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    fcntl(child->out, F_SETFL, O_NONBLOCK);
    fcntl(child->err, F_SETFL, O_NONBLOCK);
    return MICA_OK;
}

/* ---- Standard error ---- */

static void take_words(mica_child *child)
{
    char piece[4096];
    for (ssize_t n; child->err >= 0 && (n = read(child->err, piece, sizeof piece)) != -1;) {
        if (n == 0) {
            close(child->err);
            child->err = -1;
            return;
        }
        size_t room = sizeof child->words - child->n_words, more = (size_t)n > room ? (size_t)n - room : 0;
        memmove(child->words, child->words + more, child->n_words - more);
        child->n_words -= more;
        memcpy(child->words + child->n_words, piece, (size_t)n);
        child->n_words += (size_t)n;
    }
}

void mica_child_last_words(mica_child *child, char out[200])
{
    take_words(child);
    size_t end = child->n_words;
    while (end > 0 && (child->words[end - 1] == '\n' || child->words[end - 1] == '\r'))
        end--;
    size_t start = end;
    while (start > 0 && child->words[start - 1] != '\n' && end - start < 199)
        start--;
    for (size_t i = 0; i < end - start; i++) {
        char c = child->words[start + i];
        out[i] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    out[end - start] = '\0';
}

/* ---- Waiting ---- */

/* It may be gone although its pipes are open: what it started can hold them. */
static bool is_gone(const mica_child *child)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child->pid;
}

/* Waits until `fd` can be read or written, the words being taken meanwhile. */
static mica_child_outcome wait_for(mica_child *child, int fd, short events, int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ns = deadline_ns - mica_now_ns();
        if (child->stop && child->stop(child->user))
            return MICA_CHILD_STOPPED;
        if (left_ns <= 0)
            return MICA_CHILD_LATE;
        int64_t left_ms = left_ns / 1000000 + 1;
        struct pollfd set[2] = {{.fd = fd, .events = events}, {.fd = child->err, .events = POLLIN}};
        int ready = poll(set, 2, left_ms < SLICE_MS ? (int)left_ms : SLICE_MS);
        if (ready > 0 && set[1].revents)
            take_words(child);
        if (ready > 0 && set[0].revents)
            return MICA_CHILD_OK;
        if (ready == 0 && is_gone(child))
            return MICA_CHILD_CLOSED;
    }
}

mica_child_outcome mica_child_write(mica_child *child, const char *data, size_t length, int64_t deadline_ns)
{
    while (length > 0) {
        ssize_t n = write(child->in, data, length);
        if (n >= 0) {
            data += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            mica_child_outcome outcome = wait_for(child, child->in, POLLOUT, deadline_ns);
            if (outcome)
                return outcome;
        } else if (errno != EINTR) {
            return MICA_CHILD_CLOSED;
        }
    }
    return MICA_CHILD_OK;
}

/* Takes a line out of what has been read. */
static bool take_line(mica_child *child, char **line, size_t *length)
{
    char *end = memchr(child->buffer + child->scanned, '\n', child->length - child->scanned);
    if (!end) {
        child->scanned = child->length;
        return false;
    }
    *end = '\0';
    *line = child->buffer + child->taken;
    *length = (size_t)(end - *line);
    child->taken = child->scanned = (size_t)(end - child->buffer) + 1;
    return true;
}

mica_child_outcome mica_child_line(mica_child *child, int64_t deadline_ns, char **line, size_t *length, int64_t *read_ns)
{
    while (!take_line(child, line, length)) {
        memmove(child->buffer, child->buffer + child->taken, child->length - child->taken);
        child->length -= child->taken;
        child->scanned -= child->taken;
        child->taken = 0;
        if (child->length == MICA_LINE_MAX)
            return MICA_CHILD_LONG;
        mica_child_outcome outcome = wait_for(child, child->out, POLLIN, deadline_ns);
        if (outcome)
            return outcome;
        ssize_t n = read(child->out, child->buffer + child->length, MICA_LINE_MAX - child->length);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return MICA_CHILD_CLOSED;
        child->length += n > 0 ? (size_t)n : 0;
    }
    *read_ns = mica_now_ns();
    /* Lines that are there already do not wait, but a user and a deadline count for them too. */
    if (child->stop && child->stop(child->user))
        return MICA_CHILD_STOPPED;
    return *read_ns > deadline_ns ? MICA_CHILD_LATE : MICA_CHILD_OK;
}

/* ---- End ---- */

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int mica_child_end(mica_child *child, int64_t deadline_ns)
{
    int status = -1;
    close_end(&child->in);
    if (child->pid > 0) {
        while (!is_gone(child) &&
               mica_now_ns() < deadline_ns) { /* WNOWAIT there: the number stays taken until the group has been killed */
            take_words(child);                /* it may wait for us to read */
            poll(NULL, 0, 5);
        }
        kill(-child->pid, SIGKILL); /* what it started, and itself if it is still there */
        while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
            continue;
        child->pid = 0;
        take_words(child);
    }
    close_end(&child->out);
    close_end(&child->err);
    free(child->buffer);
    child->buffer = NULL;
    return status;
}
