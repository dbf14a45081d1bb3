/* responses_input.h - "instructions" and "input" of /v1/responses as the messages of a conversation. Called by api_responses.c.
 */
#ifndef MICA_SERVE_RESPONSES_INPUT_H
#define MICA_SERVE_RESPONSES_INPUT_H
#include <jansson.h>

#include "serve/fault.h"

/** The messages, checked as mica_chat_messages() does. Calls become "tool_calls" of the assistant's message, their outputs
 * messages of the role "tool"; reasoning is left out. NULL: *fault names the item. */
json_t *mica_responses_messages(const json_t *body, mica_fault *fault);

#endif
