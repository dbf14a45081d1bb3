/* inject.h - the plan of a fault, in memory that the test and the program under test share (a mapped file), and what became
 * of it. faults.py writes and reads the same fields. */
#ifndef MICA_TESTS_FAULTS_INJECT_H
#define MICA_TESTS_FAULTS_INJECT_H
#include <stdint.h>

/* The kinds of calls; a plan's mask has a bit for each. CALL_MAP is a file, CALL_ALLOC has anonymous memory, too. */
enum {
    CALL_ALLOC,
    CALL_THREAD,
    CALL_OPEN,
    CALL_READ,
    CALL_WRITE,
    CALL_SYNC,
    CALL_RENAME,
    CALL_MAP,
    CALL_TRUNCATE,
    CALL_STAT,
    CALL_CLOSE,
    CALL_SEEK,
    CALL_UNLINK,
    CALL_CLOCK, /* the time of day: from the `first` on it is off by `jump_s` */
    N_CALLS
};

/* What happens instead of an error number. */
enum {
    FAULT_SHORT = -1,    /* half of the bytes */
    FAULT_KILL = -2,     /* SIGKILL before the call */
    FAULT_KILL_HALF = -3 /* after half of a write */
};

typedef struct mica_fault_plan {
    uint32_t mask;
    int32_t error;       /* an error number, or a FAULT_ */
    int64_t first, last; /* these calls of the masked kinds fail, counted from 1; first 0: none */
    int64_t jump_s;
    _Atomic int64_t seen, hit; /* calls of the masked kinds so far; of them, faults */
    char call[16];             /* the first fault: the function, and the file if it has one */
    char path[256];
} mica_fault_plan;

/** The plan of this process: the file $MICA_FAULTS_STATE, or one of its own. Counting begins with the first call. */
mica_fault_plan *mica_faults_plan(void);

/** What this process has and has not given back. */
typedef struct mica_faults_live {
    int64_t blocks, mapped_bytes;
} mica_faults_live;
mica_faults_live mica_faults_live_now(void);

#endif
