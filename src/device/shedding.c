/* shedding.c - which of the steps of mica_memory.h the state of the machine calls for. */
#include <math.h>
#include <stdio.h>

#include "device/budget.h"
#include "mica/mica_memory.h"

/* Percent of the last ten seconds in which some (all) tasks waited for memory. Below a few percent everybody lives with it;
 * from a tenth on a machine feels slow; systemd-oomd, which ends programs, acts at 60 % of half a minute by default. */
#define SOME_RISE   10.0
#define SOME_CALM   5.0
#define SOME_URGENT 40.0
#define FULL_RISE   5.0
#define FULL_CALM   2.0
#define FULL_URGENT 20.0

#define SECOND     INT64_C(1000000000)
#define STEP_NS    (5 * SECOND)  /* what a step frees shows in a mean of ten seconds by then */
#define WARNING_NS (60 * SECOND) /* systems warn, but do not say when it is over */

const char *mica_shed_level_name(mica_shed_level level)
{
    static const char *const names[] = {"nothing", "prefixes", "idle", "refuse"};
    return (unsigned)level < sizeof names / sizeof *names ? names[level] : "nothing";
}

static mica_shed_level warned(const mica_device_state *s, char reason[120])
{
    if (s->trim <= MICA_TRIM_NONE || s->time_ns - s->reported_ns > WARNING_NS)
        return MICA_SHED_NOTHING;
    snprintf(reason, 120, "memory pressure: the system asks for memory (%s)", mica_trim_level_name(s->trim));
    return s->trim >= MICA_TRIM_CRITICAL ? MICA_SHED_REFUSE : s->trim == MICA_TRIM_LOW ? MICA_SHED_IDLE : MICA_SHED_PREFIXES;
}

static mica_shed_level too_large(int64_t rss, int64_t budget, int64_t limit, char reason[120])
{
    char size[32], bound[32];
    if (rss <= budget && rss <= limit)
        return MICA_SHED_NOTHING;
    mica_memory_text(rss, size);
    mica_memory_text(rss > limit ? limit : budget, bound);
    snprintf(reason, 120, "memory pressure: %s are more than the process's %s of %s", size, rss > limit ? "limit" : "budget",
             bound);
    return rss > limit ? MICA_SHED_REFUSE : MICA_SHED_IDLE;
}

/* NAN, unknown, is above nothing. */
static bool stalls(const mica_device_state *s, double some, double full)
{
    return s->psi_memory_some10 >= some || s->psi_memory_full10 >= full;
}

static mica_shed_level called_for(const mica_shedding *p, const mica_device_state *s, char reason[120])
{
    if (!stalls(s, SOME_RISE, FULL_RISE))
        return MICA_SHED_NOTHING;
    snprintf(reason, 120, "memory pressure: tasks waited for memory %.0f %% of the last 10 s", s->psi_memory_some10);
    if (stalls(s, SOME_URGENT, FULL_URGENT))
        return MICA_SHED_REFUSE;
    bool next = p->level < MICA_SHED_REFUSE && (p->level == MICA_SHED_NOTHING || s->time_ns - p->changed_ns >= STEP_NS);
    return next ? p->level + 1 : p->level;
}

static mica_shed_level highest(mica_shed_level a, mica_shed_level b)
{
    return a > b ? a : b;
}

mica_shed_level mica_shedding_update(mica_shedding *p, const mica_device_state *s, int64_t rss, int64_t budget, int64_t limit,
                                     char reason[120])
{
    char why[120] = "memory pressure: it has not been over for long enough";
    mica_shed_level wanted = called_for(p, s, why);
    wanted = highest(wanted, too_large(rss, budget < 0 ? INT64_MAX : budget, limit < 0 ? INT64_MAX : limit, why));
    wanted = highest(wanted, warned(s, why));
    bool calm = wanted < p->level && !stalls(s, SOME_CALM, FULL_CALM);
    p->calm_ns = !calm ? 0 : p->calm_ns ? p->calm_ns : s->time_ns;
    int64_t since = p->calm_ns > p->changed_ns ? p->calm_ns : p->changed_ns;
    if (wanted > p->level || (calm && s->time_ns - since >= MICA_CALM_S * SECOND)) {
        p->level = wanted > p->level ? wanted : p->level - 1;
        p->changed_ns = s->time_ns;
    }
    if (reason)
        snprintf(reason, 120, "%s", p->level > MICA_SHED_NOTHING ? why : "");
    return p->level;
}
