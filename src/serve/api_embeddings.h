/* api_embeddings.h - /v1/embeddings: texts or token ids in, vectors out. A request is understood on the preparing thread and
 * computed on the scheduler's, in the session beside the slots (side.h). */
#ifndef MICA_SERVE_API_EMBEDDINGS_H
#define MICA_SERVE_API_EMBEDDINGS_H
#include "serve/job.h"

typedef struct mica_server mica_server;

/** Sees to it that the job ends. */
void mica_embeddings_answer(mica_server *s, mica_job *job);

#endif
