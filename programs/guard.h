/* guard.h - remembers loads that were killed, in $XDG_STATE_HOME/mica/loads (or ~/.local/state/mica/loads), so that a program
 * that is started again and again does not run into the same wall for ever (mica_memory.h). One load at a time. Called by mica
 * run, chat and serve. */
#ifndef MICA_PROGRAMS_GUARD_H
#define MICA_PROGRAMS_GUARD_H
#include <stdbool.h>

#include "opts.h"

/** Before the model is opened: refuses what died too often, unless --force-load. Signals that end the program take the note
 * away, as they are no crash. Returns an exit code. */
int mica_guard_begin(const mica_opts *o, const char *path);
/** The first token is there (good), or the command is over; only the first call counts. */
void mica_guard_end(bool good);
/** For signal handlers: takes the note away, and nothing else. */
void mica_guard_drop(void);

#endif
