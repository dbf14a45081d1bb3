#include "convert/gguf_write.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/newfile.h"

#define MAX_HEADER ((size_t)1 << 30) /* vocabularies are 10 MB; half of what the reader would take */

struct mica_gguf_writer {
    mica_newfile file;
    mica_buf keys, table; /* as in the file */
    uint64_t n_keys, n_tensors;
    uint64_t *sizes;       /* [n_tensors] bytes of each */
    size_t capacity;
    uint64_t data_bytes;   /* offset of the next tensor */
    uint64_t at;           /* tensor being written */
    uint64_t written;      /* of its bytes */
    bool failed;           /* no memory for a tensor */
};

static uint64_t padded(uint64_t n) { return (n + MICA_GGUF_ALIGNMENT - 1) / MICA_GGUF_ALIGNMENT * MICA_GGUF_ALIGNMENT; }

static void put(mica_buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        mica_buf_putc(b, (char)(v >> (8 * i) & 0xFF));
}

static void put_text(mica_buf *b, const char *text, size_t length)
{
    put(b, length, 8);
    mica_buf_append(b, text, length);
}

mica_status mica_gguf_writer_new(const char *path, mica_gguf_writer **out, mica_error *err)
{
    mica_gguf_writer *w = *out = mica_new_array(1, sizeof *w);
    if (!w)
        return mica_fail_nomem(err, sizeof *w, "writing a file");
    mica_buf_init(&w->keys, MAX_HEADER);
    mica_buf_init(&w->table, MAX_HEADER);
    mica_status status = mica_newfile_open(path, MICA_NEWFILE_SHARED, &w->file, err);
    if (status) {
        mica_gguf_writer_free(w);
        *out = NULL;
    }
    return status;
}

void mica_gguf_writer_free(mica_gguf_writer *w)
{
    if (!w)
        return;
    mica_newfile_discard(&w->file);
    mica_buf_free(&w->keys);
    mica_buf_free(&w->table);
    free(w->sizes);
    free(w);
}

/* ---- Keys ---- */

static void put_key(mica_gguf_writer *w, mica_str key, mica_gguf_kind kind)
{
    w->n_keys++;
    put_text(&w->keys, key.data, key.length);
    put(&w->keys, kind, 4);
}

static mica_str str_of(const char *text) { return (mica_str){text, strlen(text)}; }

void mica_gguf_writer_text(mica_gguf_writer *w, const char *key, const char *value)
{
    put_key(w, str_of(key), MICA_GGUF_STRING);
    put_text(&w->keys, value, strlen(value));
}

void mica_gguf_writer_u32(mica_gguf_writer *w, const char *key, uint32_t value)
{
    put_key(w, str_of(key), MICA_GGUF_U32);
    put(&w->keys, value, 4);
}

void mica_gguf_writer_f32(mica_gguf_writer *w, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, str_of(key), MICA_GGUF_F32);
    put(&w->keys, bits, 4);
}

void mica_gguf_writer_bool(mica_gguf_writer *w, const char *key, bool value)
{
    put_key(w, str_of(key), MICA_GGUF_BOOL);
    put(&w->keys, value, 1);
}

void mica_gguf_writer_array(mica_gguf_writer *w, const char *key, mica_gguf_kind element, const void *values, size_t n)
{
    put_key(w, str_of(key), MICA_GGUF_ARRAY);
    put(&w->keys, element, 4);
    put(&w->keys, n, 8);
    mica_buf_append(&w->keys, values, n * (element == MICA_GGUF_BOOL ? 1 : 4));
}

void mica_gguf_writer_texts(mica_gguf_writer *w, const char *key, const char *const *values, size_t n)
{
    put_key(w, str_of(key), MICA_GGUF_ARRAY);
    put(&w->keys, MICA_GGUF_STRING, 4);
    put(&w->keys, n, 8);
    for (size_t i = 0; i < n; i++)
        put_text(&w->keys, values[i], strlen(values[i]));
}

void mica_gguf_writer_copy(mica_gguf_writer *w, const mica_gguf_value *value)
{
    put_key(w, value->key, value->kind);
    if (value->kind == MICA_GGUF_ARRAY) {
        put(&w->keys, value->element, 4);
        put(&w->keys, value->count, 8);
    }
    mica_buf_append(&w->keys, value->data, (size_t)mica_gguf_value_bytes(value));
}

/* ---- Tensors ---- */

static bool remember_size(mica_gguf_writer *w, uint64_t bytes)
{
    if (w->n_tensors == w->capacity) {
        size_t more = w->capacity ? 2 * w->capacity : 64;
        uint64_t *sizes = realloc(w->sizes, more * sizeof *sizes);
        if (!sizes)
            return false;
        w->sizes = sizes;
        w->capacity = more;
    }
    w->sizes[w->n_tensors++] = bytes;
    return true;
}

void mica_gguf_writer_tensor(mica_gguf_writer *w, mica_str name, const mica_quant *quant, int32_t n_dims, const int64_t *dims)
{
    uint64_t weights = 1;
    put_text(&w->table, name.data, name.length);
    put(&w->table, (uint64_t)n_dims, 4);
    for (int32_t i = 0; i < n_dims; i++) {
        weights *= (uint64_t)dims[i];
        put(&w->table, (uint64_t)dims[i], 8);
    }
    put(&w->table, quant->type, 4);
    put(&w->table, w->data_bytes, 8);
    uint64_t bytes = mica_quant_bytes(quant, (size_t)weights);
    w->failed |= !remember_size(w, bytes);
    w->data_bytes += padded(bytes);
}

static uint64_t header_bytes(const mica_gguf_writer *w) { return 24 + w->keys.length + w->table.length; }

uint64_t mica_gguf_writer_bytes(const mica_gguf_writer *w) { return padded(header_bytes(w)) + w->data_bytes; }

static mica_status write_padding(mica_gguf_writer *w, uint64_t after, mica_error *err)
{
    static const char zeros[MICA_GGUF_ALIGNMENT];
    return mica_newfile_write(&w->file, zeros, (size_t)(padded(after) - after), err);
}

mica_status mica_gguf_writer_begin(mica_gguf_writer *w, mica_error *err)
{
    mica_buf head;
    mica_buf_init(&head, 64);
    mica_buf_puts(&head, "GGUF");
    put(&head, 3, 4);
    put(&head, w->n_tensors, 8);
    put(&head, w->n_keys, 8);
    if (head.failed || w->keys.failed || w->table.failed || w->failed) {
        mica_buf_free(&head);
        return mica_fail_nomem(err, w->keys.length + w->table.length, "the header of a GGUF file");
    }
    mica_status status = mica_newfile_write(&w->file, head.data, head.length, err);
    mica_buf_free(&head);
    if (!status)
        status = mica_newfile_write(&w->file, w->keys.data, w->keys.length, err);
    if (!status)
        status = mica_newfile_write(&w->file, w->table.data, w->table.length, err);
    return status ? status : write_padding(w, header_bytes(w), err);
}

mica_status mica_gguf_writer_data(mica_gguf_writer *w, const void *data, size_t length, mica_error *err)
{
    if (w->at == w->n_tensors || length > w->sizes[w->at] - w->written)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%zu bytes are more than the tensor that is being written has left", length);
    mica_status status = mica_newfile_write(&w->file, data, length, err);
    w->written += length;
    if (status || w->written < w->sizes[w->at])
        return status;
    status = write_padding(w, w->written, err);
    w->at++;
    w->written = 0;
    return status;
}

mica_status mica_gguf_writer_finish(mica_gguf_writer *w, mica_error *err)
{
    if (w->at != w->n_tensors)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the data of tensor %llu of %llu is not complete", (unsigned long long)w->at + 1,
                         (unsigned long long)w->n_tensors);
    return mica_newfile_commit(&w->file, err);
}
