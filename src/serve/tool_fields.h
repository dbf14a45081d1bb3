/* tool_fields.h - "tools", "tool_choice" and "parallel_tool_calls" of a request. Called by api_chat.c. */
#ifndef MICA_SERVE_TOOL_FIELDS_H
#define MICA_SERVE_TOOL_FIELDS_H
#include "serve/request.h"

/** Reads them into r->tools; NULL where there are none, or none are to be called. */
bool mica_tool_fields_read(mica_request *r, mica_fault *fault);
/** Makes the reply's constraint that of the tools; refuses a response_format besides. */
bool mica_tool_fields_constrain(mica_request *r, mica_fault *fault);

#endif
