/* snapshot.c - saves a session's state to memory or a file, and restores it. The form is in snapshot.h. */
#include "session/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/batch.h"

/* ---- writing ---- */

/* Positions [pos, end) of a head: one piece, or two of a ring. */
static mica_status put_head(const mica_session *s, int32_t layer, int32_t head, int32_t pos, int32_t end, bool keys, mica_sink *to,
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
static mica_status put_cache(const mica_session *s, const mica_snapshot_header *in, bool keys, mica_sink *to, mica_error *err)
{
    const mica_hparams *h = &s->model->weights.h;
    mica_status status = MICA_OK;
    for (int32_t layer = 0; layer < h->n_layers; layer++)
        for (int32_t head = 0; head < h->n_kv_heads && !status; head++)
            status = put_head(s, layer, head, mica_kv_first(h, layer, in->first), in->n_computed, keys, to, err);
    return status;
}

static mica_status put_section(const void *owner, const mica_snapshot_header *h, int part, mica_sink *to, mica_error *err)
{
    const mica_session *s = owner;
    size_t bytes = (size_t)h->sections[part].bytes;
    if (part == MICA_SNAPSHOT_TOKENS)
        return to->put(to, s->tokens, bytes, err);
    if (part == MICA_SNAPSHOT_LOGITS)
        return to->put(to, s->exec.logits, bytes, err);
    return bytes > 0 ? put_cache(s, h, part == MICA_SNAPSHOT_KEYS, to, err) : MICA_OK;
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
    mica_snapshot_describe(s, &h);
    *length = 0;
    *bytes = malloc((size_t)h.total_bytes);
    if (!*bytes)
        return mica_fail_nomem(err, (size_t)h.total_bytes, "the snapshot");
    *length = (size_t)h.total_bytes;
    return mica_snapshot_write_memory(s, &h, put_section, *bytes, err);
}

mica_status mica_session_save(const mica_session *s, const char *path, mica_error *err)
{
    mica_snapshot_header h;
    mica_snapshot_describe(s, &h);
    return mica_snapshot_write_file(s, &h, put_section, path, err);
}

/* ---- reading ---- */

/* A snapshot being restored. */
typedef struct source {
    mica_session *s;
    const uint8_t *data;
    const char *name; /* for messages */
    mica_snapshot_header h, own; /* what it says, and what the session would say */
} source;

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
    return mica_snapshot_check_sections(&in->h, &expected, in->name, err);
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
    if (!s->batch && in->h.n_computed - s->kv.slots[MICA_KV_WINDOWED] > s->kv.first)
        s->kv.first = in->h.n_computed - s->kv.slots[MICA_KV_WINDOWED];
    for (int32_t layer = 0; layer < h->n_layers; layer++)
        for (int32_t head = 0; head < h->n_kv_heads; head++)
            take_head(s, layer, head, mica_kv_first(h, layer, in->h.first), in->h.n_computed,
                      mica_kv_first(h, layer, s->kv.first), &keys, &values);
}

/* Room for the cache: a batch's session asks for blocks, more of windowed layers than it would hold later. */
static mica_status make_room(const source *in, mica_error *err)
{
    mica_session *s = in->s;
    if (!s->batch)
        return MICA_OK;
    mica_session_give_up(s);
    while (!mica_kv_lease_fill(&s->lease, in->h.first, in->h.n_computed))
        if (!mica_batch_empty_idle(s->batch, s))
            return mica_fail(err, MICA_OVER_BUDGET,
                             "the batch's KV memory has no room for the %d tokens of %s while others run; restore it later, or "
                             "make the batch with more kv_tokens",
                             in->h.n_computed, in->name);
    return MICA_OK;
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
    mica_status status = mica_snapshot_decode(data, length, MICA_SNAPSHOT_SESSION, name, &in.h, err);
    if (status)
        return status;
    mica_snapshot_describe(s, &in.own);
    if ((status = mica_snapshot_check_origin(&in.h, &in.own, name, err)) || (status = check_layout(&in, err)) ||
        (status = mica_snapshot_check_content(&in.h, data, name, err)) || (status = take_tokens(&in, err)) || (status = make_room(&in, err)))
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

mica_status mica_session_restore(mica_session *s, const char *path, mica_error *err)
{
    int64_t start = mica_now_ns();
    mica_map map;
    mica_status status = mica_snapshot_map(path, &map, err);
    if (status)
        return status;
    status = restore(s, map.data, map.length, mica_path_tail(path), start, err);
    mica_map_close(&map);
    return status;
}
