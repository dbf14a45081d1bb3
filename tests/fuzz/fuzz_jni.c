/* libFuzzer target: what Java may hand to the JNI layer: texts, stop strings, numbers and handles, in any order. In place of a
 * JVM is a table of functions that hold the layer to JNI's rules: no call but the allowed ones while an exception is pending,
 * no array beyond its end. What a step says is UTF-8. */
#include <math.h>

#include "fuzz_util.h"
#include "mica_jni.h"

/* ---- A JVM of arrays and exceptions ---- */

typedef struct object {
    struct object *next; /* all of an input, to be freed */
    jsize n;             /* elements */
    size_t element;      /* bytes of one */
    unsigned char data[];
} object;

static object *all;
static bool pending;

static object *make(jsize n, size_t element)
{
    object *o = calloc(1, sizeof *o + (size_t)n * element);
    if (!o)
        abort();
    *o = (object){.next = all, .n = n, .element = element};
    return all = o;
}

static void must_be_calm(void)
{
    if (pending)
        abort(); /* an exception is pending: the layer should have returned */
}

/* The bytes of a region; NULL, and an exception, where the array ends before. */
static unsigned char *region(void *array, jsize start, jsize n, size_t element)
{
    object *o = array;
    must_be_calm();
    if (!o || o->element != element)
        abort();
    pending = start < 0 || n < 0 || start > o->n - n;
    return pending ? NULL : o->data + (size_t)start * element;
}

#define ARRAY(type)                                                                                                            \
    static type##Array JNICALL new_##type(JNIEnv *env, jsize n)                                                                \
    {                                                                                                                          \
        (void)env;                                                                                                             \
        must_be_calm();                                                                                                        \
        return (type##Array)make(n, sizeof(type));                                                                             \
    }                                                                                                                          \
    static void JNICALL get_##type(JNIEnv *env, type##Array array, jsize start, jsize n, type *out)                            \
    {                                                                                                                          \
        (void)env;                                                                                                             \
        unsigned char *from = region(array, start, n, sizeof(type));                                                           \
        if (from)                                                                                                              \
            memcpy(out, from, (size_t)n * sizeof(type));                                                                       \
    }                                                                                                                          \
    static void JNICALL set_##type(JNIEnv *env, type##Array array, jsize start, jsize n, const type *in)                       \
    {                                                                                                                          \
        (void)env;                                                                                                             \
        unsigned char *to = region(array, start, n, sizeof(type));                                                             \
        if (to)                                                                                                                \
            memcpy(to, in, (size_t)n * sizeof(type));                                                                          \
    }
ARRAY(jbyte)
ARRAY(jlong)
ARRAY(jdouble)

static void JNICALL get_jfloat(JNIEnv *env, jfloatArray array, jsize start, jsize n, jfloat *out)
{
    (void)env;
    unsigned char *from = region(array, start, n, sizeof(jfloat));
    if (from)
        memcpy(out, from, (size_t)n * sizeof(jfloat));
}

static jsize JNICALL array_length(JNIEnv *env, jarray array)
{
    (void)env;
    must_be_calm();
    return ((object *)(void *)array)->n;
}

static jobject JNICALL array_element(JNIEnv *env, jobjectArray array, jsize i)
{
    (void)env;
    jobject *at = (jobject *)(void *)region(array, i, 1, sizeof(jobject));
    return at ? *at : NULL;
}

static jclass JNICALL find_class(JNIEnv *env, const char *name)
{
    (void)env, (void)name;
    must_be_calm();
    return (jclass)make(0, 1);
}

static jmethodID JNICALL method_of(JNIEnv *env, jclass class, const char *name, const char *signature)
{
    (void)env, (void)class, (void)name, (void)signature;
    must_be_calm();
    return (jmethodID)make(0, 1);
}

static jobject JNICALL new_object(JNIEnv *env, jclass class, jmethodID method, const jvalue *arguments)
{
    (void)env, (void)class, (void)method, (void)arguments;
    must_be_calm();
    return (jobject)make(0, 1);
}

static jint JNICALL throw_object(JNIEnv *env, jthrowable exception)
{
    (void)env, (void)exception;
    must_be_calm();
    pending = true;
    return 0;
}

static jint JNICALL throw_text(JNIEnv *env, jclass class, const char *message)
{
    (void)env, (void)class;
    fuzz_check_text(message);
    must_be_calm();
    pending = true;
    return 0;
}

static jboolean JNICALL is_pending(JNIEnv *env)
{
    (void)env;
    return pending;
}

static void JNICALL clear(JNIEnv *env)
{
    (void)env;
    pending = false;
}

static void JNICALL forget(JNIEnv *env, jobject o)
{
    (void)env, (void)o;
}

static const struct JNINativeInterface_ machine = {
    .FindClass = find_class,
    .GetMethodID = method_of,
    .NewObjectA = new_object,
    .Throw = throw_object,
    .ThrowNew = throw_text,
    .ExceptionCheck = is_pending,
    .ExceptionClear = clear,
    .DeleteLocalRef = forget,
    .GetArrayLength = array_length,
    .GetObjectArrayElement = array_element,
    .NewByteArray = new_jbyte,
    .NewLongArray = new_jlong,
    .NewDoubleArray = new_jdouble,
    .GetByteArrayRegion = get_jbyte,
    .GetLongArrayRegion = get_jlong,
    .GetFloatArrayRegion = get_jfloat,
    .GetDoubleArrayRegion = get_jdouble,
    .SetByteArrayRegion = set_jbyte,
    .SetLongArrayRegion = set_jlong,
    .SetDoubleArrayRegion = set_jdouble,
};

static JNIEnv *env_of_all(void)
{
    static JNIEnv env = &machine;
    return &env;
}

/* ---- What is called: the tables that a JVM gets ---- */

typedef jlong (*open_device)(JNIEnv *, jclass, jbyteArray);
typedef jlong (*open_engine)(JNIEnv *, jclass, jbyteArray, jint, jlong, jlong, jobject, jlong, jint, jint, jint, jint, jint,
                             jint, jlong, jlong);
typedef void (*with_handle)(JNIEnv *, jclass, jlong);
typedef jbyteArray (*bytes_of)(JNIEnv *, jclass, jlong);
typedef jbyteArray (*fills)(JNIEnv *, jclass, jlong, jarray);
typedef jint (*counts)(JNIEnv *, jclass, jlong, jbyteArray, jboolean);
typedef jint (*submits)(JNIEnv *, jclass, jlong, jbyteArray, jboolean, jint, jfloatArray, jlong, jobjectArray);

static void *native(const char *name)
{
    for (jint i = 0; i < mica_jni_engine_method_count; i++)
        if (strcmp(mica_jni_engine_methods[i].name, name) == 0)
            return mica_jni_engine_methods[i].fnPtr;
    for (jint i = 0; i < mica_jni_reply_method_count; i++)
        if (strcmp(mica_jni_reply_methods[i].name, name) == 0)
            return mica_jni_reply_methods[i].fnPtr;
    for (jint i = 0; i < mica_jni_device_method_count; i++)
        if (strcmp(mica_jni_device_methods[i].name, name) == 0)
            return mica_jni_device_methods[i].fnPtr;
    abort();
}

/* ---- Bytes to calls ---- */

typedef struct reader {
    const uint8_t *data;
    size_t left;
} reader;

static uint8_t next(reader *r)
{
    if (r->left == 0)
        return 0;
    r->left--;
    return *r->data++;
}

static jbyteArray next_bytes(reader *r)
{
    size_t n = next(r);
    n = n < r->left ? n : r->left;
    object *o = make((jsize)n, 1);
    memcpy(o->data, r->data, n);
    r->data += n;
    r->left -= n;
    return (jbyteArray)o;
}

static jobjectArray next_stops(reader *r)
{
    object *o = make(next(r) % 4, sizeof(jobject));
    for (jsize i = 0; i < o->n; i++)
        ((jobject *)(void *)o->data)[i] = (jobject)next_bytes(r);
    return (jobjectArray)o;
}

static jfloatArray next_figures(reader *r)
{
    static const jfloat values[] = {0, 1, 0.5f, -1, 2, 40, 1e9f, 1e-9f, INFINITY, NAN};
    object *o = make(next(r) % 16 == 0 ? 3 : 7, sizeof(jfloat)); /* three are too few */
    for (jsize i = 0; i < o->n; i++)
        ((jfloat *)(void *)o->data)[i] = values[next(r) % (sizeof values / sizeof *values)];
    return (jfloatArray)o;
}

static jlong open_scripted(JNIEnv *env, jlong device)
{
    object *path = make(sizeof MICA_FUZZ_VOCAB - 1, 1);
    memcpy(path->data, MICA_FUZZ_VOCAB, sizeof MICA_FUZZ_VOCAB - 1);
    jlong engine =
        ((open_engine)native("engineOpen"))(env, NULL, (jbyteArray)path, -1, 0, 0, NULL, device, 64, 1, 0, 0, 0, -1, 0, 0);
    if (!engine || pending)
        abort();
    return engine;
}

/* A file that is none, with any numbers. */
static void open_other(JNIEnv *env, reader *r, jlong device)
{
    jint n[9];
    jbyteArray path = next_bytes(r);
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        n[i] = next(r) - 9;
    jlong engine = ((open_engine)native("engineOpen"))(env, NULL, path, -1, n[0], n[1], NULL, n[2] % 2 ? device : n[2], n[3],
                                                       n[4] % 3, n[5], n[6], n[7], n[8] % 5, n[0], n[1]);
    if (engine || !pending)
        abort();
}

static void call(JNIEnv *env, reader *r, jlong device, jlong engine)
{
    uint8_t what = next(r);
    jlong handle = what & 0x80 ? engine : engine ^ ((jlong)next(r) << next(r) % 40);
    jbyteArray said = NULL;
    switch (what % 10) {
    case 0:
    case 1: {
        jbyteArray text = next_bytes(r);
        jboolean chat = what % 10;
        jint most = next(r) % 6 - 1;
        jfloatArray figures = next_figures(r);
        jobjectArray stops = next_stops(r);
        ((submits)native("replySubmit"))(env, NULL, handle, text, chat, most, figures, next(r), stops);
        break;
    }
    case 2:
    case 3:
        said = ((fills)native("replyStep"))(env, NULL, handle, (jarray)make(5, sizeof(jlong)));
        break;
    case 4:
        ((with_handle)native("replyCancel"))(env, NULL, handle);
        break;
    case 5: {
        jbyteArray text = next_bytes(r);
        ((counts)native("countTokens"))(env, NULL, handle, text, next(r) & 1);
        break;
    }
    case 6:
        said = ((fills)native("replyResult"))(env, NULL, handle, (jarray)make(next(r) % 8 ? 14 : 2, sizeof(jdouble)));
        break;
    case 7:
        said = ((bytes_of)native(next(r) & 1 ? "replyReceipt" : "engineInfo"))(env, NULL, handle);
        break;
    case 8:
        ((bytes_of)native(next(r) & 1 ? "engineFigures" : "engineGovernor"))(env, NULL, handle);
        break;
    case 9:
        open_other(env, r, device);
        break;
    }
    object *text = (object *)(void *)said;
    if (text && mica_utf8_check((const char *)text->data, (size_t)text->n) != (size_t)text->n)
        abort();
    pending = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static jlong device, engine; /* opened once, for the life of the process */
    JNIEnv *env = env_of_all();
    reader r = {data, size};
    if (!device) {
        device = ((open_device)native("deviceOpen"))(env, NULL, (jbyteArray)make(0, 1));
        if (!device)
            abort();
        engine = open_scripted(env, device);
    }
    for (int i = 0; i < 40 && r.left > 0; i++)
        call(env, &r, device, engine);
    ((with_handle)native("replyCancel"))(env, NULL, engine);
    while (all) {
        object *o = all;
        all = o->next;
        free(o);
    }
    return 0;
}
