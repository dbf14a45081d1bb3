/* gate.h - a reply that stops at its first text until the test lets it go on. */
#ifndef MICA_TESTS_GATE_H
#define MICA_TESTS_GATE_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool in, open;
} gate;

#define GATE {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER}

/* on_text of the request that stops; `user` is the gate. */
static inline int gate_wait(void *user, const char *text, size_t length)
{
    gate *g = user;
    (void)text;
    (void)length;
    pthread_mutex_lock(&g->lock);
    g->in = true;
    pthread_cond_broadcast(&g->news);
    while (!g->open)
        pthread_cond_wait(&g->news, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return 0;
}

/* Returns once the reply stands there. */
static inline void gate_await(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->in)
        pthread_cond_wait(&g->news, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static inline void gate_open(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->news);
    pthread_mutex_unlock(&g->lock);
}

#endif
