#include "convert/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "convert/hf_json.h"

#define ONE_FILE "model.safetensors"
#define INDEX "model.safetensors.index.json"
#define MAX_HEADER 100000000u /* the format's own limit */
#define MAX_FILES 4096

typedef struct file {
    char *path;
    const char *shown; /* in messages */
    mica_map map;
    const uint8_t *data; /* behind the header */
    uint64_t n_data;
    json_t *header; /* the names are in it */
} file;

struct mica_safetensors {
    file *files;
    size_t n_files, file_room;
    mica_hf_tensor *tensors;
    size_t n, room;
    uint64_t n_bytes;
};

static const struct {
    const char *name;
    unsigned bytes;
    int type; /* of mica_quant_of(); -1: weights of this type are not read */
} dtypes[] = {{"F32", 4, MICA_TYPE_F32}, {"F16", 2, MICA_TYPE_F16}, {"BF16", 2, MICA_TYPE_BF16}, {"F64", 8, -1}, {"I64", 8, -1},
              {"I32", 4, -1}, {"I16", 2, -1}, {"I8", 1, -1}, {"U64", 8, -1}, {"U32", 4, -1}, {"U16", 2, -1}, {"U8", 1, -1}, {"BOOL", 1, -1},
              {"F8_E4M3", 1, -1}, {"F8_E5M2", 1, -1}};

/* ---- One tensor ---- */

static mica_status read_dtype(const file *f, const json_t *entry, mica_hf_tensor *t, unsigned *bytes, mica_error *err)
{
    t->dtype = mica_hf_text(entry, "dtype");
    for (size_t i = 0; t->dtype && i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, t->dtype) == 0) {
            t->quant = dtypes[i].type < 0 ? NULL : mica_quant_of((uint32_t)dtypes[i].type);
            *bytes = dtypes[i].bytes;
            return MICA_OK;
        }
    return mica_fail(err, MICA_UNSUPPORTED, "%s: tensor %.100s has the type \"%.20s\", which is not known here", f->shown, t->name,
                     t->dtype ? t->dtype : "");
}

/* *bytes becomes those of the whole tensor. */
static mica_status read_shape(const file *f, const json_t *entry, mica_hf_tensor *t, uint64_t *bytes, mica_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > MICA_SAFETENSORS_DIMS)
        return mica_fail(err, MICA_BAD_FILE, "%s: the shape of tensor %.100s is not an array of at most %d numbers", f->shown, t->name,
                         MICA_SAFETENSORS_DIMS);
    t->n_dims = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(shape, i);
        t->dims[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || t->dims[i] < 0 || __builtin_mul_overflow(*bytes, (uint64_t)t->dims[i], bytes))
            return mica_fail(err, MICA_BAD_FILE, "%s: the shape of tensor %.100s is impossible", f->shown, t->name);
    }
    return MICA_OK;
}

static mica_status read_place(const file *f, const json_t *entry, mica_hf_tensor *t, uint64_t bytes, mica_error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets"), *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    json_int_t begin = json_integer_value(from), end = json_integer_value(to);
    if (!json_is_integer(from) || !json_is_integer(to) || json_array_size(offsets) != 2 || begin < 0 || end < begin)
        return mica_fail(err, MICA_BAD_FILE, "%s: the data_offsets of tensor %.100s are not two offsets in order", f->shown, t->name);
    if ((uint64_t)end > f->n_data)
        return mica_fail(err, MICA_BAD_FILE, "%s: tensor %.100s ends at byte %lld of the data, of which there are %llu: the file is cut off or damaged",
                         f->shown, t->name, (long long)end, (unsigned long long)f->n_data);
    if ((uint64_t)(end - begin) != bytes)
        return mica_fail(err, MICA_BAD_FILE, "%s: tensor %.100s has %lld bytes where its shape and type need %llu", f->shown, t->name,
                         (long long)(end - begin), (unsigned long long)bytes);
    t->data = f->data + begin;
    t->n_bytes = bytes;
    return MICA_OK;
}

static mica_status add_tensor(mica_safetensors *s, const char *name, const json_t *entry, mica_error *err)
{
    const file *f = &s->files[s->n_files - 1];
    mica_hf_tensor t = {.name = name, .file = s->n_files - 1};
    unsigned unit = 0;
    if (s->n == s->room) {
        size_t more = s->room ? 2 * s->room : 256;
        mica_hf_tensor *tensors = realloc(s->tensors, more * sizeof *tensors);
        if (!tensors)
            return mica_fail_nomem(err, more * sizeof *tensors, "the list of tensors");
        s->tensors = tensors;
        s->room = more;
    }
    mica_status status = read_dtype(f, entry, &t, &unit, err);
    uint64_t bytes = unit;
    if (!status)
        status = read_shape(f, entry, &t, &bytes, err);
    if (!status)
        status = read_place(f, entry, &t, bytes, err);
    s->tensors[s->n++] = t;
    return status;
}

/* ---- One file ---- */

static int by_place(const void *a, const void *b)
{
    const mica_hf_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

/* Tensors [first, s->n) are those of the last file: one behind the other, from its first byte to its last. */
static mica_status check_places(mica_safetensors *s, size_t first, mica_error *err)
{
    const file *f = &s->files[s->n_files - 1];
    const uint8_t *end = f->data;
    if (s->n > first)
        qsort(s->tensors + first, s->n - first, sizeof *s->tensors, by_place);
    for (size_t i = first; i < s->n; i++) {
        const mica_hf_tensor *t = &s->tensors[i];
        if (t->data < end)
            return mica_fail(err, MICA_BAD_FILE, "%s: the tensors %.100s and %.100s overlap", f->shown, t[-1].name, t->name);
        if (t->data > end)
            return mica_fail(err, MICA_BAD_FILE, "%s: %lld bytes before tensor %.100s belong to no tensor", f->shown, (long long)(t->data - end),
                             t->name);
        end = t->data + t->n_bytes;
    }
    if (end != f->data + f->n_data)
        return mica_fail(err, MICA_BAD_FILE, "%s: the last %lld bytes belong to no tensor", f->shown, (long long)(f->data + f->n_data - end));
    return MICA_OK;
}

static mica_status read_header(file *f, const uint8_t *bytes, size_t length, mica_error *err)
{
    uint64_t n = 0;
    json_error_t why;
    if (length < 8)
        return mica_fail(err, MICA_BAD_FILE, "%s has %zu bytes: it is no safetensors file", f->shown, length);
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)bytes[i] << (8 * i);
    if (n > MAX_HEADER || n > length - 8)
        return mica_fail(err, MICA_BAD_FILE, "%s: the header should have %llu bytes, but %s: the file is cut off, or no safetensors file", f->shown,
                         (unsigned long long)n, n > length - 8 ? "the file is shorter" : "no header may have more than 100000000");
    f->header = mica_json_loadb((const char *)bytes + 8, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    if (!f->header && mica_json_no_memory(&why))
        return mica_fail_nomem(err, (size_t)n, "the header of a safetensors file");
    if (!json_is_object(f->header))
        return mica_fail(err, MICA_BAD_FILE, "%s: the header is no JSON object: %s", f->shown, f->header ? "it is something else" : why.text);
    f->data = bytes + 8 + n;
    f->n_data = length - 8 - n;
    return MICA_OK;
}

/* Takes `path`. */
static mica_status new_file(mica_safetensors *s, char *path, mica_error *err)
{
    if (s->n_files == s->file_room && path) {
        size_t more = s->file_room ? 2 * s->file_room : 4;
        file *files = realloc(s->files, more * sizeof *files);
        if (files) {
            s->files = files;
            s->file_room = more;
        }
    }
    if (!path || s->n_files == s->file_room) {
        free(path);
        return mica_fail_nomem(err, sizeof *s->files, "the list of files");
    }
    s->files[s->n_files++] = (file){.path = path, .shown = mica_path_tail(path)};
    return MICA_OK;
}

static mica_status read_file(mica_safetensors *s, const uint8_t *bytes, size_t length, mica_error *err)
{
    file *f = &s->files[s->n_files - 1];
    size_t first = s->n;
    const char *name;
    json_t *entry;
    mica_status status = read_header(f, bytes, length, err);
    if (status)
        return status;
    json_object_foreach(f->header, name, entry) {
        if (strcmp(name, "__metadata__") != 0 && (status = add_tensor(s, name, entry, err)))
            return status;
    }
    s->n_bytes += length;
    return check_places(s, first, err);
}

static mica_status open_file(mica_safetensors *s, const char *dir, const char *name, mica_error *err)
{
    mica_status status = new_file(s, mica_hf_path(dir, name), err);
    if (status)
        return status;
    file *f = &s->files[s->n_files - 1];
    status = mica_map_open(f->path, &f->map, err);
    return status ? status : read_file(s, f->map.data, f->map.length, err);
}

/* ---- All files ---- */

static int by_name(const void *a, const void *b) { return strcmp(((const mica_hf_tensor *)a)->name, ((const mica_hf_tensor *)b)->name); }

static mica_status sort_names(mica_safetensors *s, mica_error *err)
{
    if (s->n)
        qsort(s->tensors, s->n, sizeof *s->tensors, by_name);
    for (size_t i = 1; i < s->n; i++)
        if (by_name(&s->tensors[i - 1], &s->tensors[i]) == 0)
            return mica_fail(err, MICA_BAD_FILE, "%s: tensor %.100s is in %s too", mica_safetensors_path(s, &s->tensors[i]), s->tensors[i].name,
                             mica_safetensors_path(s, &s->tensors[i - 1]));
    return MICA_OK;
}

static bool is_open(const mica_safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->n_files; i++) {
        const char *slash = strrchr(s->files[i].path, '/');
        if (strcmp(slash ? slash + 1 : s->files[i].path, name) == 0)
            return true;
    }
    return false;
}

static mica_status open_parts(mica_safetensors *s, const char *dir, const json_t *map, mica_error *err)
{
    const char *tensor;
    json_t *value;
    mica_status status = MICA_OK;
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !*name || strchr(name, '/') || *name == '.') /* nothing outside the folder */
            return mica_fail(err, MICA_BAD_FILE, INDEX ": the part of tensor %.100s is no file name", tensor);
        if (is_open(s, name))
            continue;
        if (s->n_files == MAX_FILES)
            return mica_fail(err, MICA_UNSUPPORTED, INDEX ": the model has more than %d parts", MAX_FILES);
        if ((status = open_file(s, dir, name, err)))
            return status;
    }
    return status;
}

/* What the index says of each tensor is so. */
static mica_status check_index(const mica_safetensors *s, const json_t *map, mica_error *err)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value) {
        const mica_hf_tensor *t = mica_safetensors_find(s, tensor);
        const char *path = t ? s->files[t->file].path : "", *name = json_string_value(value);
        size_t n = strlen(path), m = strlen(name);
        if (!t || n < m || strcmp(path + n - m, name) != 0)
            return mica_fail(err, MICA_BAD_FILE, INDEX ": tensor %.100s is not in %.100s", tensor, name);
    }
    return MICA_OK;
}

static mica_status open_index(mica_safetensors *s, const char *dir, mica_error *err)
{
    json_t *index;
    mica_status status = mica_hf_load(dir, INDEX, true, false, &index, err);
    const json_t *map = json_object_get(index, "weight_map");
    if (!status && !json_object_size(map))
        status = mica_fail(err, MICA_BAD_FILE, INDEX ": there is no weight_map");
    if (!status)
        status = open_parts(s, dir, map, err);
    if (!status)
        status = sort_names(s, err);
    if (!status)
        status = check_index(s, map, err);
    json_decref(index);
    return status;
}

static bool has(const char *dir, const char *name)
{
    char *path = mica_hf_path(dir, name);
    bool found = path && access(path, F_OK) == 0;
    free(path);
    return found;
}

static mica_status open_folder(mica_safetensors *s, const char *dir, mica_error *err)
{
    if (has(dir, INDEX))
        return open_index(s, dir, err);
    if (!has(dir, ONE_FILE))
        return mica_fail(err, MICA_IO_ERROR, "%s has neither " ONE_FILE " nor " INDEX ": it is no Hugging Face folder with weights that can be read",
                         mica_path_tail(dir));
    mica_status status = open_file(s, dir, ONE_FILE, err);
    return status ? status : sort_names(s, err);
}

static mica_status finish(mica_safetensors *s, mica_status status, mica_safetensors **out)
{
    if (status)
        mica_safetensors_close(s);
    else
        *out = s;
    return status;
}

mica_status mica_safetensors_open(const char *dir, mica_safetensors **out, mica_error *err)
{
    mica_safetensors *s = mica_new_array(1, sizeof *s);
    *out = NULL;
    return s ? finish(s, open_folder(s, dir, err), out) : mica_fail_nomem(err, sizeof *s, "a file");
}

mica_status mica_safetensors_open_memory(const void *data, size_t length, const char *name, mica_safetensors **out, mica_error *err)
{
    mica_safetensors *s = mica_new_array(1, sizeof *s);
    *out = NULL;
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "a file");
    mica_status status = new_file(s, strdup(name), err);
    if (!status)
        status = read_file(s, data, length, err);
    return finish(s, status ? status : sort_names(s, err), out);
}

void mica_safetensors_close(mica_safetensors *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_files; i++) {
        free(s->files[i].path);
        json_decref(s->files[i].header);
        mica_map_close(&s->files[i].map);
    }
    free(s->files);
    free(s->tensors);
    free(s);
}

size_t mica_safetensors_count(const mica_safetensors *s) { return s->n; }

const mica_hf_tensor *mica_safetensors_at(const mica_safetensors *s, size_t i) { return &s->tensors[i]; }

const mica_hf_tensor *mica_safetensors_find(const mica_safetensors *s, const char *name)
{
    mica_hf_tensor key = {.name = name};
    return s->n ? bsearch(&key, s->tensors, s->n, sizeof key, by_name) : NULL;
}

uint64_t mica_safetensors_bytes(const mica_safetensors *s) { return s->n_bytes; }

const char *mica_safetensors_path(const mica_safetensors *s, const mica_hf_tensor *tensor) { return s->files[tensor->file].shown; }
