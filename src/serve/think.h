/* think.h - a reply's reasoning, <think>...</think> at its beginning, apart from what it says. Cuts anywhere; holds back only
 * what may be a mark, and line ends beside one, which belong to neither side. Called by choice.c. */
#ifndef MICA_SERVE_THINK_H
#define MICA_SERVE_THINK_H
#include <stdbool.h>
#include <stddef.h>

#define MICA_THINK_HOLD 64 /* bytes: the longest mark and the line ends in front of it */

typedef struct mica_think {
    enum { MICA_THINK_START, MICA_THINK_OPENED, MICA_THINK_INSIDE, MICA_THINK_CLOSED, MICA_THINK_TEXT } state;
    size_t n_held, matched; /* of `held`, the last `matched` bytes are the beginning of a mark */
    char held[MICA_THINK_HOLD];
    void (*out)(void *user, bool reasoning, const char *text, size_t length);
    void *user;
} mica_think;

/** `inside`: the prompt has opened the reasoning already. */
void mica_think_start(mica_think *t, bool inside, void (*out)(void *user, bool reasoning, const char *text, size_t length),
                      void *user);
void mica_think_feed(mica_think *t, const char *text, size_t length);
/** The reply is over: what is held back is told. */
void mica_think_finish(mica_think *t);

#endif
