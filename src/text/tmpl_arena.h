/* tmpl_arena.h - bump allocation with a hard maximum, for a compiled template and for one rendering.
 *
 * Nothing is freed before mica_tarena_free(). Called by every tmpl_*.c.
 */
#ifndef MICA_TEXT_TMPL_ARENA_H
#define MICA_TEXT_TMPL_ARENA_H
#include <stdbool.h>
#include <stddef.h>

struct mica_tchunk;

typedef struct mica_tarena {
    struct mica_tchunk *chunks;
    char *top, *end;
    size_t used, maximum; /* bytes taken from the system, and their limit */
    bool refused;         /* the system refused memory (as opposed to: the maximum was reached) */
} mica_tarena;

void mica_tarena_init(mica_tarena *arena, size_t maximum);
void mica_tarena_free(mica_tarena *arena);

/** `size` bytes, aligned for any value, not cleared. NULL when over the maximum or refused. */
void *mica_tarena_alloc(mica_tarena *arena, size_t size);
/** count * size bytes, cleared. */
void *mica_tarena_array(mica_tarena *arena, size_t count, size_t size);
/** `size` unaligned bytes for text. */
char *mica_tarena_bytes(mica_tarena *arena, size_t size);

#endif
