/* handover.h - commands that the program mica-ops does. */
#ifndef MICA_PROGRAMS_HANDOVER_H
#define MICA_PROGRAMS_HANDOVER_H

/** Replaces this process by mica-ops with these words, argv[0] the command; it lies beside this program, or in ../libexec/mica.
    Returns only if it cannot be started: an exit code, with the reason on standard error. */
int mica_handover(char **argv);

#endif
