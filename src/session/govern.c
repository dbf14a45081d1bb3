#include "session/govern.h"

#include <time.h>

#include "base/clock.h"
#include "device/governor.h"
#include "session/session.h"

#define SLICE_NS 20000000 /* of a pause: how long a cancel may wait */
#define PAUSE_US 2000000  /* the longest, whatever an application asks for */

static void pause_until(const mica_governed *g, int64_t until_ns)
{
    for (int64_t now = mica_now_ns(); now < until_ns; now = mica_now_ns()) {
        int64_t rest = until_ns - now < SLICE_NS ? until_ns - now : SLICE_NS;
        if (g->cancelled && atomic_load(g->cancelled))
            return;
        nanosleep(&(struct timespec){0, rest}, NULL);
    }
}

static void use_cores(mica_governed *g)
{
    const mica_governor_output *o = &g->now;
    int32_t cpus[MICA_MAX_THREADS], n = o->n_fast + o->n_slow;
    if (n < 1 || n > MICA_MAX_THREADS || (o->n_fast == g->n_fast && o->n_slow == g->n_slow))
        return;
    mica_governor_cpus(g->governor, o, cpus);
    g->n_fast = o->n_fast;
    g->n_slow = o->n_slow;
    (void)mica_threads_set(g->pool, g->options, g->threads, n, cpus, NULL);
}

void mica_govern_before(mica_governed *g)
{
    if (!g->governor)
        return;
    g->now = *mica_governor_next(g->governor);
    use_cores(g);
    if (g->now.pause_us > 0 && g->end_ns > 0)
        pause_until(g, g->end_ns + 1000 * (int64_t)(g->now.pause_us < PAUSE_US ? g->now.pause_us : PAUSE_US));
    g->start_ns = mica_now_ns();
}

void mica_govern_after(mica_governed *g, int32_t n)
{
    if (!g->governor)
        return;
    g->end_ns = mica_now_ns();
    mica_governor_note(g->governor, g->end_ns, n, g->end_ns - g->start_ns);
}

int32_t mica_govern_chunk(const mica_governed *g, int32_t chunk)
{
    return g->governor && g->now.prefill_chunk > 0 && g->now.prefill_chunk < chunk ? g->now.prefill_chunk : chunk;
}

int32_t mica_govern_draft(const mica_governed *g, int32_t draft)
{
    return g->governor && g->now.draft_max >= 0 && g->now.draft_max < draft ? g->now.draft_max : draft;
}

mica_status mica_govern_reply(mica_governed *g, int32_t room, int32_t *max_tokens, mica_error *err)
{
    if (!g->governor)
        return MICA_OK;
    mica_governor_note(g->governor, mica_now_ns(), 0, 0);
    g->now = *mica_governor_next(g->governor);
    int32_t longest = *max_tokens >= 0 && *max_tokens < room ? *max_tokens : room;
    if (g->now.refuse_above >= 0 && longest > g->now.refuse_above)
        return mica_fail(
            err, MICA_TOO_HOT,
            "the device is too hot for a reply of up to %d tokens: the policy allows %d now; ask for fewer, or wait", longest,
            g->now.refuse_above);
    if (g->now.max_tokens >= 0 && longest > g->now.max_tokens)
        *max_tokens = g->now.max_tokens;
    return MICA_OK;
}
