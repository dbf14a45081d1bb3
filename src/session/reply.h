/* reply.h - one reply under way: what becomes of the logits after the history. mica_session_generate(), speculation and batches
 * drive it alike:
 *
 *     mica_reply_start(r, s, options, err);
 *     while (!r->stop_reason) { compute; mica_reply_take(r, logits, err); }
 *     status = mica_reply_finish(r, status, &result, err);
 *
 * Invariant: a reply depends on its options, the history and the logits it is given, never on who drives it or when. Lives in
 * its session; allocates nothing, but for what a guide (guide.h) needs: constraint and healing.
 */
#ifndef MICA_SESSION_REPLY_H
#define MICA_SESSION_REPLY_H
#include "base/error.h"
#include "text/vocab.h"

#define MICA_REPLY_PIECE 4096 /* bytes of the longest piece that can be streamed */
#define MICA_REPLY_STOP_TOKENS 64

typedef struct mica_reply {
    mica_session *s;
    mica_generate_options o; /* stop tokens are copied here, stop strings and biases to those who use them */
    int32_t stop_tokens[MICA_REPLY_STOP_TOKENS];
    mica_detok detok;
    const char *stop_reason; /* NULL: goes on */
    bool started;            /* the options were accepted */
    bool guided;             /* the session's guide has a say */
    bool stop_hit;           /* a stop string was found: what is held back is not told */
    size_t n_untold;         /* bytes of the prompt's end that healing says again */
    mica_status status;      /* of the last step, and why: a batch's, whose other replies go on meanwhile */
    mica_error error;
    int32_t prompt_n, gen_n;
    int32_t token; /* the last one that was chosen */
    int32_t drafted_n, accepted_n, forced_n;
    int64_t seed, first_ns, last_ns;
    int64_t prefill_ns; /* what the session had spent on the prompt when the first token was chosen */
    int32_t prefill_n;
    int32_t n_itl; /* entries of itl_ns; the oldest are overwritten beyond n_ctx */
    char bytes[MICA_REPLY_PIECE];
    char text[MICA_DETOK_ROOM(MICA_REPLY_PIECE)];
} mica_reply;

/** Checks and copies the options (NULL: defaults) and starts sampler and stop strings. On an error only mica_reply_finish() may
 * follow. */
mica_status mica_reply_start(mica_reply *r, mica_session *s, const mica_generate_options *options, mica_error *err);

/** Chooses the next token from the logits after the history, tells it, and appends it, and with it those that the
 * constraint leaves no choice about (with top_logprobs one at a time); stop_reason says whether the reply is over, which it
 * may be without a further token. With max_tokens 0 it is over at once. At the context's end the session's policy decides. */
mica_status mica_reply_take(mica_reply *r, const float *logits, mica_error *err);

/** The end: `status` is what the last step returned. Tells what text was held back, fills *result (may be NULL), and ends the
 * request's metrics. Returns the status of the whole reply: MICA_CANCELLED where a callback stopped it. */
mica_status mica_reply_finish(mica_reply *r, mica_status status, mica_result *result, mica_error *err);

/** The metrics of a finished reply (result.c). */
void mica_reply_result(mica_reply *r, mica_result *out);

#endif
