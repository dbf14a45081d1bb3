#include "share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 4096 };

static bool join(char path[MAX_PATH], const char *folder, const char *between, const char *name)
{
    return folder && *folder && snprintf(path, MAX_PATH, "%s%s%s", folder, between, name) < MAX_PATH;
}

static bool user_path(const char *name, char path[MAX_PATH])
{
    const char *data = getenv("XDG_DATA_HOME");
    return data && *data ? join(path, data, "/mica/", name) : join(path, getenv("HOME"), "/.local/share/mica/", name);
}

static bool installed_path(const char *name, char path[MAX_PATH])
{
    char program[MAX_PATH];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return join(path, program, "/share/mica/", name);
}

bool mica_share_place(int i, const char *name, char path[MAX_PATH])
{
    return i == 0 ? user_path(name, path) : installed_path(name, path);
}

bool mica_share_find(const char *name, char path[MAX_PATH])
{
    for (int i = 0; i < 2; i++)
        if (mica_share_place(i, name, path) && access(path, R_OK) == 0)
            return true;
    return false;
}

bool mica_share_own(const char *name, char path[MAX_PATH])
{
    if (!user_path(name, path))
        return false;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool there = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!there)
            return false;
    }
    return true;
}
