/* pulled.h - the folder of models that mica pull fills, seen from the commands: a model may be called by its name there.
 * Nothing of this is in a program built without MICA_PULL. Called by load.c, cmd_pull.c and cmd_models.c. */
#ifndef MICA_PROGRAMS_PULLED_H
#define MICA_PROGRAMS_PULLED_H
#include "pull/options.h"
#include "term.h"

/** $MICA_MODELS_DIR, or mica/models in the user's cache. Returns an exit code, as the others. */
int mica_pulled_folder(char path[4096]);

#ifdef MICA_HAVE_PULL
/** A word that is no file becomes the path of the pulled model of that name, if there is one. What mica pull brought and was
 * touched since is hashed first, and refused if a byte is wrong. */
int mica_pulled_resolve(char path[4096]);
#else
static inline int mica_pulled_resolve(const char *path)
{
    return path ? CODE_OK : CODE_FAILED;
}
#endif

/** The progress of what takes long: a bar at a terminal, else a line every ten seconds. */
typedef struct mica_pulled_progress {
    mica_bar bar;
    char text[96];
    const char *name, *what;
    int64_t start_ns, told_ns, first; /* of the current `what` */
} mica_pulled_progress;

/** Options whose callbacks show progress and heed Ctrl-C; `progress` must outlive them. */
mica_pull_options mica_pulled_options(mica_pulled_progress *progress, const char *name);

#endif
