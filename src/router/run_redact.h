/* run_redact.h - personal data out of a conversation before it leaves the device, and back into the reply. Called by
 * run_attempt.c.
 *
 * What a redact task's rules find becomes [EMAIL_1], [PHONE_1], ...: the same text the same mark, in all messages. Marks that
 * the conversation has already are not used, so that a reply gets back only what was taken out. */
#ifndef MICA_ROUTER_RUN_REDACT_H
#define MICA_ROUTER_RUN_REDACT_H
#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "mica/mica_tasks.h"

/** The rules of a definition of the kind redact, without its model. */
mica_status mica_redact_rules(const char *definition, mica_task **out, mica_error *err);

/** Replaces in all contents and arguments of calls. *marks: {"[EMAIL_1]": "a@b.example"}, the caller's (json_decref). On an
 * error the messages must not be sent. */
mica_status mica_redact_messages(mica_task *rules, json_t *messages, json_t **marks, mica_error *err);

/** Puts texts back for marks in a stream: what may be the beginning of a mark is held back. */
typedef struct mica_restore {
    const json_t *marks; /* borrowed */
    mica_buf held;
} mica_restore;

void mica_restore_start(mica_restore *r, const json_t *marks);
/** The next piece; with `last` also what was held. Appends to `out`. False without memory. */
bool mica_restore_feed(mica_restore *r, const char *text, size_t length, bool last, mica_buf *out);
void mica_restore_free(mica_restore *r);

#endif
