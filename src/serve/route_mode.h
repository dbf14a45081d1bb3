/* route_mode.h - one endpoint for all rungs of a policy (mica_router.h): chat requests whose "model" is "auto" or a rung's name
 * are answered here; those for the model that is served go to the scheduler as always.
 *
 * A few threads of its own wait for rungs, so that neither the sockets, nor the thread that understands requests, nor the model
 * wait for a server elsewhere. The rung whose file is the model that is served runs in the batch (route_engine.c), other local
 * ones in the runner's own sessions. Called by routes.c and http.c. */
#ifndef MICA_SERVE_ROUTE_MODE_H
#define MICA_SERVE_ROUTE_MODE_H
#include "mica/mica_router.h"
#include "serve/http.h"
#include "router/run_impl.h"

typedef struct mica_route_mode mica_route_mode;

/** Starts the threads. Needs the scheduler. */
mica_status mica_route_mode_new(mica_server *s, mica_route_mode **out, mica_error *err);
/** Cancels what runs, fails what waits, ends the threads; while the scheduler still runs. NULL is fine. */
void mica_route_mode_free(mica_route_mode *m);

/** Takes a chat request that is for the router: true, and the job ends. False: it is for the model that is served. */
bool mica_route_mode_take(mica_route_mode *m, mica_job *job);

/** Reads the policy again; to the log. */
void mica_route_mode_reload(mica_route_mode *m);

/** Lines for /metrics, and entries for /v1/models. */
void mica_route_mode_metrics(const mica_route_mode *m, mica_buf *out);
void mica_route_mode_models(const mica_route_mode *m, json_t *list);

/** Whether the server ends. */
bool mica_route_mode_stops(const mica_route_mode *m);
/** A request went to the queue; a server was reached: what waits is tried at once. */
void mica_route_mode_held(mica_route_mode *m);
void mica_route_mode_reached(mica_route_mode *m);
/** A line of the head that names a rung. Stays valid until the mode is freed; NULL without memory. */
const char *mica_route_mode_header(mica_route_mode *m, const char *rung);

/* route_answer.c */
/** Answers one request, on a thread that may wait. */
void mica_route_mode_answer(mica_route_mode *m, mica_server *s, mica_job *job);

/* route_engine.c */
/** The server's batch as an engine of the runner: it runs the rung whose file is the model that is served. */
mica_status mica_route_mode_engine(mica_server *s, mica_run_engine *out, mica_error *err);

#endif
