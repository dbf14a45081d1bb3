/* reply.c - one reply for Java: submit, step, take the text, and in the end the figures. */
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"
#include "mica/mica_tools.h"

#define STOPS_MAX 64

/* ---- Callbacks of the engine, all within a step ---- */

void mica_jni_engine_on_context(void *user, const mica_context_event *event)
{
    mica_jni_engine *e = user;
    e->dropped += event->dropped_count;
}

int mica_jni_engine_on_prefill(void *user, int32_t done, int32_t total)
{
    mica_jni_engine *e = user;
    e->prefill_done = done;
    e->prefill_total = total;
    return 0;
}

/* A step makes little text, and Kotlin takes it after each: the buffer stays small. */
static int on_text(void *user, const char *text, size_t length)
{
    mica_jni_engine *e = user;
    if (length > e->text_capacity - e->text_length) {
        size_t capacity = 2 * (e->text_length + length) + 256;
        char *grown = realloc(e->text, capacity);
        e->out_of_memory = !grown;
        if (!grown)
            return 1;
        e->text = grown;
        e->text_capacity = capacity;
    }
    memcpy(e->text + e->text_length, text, length);
    e->text_length += length;
    return 0;
}

static int on_token(void *user, const mica_token_event *token)
{
    mica_jni_engine *e = user;
    e->tokens = token->index + 1;
    return 0;
}

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    mica_jni_engine *e = user;
    e->running = false;
    e->status = status;
    e->result = *result;
    if (error)
        e->error = *error;
    if (e->out_of_memory) {
        e->status = MICA_OUT_OF_MEMORY;
        e->error = (mica_error){.code = MICA_OUT_OF_MEMORY, .position = -1, .message = "no memory for the reply's text"};
    }
}

/* A cancelled reply leaves the batch at the beginning of a step, and an empty batch computes nothing. */
void mica_jni_engine_abandon(mica_jni_engine *e)
{
    if (!e->running)
        return;
    mica_session_cancel(e->session);
    mica_batch_step(e->batch);
    e->text_length = 0;
}

/* ---- The request ---- */

/* In the order of Sampling.figures() in Request.kt. */
enum { SAMPLING_FIGURES = 7 };

static void read_sampling(JNIEnv *env, jfloatArray figures, jlong seed, mica_sampling *s)
{
    jfloat f[SAMPLING_FIGURES] = {0};
    (*env)->GetFloatArrayRegion(env, figures, 0, SAMPLING_FIGURES, f); /* another length: an exception */
    s->temperature = f[0];
    s->top_p = f[1];
    s->min_p = f[2];
    s->repeat_penalty = f[3];
    s->frequency_penalty = f[4];
    s->presence_penalty = f[5];
    s->top_k = f[6] >= 0 && f[6] <= 1e6f ? (int32_t)f[6] : -1;
    s->seed = seed;
}

static void free_stops(char **stops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(stops[i]);
}

/* False: an exception is pending. */
static bool read_stops(JNIEnv *env, jobjectArray array, char *stops[STOPS_MAX], size_t *n)
{
    jsize count = (*env)->GetArrayLength(env, array);
    *n = 0;
    if (count > STOPS_MAX) {
        mica_jni_throw(env, &(mica_error){.code = MICA_INVALID_ARGUMENT, .position = -1,
                                          .message = "there are more than 64 stop strings"});
        return false;
    }
    for (jsize i = 0; i < count; i++) {
        jbyteArray bytes = (jbyteArray)(*env)->GetObjectArrayElement(env, array, i);
        size_t length;
        stops[i] = bytes ? mica_jni_bytes_copy(env, bytes, &length) : NULL;
        (*env)->DeleteLocalRef(env, bytes);
        if (!stops[i])
            return false;
        *n = (size_t)i + 1;
    }
    return true;
}

/* A conversation (JSON) or a text to tokens. */
static mica_status tokenize(const mica_jni_engine *e, const char *text, size_t length, bool chat, int32_t **tokens, size_t *n,
                            mica_error *err)
{
    *tokens = NULL;
    return chat ? mica_chat_tokenize(e->model, text, length, NULL, tokens, n, NULL, NULL, err)
                : mica_model_tokenize(e->model, text, length, MICA_TOKENIZE_ADD_BOS, tokens, n, err);
}

static mica_status submit(mica_jni_engine *e, const char *text, size_t length, bool chat, mica_generate_options *o,
                          size_t *n_tokens, mica_error *err)
{
    int32_t *tokens;
    mica_status status = tokenize(e, text, length, chat, &tokens, n_tokens, err);
    if (status)
        return status;
    mica_jni_engine_abandon(e); /* nobody takes its steps any more */
    e->text_length = 0;
    e->tokens = e->prefill_done = e->prefill_total = 0;
    e->dropped = 0;
    e->out_of_memory = false;
    o->on_text = on_text;
    o->on_token = on_token;
    o->on_done = on_done;
    o->user = e;
    status = mica_batch_submit(e->session, tokens, *n_tokens, o, err);
    e->running = !status;
    mica_free(tokens);
    return status;
}

/** replySubmit(handle, text, chat, maxTokens, sampling figures, seed, stop strings): int, the prompt's tokens. */
static jint reply_submit(JNIEnv *env, jclass class, jlong handle, jbyteArray text, jboolean chat, jint max_tokens,
                         jfloatArray sampling, jlong seed, jobjectArray stop_strings)
{
    (void)class;
    mica_generate_options options = mica_generate_options_default();
    mica_error err;
    char *stops[STOPS_MAX];
    size_t n_stops = 0, length = 0, n_tokens = 0;
    options.max_tokens = max_tokens;
    read_sampling(env, sampling, seed, &options.sampling);
    if ((*env)->ExceptionCheck(env))
        return 0;
    char *bytes = mica_jni_bytes_copy(env, text, &length);
    mica_jni_engine *e = NULL;
    if (bytes && read_stops(env, stop_strings, stops, &n_stops))
        e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (e) {
        int32_t n_ctx = e->n_ctx;
        options.stop = (const char *const *)stops;
        options.n_stop = n_stops;
        mica_status status = submit(e, bytes, length, chat, &options, &n_tokens, &err);
        mica_jni_handle_release(handle);
        if (status == MICA_CONTEXT_FULL)
            mica_jni_throw_too_long(env, &err, n_tokens, n_ctx);
        else if (status)
            mica_jni_throw(env, &err);
    }
    free_stops(stops, n_stops);
    free(bytes);
    return (jint)n_tokens;
}

/** countTokens(handle, text, chat): int. */
static jint count_tokens(JNIEnv *env, jclass class, jlong handle, jbyteArray text, jboolean chat)
{
    (void)class;
    size_t length, n = 0;
    int32_t *tokens = NULL;
    mica_error err;
    char *bytes = mica_jni_bytes_copy(env, text, &length);
    mica_jni_engine *e = bytes ? mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle) : NULL;
    if (e) {
        mica_status status = tokenize(e, bytes, length, chat, &tokens, &n, &err);
        mica_jni_handle_release(handle);
        if (status)
            mica_jni_throw(env, &err);
        else
            mica_free(tokens);
    }
    free(bytes);
    return (jint)n;
}

/* ---- Steps ---- */

/* In the order of the constants in Native.kt. */
enum { STEP_FIGURES = 5 };

/** replyStep(handle, long[5] out: running, tokens so far, prompt tokens computed, prompt tokens, tokens dropped): byte[], the
 * text that the step made: whole characters, often none. */
static jbyteArray reply_step(JNIEnv *env, jclass class, jlong handle, jlongArray out)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e)
        return NULL;
    if (e->running)
        mica_batch_step(e->batch);
    const jlong figures[STEP_FIGURES] = {e->running, e->tokens, e->prefill_done, e->prefill_total, e->dropped};
    (*env)->SetLongArrayRegion(env, out, 0, STEP_FIGURES, figures);
    jbyteArray text = (*env)->ExceptionCheck(env) ? NULL : mica_jni_bytes_new(env, e->text, e->text_length);
    e->text_length = 0;
    mica_jni_handle_release(handle);
    return text;
}

/** replyCancel(handle): the reply ends without another step. Nothing to do is no error, a closed engine neither. */
static void reply_cancel(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e) {
        (*env)->ExceptionClear(env);
        return;
    }
    mica_jni_engine_abandon(e);
    mica_jni_handle_release(handle);
}

/* ---- The end ---- */

/* In the order of Timings.of() in Reply.kt. */
enum { RESULT_FIGURES = 14 };

/** replyResult(handle, double[14] out): byte[], the stop reason. Throws the reply's error, if it has one. */
static jbyteArray reply_result(JNIEnv *env, jclass class, jlong handle, jdoubleArray out)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e)
        return NULL;
    mica_result r = e->result;
    mica_error err = e->error;
    mica_status status = e->status;
    mica_jni_handle_release(handle);
    const jdouble figures[RESULT_FIGURES] = {
        r.prompt_n, r.cached_n, r.gen_n, r.dropped_n, r.needed_n, r.ttft_ms, r.tpot_ms, r.tpot_p50_ms, r.tpot_p95_ms,
        r.prefill_ms, r.prefill_tps, r.decode_tps, (double)r.peak_rss_bytes, r.n_threads,
    };
    (*env)->SetDoubleArrayRegion(env, out, 0, RESULT_FIGURES, figures);
    if ((*env)->ExceptionCheck(env))
        return NULL;
    if (status) {
        mica_jni_throw(env, &err);
        return NULL;
    }
    const char *reason = r.stop_reason ? r.stop_reason : ""; /* asked before the end */
    return mica_jni_bytes_new(env, reason, strlen(reason));
}

/** replyReceipt(handle): byte[], JSON. */
static jbyteArray reply_receipt(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e)
        return NULL;
    char *text = NULL;
    mica_error err;
    mica_status status = mica_receipt_json(e->receipt, &text, &err);
    mica_jni_handle_release(handle);
    if (status) {
        mica_jni_throw(env, &err);
        return NULL;
    }
    jbyteArray out = mica_jni_bytes_new(env, text, strlen(text));
    mica_free(text);
    return out;
}

const JNINativeMethod mica_jni_reply_methods[] = {
    {"replySubmit", "(J[BZI[FJ[[B)I", (void *)reply_submit},
    {"countTokens", "(J[BZ)I", (void *)count_tokens},
    {"replyStep", "(J[J)[B", (void *)reply_step},
    {"replyCancel", "(J)V", (void *)reply_cancel},
    {"replyResult", "(J[D)[B", (void *)reply_result},
    {"replyReceipt", "(J)[B", (void *)reply_receipt},
};
const jint mica_jni_reply_method_count = sizeof mica_jni_reply_methods / sizeof *mica_jni_reply_methods;
