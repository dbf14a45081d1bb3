/* mica_jni.h - what the files of the JNI layer share.
 *
 * Rules of this layer:
 *  1. Text crosses as byte[] of UTF-8, both ways: JNI's own strings are "modified UTF-8", which garbles or aborts on emoji.
 *  2. Java holds numbers, never pointers. Each is looked up in the table of handles.c; one that is closed, or never was one, is
 *     an IllegalStateException.
 *  3. No callback into Java while tokens are made: Kotlin asks for step after step and takes the text. Only opening a model
 *     calls back, on the caller's thread.
 *  4. A function that has thrown returns at once and has given back everything.
 */
#ifndef MICA_BINDINGS_KOTLIN_JNI_H
#define MICA_BINDINGS_KOTLIN_JNI_H
#include <jni.h>

#include "mica/mica.h"
#include "mica/mica_device.h"

typedef enum mica_jni_kind { MICA_JNI_FREE = 0, MICA_JNI_ENGINE = 1, MICA_JNI_DEVICE = 2 } mica_jni_kind;

#define MICA_JNI_HANDLES 1024 /* engines and devices open at the same time */

/* ---- handles.c ---- */

/** A number for the object, never 0; 0: the table is full. */
jlong mica_jni_handle_new(mica_jni_kind kind, void *object);
/** The object, for this thread alone until mica_jni_handle_release(); waits while another thread has it. NULL: it is closed, or
 * the number never was a handle of this kind; then an exception is pending. */
void *mica_jni_handle_acquire(JNIEnv *env, mica_jni_kind kind, jlong handle);
void mica_jni_handle_release(jlong handle);
/** Waits until no thread has it, then takes it out of the table and returns it; NULL: it is closed already, no error. */
void *mica_jni_handle_remove(mica_jni_kind kind, jlong handle);
/** How many are open: what tests of leaks ask. */
jint mica_jni_handle_count(void);

/* ---- convert.c ---- */

/** Throws MicaException(code, message, position). */
void mica_jni_throw(JNIEnv *env, const mica_error *err);
/** Throws PromptTooLongException(prompt, context, message). */
void mica_jni_throw_too_long(JNIEnv *env, const mica_error *err, size_t prompt_tokens, int32_t context_tokens);
/** `message` is ASCII. */
void mica_jni_throw_closed(JNIEnv *env, const char *message);

/** A copy of the bytes with a NUL behind it, to be freed; NULL: an exception is pending. */
char *mica_jni_bytes_copy(JNIEnv *env, jbyteArray bytes, size_t *length);
/** NULL: an exception is pending. */
jbyteArray mica_jni_bytes_new(JNIEnv *env, const char *data, size_t length);

/* ---- device.c ---- */

/** A monitor that engines hold on to after Java has closed it. */
typedef struct mica_jni_device mica_jni_device;
mica_device *mica_jni_device_retain(mica_jni_device *device);
void mica_jni_device_release(mica_jni_device *device);
extern const JNINativeMethod mica_jni_device_methods[];
extern const jint mica_jni_device_method_count;

/* ---- engine.c, reply.c ---- */

typedef struct mica_jni_engine mica_jni_engine;
extern const JNINativeMethod mica_jni_engine_methods[];
extern const jint mica_jni_engine_method_count;
extern const JNINativeMethod mica_jni_reply_methods[];
extern const jint mica_jni_reply_method_count;

#endif
