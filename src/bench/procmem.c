#include "bench/procmem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/sysfile.h"

enum { FILE_BYTES = 16384, MAX_GENERATIONS = 64 };

static bool read_proc(const char *sysroot, int64_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/%s", pid, name);
    return mica_sysfile_read(sysroot, path, text, size);
}

/* "key: NUMBER kB" as bytes, -1 if it is not there. */
static int64_t field_bytes(const char *text, const char *key)
{
    int64_t value, bytes;
    const char *at = mica_text_field(text, key);
    return at && mica_text_int(at, &value, NULL) && value >= 0 && !__builtin_mul_overflow(value, 1024, &bytes) ? bytes : -1;
}

mica_status mica_procmem_read(const char *sysroot, int64_t pid, mica_procmem *out, mica_error *err)
{
    char text[FILE_BYTES];
    *out = (mica_procmem){{-1, -1, -1, -1}, -1, -1, -1, -1};
    if (!read_proc(sysroot, pid, "status", text, sizeof text))
        return mica_fail(err, MICA_IO_ERROR, "there is no process %" PRId64 " whose memory could be read", pid);
    mica_status status = mica_memory_usage_parse(text, &out->usage, err);
    if (status)
        return status;
    out->shared_bytes = field_bytes(text, "RssShmem");
    out->swap_bytes = field_bytes(text, "VmSwap");
    if (read_proc(sysroot, pid, "smaps_rollup", text, sizeof text)) {
        int64_t clean = field_bytes(text, "Private_Clean"), dirty = field_bytes(text, "Private_Dirty");
        out->pss_bytes = field_bytes(text, "Pss");
        out->private_bytes = clean >= 0 && dirty >= 0 && clean < INT64_MAX - dirty ? clean + dirty : -1;
    }
    return MICA_OK;
}

/* The fields after the name, which is in brackets and may hold anything: [0] is the state, [1] the parent. */
static const char *stat_fields(const char *sysroot, int64_t pid, char *text, size_t size)
{
    if (!read_proc(sysroot, pid, "stat", text, size))
        return NULL;
    const char *end = strrchr(text, ')');
    return end ? end + 1 + strspn(end + 1, " ") : NULL;
}

static bool field_at(const char *fields, int i, int64_t *value)
{
    for (; i > 0 && *fields; i--) {
        fields += strcspn(fields, " ");
        fields += strspn(fields, " ");
    }
    return mica_text_int(fields, value, NULL);
}

bool mica_proc_ticks(const char *sysroot, int64_t pid, int64_t *ticks)
{
    char text[2048];
    int64_t user, system;
    const char *fields = stat_fields(sysroot, pid, text, sizeof text);
    if (!fields || !field_at(fields, 11, &user) || !field_at(fields, 12, &system))
        return false;
    *ticks = user + system;
    return true;
}

bool mica_proc_descends(const char *sysroot, int64_t pid, int64_t ancestor)
{
    char text[2048];
    for (int i = 0; i < MAX_GENERATIONS && pid > 1; i++) {
        if (pid == ancestor)
            return true;
        const char *fields = stat_fields(sysroot, pid, text, sizeof text);
        if (!fields || !field_at(fields, 1, &pid))
            return false;
    }
    return false;
}
