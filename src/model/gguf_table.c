/* gguf_table.c - hash index of keys and tensor names: open addressing, at most half full. */
#include "model/gguf_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Among 2^24 ordinary names the longest walk is below 40 slots. A file whose names collide on purpose would otherwise cost
 * time in the square of its keys. */
#define MAX_WALK 256

static uint32_t hash_name(const char *name, size_t length)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    return h ^ h >> 15;
}

static bool same_name(const mica_gguf_table *table, size_t item, const char *name, size_t length)
{
    const mica_str *other = (const mica_str *)(const void *)(table->items + item * table->stride);
    return other->length == length && memcmp(other->data, name, length) == 0;
}

/* Slot of the name, or the free slot where it belongs; SIZE_MAX after MAX_WALK slots. Steps 1, 2, 3, ... reach every slot of
 * a table whose size is a power of two. */
static size_t walk(const mica_gguf_table *table, const char *name, size_t length, uint32_t hash)
{
    size_t slot = hash & table->mask;
    for (size_t step = 1; step <= MAX_WALK; step++) {
        const struct mica_gguf_slot *s = &table->slots[slot];
        if (s->item == 0 || (s->hash == hash && same_name(table, s->item - 1, name, length)))
            return slot;
        slot = (slot + step) & table->mask;
    }
    return SIZE_MAX;
}

static mica_gguf_table_result insert(mica_gguf_table *table, size_t item)
{
    const mica_str *name = (const mica_str *)(const void *)(table->items + item * table->stride);
    uint32_t hash = hash_name(name->data, name->length);
    size_t slot = walk(table, name->data, name->length, hash);
    if (slot == SIZE_MAX)
        return MICA_GGUF_TABLE_CLUSTER;
    if (table->slots[slot].item != 0)
        return MICA_GGUF_TABLE_TWICE;
    table->slots[slot] = (struct mica_gguf_slot){.hash = hash, .item = (uint32_t)item + 1};
    return MICA_GGUF_TABLE_OK;
}

mica_gguf_table_result mica_gguf_table_build(mica_gguf_table *table, const void *items, size_t stride, size_t count,
                                             size_t *item)
{
    size_t n_slots = 8;
    while (n_slots / 2 < count)
        n_slots *= 2;
    *table = (mica_gguf_table){.items = items, .stride = stride, .mask = n_slots - 1};
    table->slots = mica_new_array(n_slots, sizeof *table->slots);
    *item = n_slots * sizeof *table->slots;
    mica_gguf_table_result result = table->slots ? MICA_GGUF_TABLE_OK : MICA_GGUF_TABLE_NOMEM;
    for (size_t i = 0; i < count && result == MICA_GGUF_TABLE_OK; i++) {
        result = insert(table, i);
        *item = i;
    }
    if (result != MICA_GGUF_TABLE_OK)
        mica_gguf_table_free(table);
    return result;
}

size_t mica_gguf_table_find(const mica_gguf_table *table, const char *name, size_t length)
{
    if (!table->slots)
        return SIZE_MAX;
    size_t slot = walk(table, name, length, hash_name(name, length));
    return slot == SIZE_MAX || table->slots[slot].item == 0 ? SIZE_MAX : table->slots[slot].item - 1;
}

void mica_gguf_table_free(mica_gguf_table *table)
{
    free(table->slots);
    *table = (mica_gguf_table){0};
}
