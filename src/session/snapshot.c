/* snapshot.c - saves a session's state to memory or a file, and restores it. The form is in snapshot.h. */
#include "session/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/newfile.h"
#include "base/xxh64.h"
#include "session/batch.h"

/* ---- writing ---- */

/* Where the bytes of a snapshot go, in order: a hash, memory or a file. */
typedef struct sink {
    mica_status (*put)(struct sink *sink, const void *data, size_t length, mica_error *err);
    mica_xxh64 hash;
    uint8_t *memory; /* the next byte */
    mica_newfile *file;
} sink;

static mica_status put_hash(sink *to, const void *data, size_t length, mica_error *err)
{
    (void)err;
    mica_xxh64_add(&to->hash, data, length);
    return MICA_OK;
}

static mica_status put_memory(sink *to, const void *data, size_t length, mica_error *err)
{
    (void)err;
    if (length > 0)
        memcpy(to->memory, data, length);
    to->memory += length;
    return MICA_OK;
}

static mica_status put_file(sink *to, const void *data, size_t length, mica_error *err)
{
    return mica_newfile_write(to->file, data, length, err);
}

/* Positions [pos, end) of a head: one piece, or two of a ring. */
static mica_status put_head(const mica_session *s, int32_t layer, int32_t head, int32_t pos, int32_t end, bool keys, sink *to,
                            mica_error *err)
{
    mica_status status = MICA_OK;
    while (pos < end && !status) {
        mica_kv_range range = mica_kv_head(&s->kv, layer, head, pos, end - pos);
        status = keys ? to->put(to, range.k, range.k_bytes, err) : to->put(to, range.v, range.v_bytes, err);
        pos += range.n;
    }
    return status;
}

/* The computed positions of all heads that are there, in the order of the file: layer, head, position. */
static mica_status put_cache(const mica_session *s, const mica_snapshot_header *in, bool keys, sink *to, mica_error *err)
{
    const mica_hparams *h = &s->model->weights.h;
    mica_status status = MICA_OK;
    for (int32_t layer = 0; layer < h->n_layers; layer++)
        for (int32_t head = 0; head < h->n_kv_heads && !status; head++)
            status = put_head(s, layer, head, mica_kv_first(h, layer, in->first), in->n_computed, keys, to, err);
    return status;
}

/* A section and its padding. */
static mica_status put_section(const mica_session *s, const mica_snapshot_header *h, int part, sink *to, mica_error *err)
{
    static const uint8_t zeros[MICA_SNAPSHOT_ALIGN];
    size_t bytes = (size_t)h->sections[part].bytes;
    mica_status status = MICA_OK;
    if (part == MICA_SNAPSHOT_TOKENS)
        status = to->put(to, s->tokens, bytes, err);
    else if (part == MICA_SNAPSHOT_LOGITS)
        status = to->put(to, s->exec.logits, bytes, err);
    else if (bytes > 0)
        status = put_cache(s, h, part == MICA_SNAPSHOT_KEYS, to, err);
    return status ? status : to->put(to, zeros, (size_t)mica_snapshot_padded(bytes) - bytes, err);
}

/* Describes the session with the checksums. */
static void seal(const mica_session *s, mica_snapshot_header *h, uint8_t header[MICA_SNAPSHOT_HEADER])
{
    mica_snapshot_describe(s, h);
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        sink to = {.put = put_hash};
        mica_xxh64_start(&to.hash, 0);
        (void)put_section(s, h, i, &to, NULL); /* hashing cannot fail */
        h->sections[i].checksum = mica_xxh64_value(&to.hash);
    }
    mica_snapshot_encode(h, header);
}

static mica_status put_all(const mica_session *s, const mica_snapshot_header *h, const uint8_t header[MICA_SNAPSHOT_HEADER],
                           sink *to, mica_error *err)
{
    mica_status status = to->put(to, header, MICA_SNAPSHOT_HEADER, err);
    for (int i = 0; i < MICA_SNAPSHOT_PARTS && !status; i++)
        status = put_section(s, h, i, to, err);
    return status;
}

size_t mica_session_snapshot_bytes(const mica_session *s)
{
    mica_snapshot_header h;
    mica_snapshot_describe(s, &h);
    return (size_t)h.total_bytes;
}

mica_status mica_session_snapshot(const mica_session *s, void **bytes, size_t *length, mica_error *err)
{
    mica_snapshot_header h;
    uint8_t header[MICA_SNAPSHOT_HEADER];
    seal(s, &h, header);
    *length = 0;
    *bytes = malloc((size_t)h.total_bytes);
    if (!*bytes)
        return mica_fail_nomem(err, (size_t)h.total_bytes, "the snapshot");
    *length = (size_t)h.total_bytes;
    sink to = {.put = put_memory, .memory = *bytes};
    return put_all(s, &h, header, &to, err);
}

mica_status mica_session_save(const mica_session *s, const char *path, mica_error *err)
{
    mica_snapshot_header h;
    uint8_t header[MICA_SNAPSHOT_HEADER];
    mica_newfile file;
    mica_status status = mica_newfile_open(path, &file, err);
    if (!status) {
        seal(s, &h, header);
        sink to = {.put = put_file, .file = &file};
        status = put_all(s, &h, header, &to, err);
    }
    if (!status)
        status = mica_newfile_commit(&file, err);
    mica_newfile_discard(&file);
    return status;
}

/* ---- reading ---- */

/* A snapshot being restored. */
typedef struct source {
    mica_session *s;
    const uint8_t *data;
    const char *name; /* for messages */
    mica_snapshot_header h, own; /* what it says, and what the session would say */
} source;

static const char *type_name(int32_t type)
{
    const mica_quant *quant = mica_quant_of((uint32_t)type);
    return quant ? quant->name : "unknown";
}

/* Whether it was made with this arithmetic, model and kind of cache. */
static mica_status check_origin(const source *in, mica_error *err)
{
    const mica_snapshot_header *a = &in->h, *b = &in->own;
    if (a->numerics != b->numerics)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s was saved with numerics version %d and this build has version %d; compute the prompt anew",
                         in->name, a->numerics, b->numerics);
    if (a->model != b->model || a->n_layers != b->n_layers || a->n_kv_heads != b->n_kv_heads || a->head_dim != b->head_dim ||
        a->n_vocab != b->n_vocab)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s was saved with another model: \"%s\" (fingerprint %016" PRIx64
                         "), and this one is \"%s\" (%016" PRIx64 ")",
                         in->name, a->name, a->model, b->name, b->model);
    if (a->k_type != b->k_type || a->v_type != b->v_type)
        return mica_fail(err, MICA_UNSUPPORTED, "%s has keys in %s and values in %s, and this session's KV cache has %s and %s",
                         in->name, type_name(a->k_type), type_name(a->v_type), type_name(b->k_type), type_name(b->v_type));
    if (a->rope != b->rope)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s was saved with a context of %d tokens, for which this model rotates positions differently than "
                         "for %d; restore it into a session with n_ctx %d",
                         in->name, a->n_ctx, b->n_ctx, a->n_ctx);
    return MICA_OK;
}

static mica_status check_layout(const source *in, mica_error *err)
{
    mica_snapshot_header expected = in->h;
    int32_t n_ctx = in->s->options.n_ctx;
    if (in->h.n_tokens < 0 || in->h.n_computed < 0 || in->h.n_computed > in->h.n_tokens)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: it says that %d of %d tokens are computed", in->name,
                         in->h.n_computed, in->h.n_tokens);
    int32_t window = in->s->model->weights.h.window; /* 0 in models that have no windowed layers */
    int32_t latest = window > 0 && in->h.n_computed >= window ? in->h.n_computed - window + 1 : 0;
    if (in->h.first < 0 || in->h.first > latest)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: it says that windowed layers begin at position %d of %d", in->name,
                         in->h.first, in->h.n_computed);
    if (in->h.n_tokens > n_ctx)
        return mica_fail(err, MICA_CONTEXT_FULL,
                         "%s has %d tokens and the session's context holds %d; a context of %d is needed", in->name,
                         in->h.n_tokens, n_ctx, in->h.n_tokens);
    mica_snapshot_lay_out(in->s, &expected);
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        const mica_snapshot_section *a = &in->h.sections[i], *b = &expected.sections[i];
        if (a->offset != b->offset || a->bytes != b->bytes)
            return mica_fail(err, MICA_BAD_FILE,
                             "%s is damaged: its %s are %" PRIu64 " bytes at %" PRIu64 " where %" PRIu64 " at %" PRIu64
                             " belong",
                             in->name, mica_snapshot_part_name(i), a->bytes, a->offset, b->bytes, b->offset);
    }
    if (in->h.total_bytes != expected.total_bytes)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: it has %" PRIu64 " bytes where %" PRIu64 " belong", in->name,
                         in->h.total_bytes, expected.total_bytes);
    return MICA_OK;
}

static mica_status check_sections(const source *in, mica_error *err)
{
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        const mica_snapshot_section *section = &in->h.sections[i];
        if (mica_xxh64_of(in->data + section->offset, (size_t)mica_snapshot_padded(section->bytes)) != section->checksum)
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)section->offset, "%s is damaged: the checksum of its %s is wrong",
                                in->name, mica_snapshot_part_name(i));
    }
    return MICA_OK;
}

/* The tokens go to s->next, which no state depends on, and are checked there: a file that someone writes to could change. */
static mica_status take_tokens(const source *in, mica_error *err)
{
    const mica_snapshot_section *section = &in->h.sections[MICA_SNAPSHOT_TOKENS];
    int32_t *tokens = in->s->next, n_vocab = in->s->model->weights.h.n_vocab;
    memcpy(tokens, in->data + section->offset, (size_t)section->bytes);
    for (int32_t i = 0; i < in->h.n_tokens; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)section->offset + 4 * i,
                                "%s is damaged: its token %d is %d, which is not in the vocabulary of %d", in->name, i,
                                tokens[i], n_vocab);
    return MICA_OK;
}

/* Positions [pos, end) of a head from what was saved of it, of which a smaller ring leaves out those before `first`. */
static void take_head(mica_session *s, int32_t layer, int32_t head, int32_t pos, int32_t end, int32_t first,
                      const uint8_t **keys, const uint8_t **values)
{
    while (pos < end) {
        int32_t n = pos < first ? first - pos : end - pos;
        mica_kv_range range = mica_kv_head(&s->kv, layer, head, pos, n);
        if (pos >= first) {
            memcpy(range.k, *keys, range.k_bytes);
            memcpy(range.v, *values, range.v_bytes);
        }
        *keys += range.k_bytes;
        *values += range.v_bytes;
        pos += range.n;
    }
}

static void take_cache(const source *in)
{
    mica_session *s = in->s;
    const mica_hparams *h = &s->model->weights.h;
    const uint8_t *keys = in->data + in->h.sections[MICA_SNAPSHOT_KEYS].offset;
    const uint8_t *values = in->data + in->h.sections[MICA_SNAPSHOT_VALUES].offset;
    s->kv.first = in->h.first;
    if (in->h.n_computed - s->kv.ring > s->kv.first)
        s->kv.first = in->h.n_computed - s->kv.ring;
    for (int32_t layer = 0; layer < h->n_layers; layer++)
        for (int32_t head = 0; head < h->n_kv_heads; head++)
            take_head(s, layer, head, mica_kv_first(h, layer, in->h.first), in->h.n_computed,
                      mica_kv_first(h, layer, s->kv.first), &keys, &values);
}

/* Everything is checked: the session becomes what the snapshot says. */
static void adopt(const source *in, int64_t start_ns)
{
    mica_session *s = in->s;
    const mica_snapshot_section *logits = &in->h.sections[MICA_SNAPSHOT_LOGITS];
    if (in->h.n_computed > 0)
        take_cache(in);
    memcpy(s->tokens, s->next, (size_t)in->h.n_tokens * sizeof *s->tokens);
    s->n_tokens = in->h.n_tokens;
    s->n_computed = in->h.n_computed;
    s->logits_valid = logits->bytes > 0 && !s->batch;
    if (s->logits_valid)
        memcpy(s->exec.logits, in->data + logits->offset, (size_t)logits->bytes);
    else if (logits->bytes > 0)
        s->n_computed--; /* a batch's session has no place for logits: the last token is computed again */
    /* A reply may follow at once: the time to its first token counts from here. */
    s->request_ns = start_ns;
    s->prefill_ns = 0;
    s->prefill_n = s->dropped_n = 0;
    s->cached_n = s->n_computed;
    atomic_store(&s->cancelled, false);
}

static mica_status restore(mica_session *s, const void *data, size_t length, const char *name, int64_t start_ns,
                           mica_error *err)
{
    source in = {.s = s, .data = data, .name = name};
    if (s->batch && mica_batch_has_request(s->batch, s))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "this session has a request under way: restore it before or after");
    mica_status status = mica_snapshot_decode(data, length, name, &in.h, err);
    if (status)
        return status;
    mica_snapshot_describe(s, &in.own);
    if ((status = check_origin(&in, err)) || (status = check_layout(&in, err)) || (status = check_sections(&in, err)) ||
        (status = take_tokens(&in, err)))
        return status;
    adopt(&in, start_ns);
    return MICA_OK;
}

mica_status mica_session_restore_memory(mica_session *s, const void *bytes, size_t length, mica_error *err)
{
    if (!bytes || length == 0)
        return mica_fail_at(err, MICA_BAD_FILE, 0, "the snapshot is empty (0 bytes)");
    return restore(s, bytes, length, "the snapshot", mica_now_ns(), err);
}

/* mica_map_open() speaks of models; an empty file, here, is what is left of a snapshot that was never written. */
static mica_status refuse_empty(const char *path, mica_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        return mica_fail_at(err, MICA_BAD_FILE, 0, "%s is not a snapshot: it is empty (0 bytes)", mica_path_tail(path));
    return MICA_OK;
}

mica_status mica_session_restore(mica_session *s, const char *path, mica_error *err)
{
    int64_t start = mica_now_ns();
    mica_map map;
    mica_status status = refuse_empty(path, err);
    if (!status)
        status = mica_map_open(path, &map, err);
    if (status)
        return status;
    (void)posix_madvise(map.base, map.base_bytes, POSIX_MADV_WILLNEED); /* all of it is read twice */
    status = restore(s, map.data, map.length, mica_path_tail(path), start, err);
    mica_map_close(&map);
    return status;
}
