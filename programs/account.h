/* account.h - what is kept of replies: receipts (--receipt), conditions (--require), telemetry (--telemetry). Does nothing
 * where none of these is asked for. Called by cmd_run.c and cmd_chat.c. */
#ifndef MICA_PROGRAMS_ACCOUNT_H
#define MICA_PROGRAMS_ACCOUNT_H
#include "mica/mica_receipt.h"
#include "reply.h"

struct mica_telemetry;

typedef struct mica_account {
    const mica_opts *o;
    const char *operation; /* of replies in telemetry: "chat", "text_completion" */
    mica_model *model;     /* borrowed, as the session */
    mica_session *session;
    mica_receipt *receipt; /* NULL: nobody wants one */
    struct mica_telemetry *telemetry; /* likewise */
} mica_account;

/** Opens the sinks; before the model, so that a wrong name costs nothing. Returns an exit code, as the next two. */
int mica_account_init(mica_account *a, const mica_opts *o);
/** Once the session is there. */
int mica_account_attach(mica_account *a, mica_model *model, mica_session *session);
/** After each reply that began (or was refused): the line of --receipt, the event. Tokens: the prompt's. */
int mica_account_reply(mica_account *a, const mica_reply *reply, const int32_t *tokens, size_t n, bool began);
/** The receipt of the last reply as JSON, for --receipt - with --json; NULL: there is none. */
json_t *mica_account_receipt(const mica_account *a);
/** Gives the sinks a moment; says what they did not take. Before the session and the model are freed. */
void mica_account_free(mica_account *a);

/** Where hashes of model files are kept, in `path`; NULL: nowhere. */
const char *mica_account_hash_cache(char path[4096]);

#ifdef MICA_HAVE_ROUTER
/** The sinks of --telemetry; *out stays NULL where there are none. */
int mica_account_open_telemetry(const mica_opts *o, struct mica_telemetry **out);
/** Closes them, and says what was lost. NULL is fine. */
void mica_account_close_telemetry(struct mica_telemetry *telemetry);
#endif

#endif
