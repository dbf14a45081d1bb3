#include "device/pagecache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"

enum { DROP_TRIES = 5 };

/* Pages of one file: all of them, and those that are in memory. */
typedef struct pages {
    size_t all, present;
} pages;

static mica_status count_file(const char *path, pages *count, mica_error *err)
{
    mica_map map;
    mica_status status = mica_map_open(path, &map, err);
    if (status)
        return status;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (map.base_bytes + page - 1) / page;
    unsigned char *present = mica_new_array(n, 1);
    if (!present) {
        status = mica_fail_nomem(err, n, "the pages of a file");
    } else if (mincore(map.base, map.base_bytes, present) != 0) {
        status = mica_fail(err, MICA_IO_ERROR, "the system does not tell which pages of %s are in memory: %s",
                           mica_path_tail(path), strerror(errno));
    } else {
        count->all += n;
        for (size_t i = 0; i < n; i++)
            count->present += present[i] & 1;
    }
    free(present);
    mica_map_close(&map);
    return status;
}

static mica_status drop_file(const char *path, pages *count, mica_error *err)
{
    pages own = {.present = 1};
    mica_status status = MICA_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", mica_path_tail(path), strerror(errno));
    fdatasync(fd); /* dirty pages cannot be dropped */
    for (int i = 0; i < DROP_TRIES && !status && own.present > 0; i++) {
        own = (pages){.all = 0};
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        status = count_file(path, &own, err);
    }
    close(fd);
    count->all += own.all;
    count->present += own.present;
    return status;
}

typedef mica_status (*visit_file)(const char *path, pages *count, mica_error *err);

/* A file, or the files of a folder that are not empty; folders in it are left alone. */
static mica_status visit(const char *path, visit_file one, double *part, mica_error *err)
{
    pages count = {.all = 0};
    mica_status status = MICA_OK;
    DIR *folder = opendir(path);
    if (!folder)
        status = one(path, &count, err);
    for (struct dirent *e; folder && !status && (e = readdir(folder));) {
        char file[4096];
        struct stat info;
        int n = snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (n > 0 && (size_t)n < sizeof file && stat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
            status = one(file, &count, err);
    }
    if (folder)
        closedir(folder);
    *part = count.all > 0 ? (double)count.present / (double)count.all : 0.0;
    return status;
}

mica_status mica_pagecache_resident(const char *path, double *part, mica_error *err)
{
    return visit(path, count_file, part, err);
}

mica_status mica_pagecache_drop(const char *path, double *part, mica_error *err)
{
    return visit(path, drop_file, part, err);
}
