/* handles.c - the table of what Java holds: numbers with a generation, so that one which was closed is never taken for another.
 *
 * A handle is generation << 16 | slot + 1. A slot's generation grows with each use, so that an old number comes to life again
 * only after 2^31 of them.
 * Invariants, under `lock`: kind FREE <=> object NULL; `busy` only while a thread is between acquire and release.
 *
 * This is state of the process: a class loader loads the layer once, and its numbers are of one space. */
#include <pthread.h>
#include <stdbool.h>

#include "mica_jni.h"

typedef struct slot {
    void *object;
    uint32_t generation;
    mica_jni_kind kind;
    bool busy;
} slot;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    slot slots[MICA_JNI_HANDLES];
    jint count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

static jlong number_of(const slot *s) { return (jlong)s->generation << 16 | (jlong)(s - table.slots + 1); }

/* NULL: closed, of another kind, or never a handle. */
static slot *find(mica_jni_kind kind, jlong handle)
{
    jlong index = (handle & 0xFFFF) - 1;
    if (index < 0 || index >= MICA_JNI_HANDLES)
        return NULL;
    slot *s = &table.slots[index];
    return s->kind == kind && number_of(s) == handle ? s : NULL;
}

/* The slot is looked up again after every wait: whoever had it may have closed it. */
static slot *find_idle(mica_jni_kind kind, jlong handle)
{
    slot *s = find(kind, handle);
    while (s && s->busy) {
        pthread_cond_wait(&table.freed, &table.lock);
        s = find(kind, handle);
    }
    return s;
}

jlong mica_jni_handle_new(mica_jni_kind kind, void *object)
{
    jlong handle = 0;
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < MICA_JNI_HANDLES && !handle; i++) {
        slot *s = &table.slots[i];
        if (s->kind == MICA_JNI_FREE) {
            *s = (slot){.object = object, .generation = (s->generation + 1) & INT32_MAX, .kind = kind};
            handle = number_of(s);
            table.count++;
        }
    }
    pthread_mutex_unlock(&table.lock);
    return handle;
}

void *mica_jni_handle_acquire(JNIEnv *env, mica_jni_kind kind, jlong handle)
{
    void *object = NULL;
    pthread_mutex_lock(&table.lock);
    slot *s = find_idle(kind, handle);
    if (s) {
        s->busy = true;
        object = s->object;
    }
    pthread_mutex_unlock(&table.lock);
    if (!object)
        mica_jni_throw_closed(env, kind == MICA_JNI_ENGINE ? "this engine is closed" : "this device is closed");
    return object;
}

void mica_jni_handle_release(jlong handle)
{
    pthread_mutex_lock(&table.lock);
    table.slots[(handle & 0xFFFF) - 1].busy = false;
    pthread_cond_broadcast(&table.freed);
    pthread_mutex_unlock(&table.lock);
}

void *mica_jni_handle_remove(mica_jni_kind kind, jlong handle)
{
    void *object = NULL;
    pthread_mutex_lock(&table.lock);
    slot *s = find_idle(kind, handle);
    if (s) {
        object = s->object;
        s->object = NULL;
        s->kind = MICA_JNI_FREE;
        table.count--;
        pthread_cond_broadcast(&table.freed);
    }
    pthread_mutex_unlock(&table.lock);
    return object;
}

jint mica_jni_handle_count(void)
{
    pthread_mutex_lock(&table.lock);
    jint count = table.count;
    pthread_mutex_unlock(&table.lock);
    return count;
}
