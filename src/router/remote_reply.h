/* remote_reply.h - replies in OpenAI's form, whole or in pieces, into an attempt. Nothing in them is trusted. Called by
 * remote.c. */
#ifndef MICA_ROUTER_REMOTE_REPLY_H
#define MICA_ROUTER_REMOTE_REPLY_H
#include "router/run_try.h"

/** A "chat.completion.chunk". False: the attempt is over, and says why. */
bool mica_remote_chunk(mica_try *t, const mica_try_link *link, const char *json, size_t length);
/** A "chat.completion". */
bool mica_remote_whole(mica_try *t, const mica_try_link *link, const char *json, size_t length);
/** The sentence in an error's body ({"error": {"message"}}, {"error": "..."}), cut to the size; "" if there is none. */
void mica_remote_error_text(const char *json, size_t length, char *out, size_t size);

#endif
