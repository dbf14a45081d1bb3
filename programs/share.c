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

static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* PREFIX of PREFIX/bin/mica, and of PREFIX/libexec/mica/mica-ops. */
static bool installed_path(const char *name, char path[MAX_PATH])
{
    static const char inner[] = "/libexec/mica";
    char program[MAX_PATH];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    if (!cut_last(program))
        return false;
    size_t length = strlen(program);
    if (length > sizeof inner - 1 && strcmp(program + length - (sizeof inner - 1), inner) == 0)
        cut_last(program);
    return cut_last(program) && join(path, program, "/share/mica/", name);
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

bool mica_share_make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool there = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!there)
            return false;
    }
    return true;
}

bool mica_share_own(const char *name, char path[MAX_PATH]) { return user_path(name, path) && mica_share_make_folders(path); }

bool mica_share_cache(const char *name, char path[MAX_PATH])
{
    const char *cache = getenv("XDG_CACHE_HOME");
    bool there = cache && *cache ? join(path, cache, "/mica/", name) : join(path, getenv("HOME"), "/.cache/mica/", name);
    return there && mica_share_make_folders(path);
}
