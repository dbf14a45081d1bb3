#include "device/sysfile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room that is kept for what follows the prefix: "/sys/devices/system/cpu/cpu8191/..." and cgroup paths of usual depth. */
enum { SYSROOT_MAX = MICA_SYSPATH_MAX - 512 };

mica_status mica_sysroot_check(const char *sysroot, mica_error *err)
{
    if (!sysroot || !*sysroot)
        return MICA_OK;
    if (strlen(sysroot) > SYSROOT_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the system root has %zu bytes; at most %d are supported", strlen(sysroot),
                         SYSROOT_MAX);
    struct stat info;
    if (stat(sysroot, &info) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot use %.300s as system root: %s", sysroot, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return mica_fail(err, MICA_IO_ERROR, "cannot use %.300s as system root: it is not a folder", sysroot);
    return MICA_OK;
}

/** Reads to the end; the length, or -1 on an error or when the file does not fit. */
static ssize_t read_all(int fd, char *text, size_t capacity)
{
    size_t length = 0;
    while (length < capacity) {
        ssize_t n = read(fd, text + length, capacity - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            return (ssize_t)length;
        length += (size_t)n;
    }
    return -1;
}

bool mica_sysfile_read(const char *sysroot, const char *path, char *text, size_t capacity)
{
    char full[MICA_SYSPATH_MAX];
    int n = snprintf(full, sizeof full, "%s%s", sysroot ? sysroot : "", path);
    if (n < 0 || (size_t)n >= sizeof full)
        return false;
    /* Not blocking: a fake tree may hold a FIFO, which would otherwise hang the open. */
    int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    struct stat info;
    ssize_t length = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? read_all(fd, text, capacity) : -1;
    close(fd);
    if (length < 0)
        return false;
    text[length] = '\0'; /* read_all() gives less than the capacity */
    return true;
}

bool mica_sysfile_int(const char *sysroot, const char *path, int64_t *value)
{
    char text[256];
    return mica_sysfile_read(sysroot, path, text, sizeof text) && mica_text_int(text, value, NULL);
}

/** root/folder/name; false if it is too long. */
static bool full_path(const char *sysroot, const char *folder, const char *name, char out[MICA_SYSPATH_MAX])
{
    int n = snprintf(out, MICA_SYSPATH_MAX, "%s%s/%s", sysroot ? sysroot : "", folder, name);
    return n > 0 && n < MICA_SYSPATH_MAX;
}

bool mica_sysfile_int_in(const char *sysroot, const char *folder, const char *name, int64_t *value)
{
    char path[MICA_SYSPATH_MAX];
    return full_path(sysroot, folder, name, path) && mica_sysfile_int(NULL, path, value);
}

bool mica_sysfile_word(const char *sysroot, const char *folder, const char *name, char *out, size_t size)
{
    char path[MICA_SYSPATH_MAX], text[256];
    if (!full_path(sysroot, folder, name, path) || !mica_sysfile_read(NULL, path, text, sizeof text))
        return false;
    text[strcspn(text, "\r\n")] = '\0';
    for (char *c = text; *c; c++) /* a fake tree may hold anything */
        if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\')
            *c = '?';
    snprintf(out, size, "%.*s", (int)size - 1, text);
    return *out != '\0';
}

bool mica_sysfile_denied(const char *sysroot, const char *folder, const char *name)
{
    char path[MICA_SYSPATH_MAX];
    return full_path(sysroot, folder, name, path) && access(path, F_OK) == 0 && access(path, R_OK) != 0;
}

/** Puts a name where it belongs among the `n` sorted ones; the last is dropped if there is no room. Returns how many there are. */
static int insert_name(char (*names)[64], int n, int capacity, const char *name)
{
    int at = n;
    while (at > 0 && strcmp(names[at - 1], name) > 0)
        at--;
    if (at == capacity)
        return n;
    int moved = (n < capacity ? n : capacity - 1) - at;
    memmove(names + at + 1, names + at, (size_t)moved * sizeof *names);
    memcpy(names[at], name, strlen(name) + 1);
    return n < capacity ? n + 1 : n;
}

int mica_sysfile_list(const char *sysroot, const char *folder, char (*names)[64], int capacity)
{
    char path[MICA_SYSPATH_MAX];
    DIR *open_folder = full_path(sysroot, folder, "", path) ? opendir(path) : NULL;
    int n = 0;
    if (!open_folder)
        return -1;
    for (struct dirent *e; (e = readdir(open_folder));)
        if (e->d_name[0] != '.' && strlen(e->d_name) < sizeof *names)
            n = insert_name(names, n, capacity, e->d_name);
    closedir(open_folder);
    return n;
}

const char *mica_text_field(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " \t");
    }
    return NULL;
}

bool mica_text_int(const char *text, int64_t *value, const char **end)
{
    const char *p = text + strspn(text, " \t");
    bool negative = *p == '-';
    p += negative;
    if (!isdigit((unsigned char)*p))
        return false;
    int64_t sum = 0;
    for (; isdigit((unsigned char)*p); p++) {
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, *p - '0', &sum))
            return false;
    }
    if (isalpha((unsigned char)*p))
        return false;
    *value = negative ? -sum : sum;
    if (end)
        *end = p;
    return true;
}
