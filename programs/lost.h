/* lost.h - a mapped file that shrinks underneath: the page that is gone is SIGBUS in whichever thread reads it, and that becomes a message
 * with the file's name, and exit code 1. Called by mica.c. */
#ifndef MICA_PROGRAMS_LOST_H
#define MICA_PROGRAMS_LOST_H

/** From now on, in every thread. */
void mica_lost_catch(void);

#endif
