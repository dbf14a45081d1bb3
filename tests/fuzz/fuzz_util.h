/* fuzz_util.h - what fuzz targets share: every failure has its code and a message that is UTF-8; bytes as a file with a path.
 */
#ifndef MICA_TESTS_FUZZ_UTIL_H
#define MICA_TESTS_FUZZ_UTIL_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_check_text(const char *text)
{
    if (!text[0] || mica_utf8_check(text, strlen(text)) != strlen(text))
        abort();
}

/* `made`: whether there is a result, which must be so exactly when the status is good. */
static inline void fuzz_check(mica_status status, const mica_error *err, bool made)
{
    if ((status == MICA_OK) != made || (status != MICA_OK && err->code != status))
        abort();
    if (status != MICA_OK)
        fuzz_check_text(err->message);
}

/* A file in memory with these bytes; its path is valid until the descriptor that is returned is closed. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[40])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || (size > 0 && write(fd, data, size) != (ssize_t)size))
        abort();
    snprintf(path, 40, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
