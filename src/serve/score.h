/* score.h - requests that want the log-probabilities of their prompts: computed on the scheduler's thread, in the session
 * beside the slots (side.h), one prompt after the other. Called by routes.c.
 *
 * A reply of one token or none, which is what a program asks for that scores texts, is made right there, where the prompt's
 * last logits are. Longer replies go to the slots, once the scores are there. */
#ifndef MICA_SERVE_SCORE_H
#define MICA_SERVE_SCORE_H
#include "serve/request.h"

typedef struct mica_server mica_server;

/** Takes the request over, for which mica_request_is_scored(); in the end it is freed, or the scheduler's. */
void mica_score_submit(mica_server *s, mica_request *r);

#endif
