/* procmem.h - memory and processor time of one process, from /proc under a root prefix. Called by measure.c and samples.c. */
#ifndef MICA_BENCH_PROCMEM_H
#define MICA_BENCH_PROCMEM_H
#include "device/memory.h"

/** -1 for what the system does not tell. */
typedef struct mica_procmem {
    mica_memory_usage usage; /* VmHWM, VmRSS, RssAnon, RssFile */
    int64_t shared_bytes;    /* RssShmem */
    int64_t pss_bytes;       /* smaps_rollup: pages shared with others count in parts */
    int64_t private_bytes;   /* smaps_rollup: Private_Clean + Private_Dirty */
    int64_t swap_bytes;      /* VmSwap */
} mica_procmem;

mica_status mica_procmem_read(const char *sysroot, int64_t pid, mica_procmem *out, mica_error *err);

/** User and system time that the process has taken, in clock ticks, its threads included; false if it is gone. */
bool mica_proc_ticks(const char *sysroot, int64_t pid, int64_t *ticks);

/** Whether `pid` is `ancestor` or descends from it. */
bool mica_proc_descends(const char *sysroot, int64_t pid, int64_t ancestor);

#endif
