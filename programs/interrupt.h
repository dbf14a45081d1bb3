/* interrupt.h - Ctrl-C. The first one cancels the running call of a session; a second one before that has ended leaves the
 * program at once. Between calls the commands look at the count themselves. */
#ifndef MICA_PROGRAMS_INTERRUPT_H
#define MICA_PROGRAMS_INTERRUPT_H
#include "mica/mica.h"

/** Takes over SIGINT. Reads that it interrupts fail with EINTR. */
void mica_interrupt_catch(void);
/** The session whose running call Ctrl-C cancels; NULL: none. Must be set to NULL before the session is freed. */
void mica_interrupt_watch(mica_session *session);
/** How often Ctrl-C came since the last reset. */
int mica_interrupt_count(void);
void mica_interrupt_reset(void);

/** Waits until `fd` can be read. False if Ctrl-C came since the last reset, before or while it waited. */
bool mica_interrupt_wait_input(int fd);

/** Holds back SIGINT of the calling thread, and of threads that it starts: they leave the signal to the main thread for good.
 * Returns whether it was free before, for mica_interrupt_release(). */
bool mica_interrupt_hold(void);
void mica_interrupt_release(bool was_free);

#endif
