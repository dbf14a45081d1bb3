/* batch.h - what a session knows of the batch it belongs to. */
#ifndef MICA_SESSION_BATCH_H
#define MICA_SESSION_BATCH_H
#include "mica/mica.h"

/** The session is about to be freed: its request, if any, ends without a word. */
void mica_batch_forget(mica_batch *b, mica_session *s);

#endif
