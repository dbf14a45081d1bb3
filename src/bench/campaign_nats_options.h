/* campaign_nats_options.h - how a NATS server is reached. Called by programs, and by campaign_nats_link.h. */
#ifndef MICA_BENCH_CAMPAIGN_NATS_OPTIONS_H
#define MICA_BENCH_CAMPAIGN_NATS_OPTIONS_H

/** Who we are for the server. NULL: not given. Texts are borrowed while the link is open. */
typedef struct mica_nats_options {
    const char *url;         /* nats://host:port or tls://..., several with commas between */
    const char *credentials; /* a file with a JWT and its key */
    const char *user, *password, *token;
    const char *ca, *certificate, *key; /* PEM files. Any of them: only TLS will do */
    const char *name;                   /* that the server shows */
} mica_nats_options;

#endif
