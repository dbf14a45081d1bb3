/* prepare.h - the thread that understands requests: JSON, templates, tokens, constraints. So neither the sockets nor the model
 * wait for that. Jobs are taken in the order in which they came; how many may wait is the HTTP thread's business. */
#ifndef MICA_SERVE_PREPARE_H
#define MICA_SERVE_PREPARE_H
#include "serve/job.h"

typedef struct mica_prepare mica_prepare;

/** `work` runs on the thread and sees to it that the job ends; the reference is given back for it. */
mica_status mica_prepare_new(void (*work)(void *user, mica_job *job), void *user, mica_prepare **out, mica_error *err);
/** Ends the thread after the job that it is at; the others are failed (503). NULL is fine. */
void mica_prepare_free(mica_prepare *p);
/** Takes a reference over. */
void mica_prepare_add(mica_prepare *p, mica_job *job);

#endif
