/* cache.h - compiled constraints and tools that requests share: the same schema comes with every request of a program, and what
 * the engine learns about it (which tokens are possible where) stays with the compiled form. Used by the preparing thread and,
 * to give back, by the scheduler.
 *
 * Invariants
 *  1. An entry in use is never freed; one that is not may be, oldest use first, when a new one needs its place.
 *  2. Where all places are in use, an object is the caller's alone and is freed when it is given back. */
#ifndef MICA_SERVE_CACHE_H
#define MICA_SERVE_CACHE_H
#include <stddef.h>

typedef struct mica_cache mica_cache;
typedef struct mica_cache_entry mica_cache_entry;

/** NULL without memory. */
mica_cache *mica_cache_new(size_t places);
/** No entry may be in use. NULL is fine. */
void mica_cache_free(mica_cache *cache);

/** The entry of a key, in use from now on; NULL: there is none. */
mica_cache_entry *mica_cache_get(mica_cache *cache, const char *key, size_t length);
/** Adds an object, which the entry owns, and takes it in use. `cache` may be NULL. NULL without memory: then the object was
 * freed. */
mica_cache_entry *mica_cache_add(mica_cache *cache, const char *key, size_t length, void *object, void (*free_object)(void *));
void *mica_cache_object(const mica_cache_entry *entry);
/** Ends the use. NULL is fine. */
void mica_cache_give_back(mica_cache_entry *entry);

#endif
