/* side.h - the session beside the slots, for what is asked of a prompt alone: its vector (api_embeddings.c), its
 * log-probabilities (score.c).
 *
 * There is one, made with the first task that wants it: whoever asks for none of this pays no memory, and two kinds of task do
 * not pay twice. Tasks come one at a time, on the scheduler's thread. Between two of a task's chunks replies get a step, and it
 * is looked at whether the task is still wanted. */
#ifndef MICA_SERVE_SIDE_H
#define MICA_SERVE_SIDE_H
#include "serve/schedule.h"

typedef struct mica_server mica_server;
typedef struct mica_side mica_side;

/** The beginning of every task's own struct. */
typedef struct mica_side_task {
    mica_schedule_task base; /* first: the scheduler's view of it */
    mica_server *server;
    mica_job *job;      /* one reference, the task's */
    bool stopping;      /* the server ends */
    int64_t started_ns; /* when its turn came */
} mica_side_task;

/** The first call in a task's run(). Until mica_side_end() the session is its own: *session; made here if there was none.
 * MICA_CANCELLED: the client is gone, its time is over or the server ends. */
mica_status mica_side_begin(mica_side_task *t, bool stopping, mica_session **session, mica_error *err);
/** Always after mica_side_begin(). */
void mica_side_end(mica_side_task *t);

/** What an error of the session, or of mica_side_begin(), means for the client. Counts timeouts. `param`: the field with the
 * text. */
void mica_side_fault(const mica_side_task *t, const mica_error *err, const char *param, mica_fault *fault);

/** After the scheduler's end. NULL is fine. */
void mica_side_free(mica_side *side);
/** On the scheduler's thread: frees it, if nothing has its turn, and clears *owner. The next task makes a new one. */
void mica_side_shed(mica_side *side, mica_side **owner);

#endif
