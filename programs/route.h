/* route.h - what the commands of mica route that carry requests out share: the router of a policy and its runner. Called by
 * cmd_route.c, cmd_serve.c and the route_*.c. */
#ifndef MICA_PROGRAMS_ROUTE_H
#define MICA_PROGRAMS_ROUTE_H
#include <jansson.h>

#include "mica/mica_router.h"
#include "opts.h"

typedef struct mica_routing {
    mica_router *router;
    mica_runner *runner;
    char queue[4096]; /* the file of what waits */
    const char *log;  /* the file of decisions; NULL: none */
    bool log_failed;
    struct mica_telemetry *telemetry; /* set before mica_routing_open(), and closed by who opened it; NULL: none */
} mica_routing;

/** From --policy (`policy` if that is not NULL), --models, --queue-file and --log. *r stays where it is. Returns an exit code. */
int mica_routing_open(const mica_opts *o, const char *policy, mica_routing *r);
void mica_routing_close(mica_routing *r);

/** The file of a policy: a path, or the name of one that comes with the program. Returns an exit code. */
int mica_routing_policy(const char *name, char path[4096]);
/** --queue-file, or the user's own. */
int mica_routing_queue(const mica_opts *o, char path[4096]);

/** --network and --metered as MICA_YES, MICA_NO, MICA_UNKNOWN. Without --network: whether this machine has a route to others. */
int mica_routing_network(const mica_opts *o);

/** The other words of mica route: o->args[0], with what they need in o->args[1] and further. */
int mica_route_decide_command(const mica_opts *o);
int mica_route_check(const mica_opts *o);
int mica_route_explain_command(const mica_opts *o);
int mica_route_replay_command(const mica_opts *o);
int mica_route_train_command(const mica_opts *o);
int mica_route_test_command(const mica_opts *o);

/** Prints a report (JSON text, which it frees) for people with `print`, or with --json as it is. Returns an exit code. */
int mica_route_print_report(const mica_opts *o, char *report, void (*print)(const json_t *report));

/** mica route ask, and mica route queue. Their words are o->args[1] and further. */
int mica_route_ask(const mica_opts *o);
int mica_route_queue(const mica_opts *o);

#endif
