#include "bench/sign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/newfile.h"

/* Up to `size` bytes of a file; -1: errno says why. */
static ssize_t read_all(const char *path, char *out, size_t size)
{
    size_t at = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (at < size && n > 0) {
        n = read(fd, out + at, size - at);
        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno == EINTR)
            n = 1;
    }
    int reason = errno;
    close(fd);
    errno = reason;
    return n < 0 ? -1 : (ssize_t)at;
}

mica_status mica_sign_lines_read(const char *path, const char *what, size_t wanted, mica_sign_lines *out, mica_error *err)
{
    ssize_t n = read_all(path, out->text, MICA_SIGN_FILE);
    if (n < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot read the %s %s: %s", what, mica_path_tail(path), strerror(errno));
    if (n == MICA_SIGN_FILE || memchr(out->text, '\0', (size_t)n))
        return mica_fail(err, MICA_BAD_FILE, "%s is no %s: it is too large, or no text", mica_path_tail(path), what);
    out->text[n] = '\0';
    out->n = 0;
    for (char *p = out->text; *p && out->n < MICA_SIGN_LINES;) {
        char *end = p + strcspn(p, "\n");
        bool more = *end != '\0';
        *end = '\0';
        if (end > p && end[-1] == '\r')
            end[-1] = '\0';
        out->line[out->n++] = p;
        p = end + more;
    }
    if (out->n < wanted)
        return mica_fail(err, MICA_BAD_FILE, "%s is no %s: it has %zu lines instead of %zu", mica_path_tail(path), what, out->n,
                         wanted);
    return MICA_OK;
}

bool mica_sign_decode(const char *text, uint8_t *out, size_t n)
{
    size_t length = 0;
    const char *end = NULL;
    return sodium_base642bin(out, n, text, strlen(text), NULL, &length, &end, sodium_base64_VARIANT_ORIGINAL) == 0 &&
           length == n && end && *end == '\0';
}

void mica_sign_encode(const uint8_t *bytes, size_t n, char *text, size_t size)
{
    size_t at = strlen(text);
    sodium_bin2base64(text + at, size - at - 1, bytes, n, sodium_base64_VARIANT_ORIGINAL);
    strcat(text, "\n");
}

mica_status mica_sign_write(const char *path, const char *text, bool secret, bool fresh, mica_error *err)
{
    if (fresh && access(path, F_OK) == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is there already: a key is not replaced", mica_path_tail(path));
    return mica_newfile_put(path, secret ? MICA_NEWFILE_PRIVATE : MICA_NEWFILE_SHARED, text, strlen(text), err);
}
