/* run_settings.h - how rungs are run, as the files say it: the object "run" of a policy and the object "endpoint" of a remote
 * rung. They are read and checked here; policy_read.c and ladder.c only hand them over. Read by the run*.c and remote*.c.
 *
 * docs/router.md has the fields, share/mica/schemas their schemas. */
#ifndef MICA_ROUTER_RUN_SETTINGS_H
#define MICA_ROUTER_RUN_SETTINGS_H
#include "router/fields.h"

typedef struct mica_run_settings {
    bool fallback;        /* false: what the first rung says is the answer, an error too */
    bool buffer;          /* a reply is handed over when it is whole: the next rung may follow one that died in its middle */
    int64_t retries;      /* further attempts at one rung */
    int64_t retry_budget; /* further attempts of one request, all rungs together */
    int64_t backoff_ms, backoff_max_ms; /* before the first further attempt; doubles; up to half of it is taken off at random */
    int64_t retry_after_max_ms;         /* a server that wants a longer pause is left for the next rung */
    int64_t breaker_failures;           /* in a row, after which a rung is left alone */
    int64_t breaker_open_ms;            /* for so long */
    int64_t hedge_ms;                   /* without a text for so long the next rung is asked, too; 0: never */
    int64_t first_ms, total_ms;         /* of local rungs: to the first text (loading included), and to the last; 0: any time */
    int64_t queue_max;                  /* requests that may wait for the network */
    int64_t hot_ms;                     /* for so long a rung is passed over that the device was too hot for */
} mica_run_settings;

typedef enum mica_redact_mode {
    MICA_REDACT_OFF = 0,
    MICA_REDACT_MASK = 1,    /* personal data leaves as [EMAIL_1] */
    MICA_REDACT_RESTORE = 2, /* and the reply gets it back */
} mica_redact_mode;

typedef struct mica_endpoint {
    char url[1024];   /* "https://host/v1": what stands before /chat/completions */
    char model[128];  /* the model's name there; "": the server has but one */
    char key_env[64]; /* the environment variable with the key; "": none */
    char key_file[1024];
    char ca_file[1024];                              /* authorities to trust instead of the system's; "": those */
    bool stream;                                     /* false: the server gives whole replies only */
    int32_t redact;                                  /* a mica_redact_mode */
    int64_t connect_ms, first_ms, idle_ms, total_ms; /* connecting; to the first byte; between two bytes; all of it */
    int64_t loading_ms;                              /* how long an answer 503 is waited for; 0: the next rung at once */
} mica_endpoint;

/** NULL: all defaults. An unknown field, one of the wrong type or out of range is an error that names it. */
mica_status mica_run_settings_read(const json_t *object, mica_run_settings *out, mica_error *err);

/** The pause before further attempt `n` (from 0): backoff_ms * 2^n, at most backoff_max_ms, less up to half of it by `chance`
 * in [0, 1), so that many that failed together do not come back together. */
int64_t mica_run_backoff_ms(const mica_run_settings *s, int64_t n, double chance);

/** `rung` is for messages. */
mica_status mica_endpoint_read(const json_t *object, const char *rung, mica_endpoint *out, mica_error *err);

/** Whether a URL is "http://" or "https://" with a host, without user, query or fragment; and a key goes over http:// only to
 * this machine. */
mica_status mica_endpoint_check(const char *url, bool has_key, mica_error *err);

/** For the test of the schemas. */
const mica_field_table *mica_run_settings_table(void);
const mica_field_table *mica_endpoint_table(void);

#endif
