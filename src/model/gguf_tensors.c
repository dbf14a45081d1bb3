/* gguf_tensors.c - reads the tensor table of a file and checks that every tensor lies in it, aligned, and alone. */
#include "model/gguf_parse.h"

#include "base/selection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What the layout check needs beside the tensor itself. */
typedef struct tensor_span {
    uint64_t offset; /* of the data in the data section, as the file says */
    uint64_t at;     /* where it says so */
    size_t index;
} tensor_span;

static void show_shape(const uint64_t dims[MICA_GGUF_DIMS_MAX], uint32_t n_dims, char *out, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < n_dims && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i ? " x " : "", dims[i]);
}

/* Dimensions as unsigned numbers of the file: to int64, with the number of elements. false: no such tensor can exist. */
static bool set_shape(mica_gguf_tensor *t, const uint64_t dims[MICA_GGUF_DIMS_MAX], uint32_t n_dims, int64_t *elements)
{
    *elements = 1;
    t->n_dims = (int32_t)n_dims;
    for (uint32_t i = 0; i < MICA_GGUF_DIMS_MAX; i++) {
        uint64_t dim = i < n_dims ? dims[i] : 1;
        if (dim == 0 || dim > INT64_MAX || __builtin_mul_overflow(*elements, (int64_t)dim, elements))
            return false;
        t->dims[i] = (int64_t)dim;
    }
    return true;
}

/* Sets quant, shape and n_bytes; `at` is where the dimensions begin. */
static mica_status check_shape(const mica_gguf_reader *r, uint64_t at, const uint64_t dims[MICA_GGUF_DIMS_MAX],
                               uint32_t n_dims, mica_gguf_tensor *t)
{
    char shape[96];
    int64_t elements;
    show_shape(dims, n_dims, shape, sizeof shape);
    if (!set_shape(t, dims, n_dims, &elements))
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at,
                                     "has the impossible shape %s: each dimension must be 1 or more, the product below 2^63",
                                     shape);
    if (t->dims[0] % t->quant->block_weights != 0)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at,
                                     "has the shape %s, whose first dimension is not a multiple of %d as %s needs", shape,
                                     t->quant->block_weights, t->quant->name);
    uint64_t blocks = (uint64_t)(elements / t->quant->block_weights);
    if (__builtin_mul_overflow(blocks, (uint64_t)t->quant->block_bytes, &t->n_bytes))
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at, "has the impossible shape %s: its size exceeds 2^64 bytes", shape);
    return MICA_OK;
}

static mica_status take_dims(mica_gguf_reader *r, uint64_t dims[MICA_GGUF_DIMS_MAX], uint32_t *n_dims)
{
    mica_status status = mica_gguf_take_u32(r, "number of dimensions", n_dims);
    if (status == MICA_OK && (*n_dims < 1 || *n_dims > MICA_GGUF_DIMS_MAX))
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, r->at - 4, "has %" PRIu32 " dimensions, and 1 to %d are allowed",
                                     *n_dims, MICA_GGUF_DIMS_MAX);
    for (uint32_t i = 0; status == MICA_OK && i < *n_dims; i++)
        status = mica_gguf_take_u64(r, "dimensions", &dims[i]);
    return status;
}

static mica_status take_type(mica_gguf_reader *r, mica_gguf_tensor *t)
{
    uint32_t type = 0;
    mica_status status = mica_gguf_take_u32(r, "type", &type);
    if (status != MICA_OK)
        return status;
    t->quant = mica_quant_of(type);
    if (!t->quant && mica_quant_known(type))
        return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, r->at - 4,
                                     "has type %s, which this build cannot read: it was made with MICA_TYPES=" MICA_CHOSEN_TYPES,
                                     mica_quant_known(type));
    if (!t->quant)
        return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, r->at - 4,
                                     "has type id %" PRIu32 ", which this build cannot read; it reads %s", type,
                                     mica_quant_names());
    return MICA_OK;
}

static mica_status read_tensor(mica_gguf_reader *r, mica_gguf_tensor *t, tensor_span *span)
{
    uint64_t dims[MICA_GGUF_DIMS_MAX];
    uint32_t n_dims = 0;
    mica_status status = mica_gguf_take_name(r, MICA_GGUF_NAME_MAX, &t->name);
    uint64_t dims_at = r->at + 4;
    if (status == MICA_OK)
        status = take_dims(r, dims, &n_dims);
    if (status == MICA_OK)
        status = take_type(r, t);
    if (status == MICA_OK)
        status = check_shape(r, dims_at, dims, n_dims, t);
    span->at = r->at;
    if (status == MICA_OK)
        status = mica_gguf_take_u64(r, "offset", &span->offset);
    if (status == MICA_OK && span->offset % r->part->alignment != 0)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, span->at,
                                     "is misaligned: its offset %" PRIu64 " is not a multiple of the alignment %" PRIu32,
                                     span->offset, r->part->alignment);
    return status;
}

static mica_status read_infos(mica_gguf_reader *r, mica_gguf_part *part, uint64_t count, tensor_span **spans)
{
    size_t capacity = 0, span_capacity = 0;
    r->item = "tensor";
    r->count = count;
    for (r->index = 0; r->index < count; r->index++) {
        void *items = part->tensors, *more = *spans;
        mica_gguf_tensor t = {0};
        tensor_span span = {.index = part->n_tensors};
        const char *what = "the index of the tensors";
        mica_status status = mica_gguf_grow(&items, part->n_tensors, &capacity, sizeof *part->tensors, what, r->err);
        part->tensors = items;
        if (status == MICA_OK)
            status = mica_gguf_grow(&more, part->n_tensors, &span_capacity, sizeof **spans, what, r->err);
        *spans = more;
        r->name = (mica_str){0};
        if (status == MICA_OK)
            status = read_tensor(r, &t, &span);
        if (status != MICA_OK)
            return status;
        (*spans)[part->n_tensors] = span;
        part->tensors[part->n_tensors++] = t;
    }
    return MICA_OK;
}

static int by_offset(const void *a, const void *b)
{
    const tensor_span *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Files are nearly always written in the order of their tensors. */
static void sort_spans(tensor_span *spans, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (spans[i].offset < spans[i - 1].offset) {
            qsort(spans, n, sizeof *spans, by_offset);
            return;
        }
}

static mica_status fail_outside(const mica_gguf_reader *r, const tensor_span *span, uint64_t start, const mica_gguf_tensor *t)
{
    uint64_t need, dims[MICA_GGUF_DIMS_MAX];
    char shape[96];
    for (int i = 0; i < MICA_GGUF_DIMS_MAX; i++)
        dims[i] = (uint64_t)t->dims[i];
    show_shape(dims, (uint32_t)t->n_dims, shape, sizeof shape);
    bool wraps = __builtin_add_overflow(span->offset, t->n_bytes, &need) || __builtin_add_overflow(need, start, &need);
    if (wraps)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, span->at,
                                     "has the impossible offset %" PRIu64 ": its %" PRIu64
                                     " bytes would end beyond 2^64, and the file has %" PRIu64 " bytes",
                                     span->offset, t->n_bytes, r->part->length);
    return mica_gguf_reader_fail(r, MICA_BAD_FILE, span->at,
                                 "of shape %s does not fit: it needs a file of %" PRIu64 " bytes and this one has %" PRIu64
                                 "; the file is damaged or cut short, download it again",
                                 shape, need, r->part->length);
}

/* Spans in the order of their offsets: so the first that does not fit is named, and neighbours are enough for overlaps.
 * Bytes between tensors and after the last one are allowed. */
static mica_status place(mica_gguf_reader *r, mica_gguf_part *part, const tensor_span *spans, uint64_t start)
{
    uint64_t room = start < part->length ? part->length - start : 0, end = 0;
    for (size_t i = 0; i < part->n_tensors; i++) {
        mica_gguf_tensor *t = &part->tensors[spans[i].index];
        r->name = t->name;
        if (spans[i].offset > room || t->n_bytes > room - spans[i].offset)
            return fail_outside(r, &spans[i], start, t);
        if (spans[i].offset < end) {
            char other[104];
            mica_gguf_show(part->tensors[spans[i - 1].index].name, other, sizeof other);
            return mica_gguf_reader_fail(r, MICA_BAD_FILE, spans[i].at,
                                         "overlaps tensor %s: it starts at %" PRIu64 " of the data, before %" PRIu64, other,
                                         spans[i].offset, end);
        }
        t->data = part->data + start + spans[i].offset;
        end = spans[i].offset + t->n_bytes;
    }
    return MICA_OK;
}

mica_status mica_gguf_read_tensors(mica_gguf_reader *r, mica_gguf_part *part, uint64_t count)
{
    tensor_span *spans = NULL;
    mica_status status = read_infos(r, part, count, &spans);
    if (status == MICA_OK) {
        uint64_t mask = (uint64_t)part->alignment - 1; /* no wrap below: a mapping is below 2^63, an alignment below 2^32 */
        if (spans)
            sort_spans(spans, part->n_tensors);
        status = place(r, part, spans, (r->at + mask) & ~mask);
    }
    free(spans);
    return status;
}
