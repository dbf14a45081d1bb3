/* remote.h - one attempt at an endpoint that speaks OpenAI's chat completions, through libcurl. Called by run_attempt.c.
 *
 * The server is not trusted: every buffer has a maximum, every silence a limit, redirects are not followed, certificates are
 * checked always, and the proxies that the environment names are not used. Runs on the caller's thread until the attempt is
 * over. */
#ifndef MICA_ROUTER_REMOTE_H
#define MICA_ROUTER_REMOTE_H
#include "router/run_settings.h"
#include "router/run_try.h"

typedef struct mica_remote_call {
    const mica_endpoint *endpoint;
    const char *key;             /* NULL: none */
    const char *idempotency_key; /* NULL: no such header */
    const char *body;            /* JSON; with "stream": true or not */
    size_t length;
    const mica_try_link *link;
} mica_remote_call;

/** Fills *t, which mica_try_init() has made. */
void mica_remote_run(const mica_remote_call *call, mica_try *t);

#endif
