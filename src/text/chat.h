/* chat.h - chat templates: a compiled Jinja template and a conversation in, prompt text out.
 *
 * The interpreter (tmpl_lex, tmpl_parse, tmpl_eval) is a sandbox: no I/O, no attributes beyond data, bounded steps, depth and
 * output. It behaves as Python's jinja2 ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True) with loop
 * controls and transformers' tojson, strftime_now and raise_exception. A construct that it does not know is an error naming it.
 */
#ifndef MICA_TEXT_CHAT_H
#define MICA_TEXT_CHAT_H
#include <jansson.h>

#include "base/error.h"

typedef struct mica_template mica_template;

/** Compiles. The error names the construct, line and column. Immutable afterwards; shared between threads. */
mica_status mica_template_compile(const char *text, size_t length, mica_template **out, mica_error *err);
void mica_template_free(mica_template *t);

typedef struct mica_chat_request {
    const char *json; /* object: messages, tools, add_generation_prompt (default true), chat_template_kwargs, other variables */
    size_t length;
    const char *bos_token, *eos_token; /* texts; NULL: undefined */
    int64_t now_unix;                  /* negative: the clock. Local time zone is never used: UTC */
} mica_chat_request;

/** The request's JSON, checked; json_decref(). A text that is no request is MICA_BAD_TEXT or MICA_INVALID_ARGUMENT. */
mica_status mica_chat_request_read(const char *json, size_t length, json_t **root, mica_error *err);

/** Renders. raise_exception(text) in the template is MICA_BAD_TEMPLATE with that text in the message. *text is malloc'ed. */
mica_status mica_template_run(const mica_template *t, const mica_chat_request *request, char **text, size_t *length,
                              mica_error *err);

/** The same of a request that was read already: request->json and length are not looked at. *root does not change. */
mica_status mica_template_run_json(const mica_template *t, const mica_chat_request *request, json_t *root, char **text,
                                   size_t *length, mica_error *err);

#endif
