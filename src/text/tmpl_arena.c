#include "text/tmpl_arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* First chunk: holds a small template or a short rendering. Later chunks double up to the second number. */
#define FIRST_CHUNK ((size_t)16 << 10)
#define LARGEST_CHUNK ((size_t)1 << 20)
#define ALIGNMENT 16

typedef struct mica_tchunk {
    struct mica_tchunk *next;
    size_t size;
    _Alignas(ALIGNMENT) char data[];
} mica_tchunk;

void mica_tarena_init(mica_tarena *arena, size_t maximum) { *arena = (mica_tarena){.maximum = maximum}; }

void mica_tarena_free(mica_tarena *arena)
{
    for (mica_tchunk *c = arena->chunks; c;) {
        mica_tchunk *next = c->next;
        free(c);
        c = next;
    }
    *arena = (mica_tarena){.maximum = arena->maximum};
}

/* Starts a chunk with room for `size` bytes. The rest of the previous one is given up. */
static bool grow(mica_tarena *arena, size_t size)
{
    size_t wanted = arena->chunks ? arena->chunks->size * 2 : FIRST_CHUNK;
    if (wanted > LARGEST_CHUNK)
        wanted = LARGEST_CHUNK;
    if (wanted < size)
        wanted = size;
    if (size > arena->maximum || arena->used > arena->maximum - size)
        return false;
    if (wanted > arena->maximum - arena->used)
        wanted = size;
    mica_tchunk *c = malloc(sizeof *c + wanted);
    if (!c) {
        arena->refused = true;
        return false;
    }
    c->next = arena->chunks;
    c->size = wanted;
    arena->chunks = c;
    arena->used += wanted;
    arena->top = c->data;
    arena->end = c->data + wanted;
    return true;
}

void *mica_tarena_alloc(mica_tarena *arena, size_t size)
{
    size_t padding = (size_t)(-(uintptr_t)arena->top & (ALIGNMENT - 1));
    if (!arena->top || padding > (size_t)(arena->end - arena->top) || size > (size_t)(arena->end - arena->top) - padding) {
        if (!grow(arena, size))
            return NULL;
        padding = 0;
    }
    char *p = arena->top + padding;
    arena->top = p + size;
    return p;
}

void *mica_tarena_array(mica_tarena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *p = mica_tarena_alloc(arena, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

char *mica_tarena_bytes(mica_tarena *arena, size_t size)
{
    if (!arena->top || size > (size_t)(arena->end - arena->top)) {
        if (!grow(arena, size))
            return NULL;
    }
    char *p = arena->top;
    arena->top = p + size;
    return p;
}
