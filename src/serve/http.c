/* http.c - the server's making, its event loop, its signals and its end. */
#include "serve/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#ifdef MICA_HAVE_ROUTER
#include "serve/route_mode.h"
#endif

mica_server_options mica_server_options_default(void)
{
    mica_server_options o = {.host = "127.0.0.1",
                             .port = 8080,
                             .queue = MICA_SERVE_QUEUE,
                             .connections = MICA_SERVE_CONNECTIONS,
                             .time_s = MICA_SERVE_TIME_S,
                             .batch = mica_batch_options_default()};
    o.batch.max_sessions = 4;
    return o;
}

void mica_server_log(const mica_server *s, const char *format, ...)
{
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (s->options.on_log)
        s->options.on_log(s->options.user, line);
}

/* ---- Listening ---- */

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int length, void *user)
{
    (void)listener;
    (void)from;
    (void)length;
    mica_connection_accept(user, fd);
}

/* Mostly: no more file descriptors. Trying again at once would only burn time. */
static void on_accept_error(struct evconnlistener *listener, void *user)
{
    mica_server *s = user;
    struct timeval pause = {.tv_usec = 200000};
    mica_server_log(s, "cannot accept a connection: %s", strerror(errno));
    evconnlistener_disable(listener);
    event_add(s->resume, &pause);
}

static void on_resume(evutil_socket_t fd, short what, void *user)
{
    mica_server *s = user;
    (void)fd;
    (void)what;
    if (s->listener)
        evconnlistener_enable(s->listener);
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static void tell_address(mica_server *s)
{
    struct sockaddr_storage a;
    socklen_t length = sizeof a;
    char host[64], port[8];
    if (getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&a, &length) ||
        getnameinfo((struct sockaddr *)&a, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    s->loopback = is_loopback((struct sockaddr *)&a);
    snprintf(s->address, sizeof s->address, strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host, port);
}

static mica_status listen_at(mica_server *s, mica_error *err)
{
    const char *host = s->options.host;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char port[8];
    snprintf(port, sizeof port, "%d", s->options.port);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no address %.200s to listen at: %s", host, gai_strerror(code));
    s->listener =
        evconnlistener_new_bind(s->base, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC, 512,
                                found->ai_addr, (int)found->ai_addrlen);
    int reason = errno;
    freeaddrinfo(found);
    if (!s->listener)
        return mica_fail(err, MICA_IO_ERROR, "cannot listen at %.200s, port %d: %s", host, s->options.port, strerror(reason));
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    tell_address(s);
    if (!s->loopback && s->keys.n == 0)
        return mica_fail(
            err, MICA_INVALID_ARGUMENT,
            "%.200s can be reached from other machines: that needs an API key, from --api-key-file or MICA_API_KEY", host);
    return MICA_OK;
}

/* ---- Signals ---- */

static void drain(mica_server *s)
{
    mica_server_log(s, "shutting down: what runs and waits ends first; a second signal ends all at once");
    s->draining = true;
    evconnlistener_free(s->listener);
    s->listener = NULL;
    mica_connection_close_idle(s);
    mica_server_check_drained(s);
}

static void on_end_signal(evutil_socket_t number, short what, void *user)
{
    mica_server *s = user;
    (void)number;
    (void)what;
    if (!s->draining) {
        drain(s);
        return;
    }
    s->stopped = true;
    event_base_loopbreak(s->base);
}

static void on_reload_signal(evutil_socket_t number, short what, void *user)
{
    mica_server *s = user;
    mica_error err;
    (void)number;
    (void)what;
#ifdef MICA_HAVE_ROUTER
    if (s->route)
        mica_route_mode_reload(s->route);
    if (s->route && !s->options.key_file)
        return;
#endif
    if (!s->options.key_file)
        mica_server_log(s, "there is no key file to reload");
    else if (mica_keys_load(&s->keys, s->options.key_file, &err))
        mica_server_log(s, "the API keys stay as they were: %s", err.message);
    else
        mica_server_log(s, "%zu API keys were reloaded", s->keys.n);
}

void mica_server_check_drained(mica_server *s)
{
    if (s->draining && !s->connections)
        event_base_loopexit(s->base, NULL);
}

static void on_wake(evutil_socket_t fd, short what, void *user)
{
    mica_server *s = user;
    (void)fd;
    (void)what;
    mica_outbox_woken(&s->outbox);
    for (mica_job *job; (job = mica_outbox_take(&s->outbox));)
        mica_connection_news(job);
}

/* libevent ends the process itself when it gets none for what it needs: one for epoll, two pairs for signals. */
static bool has_descriptors(int wake)
{
    enum { NEEDED = 6 };
    int held[NEEDED], n = 0;
    while (n < NEEDED && (held[n] = dup(wake)) >= 0)
        n++;
    bool has = n == NEEDED;
    while (n > 0)
        close(held[--n]);
    return has;
}

static mica_status make_events(mica_server *s, mica_error *err)
{
    if (!has_descriptors(s->outbox.wake))
        return mica_fail(err, MICA_IO_ERROR, "the system allows too few open files for a server: raise the limit (ulimit -n)");
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct event_config *config = event_config_new();
    if (config)
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK); /* one thread; the others wake it through the outbox */
    s->base = config ? event_base_new_with_config(config) : NULL;
    if (config)
        event_config_free(config);
    bool good = s->base != NULL;
    for (size_t i = 0; good && i < 3; i++) {
        s->signals[i] = evsignal_new(s->base, numbers[i], numbers[i] == SIGHUP ? on_reload_signal : on_end_signal, s);
        good = s->signals[i] && event_add(s->signals[i], NULL) == 0;
    }
    s->wake = good ? event_new(s->base, s->outbox.wake, EV_READ | EV_PERSIST, on_wake, s) : NULL;
    s->resume = good ? evtimer_new(s->base, on_resume, s) : NULL;
    good = good && s->wake && s->resume && event_add(s->wake, NULL) == 0;
    return good ? MICA_OK : mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses memory for an event loop");
}

/* ---- Making and ending ---- */

static void work(void *user, mica_job *job)
{
    mica_server *s = user;
    mica_route_at(job->route)->answer(s, job);
}

static mica_status load_keys(mica_server *s, mica_error *err)
{
    if (s->options.key && s->options.key_file)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "there are two sources of API keys: MICA_API_KEY and a key file; give one");
    if (s->options.key)
        return mica_keys_set(&s->keys, s->options.key, err);
    return s->options.key_file ? mica_keys_load(&s->keys, s->options.key_file, err) : MICA_OK;
}

static mica_status make_context(mica_server *s, mica_error *err)
{
    mica_memory_plan plan;
    mica_status status = mica_batch_plan(s->options.model, &s->options.batch, &plan, err);
    if (status)
        return status;
    s->context = (mica_serve_context){.model = s->options.model,
                                      .name = s->options.name,
                                      .n_ctx = plan.n_ctx,
                                      .kv_k = s->options.batch.kv_k,
                                      .kv_v = s->options.batch.kv_v,
                                      .peak_bytes = plan.peak_bytes,
                                      .think = s->options.think,
                                      .created = (int64_t)time(NULL),
                                      .began_ns = mica_now_ns(),
                                      .telemetry = s->options.telemetry,
                                      .telemetry_text = s->options.telemetry_text,
                                      .require = s->options.require,
                                      .n_require = s->options.n_require,
                                      .hash_cache = s->options.hash_cache,
                                      .sysroot = s->options.batch.sysroot,
                                      .metrics = &s->metrics};
    mica_model_get_info(s->options.model, &s->context.info);
    s->context.cache = mica_cache_new(MICA_SERVE_COMPILED);
    if (!s->context.cache)
        return mica_fail_nomem(err, MICA_SERVE_COMPILED * sizeof(void *), "the cache of constraints");
    return MICA_OK;
}

/* What another process computed: worth having, but not a reason to serve nothing. */
static void restore_prefixes(mica_server *s)
{
    const char *path = s->options.prefix_file;
    int64_t n;
    mica_error err;
    if (!path || access(path, F_OK) != 0)
        return;
    if (mica_batch_restore_prefixes(mica_schedule_batch(s->schedule), path, &n, &err))
        mica_server_log(s, "the prefixes in %s are not used: %s", path, err.message);
    else
        mica_server_log(s, "%lld tokens of prefixes are there from %s", (long long)n, path);
}

static void save_prefixes(mica_server *s)
{
    mica_error err;
    if (!s->options.prefix_file || s->stopped || mica_pressure_has_saved(s->pressure))
        return;
    if (mica_batch_save_prefixes(mica_schedule_batch(s->schedule), s->options.prefix_file, &err))
        mica_server_log(s, "the prefixes are not saved: %s", err.message);
}

/* The other threads must not get the signals that the loop waits for. */
static mica_status start_threads(mica_server *s, mica_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* these concern the thread that causes them */
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    mica_status status = mica_schedule_new(&s->context, &s->options.batch, &s->schedule, err);
    if (!status) {
        restore_prefixes(s);
        status = mica_schedule_start(s->schedule, err);
    }
#ifdef MICA_HAVE_ROUTER
    if (!status && s->options.router)
        status = mica_route_mode_new(s, &s->route, err);
#endif
    if (!status)
        status = mica_prepare_new(work, s, &s->prepare, err);
    if (!status)
        status = mica_pressure_watch_new(s, &s->pressure, err);
    s->context.device = mica_pressure_device(s->pressure); /* no request is there yet that would look at it */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

mica_status mica_server_new(const mica_server_options *options, mica_server **out, mica_error *err)
{
    mica_server *s = mica_new_array(1, sizeof *s);
    *out = NULL;
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the server");
    s->options = *options;
    mica_status status = mica_outbox_init(&s->outbox, err);
    if (!status)
        status = load_keys(s, err);
    if (!status)
        status = make_events(s, err);
    if (!status)
        status = listen_at(s, err);
    if (!status)
        status = make_context(s, err);
    if (!status)
        status = start_threads(s, err);
    if (status) {
        mica_server_free(s);
        return status;
    }
    *out = s;
    return MICA_OK;
}

const char *mica_server_address(const mica_server *s)
{
    return s->address;
}

mica_status mica_server_run(mica_server *s, mica_error *err)
{
    if (event_base_dispatch(s->base) < 0)
        return mica_fail(err, MICA_IO_ERROR, "the event loop failed: %s", strerror(errno));
    return s->stopped ? mica_fail(err, MICA_CANCELLED, "stopped before all requests had ended") : MICA_OK;
}

void mica_server_free(mica_server *s)
{
    if (!s)
        return;
    if (s->schedule)
        mica_connection_close_all(s); /* which drops their jobs: the threads have less to end */
    mica_prepare_free(s->prepare);
#ifdef MICA_HAVE_ROUTER
    mica_route_mode_free(s->route); /* its requests need the scheduler to end */
#endif
    if (s->schedule && s->prepare) { /* it ran */
        mica_schedule_end(s->schedule);
        save_prefixes(s);
    }
    mica_schedule_free(s->schedule);
    mica_pressure_watch_free(s->pressure);
    mica_side_free(s->side);
    mica_cache_free(s->context.cache); /* all requests are gone */
    mica_outbox_close(&s->outbox);
    if (s->listener)
        evconnlistener_free(s->listener);
    for (size_t i = 0; i < 3; i++)
        if (s->signals[i])
            event_free(s->signals[i]);
    if (s->wake)
        event_free(s->wake);
    if (s->resume)
        event_free(s->resume);
    if (s->base)
        event_base_free(s->base);
    free(s);
}
