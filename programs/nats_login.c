#include "nats_login.h"

#include <stdlib.h>
#include <string.h>

#include "load.h"

static int check(const mica_opts *o)
{
    int ways = (o->nats_creds != NULL) + (o->nats_user != NULL) + (o->nats_token_file != NULL);
    if (ways > 1)
        return mica_term_usage("--nats-creds, --nats-user and --nats-token-file are three ways to log in; one is enough");
    if (o->nats_password_file && !o->nats_user)
        return mica_term_usage("--nats-password-file goes with --nats-user");
    if (o->nats_key && !o->nats_cert)
        return mica_term_usage("--nats-key goes with --nats-cert");
    return CODE_OK;
}

int mica_nats_login_read(const mica_opts *o, const char *name, mica_nats_login *out)
{
    *out = (mica_nats_login){.password = NULL};
    int code = check(o);
    if (code == CODE_OK)
        code = mica_load_secret(o->nats_password_file, &out->password);
    if (code == CODE_OK)
        code = mica_load_secret(o->nats_token_file, &out->token);
    out->options = (mica_nats_options){.url = o->nats,
                                       .credentials = o->nats_creds,
                                       .user = o->nats_user,
                                       .password = out->password,
                                       .token = out->token,
                                       .ca = o->nats_ca,
                                       .certificate = o->nats_cert,
                                       .key = o->nats_key,
                                       .name = name};
    return code;
}

void mica_nats_login_free(mica_nats_login *login)
{
    free(login->password);
    free(login->token);
}
