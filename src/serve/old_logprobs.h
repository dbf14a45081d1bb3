/* old_logprobs.h - log-probabilities in the form of /v1/completions: {"tokens", "token_logprobs", "top_logprobs",
 * "text_offset"}, lists side by side. Called by api_completions.c. */
#ifndef MICA_SERVE_OLD_LOGPROBS_H
#define MICA_SERVE_OLD_LOGPROBS_H
#include "serve/request.h"

/** Empty lists. */
json_t *mica_old_logprobs_new(void);
/** Adds the prompt's tokens, which must have scores and, for "text_offset", their text. Of the first one nothing is known:
 * null. */
void mica_old_logprobs_prompt(const mica_choice *c, json_t *lists);
/** Adds the reply's tokens that were not told yet; c->offset goes on. */
void mica_old_logprobs_reply(mica_choice *c, json_t *lists);
/** Characters of a text: all bytes but UTF-8's continuation bytes. */
size_t mica_old_logprobs_characters(const char *text, size_t length);

#endif
