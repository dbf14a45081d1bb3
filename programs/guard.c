#include "guard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"
#include "mica/mica_memory.h"

/* A signal handler sees nothing but globals, and may allocate nothing: the path is copied before. "" once the load is over. */
static char note[4096];
static mica_load *load;

static const int ending[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
#define N_ENDING (sizeof ending / sizeof *ending)

void mica_guard_drop(void)
{
    if (*note)
        unlink(note);
}

static void on_end(int number)
{
    int reason = errno;
    mica_guard_drop();
    signal(number, SIG_DFL);
    raise(number); /* delivered when this returns */
    errno = reason;
}

/* Only those that would end the program: what a command or its caller has decided about a signal stays. */
static void catch_ends(void)
{
    for (size_t i = 0; i < N_ENDING; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) != 0 || action.sa_handler != SIG_DFL)
            continue;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_end;
        sigemptyset(&action.sa_mask);
        sigaction(ending[i], &action, NULL);
    }
}

static void release_ends(void)
{
    for (size_t i = 0; i < N_ENDING; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler == on_end)
            signal(ending[i], SIG_DFL);
    }
}

static bool folder_of(char path[4096])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool given = state && *state;
    if (!given && (!home || !*home))
        return false;
    int n = snprintf(path, 4096, "%s%s/mica/loads", given ? state : home, given ? "" : "/.local/state");
    return n > 0 && n < 4096;
}

int mica_guard_begin(const mica_opts *o, const char *path)
{
    char folder[4096];
    mica_error err;
    if (!folder_of(folder) || access(path, R_OK) != 0)
        return CODE_OK; /* a user without a home has no notes; opening says what is wrong with the file */
    int32_t n_ctx = o->ctx < INT32_MAX ? (int32_t)o->ctx : INT32_MAX;
    mica_status status = mica_load_begin(folder, path, n_ctx, o->force_load, &load, &err);
    if (status == MICA_OVER_BUDGET)
        return mica_load_failed(&err);
    if (status) {
        mica_term_warning(NULL, err.message);
        return CODE_OK;
    }
    snprintf(note, sizeof note, "%s", mica_load_note(load));
    catch_ends();
    return CODE_OK;
}

void mica_guard_end(bool good)
{
    if (!load)
        return;
    release_ends();
    mica_load_end(load, good);
    load = NULL;
    *note = '\0';
}
