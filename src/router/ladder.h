/* ladder.h - the rungs that a policy chooses from, read from a JSON file. Plain data; nothing is looked up on the machine.
 *
 * docs/router.md describes the file, share/mica/schemas/route-ladder.schema.json is its schema. Called by policy.c, decide.c
 * and predict.c; run*.c and remote*.c read `endpoint`. */
#ifndef MICA_ROUTER_LADDER_H
#define MICA_ROUTER_LADDER_H
#include "mica/mica_ops.h"
#include "mica/mica_router.h"
#include "router/fields.h"
#include "router/run_settings.h"

enum { MICA_RUNG_TASKS_MAX = 32, MICA_RUNG_LOCAL = 0, MICA_RUNG_REMOTE = 1 };

typedef struct mica_rung_task {
    char name[MICA_ROUTE_NAME_MAX];
    double quality;
} mica_rung_task;

typedef struct mica_rung {
    char name[MICA_ROUTE_NAME_MAX], note[400];
    int32_t kind;   /* MICA_RUNG_LOCAL, MICA_RUNG_REMOTE */
    char file[256]; /* local */
    char chat_template[2048]; /* local; "" the model's own */
    char price[64]; /* a row of the price table; "" none */
    int64_t weights_bytes, min_ram_bytes, kv_bytes_per_token, fixed_bytes, context;
    double prefill_tps, decode_tps, load_ms; /* expected where nothing is measured; NAN: unknown */
    double ttft_ms;                          /* remote: to the first token of a short prompt */
    double watts;                            /* that the device draws while this rung works for it */
    double usd_in, usd_out;                  /* per million tokens; NAN: unknown */
    bool schema, tools;                      /* it can be held to a schema, can call tools */
    double quality[3];                       /* by mica_route_class, 0..1; NAN: unknown */
    char quality_source[400];
    mica_rung_task tasks[MICA_RUNG_TASKS_MAX]; /* better known than by class */
    int32_t n_tasks;
    mica_endpoint endpoint; /* remote; its texts belong to the ladder's `source` */
} mica_rung;

typedef struct mica_ladder {
    char name[MICA_ROUTE_NAME_MAX], version[32], note[400];
    int32_t n;
    mica_rung rungs[MICA_ROUTE_RUNGS_MAX];
    json_t *source; /* one reference */
} mica_ladder;

/** Takes a reference of `root`. `name` begins the messages: "FILE: " or "POLICY: /ladder". `prices` may be NULL. On an error
 * *out is as it was. */
mica_status mica_ladder_read(json_t *root, const char *name, const mica_prices *prices, mica_ladder **out, mica_error *err);
void mica_ladder_free(mica_ladder *ladder);

/** Of a task by its name ("" or unknown to the rung: by class); NAN: unknown. */
double mica_rung_quality(const mica_rung *rung, const char *task, mica_route_class value);

/** The tables of the file's objects, NULL after the last: for the test of the schemas. */
const mica_field_table *mica_ladder_table(size_t i);

#endif
