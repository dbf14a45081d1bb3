#include "device/memory.h"
#include "device/cgroup.h"
#include "base/map.h"
#include "device/sysfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES = 64 * 1024 };

/* ---- Available ------------------------------------------------------------------------------------------------------- */

typedef struct lowest {
    int64_t bytes; /* -1: nothing known yet */
    char source[128]; /* shorter than a reason, which adds the amount */
} lowest;

static void lower(lowest *low, int64_t bytes, const char *source)
{
    bytes = bytes < 0 ? 0 : bytes;
    if (low->bytes >= 0 && bytes >= low->bytes)
        return;
    low->bytes = bytes;
    snprintf(low->source, sizeof low->source, "%s", mica_path_tail(source));
}

/** "NUMBER kB" as bytes; false if it is anything else or too large. */
static bool kilobytes(const char *text, int64_t *bytes)
{
    int64_t value;
    const char *rest;
    if (!mica_text_int(text, &value, &rest) || value < 0 || __builtin_mul_overflow(value, 1024, bytes))
        return false;
    rest += strspn(rest, " \t");
    return strncmp(rest, "kB", 2) == 0;
}

static bool meminfo_field(const char *text, const char *key, int64_t *bytes)
{
    const char *value = mica_text_field(text, key);
    return value && kilobytes(value, bytes);
}

static void read_meminfo(const char *sysroot, lowest *low)
{
    char text[FILE_BYTES];
    int64_t available, unused, cached;
    if (!mica_sysfile_read(sysroot, "/proc/meminfo", text, sizeof text))
        return;
    if (meminfo_field(text, "MemAvailable", &available))
        lower(low, available, "MemAvailable of /proc/meminfo");
    else if (meminfo_field(text, "MemFree", &unused) && meminfo_field(text, "Cached", &cached) &&
             !__builtin_add_overflow(unused, cached, &available))
        lower(low, available, "MemFree and Cached of /proc/meminfo"); /* kernels before 3.14 */
}

/** First number of folder/name; false for "max" and for no such file. */
static bool cgroup_int(const char *sysroot, const char *folder, const char *name, int64_t *value)
{
    char path[MICA_SYSPATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && mica_sysfile_int(sysroot, path, value) && *value >= 0;
}

/** "key NUMBER" in folder/memory.stat; 0 if there is none. */
static int64_t cgroup_stat(const char *sysroot, const char *folder, const char *key)
{
    char path[MICA_SYSPATH_MAX], text[FILE_BYTES];
    int n = snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (n < 0 || (size_t)n >= sizeof path || !mica_sysfile_read(sysroot, path, text, sizeof text))
        return 0;
    size_t length = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        int64_t value;
        if (strncmp(line, key, length) == 0 && line[length] == ' ' && mica_text_int(line + length, &value, NULL) && value >= 0)
            return value;
    }
    return 0;
}

typedef struct cgroup_files {
    const char *limits[2], *usage, *droppable;
} cgroup_files;

static const cgroup_files files_v2 = {{"memory.max", "memory.high"}, "memory.current", "inactive_file"};
static const cgroup_files files_v1 = {{"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes", "total_inactive_file"};

static void visit_limits(lowest *low, const char *sysroot, const char *folder, const cgroup_files *files)
{
    int64_t usage = 0, limit;
    bool looked = false;
    for (size_t i = 0; i < 2 && files->limits[i]; i++) {
        if (!cgroup_int(sysroot, folder, files->limits[i], &limit))
            continue;
        if (!looked && cgroup_int(sysroot, folder, files->usage, &usage)) {
            int64_t droppable = cgroup_stat(sysroot, folder, files->droppable);
            usage -= droppable < usage ? droppable : usage;
        }
        looked = true;
        char source[MICA_SYSPATH_MAX];
        snprintf(source, sizeof source, "%s/%s", folder, files->limits[i]); /* fits: the file has just been read */
        lower(low, limit - usage, source);
    }
}

static bool visit_v2(void *user, const char *sysroot, const char *folder)
{
    visit_limits(user, sysroot, folder, &files_v2);
    return false;
}

static bool visit_v1(void *user, const char *sysroot, const char *folder)
{
    visit_limits(user, sysroot, folder, &files_v1);
    return false;
}

mica_status mica_memory_available(const char *sysroot, int64_t *bytes, char reason[MICA_MEMORY_REASON], mica_error *err)
{
    mica_status status = mica_sysroot_check(sysroot, err);
    if (status != MICA_OK)
        return status;
    lowest low = {.bytes = -1};
    read_meminfo(sysroot, &low);
    mica_cgroup_walk(sysroot, MICA_CGROUP_V2, visit_v2, &low);
    mica_cgroup_walk(sysroot, MICA_CGROUP_V1_MEMORY, visit_v1, &low);
    if (low.bytes < 0)
        return mica_fail(err, MICA_IO_ERROR,
                         "cannot tell how much memory is available: neither %.200s/proc/meminfo nor a memory cgroup says so; "
                         "set the memory limit by hand",
                         sysroot ? sysroot : "");
    *bytes = low.bytes;
    if (reason)
        snprintf(reason, MICA_MEMORY_REASON, "%s leaves %" PRId64 " MiB", low.source, low.bytes >> 20);
    return MICA_OK;
}

int64_t mica_memory_total(const char *sysroot)
{
    char text[FILE_BYTES];
    int64_t bytes;
    return mica_sysfile_read(sysroot, "/proc/meminfo", text, sizeof text) && meminfo_field(text, "MemTotal", &bytes) && bytes > 0
               ? bytes
               : -1;
}

/* ---- Used ------------------------------------------------------------------------------------------------------------ */

mica_status mica_memory_usage_parse(const char *text, mica_memory_usage *usage, mica_error *err)
{
    *usage = (mica_memory_usage){-1, -1, -1, -1};
    const struct {
        const char *key;
        int64_t *bytes;
    } fields[] = {
        {"VmHWM", &usage->peak_bytes},
        {"VmRSS", &usage->rss_bytes},
        {"RssAnon", &usage->anon_bytes},
        {"RssFile", &usage->file_bytes},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *value = mica_text_field(text, fields[i].key);
        int64_t bytes;
        if (!value)
            continue;
        if (!kilobytes(value, &bytes)) {
            *usage = (mica_memory_usage){-1, -1, -1, -1};
            return mica_fail_at(err, MICA_BAD_FILE, value - text,
                                "%s of the status file is not a number of kB that fits 63 bits", fields[i].key);
        }
        *fields[i].bytes = bytes;
    }
    if (usage->peak_bytes >= 0 && usage->rss_bytes > usage->peak_bytes)
        usage->peak_bytes = usage->rss_bytes;
    return MICA_OK;
}

mica_status mica_memory_usage_read(const char *sysroot, mica_memory_usage *usage, mica_error *err)
{
    char text[FILE_BYTES];
    *usage = (mica_memory_usage){-1, -1, -1, -1};
    mica_status status = mica_sysroot_check(sysroot, err);
    if (status != MICA_OK)
        return status;
    if (!mica_sysfile_read(sysroot, "/proc/self/status", text, sizeof text))
        return mica_fail(err, MICA_IO_ERROR, "cannot read %.300s/proc/self/status", sysroot ? sysroot : "");
    return mica_memory_usage_parse(text, usage, err);
}

int64_t mica_memory_peak_rss(const char *sysroot)
{
    mica_memory_usage usage;
    return mica_memory_usage_read(sysroot, &usage, NULL) == MICA_OK ? usage.peak_bytes : -1;
}
