/* run_body.h - a chat request in OpenAI's form: checked once, then in the form that a rung wants. Called by the run*.c.
 *
 * Contents that are lists of texts become texts: templates of small models and some servers know nothing else. What the request
 * has besides goes to servers as it is. */
#ifndef MICA_ROUTER_RUN_BODY_H
#define MICA_ROUTER_RUN_BODY_H
#include <jansson.h>

#include "mica/mica_router.h"
#include "router/run_settings.h"

#define MICA_RUN_BODY_MAX ((size_t)8 << 20)

typedef struct mica_run_body {
    json_t *request; /* owned: the rest is borrowed from it */
    json_t *messages;
    const json_t *schema;  /* of "response_format"; NULL: none */
    bool strict, any_json; /* of the schema; any JSON object */
    const json_t *tools;   /* NULL: none */
    const char *user_text; /* of the last message of the user; NULL: there is none */
    size_t user_length;
    int64_t max_tokens; /* -1: not said */
} mica_run_body;

/** MICA_BAD_TEXT: no JSON; MICA_INVALID_ARGUMENT, MICA_UNSUPPORTED: the message names the field. */
mica_status mica_run_body_read(const char *json, size_t length, mica_run_body *out, mica_error *err);
void mica_run_body_free(mica_run_body *body);

/** A copy of the messages, with `before` ("": nothing) in front of the conversation, as the system's words. NULL without
 * memory. */
json_t *mica_run_body_messages(const mica_run_body *body, const char *before);

/** The request for a server, with its own model, messages and limit of the reply (-1: as the request says). Takes `messages`
 * over. malloc'ed; NULL without memory. */
char *mica_run_body_remote(const mica_run_body *body, const mica_endpoint *endpoint, json_t *messages, int64_t max_tokens,
                           size_t *length);

#endif
