/* nats_login.h - the --nats options as what the queue wants: secrets are read from their files. Called by cmd_campaign.c and
 * cmd_worker.c. */
#ifndef MICA_PROGRAMS_NATS_LOGIN_H
#define MICA_PROGRAMS_NATS_LOGIN_H
#include "bench/campaign_nats_options.h"
#include "opts.h"

typedef struct mica_nats_login {
    mica_nats_options options; /* borrows from the rest, and from the command line */
    char *password, *token;
} mica_nats_login;

/** An exit code; on a failure one line is printed. Free it in either case. */
int mica_nats_login_read(const mica_opts *o, const char *name, mica_nats_login *out);
void mica_nats_login_free(mica_nats_login *login);

#endif
