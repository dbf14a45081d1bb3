/* gguf.c - opening and closing: parts are read on their own (gguf_read.c), then put together here. */
#include "model/gguf_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- Parts ----------------------------------------------------------------------------------------------------------- */

void mica_gguf_part_close(mica_gguf_part *part)
{
    mica_gguf_table_free(&part->keys);
    free(part->values);
    free(part->tensors);
    free(part->path);
    mica_map_close(&part->map);
    *part = (mica_gguf_part){0};
}

/* Parses bytes that part->map or the caller keeps. On failure the part is closed. */
static mica_status read_named(mica_gguf_part *part, const char *name, const uint8_t *data, size_t length, mica_error *err)
{
    part->data = data;
    part->length = length;
    part->path = strdup(name);
    mica_status status = part->path ? mica_gguf_part_read(part, err) : mica_fail_nomem(err, strlen(name) + 1, "a file name");
    if (status != MICA_OK)
        mica_gguf_part_close(part);
    return status;
}

mica_status mica_gguf_part_open(const char *path, mica_gguf_part *part, mica_error *err)
{
    *part = (mica_gguf_part){0};
    mica_status status = mica_map_open(path, &part->map, err);
    return status == MICA_OK ? read_named(part, path, part->map.data, part->map.length, err) : status;
}

/* ---- Putting parts together ------------------------------------------------------------------------------------------ */

static mica_status merge_tensors(mica_gguf *g, mica_error *err)
{
    if (g->n_parts == 1) { /* nothing to copy */
        g->tensors = g->parts[0].tensors;
        g->n_tensors = g->parts[0].n_tensors;
        g->parts[0].tensors = NULL;
        return MICA_OK;
    }
    size_t total = 0;
    for (size_t p = 0; p < g->n_parts; p++)
        total += g->parts[p].n_tensors;
    g->tensors = mica_new_array(total, sizeof *g->tensors);
    if (!g->tensors)
        return mica_fail_nomem(err, total * sizeof *g->tensors, "the index of the tensors");
    for (size_t p = 0; p < g->n_parts; p++)
        for (size_t i = 0; i < g->parts[p].n_tensors; i++) {
            g->tensors[g->n_tensors] = g->parts[p].tensors[i];
            g->tensors[g->n_tensors++].part = (int)p;
        }
    return MICA_OK;
}

static mica_status fail_name(const mica_gguf *g, size_t item, mica_gguf_table_result result, mica_error *err)
{
    if (result == MICA_GGUF_TABLE_NOMEM)
        return mica_fail_nomem(err, item, "the index of the tensors");
    const mica_gguf_tensor *t = &g->tensors[item];
    const mica_gguf_part *part = &g->parts[t->part];
    mica_gguf_reader r = {.part = part, .item = "tensor", .name = t->name, .err = err};
    uint64_t at = (uint64_t)((const uint8_t *)t->name.data - part->data);
    if (result == MICA_GGUF_TABLE_CLUSTER)
        return mica_gguf_reader_fail(&r, MICA_BAD_FILE, at, "is one of too many that collide in the index");
    size_t first = 0;
    while (g->tensors[first].name.length != t->name.length ||
           memcmp(g->tensors[first].name.data, t->name.data, t->name.length) != 0)
        first++;
    if (g->tensors[first].part != t->part)
        return mica_gguf_reader_fail(&r, MICA_BAD_FILE, at, "is there twice: part %d has it too", g->tensors[first].part + 1);
    return mica_gguf_reader_fail(&r, MICA_BAD_FILE, at, "is there twice");
}

/* Takes the parts over. */
static mica_status assemble(mica_gguf_part *parts, size_t n_parts, mica_gguf **out, mica_error *err)
{
    mica_gguf *g = calloc(1, sizeof *g);
    if (!g) {
        for (size_t i = 0; i < n_parts; i++)
            mica_gguf_part_close(&parts[i]);
        free(parts);
        return mica_fail_nomem(err, sizeof *g, "the index of the model");
    }
    g->parts = parts;
    g->n_parts = n_parts;
    for (size_t i = 0; i < n_parts; i++)
        g->file_bytes += parts[i].length;
    mica_status status = merge_tensors(g, err);
    if (status == MICA_OK) {
        size_t item = 0;
        mica_gguf_table_result result = mica_gguf_table_build(&g->names, g->tensors, sizeof *g->tensors, g->n_tensors, &item);
        if (result != MICA_GGUF_TABLE_OK)
            status = fail_name(g, item, result, err);
    }
    if (status == MICA_OK)
        *out = g;
    else
        mica_gguf_close(g);
    return status;
}

/* Takes over a part that must be the whole model. */
static mica_status assemble_single(mica_gguf_part *part, mica_gguf **out, mica_error *err)
{
    mica_status status = mica_gguf_split_refuse(part, err);
    mica_gguf_part *parts = NULL;
    if (status == MICA_OK && !(parts = malloc(sizeof *parts)))
        status = mica_fail_nomem(err, sizeof *parts, "the index of the model");
    if (status != MICA_OK) {
        mica_gguf_part_close(part);
        return status;
    }
    *parts = *part;
    return assemble(parts, 1, out, err);
}

/* ---- Interface ------------------------------------------------------------------------------------------------------- */

mica_status mica_gguf_open(const char *path, mica_gguf **out, mica_error *err)
{
    mica_gguf_part first, *parts;
    size_t n_parts;
    mica_status status = mica_gguf_part_open(path, &first, err);
    if (status == MICA_OK)
        status = mica_gguf_split_open(&first, &parts, &n_parts, err);
    return status == MICA_OK ? assemble(parts, n_parts, out, err) : status;
}

mica_status mica_gguf_open_fd(int fd, uint64_t offset, uint64_t length, mica_gguf **out, mica_error *err)
{
    char name[64];
    mica_gguf_part part = {0};
    snprintf(name, sizeof name, "descriptor %d from offset %" PRIu64, fd, offset);
    mica_status status = mica_map_open_fd(fd, offset, length, name, &part.map, err);
    if (status == MICA_OK)
        status = read_named(&part, name, part.map.data, part.map.length, err);
    return status == MICA_OK ? assemble_single(&part, out, err) : status;
}

mica_status mica_gguf_open_memory(const void *data, size_t length, const char *name, mica_gguf **out, mica_error *err)
{
    mica_gguf_part part = {0};
    if ((uintptr_t)data % 4 != 0) /* as in map.h: tensor data is read in place */
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the bytes of %s must start at an address that is a multiple of 4", name);
    mica_status status = read_named(&part, name, data, length, err);
    return status == MICA_OK ? assemble_single(&part, out, err) : status;
}

void mica_gguf_close(mica_gguf *g)
{
    if (!g)
        return;
    mica_gguf_table_free(&g->names);
    free(g->tensors);
    for (size_t i = 0; i < g->n_parts; i++)
        mica_gguf_part_close(&g->parts[i]);
    free(g->parts);
    free(g);
}

size_t mica_gguf_value_count(const mica_gguf *g) { return g->parts[0].n_values; }

const mica_gguf_value *mica_gguf_value_at(const mica_gguf *g, size_t i) { return &g->parts[0].values[i]; }

const mica_gguf_value *mica_gguf_find(const mica_gguf *g, const char *key) { return mica_gguf_part_find(&g->parts[0], key); }

size_t mica_gguf_tensor_count(const mica_gguf *g) { return g->n_tensors; }

const mica_gguf_tensor *mica_gguf_tensor_at(const mica_gguf *g, size_t i) { return &g->tensors[i]; }

const mica_gguf_tensor *mica_gguf_tensor_find(const mica_gguf *g, const char *name)
{
    size_t i = mica_gguf_table_find(&g->names, name, strlen(name));
    return i == SIZE_MAX ? NULL : &g->tensors[i];
}

uint64_t mica_gguf_file_bytes(const mica_gguf *g) { return g->file_bytes; }

const char *mica_gguf_path(const mica_gguf *g) { return g->parts[0].path; }

size_t mica_gguf_file_count(const mica_gguf *g) { return g->n_parts; }

mica_gguf_file mica_gguf_file_at(const mica_gguf *g, size_t i)
{
    const mica_gguf_part *p = &g->parts[i];
    return (mica_gguf_file){.path = p->path, .data = p->data, .length = p->length, .modified_ns = p->map.modified_ns,
                            .huge = p->map.huge};
}
