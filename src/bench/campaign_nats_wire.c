#include "bench/campaign_nats_wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/json.h"

static const char magic[] = "mica-shard-result 1\n";
enum { MAGIC = sizeof magic - 1, MAX_HEADER = 1 << 20, MAX_NOTICE = 2 << 20 };

/* ---- Members ---- */

/* False: no text of exactly that length (0: of at most size - 1). */
static bool get_text(const json_t *object, const char *name, size_t wanted, char *out, size_t size)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    if (!text || strlen(text) != json_string_length(value) || strlen(text) >= size || (wanted && strlen(text) != wanted))
        return false;
    snprintf(out, size, "%s", text);
    return true;
}

static bool get_hex(const json_t *object, const char *name, size_t n, char *out)
{
    return get_text(object, name, n, out, n + 1) && strspn(out, "0123456789abcdef") == n;
}

static bool get_int(const json_t *object, const char *name, int64_t low, int64_t high, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= low && *out <= high;
}

static mica_status dump(json_t *object, char **text, mica_error *err)
{
    *text = object ? mica_json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(object);
    return *text ? MICA_OK : mica_fail_nomem(err, 0, "a message of the queue");
}

static mica_status bad(const char *what, mica_error *err)
{
    return mica_fail(err, MICA_BAD_FILE, "the queue has %s that this version of mica does not understand", what);
}

/* ---- Where bytes are ---- */

static json_t *blob_json(const mica_nats_blob *blob)
{
    return json_pack("{s:s, s:I, s:I}", "sha256", blob->sha256, "bytes", (json_int_t)blob->bytes, "parts",
                     (json_int_t)blob->parts);
}

static bool blob_of(const json_t *object, mica_nats_blob *out)
{
    int64_t bytes, parts;
    if (!get_hex(object, "sha256", 64, out->sha256) || !get_int(object, "bytes", 1, (int64_t)MICA_NATS_BLOB_MAX, &bytes) ||
        !get_int(object, "parts", 1, bytes, &parts))
        return false;
    out->bytes = (size_t)bytes;
    out->parts = (size_t)parts;
    return true;
}

mica_status mica_blob_word_write(const mica_nats_blob *blob, char **text, mica_error *err)
{
    return dump(blob_json(blob), text, err);
}

bool mica_blob_word_read(const void *data, size_t length, mica_nats_blob *out)
{
    if (length == 0 || *(const char *)data != '{' || length > MAX_HEADER)
        return false;
    json_t *object = mica_json_loadb(data, length, 0, NULL);
    bool good = blob_of(object, out);
    json_decref(object);
    return good;
}

/* ---- A campaign ---- */

mica_status mica_notice_write(const mica_notice *notice, const json_t *source, char **text, mica_error *err)
{
    return dump(json_pack("{s:i, s:s, s:s, s:f, s:o, s:O}", "version", 1, "campaign", notice->id, "model_sha256",
                          notice->model_sha256, "ack_wait_s", notice->ack_wait_s, "prompts", blob_json(&notice->prompts),
                          "manifest", source),
                text, err);
}

static mica_status read_notice(const json_t *root, mica_notice *out, mica_error *err)
{
    int64_t version;
    char id[65];
    json_t *manifest = json_object_get(root, "manifest");
    out->ack_wait_s = json_number_value(json_object_get(root, "ack_wait_s"));
    if (!get_int(root, "version", 1, 1, &version) || !get_hex(root, "campaign", 64, out->id) ||
        !get_hex(root, "model_sha256", 64, out->model_sha256) || !blob_of(json_object_get(root, "prompts"), &out->prompts) ||
        !(out->ack_wait_s >= 0.1 && out->ack_wait_s <= 86400) || !json_is_object(manifest))
        return bad("a campaign", err);
    char *text;
    json_incref(manifest);
    mica_status status = dump(manifest, &text, err);
    if (!status)
        status = mica_campaign_read(text, strlen(text), &out->campaign, err);
    free(text);
    if (!status)
        status = mica_campaign_id(&out->campaign, out->model_sha256, id, err);
    if (!status && strcmp(id, out->id) != 0)
        status = mica_fail(err, MICA_BAD_FILE, "the queue has a campaign %.16s whose manifest is that of %.16s", out->id, id);
    return status;
}

mica_status mica_notice_read(const char *text, size_t length, mica_notice *out, mica_error *err)
{
    memset(out, 0, sizeof *out);
    json_t *root = length <= MAX_NOTICE ? mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    mica_status status = read_notice(root, out, err);
    json_decref(root);
    if (status)
        mica_notice_free(out);
    return status;
}

void mica_notice_free(mica_notice *notice)
{
    mica_campaign_free(&notice->campaign);
}

/* ---- A shard ---- */

mica_status mica_work_write(const mica_shard *s, char **text, mica_error *err)
{
    return dump(json_pack("{s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "seq", (json_int_t)s->seq, "first_item",
                          (json_int_t)s->first_item, "n_items", (json_int_t)s->n_items, "before", (json_int_t)s->before,
                          "tokens", (json_int_t)s->tokens, "id", s->id, "input", s->input),
                text, err);
}

mica_status mica_work_read(const char *text, size_t length, mica_shard *out, mica_error *err)
{
    memset(out, 0, sizeof *out);
    json_t *root = length <= MAX_HEADER ? mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool good = get_int(root, "seq", 0, MICA_CAMPAIGN_TOKENS, &out->seq) &&
                get_int(root, "first_item", 0, MICA_CAMPAIGN_TOKENS, &out->first_item) &&
                get_int(root, "n_items", 1, MICA_SHARD_MAX_ITEMS, &out->n_items) &&
                get_int(root, "before", 0, MICA_CAMPAIGN_TOKENS, &out->before) &&
                get_int(root, "tokens", 2, MICA_CAMPAIGN_TOKENS, &out->tokens) && get_hex(root, "id", 32, out->id) &&
                get_hex(root, "input", 64, out->input);
    json_decref(root);
    return good ? MICA_OK : bad("a shard", err);
}

/* ---- A result ---- */

static json_t *outcome_head(const mica_outcome *o)
{
    json_t *head = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "campaign", o->campaign, "id", o->id, "input", o->input, "seq",
                             (json_int_t)o->seq, "started", (json_int_t)o->started_unix, "wall_ns", (json_int_t)o->wall_ns);
    int failed = 0;
    if (*o->error) {
        failed |= json_object_set_new(head, "error", json_string(o->error));
    } else {
        json_t *parts = json_array();
        for (int i = 0; i < MICA_PACKED_PARTS; i++)
            failed |= json_array_append_new(parts, json_integer((json_int_t)o->packed.length[i]));
        failed |= json_object_set_new(head, "parts", parts);
        failed |= json_object_set(head, "head", o->head);
    }
    if (!failed)
        return head;
    json_decref(head);
    return NULL;
}

mica_status mica_outcome_write(const mica_outcome *o, void **data, size_t *length, mica_error *err)
{
    char *text;
    *data = NULL;
    mica_status status = dump(outcome_head(o), &text, err);
    if (status)
        return status;
    size_t n = strlen(text), at = MAGIC + 4 + n, all = at;
    for (int i = 0; i < MICA_PACKED_PARTS; i++)
        all += o->packed.length[i];
    uint8_t *bytes = n <= MAX_HEADER ? malloc(all) : NULL;
    if (bytes) {
        memcpy(bytes, magic, MAGIC);
        mica_store_le32(bytes + MAGIC, (uint32_t)n);
        memcpy(bytes + MAGIC + 4, text, n);
        for (int i = 0; i < MICA_PACKED_PARTS; i++) {
            if (o->packed.length[i])
                memcpy(bytes + at, o->packed.data[i], o->packed.length[i]);
            at += o->packed.length[i];
        }
    } else {
        status = mica_fail_nomem(err, all, "a result");
    }
    free(text);
    *data = bytes;
    *length = all;
    return status;
}

static bool read_parts(const json_t *header, const uint8_t *bytes, size_t left, mica_packed_result *out)
{
    const json_t *parts = json_object_get(header, "parts");
    for (size_t i = 0; i < MICA_PACKED_PARTS; i++) {
        const json_t *n = json_array_get(parts, i);
        if (!json_is_integer(n) || json_integer_value(n) < 1 || (uint64_t)json_integer_value(n) > left)
            return false;
        out->data[i] = (void *)(uintptr_t)bytes;
        out->length[i] = (size_t)json_integer_value(n);
        bytes += out->length[i];
        left -= out->length[i];
    }
    return left == 0 && json_array_size(parts) == MICA_PACKED_PARTS;
}

static bool read_outcome(const json_t *header, const uint8_t *bytes, size_t left, mica_outcome *out)
{
    if (!get_hex(header, "campaign", 64, out->campaign) || !get_hex(header, "id", 32, out->id) ||
        !get_hex(header, "input", 64, out->input) || !get_int(header, "seq", 0, MICA_CAMPAIGN_TOKENS, &out->seq) ||
        !get_int(header, "started", 0, INT64_MAX, &out->started_unix) ||
        !get_int(header, "wall_ns", 0, INT64_MAX, &out->wall_ns))
        return false;
    if (json_object_get(header, "error"))
        return get_text(header, "error", 0, out->error, sizeof out->error) && *out->error && left == 0;
    out->head = json_incref(json_object_get(header, "head"));
    return json_is_object(out->head) && read_parts(header, bytes, left, &out->packed);
}

mica_status mica_outcome_read(const void *data, size_t length, mica_outcome *out, mica_error *err)
{
    const uint8_t *bytes = data;
    json_t *header = NULL;
    memset(out, 0, sizeof *out);
    bool good = length >= MAGIC + 4 && memcmp(bytes, magic, MAGIC) == 0;
    size_t n = good ? mica_load_le32(bytes + MAGIC) : 0;
    good = good && n <= MAX_HEADER && n <= length - MAGIC - 4;
    if (good)
        header = mica_json_loadb((const char *)bytes + MAGIC + 4, n, JSON_REJECT_DUPLICATES, NULL);
    good = good && read_outcome(header, bytes + MAGIC + 4 + n, length - MAGIC - 4 - n, out);
    json_decref(header);
    if (good)
        return MICA_OK;
    mica_outcome_free(out);
    return bad("a result", err);
}

void mica_outcome_free(mica_outcome *outcome)
{
    json_decref(outcome->head);
    outcome->head = NULL;
}
