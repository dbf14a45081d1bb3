/* http.h - the HTTP thread's state: what the event loop, the connections and the routes share. Private to serve; nothing here
 * is touched by another thread.
 *
 * libevent gives the loop, the listener and buffered sockets. Its own HTTP layer (evhttp 2.1) is not used: it answers what
 * breaks a limit with pages of its own instead of errors in OpenAI's form, has no deadline for slow headers, and ends the
 * process when bytes come on a connection whose reply is still being made, once reading is on to see clients leave. */
#ifndef MICA_SERVE_HTTP_H
#define MICA_SERVE_HTTP_H
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "serve/api_embeddings.h"
#include "serve/http_parse.h"
#include "serve/keys.h"
#include "serve/prepare.h"
#include "serve/pressure.h"
#include "serve/schedule.h"
#include "serve/server.h"
#include "serve/side.h"

typedef struct mica_connection mica_connection;

struct mica_server {
    mica_server_options options;
    mica_serve_context context;
    mica_metrics metrics;
    mica_keys keys;
    mica_outbox outbox;
    mica_schedule *schedule;
    mica_prepare *prepare;
    mica_pressure_watch *pressure;
    struct mica_route_mode *route; /* NULL: requests are for the model */
    mica_side *side; /* NULL: nobody asked for embeddings or scores yet */
    char address[128];
    bool loopback; /* the address is of this machine alone */
    /* the event loop */
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *wake, *resume, *signals[3];
    mica_connection *connections; /* a list */
    int n_connections;
    bool draining, stopped;
};

/** A row of the table in routes.c. */
typedef struct mica_route {
    const char *method, *path;
    bool open;                                     /* needs no key */
    bool heavy;                                    /* counts for the queue's limit, and runs on the preparing thread */
    void (*answer)(mica_server *s, mica_job *job); /* sees to it that the job ends */
} mica_route;

size_t mica_route_count(void);
const mica_route *mica_route_at(size_t i);
const char *mica_route_name(size_t i);

/** What a request's head asks for: *route, or false with the fault and, for 405, the allowed methods. */
bool mica_route_find(const mica_http_parse *p, size_t *route, char allow[64], mica_fault *fault);
/** Whether the head may ask for that: key, host, origin. */
bool mica_guard_allows(const mica_server *s, const mica_http_parse *p, size_t route, mica_fault *fault);
/** Tells clients apart: a hash of the key (*has_key), or, where there are no keys, `address`. */
uint64_t mica_guard_client(const mica_server *s, const mica_http_parse *p, uint64_t address, bool *has_key);
/** The origin to name in the answer, or NULL. */
const char *mica_guard_cors(const mica_server *s, const mica_http_parse *p);

/* connection.c */
void mica_connection_accept(mica_server *s, evutil_socket_t fd);
/** A job has news; takes over the reference that the outbox had. */
void mica_connection_news(mica_job *job);
/** At the beginning of draining: closes what waits for nothing. */
void mica_connection_close_idle(mica_server *s);
void mica_connection_close_all(mica_server *s);

/* http.c */
/** A line for the log. */
void mica_server_log(const mica_server *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** While draining: ends the loop if nothing is left to do. */
void mica_server_check_drained(mica_server *s);

#endif
