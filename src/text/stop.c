/* stop.c - stop strings in a stream of text. Owns its memory, made once. Called by session/generate.
 *
 * One Knuth-Morris-Pratt automaton a stop string. Its state is the length of the longest suffix of the text that is a proper
 * prefix of the string, so the greatest state is exactly what must be held back: no byte waits that cannot begin a stop string.
 *
 * Invariants
 *  1. buffer[begin, end) is the text that was not handed out; after a push its length is the greatest state, under
 *     MICA_STOP_MAX_BYTES.
 *  2. A state is never the whole length of its string: completing one ends the matching.
 */
#include "text/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct pattern {
    uint16_t length, state;
    uint16_t fail[MICA_STOP_MAX_BYTES]; /* fail[i]: longest proper border of the first i + 1 bytes */
    uint8_t bytes[MICA_STOP_MAX_BYTES];
} pattern;

struct mica_stop {
    size_t n, begin, end;
    bool done; /* a stop string was complete: the rest of the text is dropped */
    char buffer[2 * MICA_STOP_MAX_BYTES];
    pattern patterns[MICA_STOP_MAX];
};

mica_status mica_stop_new(mica_stop **out, mica_error *err)
{
    *out = mica_new_array(1, sizeof **out);
    return *out ? MICA_OK : mica_fail_nomem(err, sizeof **out, "the stop strings");
}

void mica_stop_free(mica_stop *m) { free(m); }

static mica_status check(const char *const *stop, size_t n_stop, mica_error *err)
{
    if (n_stop > MICA_STOP_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "stop has %zu strings, but at most %d are allowed", n_stop, MICA_STOP_MAX);
    if (n_stop > 0 && !stop)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "stop is NULL, but n_stop is %zu: it must be 0 then", n_stop);
    for (size_t i = 0; i < n_stop; i++) {
        if (!stop[i])
            return mica_fail(err, MICA_INVALID_ARGUMENT, "stop string %zu of %zu is NULL", i + 1, n_stop);
        size_t length = strnlen(stop[i], MICA_STOP_MAX_BYTES + 1);
        if (length == 0)
            return mica_fail(err, MICA_INVALID_ARGUMENT,
                             "stop string %zu of %zu is empty: it would end every reply at once; leave it out", i + 1, n_stop);
        if (length > MICA_STOP_MAX_BYTES)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "stop string %zu of %zu (\"%.20s...\") is longer than %d bytes", i + 1,
                             n_stop, stop[i], MICA_STOP_MAX_BYTES);
    }
    return MICA_OK;
}

/* The state after one more byte: at most `length`, which means complete. */
static uint16_t step(const pattern *p, uint16_t state, uint8_t byte)
{
    while (state > 0 && p->bytes[state] != byte)
        state = p->fail[state - 1];
    return (uint16_t)(state + (p->bytes[state] == byte));
}

static void prepare(pattern *p, const char *text)
{
    p->length = (uint16_t)strlen(text);
    p->state = 0;
    memcpy(p->bytes, text, p->length);
    p->fail[0] = 0;
    for (uint16_t i = 1; i < p->length; i++)
        p->fail[i] = step(p, p->fail[i - 1], p->bytes[i]);
}

mica_status mica_stop_start(mica_stop *m, const char *const *stop, size_t n_stop, mica_error *err)
{
    mica_status status = check(stop, n_stop, err);
    if (status != MICA_OK)
        return status;
    for (size_t i = 0; i < n_stop; i++)
        prepare(&m->patterns[i], stop[i]);
    m->n = n_stop;
    m->begin = m->end = 0;
    m->done = false;
    return MICA_OK;
}

/* Feeds one byte to all: the length of the longest string that it completes, or 0; *held becomes the greatest state. */
static size_t feed(mica_stop *m, uint8_t byte, size_t *held)
{
    size_t complete = 0;
    *held = 0;
    for (size_t i = 0; i < m->n; i++) {
        pattern *p = &m->patterns[i];
        p->state = step(p, p->state, byte);
        if (p->state == p->length) {
            if (p->length > complete)
                complete = p->length;
        } else if (p->state > *held) {
            *held = p->state;
        }
    }
    return complete;
}

size_t mica_stop_push(mica_stop *m, const char *text, size_t n, const char **out, bool *hit)
{
    *hit = m->done;
    *out = m->buffer;
    if (m->done)
        return 0;
    if (n > MICA_STOP_MAX_BYTES) /* against the contract; never past the buffer */
        n = MICA_STOP_MAX_BYTES;
    size_t waiting = m->end - m->begin, held = waiting;
    memmove(m->buffer, m->buffer + m->begin, waiting);
    if (n > 0)
        memcpy(m->buffer + waiting, text, n);
    m->end = waiting + n;
    for (size_t i = waiting; i < m->end; i++) {
        size_t complete = feed(m, (uint8_t)m->buffer[i], &held);
        if (complete > 0) {
            m->done = *hit = true;
            m->begin = m->end = 0;
            return i + 1 - complete;
        }
    }
    m->begin = m->end - held;
    return m->begin;
}

size_t mica_stop_finish(mica_stop *m, const char **out)
{
    size_t waiting = m->end - m->begin;
    *out = m->buffer + m->begin;
    m->begin = m->end = 0;
    m->done = true;
    return waiting;
}
