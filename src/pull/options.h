/* options.h - what a pull needs to know from the program: the library reads no environment and asks nobody. */
#ifndef MICA_PULL_OPTIONS_H
#define MICA_PULL_OPTIONS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct mica_pull_options {
    const char *token;                    /* sent as "Authorization: Bearer" to the address's own host only; NULL: none */
    const char *proxy_http, *proxy_https; /* NULL: none */
    const char *no_proxy;                 /* hosts that are reached directly, as curl has it; NULL: none */
    const char *ca_file;                  /* PEM; NULL: the system's */
    int32_t retries;                      /* attempts in a row that bring nothing new before a server is given up */
    int32_t stall_s;                      /* seconds without a byte before a connection is given up */
    /* `what`: "fetching" or "checking"; total -1: not known. Nonzero ends the pull with MICA_CANCELLED. */
    int (*on_progress)(void *user, const char *what, int64_t done, int64_t total);
    void (*on_note)(void *user, const char *note);
    void *user;
} mica_pull_options;

/** 5 retries, 30 s, nobody told. */
static inline mica_pull_options mica_pull_options_default(void)
{
    return (mica_pull_options){.retries = 5, .stall_s = 30};
}

static inline bool mica_pull_cancelled(const mica_pull_options *o, const char *what, int64_t done, int64_t total)
{
    return o->on_progress && o->on_progress(o->user, what, done, total) != 0;
}

#endif
