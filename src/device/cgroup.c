#include "device/cgroup.h"

#include <string.h>

/* Where distributions, container runtimes and Android mount the hierarchies; "unified" is the v2 part of a hybrid set-up. */
typedef struct hierarchy {
    const char *controller; /* name in /proc/self/cgroup; "" for v2 */
    const char *mounts[3];
} hierarchy;

static const hierarchy hierarchies[] = {
    [MICA_CGROUP_V2] = {"", {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL}},
    [MICA_CGROUP_V1_CPU] = {"cpu", {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu"}},
    [MICA_CGROUP_V1_CPUSET] = {"cpuset", {"/sys/fs/cgroup/cpuset", NULL, NULL}},
    [MICA_CGROUP_V1_MEMORY] = {"memory", {"/sys/fs/cgroup/memory", NULL, NULL}},
};

/** Whether "cpu,cpuacct" (up to `end`) names the controller. The empty controller matches the empty list only. */
static bool list_names(const char *list, const char *end, const char *controller)
{
    size_t length = strlen(controller);
    for (const char *p = list; p <= end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - p) == length && memcmp(p, controller, length) == 0)
            return true;
        p = stop + 1;
    }
    return false;
}

/** Whether the path climbs above what this process sees: a component "..". */
static bool climbs(const char *path)
{
    for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
        if (p[3] == '/' || p[3] == '\0')
            return true;
    return false;
}

/** Takes the path out of one line "4:cpu,cpuacct:/docker/1f" if it is of that hierarchy. */
static bool line_path(const char *line, const char *end, const char *controller, char *path, size_t capacity)
{
    const char *list = memchr(line, ':', (size_t)(end - line));
    const char *colon = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
    if (!colon || colon[1] != '/' || !list_names(list + 1, colon, controller))
        return false;
    size_t length = (size_t)(end - colon - 1);
    if (length >= capacity)
        return false;
    memcpy(path, colon + 1, length);
    path[length] = '\0';
    return true;
}

/** Path of the process's group in a hierarchy, "" if it is the root or unknown. */
static void own_path(const char *sysroot, const char *controller, char *path, size_t capacity)
{
    char text[16384]; /* about a dozen lines; more is no cgroup file */
    path[0] = '\0';
    if (!mica_sysfile_read(sysroot, "/proc/self/cgroup", text, sizeof text))
        return;
    for (const char *line = text; *line;) {
        const char *end = line + strcspn(line, "\n");
        if (line_path(line, end, controller, path, capacity))
            break;
        line = end + (*end == '\n');
    }
    if (climbs(path))
        path[0] = '\0';
}

/** Cuts the last component off; false if there is none left. */
static bool to_parent(char *folder, size_t root_length)
{
    size_t length = strlen(folder);
    while (length > root_length && folder[length - 1] != '/')
        length--;
    while (length > root_length && folder[length - 1] == '/')
        length--;
    bool shorter = folder[length] != '\0';
    folder[length] = '\0';
    return shorter;
}

void mica_cgroup_walk(const char *sysroot, mica_cgroup_kind kind, mica_cgroup_visit visit, void *user)
{
    const hierarchy *h = &hierarchies[kind];
    char path[MICA_SYSPATH_MAX], folder[MICA_SYSPATH_MAX];
    own_path(sysroot, h->controller, path, sizeof path);
    for (size_t i = 0; i < sizeof h->mounts / sizeof *h->mounts && h->mounts[i]; i++) {
        size_t root = strlen(h->mounts[i]), rest = strlen(path);
        if (root + rest >= sizeof folder)
            continue;
        memcpy(folder, h->mounts[i], root);
        memcpy(folder + root, path, rest + 1);
        while (rest > 0 && folder[root + rest - 1] == '/')
            folder[root + --rest] = '\0';
        do {
            if (visit(user, sysroot, folder))
                return;
        } while (to_parent(folder, root));
    }
}
