#include "interrupt.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "term.h"

/* A signal handler sees nothing but globals; these are lock-free, so it may touch them. */
static _Atomic(mica_session *) watched;
static atomic_int count;

static void on_interrupt(int number)
{
    (void)number;
    mica_session *session = atomic_load(&watched);
    if (atomic_fetch_add(&count, 1) > 0 && session) {
        mica_guard_drop(); /* leaving is no crash */
        _exit(CODE_INTERRUPTED);
    }
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

bool mica_interrupt_hold(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    return !sigismember(&before, SIGINT);
}

void mica_interrupt_release(bool was_free)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    if (was_free)
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* The signal is held between the look at the count and the wait, and free only while waiting: none can fall between. */
bool mica_interrupt_wait_input(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    sigset_t while_waiting;
    bool was_free = mica_interrupt_hold();
    pthread_sigmask(SIG_BLOCK, NULL, &while_waiting);
    sigdelset(&while_waiting, SIGINT);
    while (mica_interrupt_count() == 0 && ppoll(&wanted, 1, NULL, &while_waiting) <= 0)
        ; /* another signal, SIGWINCH perhaps, came */
    mica_interrupt_release(was_free);
    return mica_interrupt_count() == 0;
}
