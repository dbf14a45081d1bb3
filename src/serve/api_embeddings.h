/* api_embeddings.h - /v1/embeddings: texts or token ids in, vectors out. A request is understood on the preparing thread and
 * computed on the scheduler's, in a session of its own, which takes no memory before the first request; between two of its
 * chunks running replies get a step. */
#ifndef MICA_SERVE_API_EMBEDDINGS_H
#define MICA_SERVE_API_EMBEDDINGS_H
#include "serve/job.h"

typedef struct mica_server mica_server;
typedef struct mica_embeds mica_embeds; /* the session, the scheduler thread's */

/** Sees to it that the job ends. */
void mica_embeddings_answer(mica_server *s, mica_job *job);
/** After the scheduler's end. NULL is fine. */
void mica_embeds_free(mica_embeds *e);

#endif
