/* engine.c - opening and closing an engine for Java. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"

/* ---- Opening ---- */

/* Who watches the file being opened: a Java object, on the thread that called us. */
typedef struct watcher {
    JNIEnv *env;
    jobject object; /* NULL: nobody */
    jmethodID on_progress;
} watcher;

static int on_progress(void *user, double done)
{
    watcher *w = user;
    jboolean go_on = (*w->env)->CallBooleanMethod(w->env, w->object, w->on_progress, (jdouble)done);
    return (*w->env)->ExceptionCheck(w->env) || !go_on;
}

static bool watch(JNIEnv *env, jobject object, watcher *w, mica_model_options *options)
{
    *w = (watcher){.env = env, .object = object};
    if (!object)
        return true;
    jclass class = (*env)->GetObjectClass(env, object);
    w->on_progress = (*env)->GetMethodID(env, class, "onProgress", "(D)Z");
    (*env)->DeleteLocalRef(env, class);
    options->on_progress = on_progress;
    options->user = w;
    return w->on_progress != NULL;
}

/* What Java chose; the numbers of the enums are those of mica.h. */
typedef struct settings {
    jint context, threads, chunk, policy, keep_first, objective;
    jlong memory_budget, app_limit;
} settings;

static mica_status make_governor(mica_jni_engine *e, const settings *s, mica_error *err)
{
    mica_governor_options options = mica_governor_options_default();
    if (s->objective < 0)
        return MICA_OK;
    options.objective = (mica_objective)s->objective;
    options.device = e->device;
    options.n_threads = s->threads;
    return mica_governor_new(&options, &e->governor, err);
}

static mica_status make_batch(mica_jni_engine *e, const settings *s, mica_error *err)
{
    mica_batch_options options = mica_batch_options_default();
    options.max_sessions = 1;
    options.n_ctx = s->context;
    options.step_tokens = s->chunk;
    options.n_threads = s->threads;
    options.memory_budget = s->memory_budget;
    options.app_limit = s->app_limit;
    options.governor = e->governor;
    mica_memory_plan plan;
    mica_status status = mica_batch_plan(e->model, &options, &plan, err);
    e->n_ctx = status ? 0 : plan.n_ctx;
    return status ? status : mica_batch_new(e->model, &options, &e->batch, err);
}

static mica_status make_session(mica_jni_engine *e, const settings *s, mica_error *err)
{
    mica_session_options options = mica_session_options_default();
    options.full_policy = (mica_full_policy)s->policy;
    options.keep_first = s->keep_first;
    options.on_context_event = mica_jni_engine_on_context;
    options.on_prefill = mica_jni_engine_on_prefill;
    options.user = e;
    return mica_batch_session_new(e->batch, &options, &e->session, err);
}

/* Without hashes: that would read the whole file, which on a phone takes longer than the first answer. */
static mica_status make_receipt(mica_jni_engine *e, mica_error *err)
{
    mica_receipt_options options = mica_receipt_options_default();
    options.hashes = false;
    options.device = e->device;
    mica_status status = mica_receipt_new(e->model, &options, &e->receipt, err);
    return status ? status : mica_session_set_receipt(e->session, e->receipt, err);
}

static void free_engine(mica_jni_engine *e)
{
    mica_batch_free(e->batch); /* with its session, whose reply ends without a callback */
    mica_receipt_free(e->receipt);
    mica_governor_free(e->governor);
    mica_model_close(e->model);
    mica_jni_device_release(e->owner);
    free(e->text);
    free(e);
}

/* Takes over the model, and on success the reference to the device. */
static mica_status make_engine(mica_model *model, mica_jni_device *owner, mica_device *device, const settings *s,
                               mica_jni_engine **out, mica_error *err)
{
    mica_jni_engine *e = calloc(1, sizeof *e);
    if (!e) {
        mica_model_close(model);
        *err = (mica_error){.code = MICA_OUT_OF_MEMORY, .position = -1, .message = "no memory for an engine"};
        return err->code;
    }
    e->model = model;
    e->device = device;
    mica_status status = make_governor(e, s, err);
    if (!status)
        status = make_batch(e, s, err);
    if (!status)
        status = make_session(e, s, err);
    if (!status)
        status = make_receipt(e, err);
    if (status) {
        free_engine(e);
        return status;
    }
    e->owner = owner;
    *out = e;
    return MICA_OK;
}

static mica_status open_model(JNIEnv *env, jbyteArray path, jint fd, jlong offset, jlong length, jobject object,
                              mica_model **model, mica_error *err)
{
    mica_model_options options = mica_model_options_default();
    watcher w;
    if (!watch(env, object, &w, &options))
        return MICA_CANCELLED;
    if (!path)
        return mica_model_open_fd(fd, (uint64_t)offset, (uint64_t)length, &options, model, err);
    size_t n;
    char *name = mica_jni_bytes_copy(env, path, &n);
    if (!name)
        return MICA_OUT_OF_MEMORY;
    mica_status status = MICA_INVALID_ARGUMENT;
    if (strlen(name) == n)
        status = mica_model_open(name, &options, model, err);
    else
        *err = (mica_error){.code = status, .position = (int64_t)strlen(name), .message = "the path has a NUL character in it"};
    free(name);
    return status;
}

/** engineOpen(path or null, fd, offset, length, watcher or null, device, context, threads, chunk, policy, keepFirst, objective,
 * memoryBudget, appLimit): long. */
static jlong engine_open(JNIEnv *env, jclass class, jbyteArray path, jint fd, jlong offset, jlong length, jobject object,
                         jlong device_handle, jint context, jint threads, jint chunk, jint policy, jint keep_first,
                         jint objective, jlong memory_budget, jlong app_limit)
{
    (void)class;
    const settings s = {context, threads, chunk, policy, keep_first, objective, memory_budget, app_limit};
    mica_error err = {.position = -1};
    mica_model *model = NULL;
    mica_jni_engine *engine = NULL;
    mica_jni_device *owner = mica_jni_handle_acquire(env, MICA_JNI_DEVICE, device_handle);
    if (!owner)
        return 0;
    mica_device *device = mica_jni_device_retain(owner); /* reports need not wait until the model is open */
    mica_jni_handle_release(device_handle);
    mica_status status = open_model(env, path, fd, offset, length, object, &model, &err);
    if (!status)
        status = make_engine(model, owner, device, &s, &engine, &err);
    if (status) {
        mica_jni_device_release(owner);
        if (!(*env)->ExceptionCheck(env)) /* else the watcher threw, and that is what the caller sees */
            mica_jni_throw(env, &err);
        return 0;
    }
    jlong handle = mica_jni_handle_new(MICA_JNI_ENGINE, engine);
    if (!handle) {
        free_engine(engine);
        mica_jni_throw(env, &(mica_error){.code = MICA_OUT_OF_MEMORY, .position = -1,
                                          .message = "too many engines and devices are open"});
    }
    return handle;
}

static void engine_close(JNIEnv *env, jclass class, jlong handle)
{
    (void)env, (void)class;
    mica_jni_engine *e = mica_jni_handle_remove(MICA_JNI_ENGINE, handle);
    if (e)
        free_engine(e);
}

/* ---- What it is ---- */

/** engineInfo(handle): byte[]: architecture, name and kernel set, a NUL between them. */
static jbyteArray engine_info(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e)
        return NULL;
    mica_model_info info;
    mica_model_get_info(e->model, &info);
    const char *parts[] = {info.architecture, info.name, info.kernels};
    char text[512];
    size_t n = 0;
    for (int i = 0; i < 3; i++) { /* a name that is longer than what is left is cut; Kotlin takes care of half a character */
        size_t length = strnlen(parts[i], sizeof text - 1 - n);
        memcpy(text + n, parts[i], length);
        n += length;
        if (i < 2 && n < sizeof text)
            text[n++] = 0;
    }
    jbyteArray out = mica_jni_bytes_new(env, text, n);
    mica_jni_handle_release(handle);
    return out;
}

/** engineFigures(handle): long[]: context, weights, weight bytes, file bytes. */
static jlongArray engine_figures(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e)
        return NULL;
    mica_model_info info;
    mica_model_get_info(e->model, &info);
    const jlong figures[] = {e->n_ctx, info.n_params, info.weight_bytes, info.file_bytes};
    mica_jni_handle_release(handle);
    jlongArray out = (*env)->NewLongArray(env, 4);
    if (out)
        (*env)->SetLongArrayRegion(env, out, 0, 4, figures);
    return out;
}

/** engineGovernor(handle): double[]: objective (-1: there is no governor), tokens a second (NaN: not measured yet), pause in
 * microseconds, changes of threads or cores so far. */
static jdoubleArray engine_governor(JNIEnv *env, jclass class, jlong handle)
{
    (void)class;
    mica_jni_engine *e = mica_jni_handle_acquire(env, MICA_JNI_ENGINE, handle);
    if (!e)
        return NULL;
    mica_governor_info info;
    jdouble figures[] = {-1, NAN, 0, 0};
    if (e->governor) {
        mica_governor_get_info(e->governor, &info);
        figures[0] = info.objective;
        figures[1] = info.rate_tps;
        figures[2] = info.output.pause_us;
        figures[3] = (jdouble)info.changes;
    }
    mica_jni_handle_release(handle);
    jdoubleArray out = (*env)->NewDoubleArray(env, 4);
    if (out)
        (*env)->SetDoubleArrayRegion(env, out, 0, 4, figures);
    return out;
}

/** openHandles(): int. */
static jint open_handles(JNIEnv *env, jclass class)
{
    (void)env, (void)class;
    return mica_jni_handle_count();
}

const JNINativeMethod mica_jni_engine_methods[] = {
    {"engineOpen", "([BIJJLmica/LoadWatcher;JIIIIIIJJ)J", (void *)engine_open},
    {"engineClose", "(J)V", (void *)engine_close},
    {"engineInfo", "(J)[B", (void *)engine_info},
    {"engineFigures", "(J)[J", (void *)engine_figures},
    {"engineGovernor", "(J)[D", (void *)engine_governor},
    {"openHandles", "()I", (void *)open_handles},
};
const jint mica_jni_engine_method_count = sizeof mica_jni_engine_methods / sizeof *mica_jni_engine_methods;
