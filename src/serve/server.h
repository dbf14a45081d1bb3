/* server.h - the server: one model behind HTTP.
 *
 *     mica_server_options o = {.model = model, .host = "127.0.0.1", .port = 8080, ...};
 *     mica_server_new(&o, &server, &err);
 *     mica_server_run(server);                       // until mica_server_drain() has let the last request end, or
 * mica_server_stop() mica_server_free(server);
 *
 * Three threads: the caller's runs libevent (http.c, connection.c), one understands requests (prepare.c), one owns the model's
 * sessions (schedule.c). docs/server.md is the manual. Called by programs/cmd_serve.c. */
#ifndef MICA_SERVE_SERVER_H
#define MICA_SERVE_SERVER_H
#include "base/error.h"

typedef struct mica_server mica_server;

typedef struct mica_server_options {
    mica_model *model;          /* borrowed */
    const char *name;           /* what clients see as the model's name */
    const char *host;           /* a name or address; one that is not of this machine alone needs a key */
    int port;                   /* 0: any free one */
    const char *key, *key_file; /* API keys: one, or a file of them; NULL: none */
    const char *cors_origin;    /* "http://host:port" of pages that may ask, or "*"; NULL: none */
    bool think;                 /* <think>...</think> of replies goes to "reasoning_content" */
    int queue;                  /* requests that may wait */
    int connections;            /* at the same time */
    int time_s;                 /* for a whole request */
    const char *prefix_file;    /* what was computed is read from and, after draining, saved to it; NULL: nowhere */
    mica_batch_options batch;   /* max_sessions: replies at the same time */
    struct mica_telemetry *telemetry; /* gets an event of every reply; NULL: none. Borrowed */
    bool telemetry_text;              /* with the texts; as it was made */
    const char *const *require;       /* conditions of every reply (mica_receipt.h) */
    size_t n_require;
    const char *hash_cache;           /* for receipts (mica_receipt.h); NULL: none */
    struct mica_router *router; /* one endpoint for all rungs of its policy (mica_router.h); NULL: for the model alone. Borrowed */
    struct mica_runner *runner; /* of that router. Borrowed */
    const char *model_path;     /* the model's file: the rung with the same one runs in the batch */
    int network, metered;       /* as in mica_run_request */
    bool drain;                 /* the runner has a queue: try what waits in it now and then */
    void (*on_log)(void *user, const char *line);
    void (*on_settled)(void *user); /* once: the first reply has begun, or some seconds have passed; may be NULL */
    void *user;
} mica_server_options;

/** All defaults but model and name. */
mica_server_options mica_server_options_default(void);

/** Reserves memory, listens, starts the threads. The options' texts are borrowed until the server is freed. */
mica_status mica_server_new(const mica_server_options *options, mica_server **out, mica_error *err);
void mica_server_free(mica_server *s);

/** "http://127.0.0.1:8080". Borrowed. */
const char *mica_server_address(const mica_server *s);

/** Serves until it was drained or stopped. SIGTERM and SIGINT drain, a second one stops; SIGHUP reloads the key file. */
mica_status mica_server_run(mica_server *s, mica_error *err);

#endif
