/* snapshot_format.c - the header of a snapshot: what it says, where its sections lie, its bytes. */
#include <inttypes.h>
#include <string.h>

#include "base/endian.h"
#include "base/xxh64.h"
#include "model/fingerprint.h"
#include "session/snapshot.h"

/* Byte offsets in the header. */
enum {
    AT_MAGIC = 0, AT_FORMAT = 8, AT_HEADER_BYTES = 12, AT_TOTAL = 16, AT_MODEL = 24, AT_ROPE = 32, AT_NUMBERS = 40,
    AT_NAME = 80, AT_SECTIONS = 128, AT_FIRST = AT_SECTIONS + MICA_SNAPSHOT_PARTS * 24, AT_ZERO = AT_FIRST + 4,
    AT_CHECKSUM = MICA_SNAPSHOT_HEADER - 8,
};

#define NUMBERS 10

static const struct {
    char magic[9];
    const char *name, *instead; /* what it is, and what helps where it cannot be read */
} kinds[] = {
    [MICA_SNAPSHOT_SESSION] = {"MICASNAP", "a snapshot", "compute the prompt anew"},
    [MICA_SNAPSHOT_PREFIXES] = {"MICAPREF", "a file of prefixes", "remove it, and it is written anew"},
};

const char *mica_snapshot_part_name(int part)
{
    static const char *const names[] = {"tokens", "logits", "keys", "values"};
    return names[part];
}

/* ---- describing a session ---- */

static uint64_t rope_hash(const mica_exec *e)
{
    mica_xxh64 hash;
    size_t n = (size_t)e->w->h.rope_dim / 2;
    mica_xxh64_start(&hash, 0);
    mica_xxh64_add(&hash, e->freq, n * sizeof *e->freq);
    mica_xxh64_add(&hash, e->freq_window, n * sizeof *e->freq_window);
    mica_xxh64_add(&hash, &e->rope_magnitude, sizeof e->rope_magnitude);
    mica_xxh64_add(&hash, &e->rope_window_magnitude, sizeof e->rope_window_magnitude);
    return mica_xxh64_value(&hash);
}

/* Computed by the first session of a model that wants it. Two threads may do so at once: they find the same number. */
static uint64_t fingerprint(mica_model *model)
{
    uint64_t value = atomic_load_explicit(&model->fingerprint, memory_order_relaxed);
    if (value == 0) {
        value = mica_model_fingerprint(model->gguf);
        atomic_store_explicit(&model->fingerprint, value, memory_order_relaxed);
    }
    return value;
}

static void copy_name(char out[MICA_SNAPSHOT_NAME], const char *name)
{
    for (size_t i = 0; i < MICA_SNAPSHOT_NAME - 1 && name[i]; i++)
        out[i] = name[i] >= 32 && name[i] < 127 ? name[i] : '?';
}

void mica_snapshot_identify(mica_model *model, const mica_exec *exec, const mica_kv *kv, int32_t n_ctx, mica_snapshot_kind kind,
                            mica_snapshot_header *h)
{
    const mica_hparams *p = &model->weights.h;
    *h = (mica_snapshot_header){
        .kind = kind, .format = MICA_SNAPSHOT_FORMAT, .model = fingerprint(model), .rope = rope_hash(exec),
        .numerics = mica_numerics_version(), .k_type = (int32_t)mica_kv_k_type(kv), .v_type = (int32_t)mica_kv_v_type(kv),
        .n_layers = p->n_layers, .n_kv_heads = p->n_kv_heads, .head_dim = p->head_dim, .n_vocab = p->n_vocab, .n_ctx = n_ctx};
    copy_name(h->name, model->name);
}

void mica_snapshot_describe(const mica_session *s, mica_snapshot_header *h)
{
    /* Positions whose logits are lost are computed again from the last one: it is not worth keeping. */
    int32_t most = s->logits_valid || s->n_tokens == 0 ? s->n_tokens : s->n_tokens - 1;
    mica_snapshot_identify(s->model, &s->exec, &s->kv, s->options.n_ctx, MICA_SNAPSHOT_SESSION, h);
    h->n_tokens = s->n_tokens;
    h->n_computed = s->n_computed < most ? s->n_computed : most;
    h->first = s->kv.first;
    if (!mica_kv_can_resume(&s->kv, h->n_computed)) /* cut back, and not computed again yet */
        h->n_computed = 0;
    if (h->n_computed == 0)
        h->first = 0;
    mica_snapshot_lay_out(s, h);
}

void mica_snapshot_lay_out(const mica_session *s, mica_snapshot_header *h)
{
    const mica_hparams *p = &s->model->weights.h;
    uint64_t rows = mica_kv_rows(p, h->first, h->n_computed);
    bool has_logits = h->n_tokens > 0 && h->n_computed == h->n_tokens;
    /* None can overflow: they are parts of what the session has in memory. */
    h->sections[MICA_SNAPSHOT_TOKENS].bytes = (uint64_t)h->n_tokens * sizeof(int32_t);
    h->sections[MICA_SNAPSHOT_LOGITS].bytes = has_logits ? (uint64_t)p->n_vocab * sizeof(float) : 0;
    h->sections[MICA_SNAPSHOT_KEYS].bytes = rows * mica_quant_bytes(s->kv.k_quant, (size_t)p->head_dim);
    h->sections[MICA_SNAPSHOT_VALUES].bytes = rows * mica_quant_bytes(s->kv.v_quant, (size_t)p->head_dim);
    mica_snapshot_place(h);
}

void mica_snapshot_place(mica_snapshot_header *h)
{
    uint64_t at = MICA_SNAPSHOT_HEADER;
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        h->sections[i].offset = at;
        at += mica_snapshot_padded(h->sections[i].bytes);
    }
    h->total_bytes = at;
}

/* ---- bytes ---- */

/* The 32-bit numbers in the order of the file. */
static void list_numbers(mica_snapshot_header *h, int32_t *out[NUMBERS])
{
    int32_t *const list[NUMBERS] = {&h->numerics, &h->k_type, &h->v_type, &h->n_layers, &h->n_kv_heads,
                                    &h->head_dim, &h->n_vocab, &h->n_ctx, &h->n_tokens, &h->n_computed};
    memcpy(out, list, sizeof list);
}

void mica_snapshot_encode(const mica_snapshot_header *h, uint8_t out[MICA_SNAPSHOT_HEADER])
{
    mica_snapshot_header copy = *h;
    int32_t *numbers[NUMBERS];
    list_numbers(&copy, numbers);
    memset(out, 0, MICA_SNAPSHOT_HEADER);
    memcpy(out + AT_MAGIC, kinds[h->kind].magic, 8);
    mica_store_le32(out + AT_FORMAT, h->format);
    mica_store_le32(out + AT_HEADER_BYTES, MICA_SNAPSHOT_HEADER);
    mica_store_le64(out + AT_TOTAL, h->total_bytes);
    mica_store_le64(out + AT_MODEL, h->model);
    mica_store_le64(out + AT_ROPE, h->rope);
    for (int i = 0; i < NUMBERS; i++)
        mica_store_le32(out + AT_NUMBERS + 4 * i, (uint32_t)*numbers[i]);
    memcpy(out + AT_NAME, h->name, MICA_SNAPSHOT_NAME);
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        uint8_t *p = out + AT_SECTIONS + 24 * i;
        mica_store_le64(p, h->sections[i].offset);
        mica_store_le64(p + 8, h->sections[i].bytes);
        mica_store_le64(p + 16, h->sections[i].checksum);
    }
    mica_store_le32(out + AT_FIRST, (uint32_t)h->first);
    mica_store_le64(out + AT_CHECKSUM, mica_xxh64_of(out, AT_CHECKSUM));
}

/* Magic, format, checksum. */
static mica_status check_header(const uint8_t *data, size_t length, mica_snapshot_kind kind, const char *name, mica_error *err)
{
    if (memcmp(data, kinds[kind].magic, length < 8 ? length : 8) != 0)
        return mica_fail_at(err, MICA_BAD_FILE, 0, "%s is not %s: it does not begin with %s", name, kinds[kind].name,
                            kinds[kind].magic);
    if (length < MICA_SNAPSHOT_HEADER)
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)length, "%s is truncated: it ends after %zu of the header's %d bytes",
                            name, length, MICA_SNAPSHOT_HEADER);
    uint32_t format = mica_load_le32(data + AT_FORMAT);
    if (format != MICA_SNAPSHOT_FORMAT)
        return mica_fail_at(err, MICA_UNSUPPORTED, AT_FORMAT,
                            "%s has snapshot format %" PRIu32 ", and this build reads format %d; %s", name, format,
                            MICA_SNAPSHOT_FORMAT, kinds[kind].instead);
    if (mica_load_le64(data + AT_CHECKSUM) != mica_xxh64_of(data, AT_CHECKSUM))
        return mica_fail_at(err, MICA_BAD_FILE, AT_CHECKSUM, "%s is damaged: the checksum of its header is wrong", name);
    static const uint8_t zeros[AT_CHECKSUM - AT_ZERO];
    if (mica_load_le32(data + AT_HEADER_BYTES) != MICA_SNAPSHOT_HEADER || memcmp(data + AT_ZERO, zeros, sizeof zeros) != 0)
        return mica_fail_at(err, MICA_BAD_FILE, AT_HEADER_BYTES, "%s is damaged: its header has values where none may be",
                            name);
    return MICA_OK;
}

mica_status mica_snapshot_decode(const uint8_t *data, size_t length, mica_snapshot_kind kind, const char *name,
                                 mica_snapshot_header *h, mica_error *err)
{
    mica_status status = check_header(data, length, kind, name, err);
    if (status)
        return status;
    int32_t *numbers[NUMBERS];
    *h = (mica_snapshot_header){.kind = kind, .format = MICA_SNAPSHOT_FORMAT, .total_bytes = mica_load_le64(data + AT_TOTAL),
                                .model = mica_load_le64(data + AT_MODEL), .rope = mica_load_le64(data + AT_ROPE),
                                .first = (int32_t)mica_load_le32(data + AT_FIRST)};
    list_numbers(h, numbers);
    for (int i = 0; i < NUMBERS; i++)
        *numbers[i] = (int32_t)mica_load_le32(data + AT_NUMBERS + 4 * i);
    memcpy(h->name, data + AT_NAME, MICA_SNAPSHOT_NAME - 1);
    for (size_t i = 0; h->name[i]; i++) /* goes into messages */
        h->name[i] = h->name[i] >= 32 && h->name[i] < 127 ? h->name[i] : '?';
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        const uint8_t *p = data + AT_SECTIONS + 24 * i;
        h->sections[i] = (mica_snapshot_section){mica_load_le64(p), mica_load_le64(p + 8), mica_load_le64(p + 16)};
    }
    if (h->total_bytes != length)
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)length,
                            "%s is %s: it has %zu bytes and its header says %" PRIu64, name,
                            length < h->total_bytes ? "truncated" : "too long", length, h->total_bytes);
    return MICA_OK;
}

/* ---- is it ours, is it whole ---- */

static const char *type_name(int32_t type)
{
    const mica_quant *quant = mica_quant_of((uint32_t)type);
    return quant ? quant->name : "unknown";
}

mica_status mica_snapshot_check_origin(const mica_snapshot_header *a, const mica_snapshot_header *b, const char *name,
                                       mica_error *err)
{
    if (a->numerics != b->numerics)
        return mica_fail(err, MICA_UNSUPPORTED, "%s was saved with numerics version %d and this build has version %d; %s", name,
                         a->numerics, b->numerics, kinds[a->kind].instead);
    if (a->model != b->model || a->n_layers != b->n_layers || a->n_kv_heads != b->n_kv_heads || a->head_dim != b->head_dim ||
        a->n_vocab != b->n_vocab)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s was saved with another model: \"%s\" (fingerprint %016" PRIx64
                         "), and this one is \"%s\" (%016" PRIx64 ")",
                         name, a->name, a->model, b->name, b->model);
    if (a->k_type != b->k_type || a->v_type != b->v_type)
        return mica_fail(err, MICA_UNSUPPORTED, "%s has keys in %s and values in %s, and this session's KV cache has %s and %s",
                         name, type_name(a->k_type), type_name(a->v_type), type_name(b->k_type), type_name(b->v_type));
    if (a->rope != b->rope)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s was saved with a context of %d tokens, for which this model rotates positions differently than "
                         "for %d; restore it into a session with n_ctx %d",
                         name, a->n_ctx, b->n_ctx, a->n_ctx);
    return MICA_OK;
}

mica_status mica_snapshot_check_sections(const mica_snapshot_header *h, const mica_snapshot_header *expected, const char *name,
                                         mica_error *err)
{
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        const mica_snapshot_section *a = &h->sections[i], *b = &expected->sections[i];
        if (a->offset != b->offset || a->bytes != b->bytes)
            return mica_fail(err, MICA_BAD_FILE,
                             "%s is damaged: its %s are %" PRIu64 " bytes at %" PRIu64 " where %" PRIu64 " at %" PRIu64
                             " belong",
                             name, mica_snapshot_part_name(i), a->bytes, a->offset, b->bytes, b->offset);
    }
    if (h->total_bytes != expected->total_bytes)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: it has %" PRIu64 " bytes where %" PRIu64 " belong", name,
                         h->total_bytes, expected->total_bytes);
    return MICA_OK;
}

mica_status mica_snapshot_check_content(const mica_snapshot_header *h, const uint8_t *data, const char *name, mica_error *err)
{
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        const mica_snapshot_section *section = &h->sections[i];
        if (mica_xxh64_of(data + section->offset, (size_t)mica_snapshot_padded(section->bytes)) != section->checksum)
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)section->offset, "%s is damaged: the checksum of its %s is wrong",
                                name, mica_snapshot_part_name(i));
    }
    return MICA_OK;
}
