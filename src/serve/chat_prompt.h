/* chat_prompt.h - "messages" of a request to tokens, with the model's chat template. What a request says stays text, whatever
 * it spells (mica_chat_tokenize() of mica_tools.h). Called by the api_*.c. */
#ifndef MICA_SERVE_CHAT_PROMPT_H
#define MICA_SERVE_CHAT_PROMPT_H
#include <jansson.h>

#include "serve/request.h"

/** Checks "messages" and returns a copy in the form that templates know: contents as text or null, "developer" as "system".
 * NULL: *fault. */
json_t *mica_chat_messages(const json_t *body, mica_fault *fault);

/** The prompt's text, as the template renders the messages and the body's "chat_template_kwargs". malloc'ed. */
bool mica_chat_prompt(const mica_serve_context *context, const json_t *body, const json_t *messages, char **text,
                      size_t *length, mica_fault *fault);

/** The prompt's tokens; *thinks: its text ends with <think>. */
bool mica_chat_tokens(const mica_serve_context *context, const json_t *body, const json_t *messages, const mica_tools *tools,
                      mica_prompt *prompt, bool *thinks, mica_fault *fault);

#endif
