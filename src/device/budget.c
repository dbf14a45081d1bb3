#include "device/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "device/cgroup.h"
#include "device/memory.h"
#include "device/sysfile.h"

void mica_memory_text(int64_t bytes, char out[32])
{
    double size = (double)bytes;
    if (bytes < 1 << 20)
        snprintf(out, 32, "%" PRId64 " bytes", bytes);
    else if (bytes < 1 << 30)
        snprintf(out, 32, "%.1f MiB", size / (1 << 20));
    else
        snprintf(out, 32, "%.2f GiB", size / (1 << 30));
}

/* ---- What is usable ---- */

static void lower(mica_memory_bounds *b, int64_t bytes, const char *source)
{
    if (bytes <= 0 || (b->usable >= 0 && bytes >= b->usable))
        return; /* a limit of 0 is none: no process could run under it */
    b->usable = bytes;
    snprintf(b->source, sizeof b->source, "%s", mica_path_tail(source));
}

static void lower_by_file(mica_memory_bounds *b, const char *sysroot, const char *folder, const char *name)
{
    char source[MICA_SYSPATH_MAX];
    int64_t bytes;
    int n = snprintf(source, sizeof source, "%s/%s", folder, name);
    if (n > 0 && (size_t)n < sizeof source && mica_sysfile_int(sysroot, source, &bytes)) /* "max" is no number */
        lower(b, bytes, source);
}

static bool visit_v2(void *user, const char *sysroot, const char *folder)
{
    lower_by_file(user, sysroot, folder, "memory.max");
    lower_by_file(user, sysroot, folder, "memory.high");
    return false;
}

static bool visit_v1(void *user, const char *sysroot, const char *folder)
{
    lower_by_file(user, sysroot, folder, "memory.limit_in_bytes");
    return false;
}

/* "Max address space         1073741824           unlimited            bytes": the soft limit, at most what is allowed. */
static void lower_by_rlimit(mica_memory_bounds *b, const char *text, const char *name)
{
    int64_t bytes;
    const char *line = strstr(text, name);
    if (line && mica_text_int(line + strlen(name), &bytes, NULL)) {
        char source[MICA_BOUND_SOURCE];
        snprintf(source, sizeof source, "\"%s\" of /proc/self/limits", name);
        lower(b, bytes, source);
    }
}

static void lower_by_rlimits(mica_memory_bounds *b, const char *sysroot)
{
    char text[4096]; /* 16 lines of 80 bytes */
    if (!mica_sysfile_read(sysroot, "/proc/self/limits", text, sizeof text))
        return;
    lower_by_rlimit(b, text, "Max address space");
    lower_by_rlimit(b, text, "Max data size"); /* anonymous memory; "Max resident set" has no effect on Linux */
}

/* ---- The bounds in it ---- */

static mica_status part_of(const mica_memory_bounds *b, int64_t wanted, int percent, const char *name, int64_t *bytes,
                           mica_error *err)
{
    if (wanted > 0) {
        *bytes = wanted;
        return MICA_OK;
    }
    if (wanted < -100)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the memory %s is %" PRId64 " percent; it must be between 1 and 100, or bytes", name, -wanted);
    if (wanted < 0 && b->usable < 0)
        return mica_fail(err, MICA_IO_ERROR,
                         "cannot tell what %" PRId64
                         " percent of the memory are: nothing says how much there is; give the memory %s "
                         "in bytes",
                         -wanted, name);
    *bytes = b->usable < 0 ? INT64_MAX : b->usable / 100 * (wanted < 0 ? -wanted : percent);
    return MICA_OK;
}

mica_status mica_memory_bounds_read(const char *sysroot, int64_t app_limit, int64_t budget, int64_t limit,
                                    mica_memory_bounds *out, mica_error *err)
{
    *out = (mica_memory_bounds){.usable = -1};
    mica_status status = mica_sysroot_check(sysroot, err);
    if (status)
        return status;
    lower(out, mica_memory_total(sysroot), "MemTotal of /proc/meminfo");
    mica_cgroup_walk(sysroot, MICA_CGROUP_V2, visit_v2, out);
    mica_cgroup_walk(sysroot, MICA_CGROUP_V1_MEMORY, visit_v1, out);
    lower_by_rlimits(out, sysroot);
    lower(out, app_limit, "what the system lets this app have");
    if ((status = part_of(out, limit, MICA_LIMIT_PERCENT, "limit", &out->limit, err)) ||
        (status = part_of(out, budget, MICA_BUDGET_PERCENT, "budget", &out->budget, err)))
        return status;
    if (budget != 0 && out->budget > out->limit) {
        char asked[32], most[32];
        mica_memory_text(out->budget, asked);
        mica_memory_text(out->limit, most);
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a memory budget of %s is above the hard limit of %s; raise that too",
                         asked, most);
    }
    if (out->budget > out->limit)
        out->budget = out->limit;
    return MICA_OK;
}
