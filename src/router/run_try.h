/* run_try.h - one attempt at one rung: what it said and how it ended. Made by remote.c and run_local.c, judged by run_ladder.c.
 */
#ifndef MICA_ROUTER_RUN_TRY_H
#define MICA_ROUTER_RUN_TRY_H
#include <jansson.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "mica/mica_router.h"

#define MICA_RUN_REPLY_MAX ((size_t)16 << 20) /* bytes of a reply: far beyond any context */
#define MICA_RUN_CALLS_MAX 64                 /* tool calls of a reply */

typedef enum mica_failure {
    MICA_FAILURE_NONE = 0,
    MICA_FAILURE_CANCELLED,     /* by the caller */
    MICA_FAILURE_LOST,          /* a hedge that another rung was faster than */
    MICA_FAILURE_NO_CONNECTION, /* name, route, refused */
    MICA_FAILURE_BAD_TLS,       /* its certificate is not trusted, or no secure connection comes about */
    MICA_FAILURE_TIMEOUT,
    MICA_FAILURE_HTTP,    /* the status is not 200 */
    MICA_FAILURE_CUT,     /* the reply ended before its end */
    MICA_FAILURE_GARBAGE, /* what came is no reply in OpenAI's form */
    MICA_FAILURE_TOO_LONG,
    MICA_FAILURE_SERVER,         /* the reply is an error that its stream told */
    MICA_FAILURE_INVALID_OUTPUT, /* against the request's schema */
    MICA_FAILURE_NO_KEY,
    MICA_FAILURE_NOT_REDACTED, /* personal data could not be taken out: nothing was sent */
    MICA_FAILURE_NO_MEMORY,
    MICA_FAILURE_NO_MODEL, /* its file cannot be opened */
    MICA_FAILURE_CONTEXT,  /* the prompt does not fit */
    MICA_FAILURE_ENGINE,
    MICA_FAILURE_BREAKER, /* not tried: it failed too often lately */
    MICA_FAILURE_EGRESS,  /* not tried: the request may not leave the device */
    MICA_FAILURE_HOT,     /* the device is too hot for it: a smaller rung, or a server */
} mica_failure;

typedef struct mica_try {
    mica_failure failure;
    int http_status;                      /* 0: none */
    int64_t retry_after_ms;               /* as the server says; -1: it does not */
    bool may_have_arrived;                /* the request left this machine: asking again may do the same work twice */
    int64_t start_ns, first_ns, end_ns;   /* first_ns 0: nothing came */
    int64_t work_ns;                      /* local: since when it had the rung to itself; 0: never */
    int64_t prompt_tokens, output_tokens; /* -1: unknown */
    double decode_tps;                    /* NAN: unknown */
    bool lower_rung;                      /* local: its governor asks for a smaller model from now on */
    mica_buf text;                        /* the whole reply so far */
    json_t *tool_calls;                   /* array, NULL: none */
    char finish[24];                      /* "stop", "length", "tool_calls", ...; "": it did not end */
    char model[128];                      /* that the server names; "" */
    char message[240];                    /* of a failure */
} mica_try;

void mica_try_init(mica_try *t);
void mica_try_free(mica_try *t);
/** Says how it failed (the first time) and returns false, for callers to return. */
bool mica_try_fail(mica_try *t, mica_failure failure, const char *format, ...) __attribute__((format(printf, 3, 4)));
/** Copies a text, cut to the size: valid UTF-8 also where it was cut in the middle of a character, without control characters.
 */
void mica_try_copy(char *out, size_t size, const char *text);
/** "ok", "timeout", "http_503": for records. */
void mica_try_result(const mica_try *t, char out[24]);

/** What an attempt needs of its surroundings. */
typedef struct mica_try_link {
    int64_t deadline_ns;      /* monotonic */
    bool (*stop)(void *user); /* asked often, from the attempt's thread: true ends it */
    /** The reply's next piece; non-zero ends the attempt. Never called with nothing. */
    int (*on_text)(void *user, const char *text, size_t length);
    void *user;
} mica_try_link;

/** Adds a piece to the text and hands it on. False: the attempt is over, and says why. */
bool mica_try_text(mica_try *t, const mica_try_link *link, const char *text, size_t length);

#endif
