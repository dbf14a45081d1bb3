/* engine_impl.h - the inside of an engine: a model and a batch of one session, so that Kotlin can ask for step after step.
 *
 * Used by engine.c (opening and closing) and reply.c (one reply). Belongs to the thread that has acquired its handle. */
#ifndef MICA_BINDINGS_KOTLIN_ENGINE_IMPL_H
#define MICA_BINDINGS_KOTLIN_ENGINE_IMPL_H
#include <stdbool.h>

#include "mica/mica_governor.h"
#include "mica/mica_receipt.h"
#include "mica_jni.h"

struct mica_jni_engine {
    mica_model *model;
    mica_batch *batch;
    mica_session *session;
    mica_governor *governor; /* NULL: none was asked for */
    mica_jni_device *owner;  /* one reference to whom `device` belongs */
    mica_device *device;
    mica_receipt *receipt;
    int32_t n_ctx;

    /* One reply. */
    bool running;       /* submitted, and on_done was not called yet */
    bool out_of_memory; /* for the text: the reply was stopped */
    char *text;         /* since the last time it was taken */
    size_t text_length, text_capacity;
    int32_t tokens; /* so far */
    int32_t prefill_done, prefill_total;
    int64_t dropped; /* tokens that the context policy dropped */
    mica_status status;
    mica_error error;
    mica_result result;
};

/** Ends a reply under way, without a further step. */
void mica_jni_engine_abandon(mica_jni_engine *engine);
/* The callbacks of the session's options; `user` is the engine. */
void mica_jni_engine_on_context(void *user, const mica_context_event *event);
int mica_jni_engine_on_prefill(void *user, int32_t done, int32_t total);

#endif
