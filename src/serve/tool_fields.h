/* tool_fields.h - "tools", "tool_choice" and "parallel_tool_calls" of a request, in the form of /v1/chat/completions
 * ({"type": "function", "function": {"name", ...}}) or of /v1/responses ({"type": "function", "name", ...}). Called by
 * api_chat.c and api_responses.c. */
#ifndef MICA_SERVE_TOOL_FIELDS_H
#define MICA_SERVE_TOOL_FIELDS_H
#include "serve/request.h"

/** Reads them into r->tools; NULL where there are none, or none are to be called. */
bool mica_tool_fields_read(mica_request *r, mica_fault *fault);
/** Makes the reply's constraint that of the tools; refuses a format besides, the field `format`. */
bool mica_tool_fields_constrain(mica_request *r, const char *format, mica_fault *fault);

#endif
