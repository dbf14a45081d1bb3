#include "serve/cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct mica_cache_entry {
    mica_cache *cache; /* NULL: in no cache */
    char *key;
    size_t length;
    void *object;
    void (*free_object)(void *);
    size_t uses;
    uint64_t last_used;
};

struct mica_cache {
    pthread_mutex_t lock;
    uint64_t clock;
    size_t places;
    mica_cache_entry **entries; /* [places] NULL: free */
};

mica_cache *mica_cache_new(size_t places)
{
    mica_cache *c = calloc(1, sizeof *c);
    mica_cache_entry **entries = calloc(places, sizeof *entries);
    if (!c || !entries) {
        free(c);
        free(entries);
        return NULL;
    }
    *c = (mica_cache){.places = places, .entries = entries};
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void free_entry(mica_cache_entry *e)
{
    if (!e)
        return;
    e->free_object(e->object);
    free(e->key);
    free(e);
}

void mica_cache_free(mica_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->places; i++)
        free_entry(c->entries[i]);
    pthread_mutex_destroy(&c->lock);
    free(c->entries);
    free(c);
}

mica_cache_entry *mica_cache_get(mica_cache *c, const char *key, size_t length)
{
    mica_cache_entry *found = NULL;
    if (!c)
        return NULL;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->places && !found; i++) {
        mica_cache_entry *e = c->entries[i];
        if (e && e->length == length && memcmp(e->key, key, length) == 0)
            found = e;
    }
    if (found) {
        found->uses++;
        found->last_used = ++c->clock;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* With the lock held: a free place, else that of the entry whose use is longest ago; NULL: all are in use. */
static mica_cache_entry **place_of(mica_cache *c)
{
    mica_cache_entry **oldest = NULL;
    for (size_t i = 0; i < c->places; i++) {
        mica_cache_entry **e = &c->entries[i];
        if (!*e)
            return e;
        if ((*e)->uses == 0 && (!oldest || (*e)->last_used < (*oldest)->last_used))
            oldest = e;
    }
    return oldest;
}

mica_cache_entry *mica_cache_add(mica_cache *c, const char *key, size_t length, void *object, void (*free_object)(void *))
{
    mica_cache_entry *e = calloc(1, sizeof *e), *old = NULL;
    char *copy = malloc(length + 1);
    if (!e || !copy) {
        free(e);
        free(copy);
        free_object(object);
        return NULL;
    }
    memcpy(copy, key, length);
    *e = (mica_cache_entry){.key = copy, .length = length, .object = object, .free_object = free_object, .uses = 1};
    if (!c)
        return e;
    pthread_mutex_lock(&c->lock);
    mica_cache_entry **place = place_of(c);
    if (place) {
        old = *place;
        *place = e;
        e->cache = c;
        e->last_used = ++c->clock;
    }
    pthread_mutex_unlock(&c->lock);
    free_entry(old);
    return e;
}

void *mica_cache_object(const mica_cache_entry *e)
{
    return e->object;
}

void mica_cache_give_back(mica_cache_entry *e)
{
    if (!e)
        return;
    if (!e->cache) {
        free_entry(e);
        return;
    }
    pthread_mutex_lock(&e->cache->lock);
    e->uses--;
    pthread_mutex_unlock(&e->cache->lock);
}
