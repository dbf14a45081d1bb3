/* schedule.h - the one thread that owns the batch and its sessions ("slots"): gives waiting replies a slot, steps the batch,
 * drops what nobody waits for.
 *
 * Invariants
 *  1. queue.h says which of the requests that wait is next, for each slot anew; a request's choices start in order.
 *  2. A slot has a choice from mica_batch_submit() until the engine's on_done. Afterwards its session is empty: what it has
 * computed, later requests find in the batch's prefixes.
 *  3. A request is freed when none of its choices runs and none waits.
 *  4. Between two steps every dropped or overdue request is looked at: a slot is free again after one step at most. */
#ifndef MICA_SERVE_SCHEDULE_H
#define MICA_SERVE_SCHEDULE_H
#include "serve/request.h"

typedef struct mica_schedule mica_schedule;

/** Makes the batch with all its sessions. `context` is borrowed. */
mica_status mica_schedule_new(const mica_serve_context *context, const mica_batch_options *options, mica_schedule **out,
                              mica_error *err);
/** Starts the thread. */
mica_status mica_schedule_start(mica_schedule *s, mica_error *err);
/** Drops what runs and waits (503), ends the thread, if there is one. */
void mica_schedule_end(mica_schedule *s);
/** The batch, while there is no thread. */
mica_batch *mica_schedule_batch(mica_schedule *s);
/** Ends it, too. NULL is fine. */
void mica_schedule_free(mica_schedule *s);

/** Takes the request over. From any thread. */
void mica_schedule_submit(mica_schedule *s, mica_request *r);
/** Other work for the scheduler's thread: one task at a time, in order, each called once. */
typedef struct mica_schedule_task mica_schedule_task;
struct mica_schedule_task {
    void (*run)(mica_schedule_task *task,
                bool stopping); /* the task is its own again; stopping: there is no time left to work */
    mica_schedule_task *next;   /* the scheduler's */
};
/** From any thread. */
void mica_schedule_add(mica_schedule *s, mica_schedule_task *task);
/** For a task, between pieces of its work: replies that wait begin, those that run get one step. False: the server stops. */
bool mica_schedule_breathe(mica_schedule *s);

/** A job was left by its client: look at once, if nothing runs. From any thread. */
void mica_schedule_look(mica_schedule *s);

#endif
