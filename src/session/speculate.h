/* speculate.h - more than one token a forward step: guess the next ones, compute all of them together, keep what the sampler
 * would have chosen anyway.
 *
 * Invariant: the reply is that of plain decoding, token by token and bit by bit. Position by position the sampler picks from
 * the logits after the history, with the same random numbers; a guess only decides whether the next position's logits are there
 * already. Logits do not depend on what else a step computes (docs/numerics.md). What a wrong guess left in the KV cache lies
 * beyond n_computed and is overwritten. Nothing is allocated after the session is made.
 */
#ifndef MICA_SESSION_SPECULATE_H
#define MICA_SESSION_SPECULATE_H
#include "session/session.h"

/** For a session whose pool exists and whose options ask for draft_max > 0. Compares the vocabularies if there is a draft
 * model: MICA_INVALID_ARGUMENT names the first token that differs. */
mica_status mica_speculator_new(mica_session *s, mica_speculator **out, mica_error *err);
void mica_speculator_free(mica_speculator *sp);

/** From any thread: the draft model stops reading. */
void mica_speculator_cancel(mica_speculator *sp);

/** One forward step of the reply, and as many tokens as it gives: at least one, unless it fails. */
mica_status mica_speculate_step(mica_reply *r, mica_error *err);

#endif
