#include "convert/encode.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/pool.h"

#define PIECE_BYTES ((size_t)4 << 20) /* of output that are computed before they are written */
#define LARGEST_HALF 65504.0f
#define MAX_ROW_BYTES (sizeof(float)) /* for each weight, in any format */

struct mica_encoder {
    mica_pool *pool;
    float *scratch; /* [n_threads][2][widest]: a row as floats, and its bytes where they are not aligned */
    int64_t widest;
    uint8_t *piece;
    size_t piece_bytes;
    bool (*on_progress)(void *user, double done);
    void *user;
    uint64_t done, total; /* bytes of input */
};

/* Some rows of one tensor, shared by all threads. */
typedef struct rows {
    const mica_encoder *e;
    const mica_encode_job *job;
    int64_t first, n;
    int64_t step; /* rows that a thread takes at a time */
    atomic_bool bad;
} rows;

mica_status mica_encoder_new(int n_threads, int64_t widest, mica_encoder **out, mica_error *err)
{
    size_t row = 0, bytes = 0;
    mica_encoder *e = *out = mica_new_array(1, sizeof *e);
    bool fits = mica_mul_size((size_t)widest, MAX_ROW_BYTES, &row) && mica_mul_size(row, 2 * (size_t)n_threads, &bytes);
    if (e && fits) {
        e->widest = widest;
        e->piece_bytes = row > PIECE_BYTES ? row : PIECE_BYTES;
        e->scratch = malloc(bytes);
        e->piece = malloc(e->piece_bytes);
    }
    mica_status status = e && e->scratch && e->piece ? mica_pool_new(n_threads, NULL, &e->pool, err)
                                                     : mica_fail_nomem(err, bytes + PIECE_BYTES, "rows of weights");
    if (status) {
        mica_encoder_free(e);
        *out = NULL;
    }
    return status;
}

void mica_encoder_free(mica_encoder *e)
{
    if (!e)
        return;
    mica_pool_free(e->pool);
    free(e->scratch);
    free(e->piece);
    free(e);
}

void mica_encoder_tell(mica_encoder *e, bool (*on_progress)(void *user, double done), void *user, uint64_t total)
{
    e->on_progress = on_progress;
    e->user = user;
    e->total = total;
}

static mica_status tell_progress(mica_encoder *e, uint64_t bytes, mica_error *err)
{
    e->done += bytes;
    if (e->on_progress && e->on_progress(e->user, (double)e->done / (double)e->total))
        return mica_fail(err, MICA_CANCELLED, "stopped; nothing was written");
    return MICA_OK;
}

/* NaN is bad too. */
static bool all_within(const float *x, int64_t n, float limit)
{
    int bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= !(fabsf(x[i]) <= limit);
    return !bad;
}

/* Which row of the input is row `i` of the output. */
static int64_t source_row(const mica_encode_job *job, int64_t i)
{
    if (!job->head)
        return i;
    int64_t in_head = i % job->head;
    return i - in_head + in_head / 2 + in_head % 2 * (job->head / 2);
}

/* The row as floats: in the file itself, or in `scratch`. */
static const float *read_row(const mica_encode_job *job, int64_t row, float *scratch, float *raw)
{
    size_t cols = (size_t)job->cols, bytes = mica_quant_bytes(job->from, cols);
    const uint8_t *data = job->data + (size_t)source_row(job, row) * bytes;
    if ((uintptr_t)data % sizeof(float) != 0) {
        memcpy(raw, data, bytes);
        data = (const uint8_t *)raw;
    }
    if (job->from->type == MICA_TYPE_F32 && job->add == 0.0f)
        return (const float *)(const void *)data;
    job->from->decode(job->from, data, scratch, cols);
    for (size_t i = 0; i < cols && job->add != 0.0f; i++)
        scratch[i] += job->add;
    return scratch;
}

static bool encode_row(const rows *r, int64_t row, float *scratch)
{
    const mica_encode_job *job = r->job;
    const float *x = read_row(job, r->first + row, scratch, scratch + r->e->widest);
    if (!all_within(x, job->cols, job->to->type == MICA_TYPE_F16 ? LARGEST_HALF : FLT_MAX))
        return false;
    size_t out_bytes = mica_quant_bytes(job->to, (size_t)job->cols);
    job->to->encode(x, job->importance, r->e->piece + (size_t)row * out_bytes, (size_t)job->cols);
    return true;
}

static void encode_rows(void *user, int thread, int n_threads)
{
    (void)n_threads;
    rows *r = user;
    float *scratch = r->e->scratch + 2 * r->e->widest * (int64_t)thread;
    for (int64_t from; (from = mica_pool_next(r->e->pool, r->step)) < r->n;)
        for (int64_t row = from; row < from + r->step && row < r->n; row++)
            if (!encode_row(r, row, scratch))
                atomic_store(&r->bad, true);
}

static void forget(const mica_encode_job *job, const uint8_t *data, size_t bytes)
{
    if (!job->kept)
        mica_map_forget(data, bytes);
}

static mica_status encode_tensor(mica_encoder *e, const mica_encode_job *job, mica_gguf_writer *writer, mica_error *err)
{
    size_t in_bytes = mica_quant_bytes(job->from, (size_t)job->cols), out_bytes = mica_quant_bytes(job->to, (size_t)job->cols);
    int64_t most = (int64_t)(e->piece_bytes / out_bytes);
    int64_t step = 16384 / job->cols; /* some 100 us of the quickest format */
    mica_status status = MICA_OK;
    for (int64_t first = 0; first < job->rows && !status; first += most) {
        rows r = {.e = e, .job = job, .first = first, .n = job->rows - first < most ? job->rows - first : most, .step = step ? step : 1};
        mica_pool_run(e->pool, encode_rows, &r);
        if (atomic_load(&r.bad))
            return mica_fail(err, MICA_BAD_FILE, "%s: tensor %.*s holds a weight that %s cannot hold: it is not finite, or too large",
                             job->file, (int)job->name.length, job->name.data, job->to->name);
        status = mica_gguf_writer_data(writer, e->piece, (size_t)r.n * out_bytes, err);
        if (!job->head)
            forget(job, job->data + (size_t)first * in_bytes, (size_t)r.n * in_bytes);
        if (!status)
            status = tell_progress(e, (uint64_t)r.n * in_bytes, err);
    }
    if (job->head) /* a piece may end inside a head */
        forget(job, job->data, (size_t)job->rows * in_bytes);
    return status;
}

static mica_status copy_tensor(mica_encoder *e, const mica_encode_job *job, mica_gguf_writer *writer, mica_error *err)
{
    size_t bytes = (size_t)job->rows * mica_quant_bytes(job->from, (size_t)job->cols);
    mica_status status = MICA_OK;
    for (size_t at = 0; at < bytes && !status; at += PIECE_BYTES) {
        size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        status = mica_gguf_writer_data(writer, job->data + at, n, err);
        forget(job, job->data + at, n);
        if (!status)
            status = tell_progress(e, n, err);
    }
    return status;
}

mica_status mica_encoder_write(mica_encoder *e, const mica_encode_job *job, mica_gguf_writer *writer, mica_error *err)
{
    bool same = job->from == job->to && job->head == 0 && job->add == 0.0f && !job->checked;
    return same ? copy_tensor(e, job, writer, err) : encode_tensor(e, job, writer, err);
}
