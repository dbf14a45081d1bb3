/* reply.h - one reply: sampling options from the command line, text or JSON lines on standard output as tokens come, and the
 * line of metrics. Called by cmd_run.c and cmd_chat.c. */
#ifndef MICA_PROGRAMS_REPLY_H
#define MICA_PROGRAMS_REPLY_H
#include "base/buf.h"
#include "calls.h"
#include "load.h"

typedef struct mica_reply {
    const mica_opts *o;
    mica_generate_options options;
    mica_logit_bias *bias;
    mica_constraint *constraint; /* NULL: none is asked for */
    mica_calls calls; /* without --tools: calls.tools is NULL */
    int64_t start_ns; /* the zero of t_ms: just before the prompt is computed */
    bool json, output_failed;
    mica_buf text;    /* of the whole reply */
    json_t *waiting;  /* JSON: the last token, until all of its text has come */
    size_t waiting_from; /* where that begins in `text` */
    mica_result result;
    mica_status status; /* of the engine, with `result` */
} mica_reply;

/** Reads and checks the options; before the model is loaded, so that a wrong one costs nothing. */
int mica_reply_init(mica_reply *r, const mica_opts *o);
/** Compiles the constraint or the tools, once the model is there. */
int mica_reply_constrain(mica_reply *r, mica_model *model);
void mica_reply_free(mica_reply *r);

/** Computes the prompt and streams the reply. Returns CODE_OK, CODE_FAILED (a line was printed) or CODE_INTERRUPTED.
 * *began says whether r->result and r->text are of this reply, complete or not. */
int mica_reply_run(mica_reply *r, mica_session *session, const int32_t *tokens, size_t n, bool *began);

/** "ttft_ms=...;..." on standard error. */
void mica_reply_print_metrics(const mica_result *result);

/** All fields of a result, to which the caller adds; NULL without memory. */
json_t *mica_reply_result_json(const mica_result *result);

#endif
