/* drafter.h - a draft model: a session of a smaller model that reads what the large one's history says and guesses on,
 * greedily. It shares the large session's threads; its KV cache is its own. Called by speculate.c. */
#ifndef MICA_SESSION_DRAFTER_H
#define MICA_SESSION_DRAFTER_H
#include "session/session.h"

/** A session of s->options.draft_model beside `s`. MICA_INVALID_ARGUMENT if the vocabularies differ, with the first
 * difference. */
mica_status mica_drafter_new(const mica_session *s, mica_session **out, mica_error *err);

/** Guesses n tokens after s's history (which leaves room for them in the context); returns how many, fewer if it fails or is
 * cancelled. */
int32_t mica_drafter_run(mica_session *drafter, const mica_session *s, int32_t n, int32_t *out);

#endif
