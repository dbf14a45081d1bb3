/* policy.h - a policy as values: what a file said, checked. Immutable once made; counted. The public functions over it are in
 * mica_router.h. Called by decide.c, predict.c, record.c, replay.c; run*.c read `run` and the rungs' `endpoint`. */
#ifndef MICA_ROUTER_POLICY_H
#define MICA_ROUTER_POLICY_H
#include <stdatomic.h>

#include "mica/mica_router.h"
#include "router/classifier.h"
#include "router/ladder.h"
#include "router/rules.h"
#include "router/run_settings.h"

enum { MICA_WHENS_MAX = 16, MICA_CLASSES = 3 };

/* The words of the file, in this order: policy_read.c. */
enum { MICA_ORDER_LADDER = 0, MICA_ORDER_SMALLEST = 1, MICA_ORDER_SCORE = 2 };
enum { MICA_PREFER_NONE = 0, MICA_PREFER_LOCAL = 1, MICA_PREFER_REMOTE = 2 };
enum { MICA_FORBID_NOTHING = 0, MICA_FORBID_LOCAL = 1, MICA_FORBID_REMOTE = 2 };
enum { MICA_OFFLINE_RUN = 0, MICA_OFFLINE_DEGRADE = 1, MICA_OFFLINE_QUEUE = 2 };

/** What is done with the requests of a class. */
typedef struct mica_policy_class {
    int32_t order, prefer, offline;
    double min_quality;    /* 0: any */
    int64_t output_tokens; /* of a request that does not say */
    int64_t deadline_ms;   /* the same; -1: none */
    double per_usd, per_second, per_joule, per_quality; /* MICA_ORDER_SCORE: what one of each costs */
} mica_policy_class;

/** A condition on device and request, and what follows from it. */
typedef struct mica_policy_when {
    char name[24], note[400];
    /* All that are given must hold; what is unknown does not. */
    int32_t thermal_least; /* a mica_thermal_status; -1: no condition */
    double battery_below;  /* NAN: no condition */
    int on_battery, power_save, metered, network;
    int32_t route_class;
    int64_t prompt_least, output_least;
    /* What follows. */
    int32_t forbid, prefer, order; /* prefer, order: -1 as the class says */
    int64_t output_most;           /* -1: no cap */
    int64_t weights_most;          /* larger local rungs are passed over; -1: none */
    int64_t yield_tokens;          /* -1: none */
} mica_policy_when;

struct mica_route_policy {
    atomic_int references;
    char name[MICA_ROUTE_NAME_MAX], version[32], note[400], hash[17];
    bool allow_egress, log_text, queue_when_nothing_fits;
    double bytes_per_token;
    int64_t hops;
    double ram_fraction;
    double min_confidence;     /* of the classifier; below it the class is unknown */
    double electricity_usd;    /* per kWh; NAN: unknown */
    char degraded_prompt[2048];
    mica_policy_class classes[MICA_CLASSES]; /* by mica_route_class */
    int32_t n_when;
    mica_policy_when when[MICA_WHENS_MAX];
    mica_rules rules;
    mica_classifier *classifier; /* NULL: none */
    mica_ladder *ladder;
    mica_run_settings run;
};

/** What a policy's text names, already read. NULL where it names none. */
typedef struct mica_policy_parts {
    mica_prices *prices;
    mica_classifier *classifier; /* taken over */
    json_t *ladder;              /* one more reference is taken */
    char ladder_name[256];
} mica_policy_parts;

/** Reads a policy's object; on an error *policy still is to be released. */
mica_status mica_policy_read(const json_t *root, const char *name, mica_policy_parts *parts, mica_route_policy *policy,
                             mica_error *err);

const mica_field_table *mica_policy_table(size_t i);

#endif
