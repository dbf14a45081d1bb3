/* run_engine.h - a reply of one session to a chat request: the request's fields to the engine's options, the reply's text and
 * tool calls to an attempt. Called by run_local.c. */
#ifndef MICA_ROUTER_RUN_ENGINE_H
#define MICA_ROUTER_RUN_ENGINE_H
#include "mica/mica_tools.h"
#include "router/run_local.h"

/** A reply under way. Also what a session's on_prefill gets as `user`. */
typedef struct mica_engine_reply {
    const mica_local_call *call;
    mica_try *t;
    mica_tool_parser *parser; /* NULL: no tools */
    int64_t n_tokens;
} mica_engine_reply;

/** Between chunks and tokens: non-zero ends the attempt, which says why. */
int mica_engine_check(mica_engine_reply *reply);

void mica_engine_run(mica_model *model, mica_session *session, mica_engine_reply *reply);

#endif
