/* encode.h - rows of weights from one format to another, straight into a file: a few MB at a time, by all threads.
 *
 *     status = mica_encoder_new(n_threads, widest, &e, err);
 *     mica_encoder_tell(e, on_progress, user, total);
 *     status = mica_encoder_write(e, &job, writer, err);      // the tensors in the order of the writer's table
 *     mica_encoder_free(e);
 *
 * Owns the threads and their memory: a row or two for each, and one piece of output. Called by quantize.c and convert.c. */
#ifndef MICA_CONVERT_ENCODE_H
#define MICA_CONVERT_ENCODE_H
#include "convert/gguf_write.h"

/** One tensor. `data` need not be aligned. */
typedef struct mica_encode_job {
    const char *file; /* for messages, as is `name` */
    mica_str name;
    const mica_quant *from, *to;
    const uint8_t *data;
    int64_t rows, cols;
    const float *importance; /* [cols]; NULL: none */
    int64_t head;            /* rows of a head whose halves are to alternate: row 2i is i, row 2i + 1 is i + head / 2. 0: as they are */
    float add;               /* to each weight */
    bool checked;            /* weights that are not finite are refused even where bytes could be copied */
    bool kept;               /* `data` is not of a mapped file, whose pages may be let go when they are read */
} mica_encode_job;

typedef struct mica_encoder mica_encoder;

/** `widest`: columns of the widest tensor. */
mica_status mica_encoder_new(int n_threads, int64_t widest, mica_encoder **out, mica_error *err);
void mica_encoder_free(mica_encoder *e);
/** Tells of progress, 0..1 of `total` bytes of input; true: stop, MICA_CANCELLED. `on_progress` may be NULL. */
void mica_encoder_tell(mica_encoder *e, bool (*on_progress)(void *user, double done), void *user, uint64_t total);

/** MICA_BAD_FILE: a weight is not finite, or too large for F16. */
mica_status mica_encoder_write(mica_encoder *e, const mica_encode_job *job, mica_gguf_writer *writer, mica_error *err);

#endif
