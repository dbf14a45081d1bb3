/* names.c - the words that the router's enums have in files and logs. */
#include "mica/mica_router.h"
#include "router/rules.h"

const char *mica_route_class_name(mica_route_class value)
{
    return value < MICA_CLASS_UNKNOWN || value > MICA_CLASS_COMPLEX ? "auto" : mica_route_class_words[value];
}

const char *mica_route_action_name(mica_route_action action)
{
    switch (action) {
    case MICA_ROUTE_RUN:
        return "run";
    case MICA_ROUTE_QUEUE:
        return "queue";
    case MICA_ROUTE_REFUSE:
        return "refuse";
    }
    return "?";
}

const char *mica_route_reason_name(mica_route_reason reason)
{
    static const char *const names[] = {
        [MICA_ROUTE_FITS] = "fits",
        [MICA_ROUTE_NOT_WANTED] = "not_wanted",
        [MICA_ROUTE_EGRESS_DENIED] = "egress_denied",
        [MICA_ROUTE_IS_PRIVATE] = "private",
        [MICA_ROUTE_NO_NETWORK] = "no_network",
        [MICA_ROUTE_NO_FILE] = "no_file",
        [MICA_ROUTE_LOW_RAM] = "low_ram",
        [MICA_ROUTE_OVER_BUDGET] = "over_budget",
        [MICA_ROUTE_NO_MEMORY_NOW] = "no_memory_now",
        [MICA_ROUTE_UNHEALTHY] = "unhealthy",
        [MICA_ROUTE_CONTEXT] = "context",
        [MICA_ROUTE_LOW_QUALITY] = "low_quality",
        [MICA_ROUTE_TOO_SLOW] = "too_slow",
        [MICA_ROUTE_TOO_DEAR] = "too_dear",
        [MICA_ROUTE_TOO_MUCH_ENERGY] = "too_much_energy",
        [MICA_ROUTE_NO_SCHEMA] = "no_schema",
        [MICA_ROUTE_NO_TOOLS] = "no_tools",
        [MICA_ROUTE_STATE_FORBIDS] = "state_forbids",
        [MICA_ROUTE_HOPS] = "hops",
        [MICA_ROUTE_HOT] = "hot",
    };
    return (size_t)reason < sizeof names / sizeof *names ? names[reason] : "?";
}
