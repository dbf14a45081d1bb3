/* batch.h - what a session knows of the batch it belongs to. */
#ifndef MICA_SESSION_BATCH_H
#define MICA_SESSION_BATCH_H
#include "mica/mica.h"

/** The session is about to be freed: its request, if any, ends without a word. */
void mica_batch_forget(mica_batch *b, mica_session *s);

/** A request of the session waits or runs: nobody else may change its history. */
bool mica_batch_has_request(const mica_batch *b, const mica_session *s);

/** Gives up the blocks of a session without a request, of those that have any the one that had its last reply first. False: none
 * has. */
bool mica_batch_empty_idle(mica_batch *b, const mica_session *but);

/** How many requests wait or run. */
int32_t mica_batch_replies(const mica_batch *b);

/** The threads that compute its steps. Borrowed; as they are now. */
const mica_thread_plan *mica_batch_threads(const mica_batch *b);

#endif
