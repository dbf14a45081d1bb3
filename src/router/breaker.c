#include "router/breaker.h"

bool mica_breaker_is_open(const mica_breaker *b, int64_t now_ns)
{
    if (now_ns < b->not_before_ns)
        return true;
    return b->state == MICA_BREAKER_HALF_OPEN ? b->probing : b->state == MICA_BREAKER_OPEN && now_ns < b->until_ns;
}

bool mica_breaker_begin(mica_breaker *b, int64_t now_ns)
{
    if (mica_breaker_is_open(b, now_ns))
        return false;
    if (b->state == MICA_BREAKER_OPEN)
        b->state = MICA_BREAKER_HALF_OPEN;
    if (b->state == MICA_BREAKER_HALF_OPEN)
        b->probing = true;
    return true;
}

void mica_breaker_end(mica_breaker *b, mica_breaker_result result, int32_t limit, int64_t open_ns, int64_t now_ns)
{
    bool probe = b->state == MICA_BREAKER_HALF_OPEN && b->probing;
    if (probe)
        b->probing = false;
    if (result == MICA_BREAKER_NEITHER)
        return; /* a probe that said nothing: the next attempt is one */
    if (result == MICA_BREAKER_GOOD) {
        b->state = MICA_BREAKER_CLOSED;
        b->failures = 0;
        return;
    }
    if (b->failures < INT32_MAX)
        b->failures++;
    if (probe || (b->state == MICA_BREAKER_CLOSED && b->failures >= limit)) {
        b->state = MICA_BREAKER_OPEN;
        b->until_ns = now_ns + open_ns;
    }
}

void mica_breaker_wait(mica_breaker *b, int64_t until_ns)
{
    if (until_ns > b->not_before_ns)
        b->not_before_ns = until_ns;
}
