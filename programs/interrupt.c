#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "term.h"

/* A signal handler sees nothing but globals; these are lock-free, so it may touch them. */
static _Atomic(mica_session *) watched;
static atomic_int count;

static void on_interrupt(int number)
{
    (void)number;
    mica_session *session = atomic_load(&watched);
    if (atomic_fetch_add(&count, 1) > 0 && session)
        _exit(CODE_INTERRUPTED);
    if (session)
        mica_session_cancel(session);
}

void mica_interrupt_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt; /* no SA_RESTART: a read that waits for a line must end */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void mica_interrupt_watch(mica_session *session) { atomic_store(&watched, session); }

int mica_interrupt_count(void) { return atomic_load(&count); }

void mica_interrupt_reset(void) { atomic_store(&count, 0); }
