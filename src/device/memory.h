/* memory.h - how much memory this process may still take, and how much it has taken at most. Reads /proc and cgroup files under
 * a root prefix; changes nothing. Called by session (budget) and the programs. */
#ifndef MICA_DEVICE_MEMORY_H
#define MICA_DEVICE_MEMORY_H
#include "base/error.h"

#define MICA_MEMORY_REASON 200

/** The least of MemAvailable of /proc/meminfo and of what each memory cgroup from the process's own up to the root leaves:
 * v2 min(memory.max, memory.high) - memory.current, v1 memory.limit_in_bytes - memory.usage_in_bytes; file pages that the
 * kernel can drop at once (inactive_file of memory.stat) count as free, as they do in MemAvailable. `reason` (may be NULL)
 * says for people which file decided. MICA_IO_ERROR if no file says anything. */
mica_status mica_memory_available(const char *sysroot, int64_t *bytes, char reason[MICA_MEMORY_REASON], mica_error *err);

/** MemTotal of /proc/meminfo in bytes; -1 if unknown. */
int64_t mica_memory_total(const char *sysroot);

/** What /proc/PID/status tells; -1 for each value that it does not. */
typedef struct mica_memory_usage {
    int64_t peak_bytes; /* VmHWM, or VmRSS where that is larger (the kernel updates VmHWM late); -1 without VmHWM */
    int64_t rss_bytes;  /* VmRSS */
    int64_t anon_bytes; /* RssAnon: our own memory */
    int64_t file_bytes; /* RssFile: mapped files, the weights among them */
} mica_memory_usage;

/** From the text of a status file. MICA_BAD_FILE, with its offset, for a value that is no "NUMBER kB" or beyond 63 bits. */
mica_status mica_memory_usage_parse(const char *text, mica_memory_usage *usage, mica_error *err);

/** From /proc/self/status under the root prefix. */
mica_status mica_memory_usage_read(const char *sysroot, mica_memory_usage *usage, mica_error *err);

/** Peak resident bytes of this process, of its own and mapped pages; -1 if unknown. */
int64_t mica_memory_peak_rss(const char *sysroot);

#endif
