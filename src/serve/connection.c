/* connection.c - one client: reads requests, one at a time, and writes their answers. Owned by the list of the server; freed
 * where it is closed.
 *
 * READING -> (a whole request) -> WAITING for its job -> (the answer is written) -> READING again, or CLOSING -> LINGERING ->
 * gone. Every state but WAITING has a deadline; WAITING ends by the job, by the client's leaving, or by its not reading. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/xxh64.h"
#include "serve/http.h"

#define READ_AHEAD ((size_t)64 * 1024) /* bytes that a client may send before they are wanted */

struct mica_connection {
    mica_server *server;
    mica_connection *previous, *next;
    struct bufferevent *socket;
    struct event *timer;
    mica_http_parse parse;
    enum { READING, WAITING, CLOSING, LINGERING } state;
    bool in_body, started; /* READING: of the request some bytes have come */
    size_t route;
    uint64_t address; /* a hash */
    mica_job *job;
    bool head_only, head_sent, chunked, keep_alive;
};

static void close_connection(mica_connection *c)
{
    mica_server *s = c->server;
    if (c->job) {
        mica_metrics_request(&s->metrics, c->route, 499);
        atomic_store(&c->job->gone, true);
        c->job->connection = NULL;
        mica_job_release(c->job);
        mica_schedule_look(s->schedule);
    }
    if (c->previous)
        c->previous->next = c->next;
    else
        s->connections = c->next;
    if (c->next)
        c->next->previous = c->previous;
    s->n_connections--;
    atomic_store(&s->metrics.connections, s->n_connections);
    bufferevent_free(c->socket);
    event_free(c->timer);
    mica_http_end(&c->parse);
    free(c);
    mica_server_check_drained(s);
}

static void set_timer(mica_connection *c, int seconds)
{
    struct timeval t = {.tv_sec = seconds};
    event_add(c->timer, &t);
}

/* The answer is written and the client is told that no more comes. It may still be sending: closing now would reset the
 * connection, and the answer could be lost. */
static void linger(mica_connection *c)
{
    c->state = LINGERING;
    shutdown(bufferevent_getfd(c->socket), SHUT_WR);
    struct evbuffer *in = bufferevent_get_input(c->socket);
    evbuffer_drain(in, evbuffer_get_length(in));
    bufferevent_setwatermark(c->socket, EV_READ, 0, 0);
    set_timer(c, MICA_SERVE_LINGER_S);
}

static void finish_writing(mica_connection *c)
{
    c->state = CLOSING;
    event_del(c->timer); /* the socket's own write timeout counts */
    if (evbuffer_get_length(bufferevent_get_output(c->socket)) == 0)
        linger(c);
}

/* ---- Answers ---- */

static void write_head(mica_connection *c, int status, const char *type, size_t length, const char *more)
{
    struct evbuffer *out = bufferevent_get_output(c->socket);
    const char *origin = mica_guard_cors(c->server, &c->parse);
    char date[40];
    time_t now = time(NULL);
    struct tm t;
    gmtime_r(&now, &t);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &t);
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nServer: mica\r\nX-Content-Type-Options: nosniff\r\n", status,
                        mica_http_reason(status), date);
    if (type)
        evbuffer_add_printf(out, "Content-Type: %s\r\n", type);
    if (c->chunked)
        evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\nCache-Control: no-cache\r\n");
    else if (length != SIZE_MAX && status != 204 && status != 304)
        evbuffer_add_printf(out, "Content-Length: %zu\r\n", length);
    if (origin)
        evbuffer_add_printf(out, "Access-Control-Allow-Origin: %s\r\n", origin);
    if (c->server->options.cors_origin)
        evbuffer_add_printf(out, "Vary: Origin\r\n");
    evbuffer_add_printf(out, "%s%s\r\n", more ? more : "",
                        c->keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
}

/* An answer without a job; the connection ends with it, as the rest of the request is not read. */
static void refuse(mica_connection *c, const mica_fault *fault, const char *more)
{
    char *json = mica_fault_json(fault);
    size_t length = json ? strlen(json) : 0;
    c->keep_alive = c->chunked = false;
    mica_metrics_request(&c->server->metrics, c->route, fault->status);
    write_head(c, fault->status, "application/json", length, more);
    if (!c->head_only)
        bufferevent_write(c->socket, json ? json : "", length);
    free(json);
    finish_writing(c);
}

static void answer_preflight(mica_connection *c, const char *allow)
{
    char more[400];
    c->keep_alive = c->parse.keep_alive && c->parse.left == 0 && !c->parse.chunked;
    if (mica_guard_cors(c->server, &c->parse))
        snprintf(
            more, sizeof more,
            "Access-Control-Allow-Methods: GET, POST, OPTIONS\r\nAccess-Control-Allow-Headers: authorization, content-type\r\n"
            "Access-Control-Max-Age: 600\r\n");
    else
        snprintf(more, sizeof more, "Allow: %s\r\n", allow);
    mica_metrics_request(&c->server->metrics, c->route, 204);
    write_head(c, 204, NULL, 0, more);
}

/* ---- Requests ---- */

static void read_more(mica_connection *c);

static void next_request(mica_connection *c)
{
    mica_http_end(&c->parse);
    mica_http_start(&c->parse, MICA_SERVE_BODY_MAX);
    c->state = READING;
    c->in_body = c->started = c->head_sent = c->head_only = c->chunked = false;
    c->route = mica_route_count();
    set_timer(c, MICA_SERVE_IDLE_S);
}

/* The head is there: is it worth reading the body? False: it was answered. */
static bool admit(mica_connection *c)
{
    mica_server *s = c->server;
    mica_fault fault;
    char allow[64] = "", more[128] = "";
    c->keep_alive = c->parse.keep_alive && !s->draining;
    c->head_only = strcmp(c->parse.method, "HEAD") == 0;
    bool found = mica_route_find(&c->parse, &c->route, allow, &fault);
    if (strcmp(c->parse.method, "OPTIONS") == 0 && *allow) {
        answer_preflight(c, allow);
        if (c->keep_alive)
            next_request(c);
        else
            finish_writing(c);
        return false;
    }
    if (!found && *allow)
        snprintf(more, sizeof more, "Allow: %s\r\n", allow);
    found = found && mica_guard_allows(s, &c->parse, c->route, &fault);
    if (!found && fault.status == 401)
        snprintf(more, sizeof more, "WWW-Authenticate: Bearer\r\n");
    if (!found)
        refuse(c, &fault, more);
    return found;
}

/* More than the slots and the queue hold. */
static bool is_full(mica_connection *c)
{
    mica_server *s = c->server;
    char more[64];
    mica_fault fault;
    int64_t slots = atomic_load(&s->metrics.slots), present = atomic_load(&s->metrics.in_flight);
    if (present < slots + s->options.queue)
        return false;
    atomic_fetch_add(&s->metrics.queue_refusals, 1);
    mica_fault_set(&fault, 429, "queue_full", NULL,
                   "%lld requests run or wait already, as many as the server takes; try again later", (long long)present);
    snprintf(more, sizeof more, "Retry-After: %lld\r\n", (long long)(1 + s->options.queue / slots));
    refuse(c, &fault, more);
    return true;
}

/* "" without it, or if it is longer. */
static void take_header(const mica_connection *c, const char *name, char *out, size_t size)
{
    const char *value = mica_http_header_of(&c->parse, name);
    snprintf(out, size, "%s", value && strlen(value) < size ? value : "");
}

static void dispatch(mica_connection *c)
{
    mica_server *s = c->server;
    const mica_route *route = mica_route_at(c->route);
    mica_fault fault;
    size_t length = 0;
    if (route->heavy && s->draining) {
        mica_fault_set(&fault, 503, "shutting_down", NULL, "the server is shutting down");
        refuse(c, &fault, NULL);
        return;
    }
    if (route->heavy && mica_pressure_refuses(s->pressure, &fault)) {
        refuse(c, &fault, "Retry-After: 10\r\n"); /* a step down takes as long */
        return;
    }
    if (route->heavy && is_full(c))
        return;
    char *body = mica_buf_take(&c->parse.body, &length);
    mica_job *job = mica_job_new(&s->outbox, c->route, body, length);
    if (!job) {
        mica_fault_set(&fault, 503, "out_of_memory", NULL, "the server has no memory for the request");
        refuse(c, &fault, NULL);
        return;
    }
    job->deadline_ns = job->arrived_ns + (int64_t)s->options.time_s * 1000000000;
    job->client = mica_guard_client(s, &c->parse, c->address, &job->has_key);
    take_header(c, "if-none-match", job->if_none_match, sizeof job->if_none_match);
    take_header(c, "idempotency-key", job->idempotency_key, sizeof job->idempotency_key);
    job->connection = c;
    c->job = job;
    c->state = WAITING;
    event_del(c->timer);
    if (!route->heavy) {
        route->answer(s, job);
        return;
    }
    atomic_fetch_add(&s->metrics.in_flight, 1);
    job->in_flight = &s->metrics.in_flight;
    mica_prepare_add(s->prepare, mica_job_retain(job));
}

/* What the parser says after it was fed. */
static void follow(mica_connection *c)
{
    mica_http_parse *p = &c->parse;
    if (p->state == MICA_HTTP_HEAD_DONE && admit(c)) {
        struct evbuffer *in = bufferevent_get_input(c->socket);
        mica_http_want_body(p);
        c->in_body = true;
        set_timer(c, MICA_SERVE_BODY_S);
        if (p->expects && p->state != MICA_HTTP_WHOLE && evbuffer_get_length(in) == 0)
            bufferevent_write(c->socket, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    }
    if (c->state == READING && p->state == MICA_HTTP_WHOLE)
        dispatch(c);
    else if (c->state == READING && p->state == MICA_HTTP_BAD)
        refuse(c, &p->fault, NULL);
}

static void read_more(mica_connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->socket);
    char block[4096];
    while (c->state == READING && evbuffer_get_length(in) > 0) {
        ev_ssize_t n = evbuffer_copyout(in, block, sizeof block);
        size_t taken = n > 0 ? mica_http_feed(&c->parse, block, (size_t)n) : 0;
        evbuffer_drain(in, taken);
        if (!c->started && c->parse.head.length > 0) {
            c->started = true;
            set_timer(c, MICA_SERVE_HEAD_S);
        }
        follow(c);
    }
}

/* ---- News of the job ---- */

/* Framing around a piece of the answer's body. */
static void write_piece(mica_connection *c, const char *data, size_t length)
{
    struct evbuffer *out = bufferevent_get_output(c->socket);
    if (length == 0 || c->head_only)
        return;
    if (c->chunked)
        evbuffer_add_printf(out, "%zx\r\n", length);
    evbuffer_add(out, data, length);
    if (c->chunked)
        evbuffer_add(out, "\r\n", 2);
}

static void end_answer(mica_connection *c)
{
    mica_metrics_request(&c->server->metrics, c->route, c->job->status);
    if (c->chunked)
        bufferevent_write(c->socket, "0\r\n\r\n", 5);
    c->job->connection = NULL;
    mica_job_release(c->job);
    c->job = NULL;
    if (!c->keep_alive || c->server->draining) {
        finish_writing(c);
    } else {
        next_request(c);
        read_more(c);
    }
    mica_server_check_drained(c->server);
}

static void write_job_head(mica_connection *c, int status, const char *type, bool streams, size_t length)
{
    c->head_sent = true;
    c->chunked = streams && !c->parse.http10;
    c->keep_alive = c->keep_alive && (!streams || c->chunked);
    write_head(c, status, type, streams ? SIZE_MAX : length, c->job->headers);
}

static void drop_slow(mica_connection *c)
{
    atomic_fetch_add(&c->server->metrics.slow_readers, 1);
    mica_server_log(c->server, "a stream was dropped: its client has not read %zu bytes of it",
                    evbuffer_get_length(bufferevent_get_output(c->socket)));
    close_connection(c);
}

void mica_connection_news(mica_job *job)
{
    mica_buf news = {.data = NULL};
    pthread_mutex_lock(&job->outbox->lock);
    bool streams = job->streams, ended = job->ended, failed = job->out.failed;
    int status = job->status;
    const char *type = job->type;
    news = job->out;
    mica_buf_init(&job->out, MICA_SERVE_REPLY_MAX);
    pthread_mutex_unlock(&job->outbox->lock);
    mica_connection *c = job->connection;
    if (c && status) {
        if (!c->head_sent && (streams || ended))
            write_job_head(c, status, type, streams, news.length);
        write_piece(c, news.data, news.length);
        bool slow = streams && evbuffer_get_length(bufferevent_get_output(c->socket)) > MICA_SERVE_BACKLOG_MAX;
        if (slow || failed)
            drop_slow(c);
        else if (ended)
            end_answer(c);
        else
            set_timer(c, MICA_SERVE_PING_S);
    }
    mica_buf_free(&news);
    mica_job_release(job);
}

/* ---- Events ---- */

static void on_read(struct bufferevent *socket, void *user)
{
    mica_connection *c = user;
    struct evbuffer *in = bufferevent_get_input(socket);
    if (c->state == LINGERING || c->state == CLOSING)
        evbuffer_drain(in, evbuffer_get_length(in));
    else
        read_more(c);
}

static void on_written(struct bufferevent *socket, void *user)
{
    mica_connection *c = user;
    (void)socket;
    if (c->state == CLOSING)
        linger(c);
}

static void on_event(struct bufferevent *socket, short what, void *user)
{
    mica_connection *c = user;
    (void)socket;
    if (c->job && (what & BEV_EVENT_TIMEOUT)) {
        drop_slow(c);
        return;
    }
    if (c->job)
        atomic_fetch_add(&c->server->metrics.clients_left, 1);
    close_connection(c);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    mica_connection *c = user;
    (void)fd;
    (void)what;
    if (c->state == WAITING) { /* a stream that has been silent */
        write_piece(c, ": keep-alive\n\n", 14);
        set_timer(c, MICA_SERVE_PING_S);
    } else if (c->state == READING && c->started) {
        mica_fault fault;
        mica_fault_set(&fault, 408, "request_timeout", NULL, "the request did not come within %d s",
                       c->in_body ? MICA_SERVE_BODY_S : MICA_SERVE_HEAD_S);
        refuse(c, &fault, NULL);
    } else {
        close_connection(c);
    }
}

/* ---- Beginning and end ---- */

static void refuse_connection(mica_connection *c)
{
    mica_fault fault;
    atomic_fetch_add(&c->server->metrics.connection_refusals, 1);
    mica_fault_set(&fault, 503, "too_many_connections", NULL,
                   "the server has %d connections, as many as it takes; try again later", c->server->options.connections);
    refuse(c, &fault, "Retry-After: 1\r\n");
}

/* Of the address without the port, which is another one for each connection. */
static uint64_t hash_peer(evutil_socket_t fd)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &length))
        return 0; /* it is gone already */
    if (peer.ss_family == AF_INET)
        return mica_xxh64_of(&((struct sockaddr_in *)&peer)->sin_addr, sizeof(struct in_addr));
    if (peer.ss_family == AF_INET6)
        return mica_xxh64_of(&((struct sockaddr_in6 *)&peer)->sin6_addr, sizeof(struct in6_addr));
    return 0;
}

void mica_connection_accept(mica_server *s, evutil_socket_t fd)
{
    struct timeval write_time = {.tv_sec = MICA_SERVE_WRITE_S};
    int now = 1; /* a token is a small packet, and must not wait for the next one */
    mica_connection *c = calloc(1, sizeof *c);
    struct bufferevent *socket = c ? bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    struct event *timer = socket ? evtimer_new(s->base, on_timer, c) : NULL;
    if (!timer) {
        if (socket)
            bufferevent_free(socket);
        else
            evutil_closesocket(fd);
        free(c);
        return;
    }
    *c = (mica_connection){.server = s, .next = s->connections, .socket = socket, .timer = timer, .route = mica_route_count(),
                           .address = hash_peer(fd)};
    if (s->connections)
        s->connections->previous = c;
    s->connections = c;
    atomic_store(&s->metrics.connections, ++s->n_connections);
    atomic_fetch_add(&s->metrics.connections_total, 1);
    mica_http_start(&c->parse, MICA_SERVE_BODY_MAX);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now); /* else it is only slower */
    bufferevent_setcb(socket, on_read, on_written, on_event, c);
    bufferevent_setwatermark(socket, EV_READ, 0, READ_AHEAD);
    bufferevent_set_timeouts(socket, NULL, &write_time);
    bufferevent_enable(socket, EV_READ | EV_WRITE);
    set_timer(c, MICA_SERVE_HEAD_S);
    if (s->n_connections > s->options.connections)
        refuse_connection(c);
}

void mica_connection_close_idle(mica_server *s)
{
    for (mica_connection *c = s->connections, *next; c; c = next) {
        next = c->next;
        if (c->state == READING && !c->started)
            close_connection(c);
    }
}

void mica_connection_close_all(mica_server *s)
{
    while (s->connections)
        close_connection(s->connections);
}
