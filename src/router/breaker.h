/* breaker.h - a circuit breaker: a rung that failed several times in a row is left alone for a while, then tried once.
 *
 * CLOSED -(failures in a row)-> OPEN -(time)-> HALF_OPEN, in which one attempt runs: success closes, failure opens again. A
 * server that says when to come back (Retry-After) is left alone until then, whatever the state. A pure state machine: the
 * caller has the clock and the lock. Called by run.c. */
#ifndef MICA_ROUTER_BREAKER_H
#define MICA_ROUTER_BREAKER_H
#include <stdbool.h>
#include <stdint.h>

typedef enum mica_breaker_state { MICA_BREAKER_CLOSED, MICA_BREAKER_OPEN, MICA_BREAKER_HALF_OPEN } mica_breaker_state;

/** All zero: closed. */
typedef struct mica_breaker {
    mica_breaker_state state;
    int32_t failures;      /* in a row */
    bool probing;          /* HALF_OPEN: the one attempt runs */
    int64_t until_ns;      /* OPEN: until then */
    int64_t not_before_ns; /* a Retry-After; 0: none */
} mica_breaker;

/** Whether an attempt would be let through; changes nothing. */
bool mica_breaker_is_open(const mica_breaker *b, int64_t now_ns);
/** Lets an attempt through: mica_breaker_end() must follow. False: not now. */
bool mica_breaker_begin(mica_breaker *b, int64_t now_ns);

typedef enum mica_breaker_result {
    MICA_BREAKER_GOOD,
    MICA_BREAKER_BAD,
    MICA_BREAKER_NEITHER, /* cancelled, or the request's own fault: says nothing of the rung */
} mica_breaker_result;

/** `limit`: failures in a row that open it, at least 1; `open_ns`: for how long. */
void mica_breaker_end(mica_breaker *b, mica_breaker_result result, int32_t limit, int64_t open_ns, int64_t now_ns);
void mica_breaker_wait(mica_breaker *b, int64_t until_ns);

#endif
