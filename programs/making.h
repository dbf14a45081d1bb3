/* making.h - what the commands that make model files share: mica quantize and mica convert. */
#ifndef MICA_PROGRAMS_MAKING_H
#define MICA_PROGRAMS_MAKING_H
#include "opts.h"

/** --threads, or all that this process may use. Returns an exit code. */
int mica_making_threads(const mica_opts *o, int *n);
/** Shows progress in the mica_bar `user`; true once Ctrl-C was pressed. */
bool mica_making_progress(void *user, double done);

#endif
