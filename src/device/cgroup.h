/* cgroup.h - the folders of the control groups that hold this process, from its own group up to the root. Limits hold along
 * the whole path, so readers look at each folder. Called by cpus.c and memory.c. */
#ifndef MICA_DEVICE_CGROUP_H
#define MICA_DEVICE_CGROUP_H
#include "device/sysfile.h"

typedef enum mica_cgroup_kind {
    MICA_CGROUP_V2,
    MICA_CGROUP_V1_CPU,
    MICA_CGROUP_V1_CPUSET,
    MICA_CGROUP_V1_MEMORY,
} mica_cgroup_kind;

/** Gets a folder, without the root prefix ("/sys/fs/cgroup/app.slice"; never ends with '/'). True ends the walk. */
typedef bool (*mica_cgroup_visit)(void *user, const char *sysroot, const char *folder);

/** Visits the folders of one hierarchy, the process's own group first. Without a readable /proc/self/cgroup, or when that
 * names a group outside our view ("/.."), only the root is visited: inside a container it is the container's own group.
 * Folders need not exist (a container may see its host's path but only its own mount): visitors just find no files there. */
void mica_cgroup_walk(const char *sysroot, mica_cgroup_kind kind, mica_cgroup_visit visit, void *user);

#endif
