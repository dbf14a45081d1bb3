/* convert.c - bytes and exceptions across the boundary, and the table of native methods that the JVM gets when it loads us. */
#include <stdlib.h>
#include <string.h>

#include "mica_jni.h"

/* ---- Exceptions ---- */

/* Lookups allocate and may fail; then theirs is the exception that is pending. */
static void throw_with(JNIEnv *env, const char *class_name, const char *signature, const jvalue *arguments)
{
    jclass class = (*env)->FindClass(env, class_name);
    jmethodID init = class ? (*env)->GetMethodID(env, class, "<init>", signature) : NULL;
    jobject exception = init ? (*env)->NewObjectA(env, class, init, arguments) : NULL;
    if (exception)
        (*env)->Throw(env, (jthrowable)exception);
    (*env)->DeleteLocalRef(env, exception);
    (*env)->DeleteLocalRef(env, class);
}

void mica_jni_throw(JNIEnv *env, const mica_error *err)
{
    jbyteArray message = mica_jni_bytes_new(env, err->message, strlen(err->message));
    if (!message)
        return;
    jvalue arguments[] = {{.i = (jint)err->code}, {.l = message}, {.j = err->position}};
    throw_with(env, "mica/MicaException", "(I[BJ)V", arguments);
    (*env)->DeleteLocalRef(env, message);
}

void mica_jni_throw_too_long(JNIEnv *env, const mica_error *err, size_t prompt_tokens, int32_t context_tokens)
{
    jbyteArray message = mica_jni_bytes_new(env, err->message, strlen(err->message));
    if (!message)
        return;
    jint prompt = prompt_tokens > INT32_MAX ? INT32_MAX : (jint)prompt_tokens;
    jvalue arguments[] = {{.i = prompt}, {.i = context_tokens}, {.l = message}};
    throw_with(env, "mica/PromptTooLongException", "(II[B)V", arguments);
    (*env)->DeleteLocalRef(env, message);
}

void mica_jni_throw_closed(JNIEnv *env, const char *message)
{
    jclass class = (*env)->FindClass(env, "java/lang/IllegalStateException");
    if (class)
        (*env)->ThrowNew(env, class, message);
    (*env)->DeleteLocalRef(env, class);
}

/* ---- Bytes ---- */

char *mica_jni_bytes_copy(JNIEnv *env, jbyteArray bytes, size_t *length)
{
    jsize n = (*env)->GetArrayLength(env, bytes);
    char *copy = malloc((size_t)n + 1);
    if (!copy) {
        mica_jni_throw(env, &(mica_error){.code = MICA_OUT_OF_MEMORY, .position = -1, .message = "no memory for a text"});
        return NULL;
    }
    (*env)->GetByteArrayRegion(env, bytes, 0, n, (jbyte *)copy);
    copy[n] = 0;
    *length = (size_t)n;
    return copy;
}

jbyteArray mica_jni_bytes_new(JNIEnv *env, const char *data, size_t length)
{
    jsize n = length > INT32_MAX ? INT32_MAX : (jsize)length;
    jbyteArray bytes = (*env)->NewByteArray(env, n);
    if (bytes && n > 0)
        (*env)->SetByteArrayRegion(env, bytes, 0, n, (const jbyte *)data);
    return bytes;
}

/* ---- Loading ---- */

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved)
{
    (void)reserved;
    JNIEnv *env;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_6) != JNI_OK)
        return JNI_ERR;
    jclass class = (*env)->FindClass(env, "mica/Native");
    if (!class)
        return JNI_ERR;
    jint failed = (*env)->RegisterNatives(env, class, mica_jni_engine_methods, mica_jni_engine_method_count) ||
                  (*env)->RegisterNatives(env, class, mica_jni_reply_methods, mica_jni_reply_method_count) ||
                  (*env)->RegisterNatives(env, class, mica_jni_device_methods, mica_jni_device_method_count);
    (*env)->DeleteLocalRef(env, class);
    return failed ? JNI_ERR : JNI_VERSION_1_6;
}
