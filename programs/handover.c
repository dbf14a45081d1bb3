/* handover.c - starts mica-ops in place of this process. */
#include "handover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mica/mica.h"
#include "term.h"

enum { WORDS = 4096 };

/* Where mica-ops may lie, from the folder of this program. */
static const char *const places[] = {"mica-ops", "../libexec/mica/mica-ops"};

/* The folder of this program with a slash at its end; without /proc the empty text, and mica-ops is looked for in the current folder. */
static void own_folder(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        slash[1] = '\0';
    else
        out[0] = '\0';
}

int mica_handover(char **argv)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    char *words[WORDS];
    size_t n = 1;
    own_folder(folder);
    for (; argv[n - 1]; n++) {
        if (n == WORDS - 1)
            return mica_term_usage("mica %s: more than %d words", argv[0], WORDS - 2);
        words[n] = argv[n - 1];
    }
    words[n] = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s", folder, places[i]);
        words[0] = path;
        execv(path, words);
        if (errno != ENOENT)
            break;
    }
    mica_term_error("mica %s needs the program mica-ops, and %s could not be started: %s", argv[0], path, strerror(errno));
    return CODE_FAILED;
}
