#include "bench/wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* ---- Requests ---- */

json_t *mica_wire_hello(int64_t id)
{
    char harness[32];
    snprintf(harness, sizeof harness, "mica %s", mica_version());
    return json_pack("{s:s, s:I, s:i, s:s}", "op", "hello", "id", (json_int_t)id, "protocol", MICA_ADAPTER_PROTOCOL, "harness",
                     harness);
}

json_t *mica_wire_load(int64_t id, const mica_adapter_load_request *request)
{
    return json_pack("{s:s, s:I, s:s, s:s, s:i, s:i}", "op", "load", "id", (json_int_t)id, "model", request->model, "backend",
                     request->backend, "n_ctx", (int)request->n_ctx, "threads", (int)request->threads);
}

json_t *mica_wire_plain(int64_t id, const char *op)
{
    return json_pack("{s:s, s:I}", "op", op, "id", (json_int_t)id);
}

static json_t *pack_prompt(const mica_adapter_request *q)
{
    if (!q->tokens)
        return q->prompt_n > 0 ? json_pack("{s:s%, s:i}", "text", q->text, q->text_length, "n", (int)q->prompt_n)
                               : json_pack("{s:s%}", "text", q->text, q->text_length);
    json_t *ids = json_array();
    for (int32_t i = 0; i < q->prompt_n; i++)
        mica_json_add(&ids, json_integer(q->tokens[i]));
    return json_pack("{s:o}", "tokens", ids);
}

json_t *mica_wire_generate(int64_t id, const mica_adapter_request *q)
{
    json_t *sampling = q->greedy ? json_pack("{s:b}", "greedy", 1)
                                 : json_pack("{s:f, s:i, s:f, s:I}", "temperature", q->temperature, "top_k", (int)q->top_k,
                                             "top_p", q->top_p, "seed", (json_int_t)q->seed);
    return json_pack("{s:s, s:I, s:o, s:i, s:o, s:b}", "op", "generate", "id", (json_int_t)id, "prompt", pack_prompt(q), "n",
                     (int)q->n, "sampling", sampling, "ignore_eos", (int)q->ignore_eos);
}

/* ---- Members ---- */

static bool wrong(char what[80], const char *member, const char *wanted)
{
    snprintf(what, 80, "\"%.30s\" is not %.36s", member, wanted);
    return false;
}

/* A text of 1 to size - 1 bytes; "" for null where that is allowed. */
static bool get_text(const json_t *event, const char *member, char *out, size_t size, bool may_be_null, char what[80])
{
    const json_t *value = json_object_get(event, member);
    *out = '\0';
    if (may_be_null && (!value || json_is_null(value)))
        return true;
    if (!json_is_string(value) || json_string_length(value) == 0 || json_string_length(value) >= size ||
        strlen(json_string_value(value)) != json_string_length(value))
        return wrong(what, member, "a text of the length allowed");
    snprintf(out, size, "%s", json_string_value(value));
    for (char *c = out; *c; c++) /* goes to terminals */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return true;
}

static bool get_int(const json_t *event, const char *member, int64_t low, int64_t high, int64_t *out, char what[80])
{
    const json_t *value = json_object_get(event, member);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return wrong(what, member, "a whole number in its range");
    *out = json_integer_value(value);
    return true;
}

/* The same, or null (or absent), which is `none`. */
static bool get_int_or_null(const json_t *event, const char *member, int64_t low, int64_t high, int64_t none, int64_t *out,
                            char what[80])
{
    const json_t *value = json_object_get(event, member);
    *out = none;
    return !value || json_is_null(value) || get_int(event, member, low, high, out, what);
}

static bool get_bool(const json_t *event, const char *member, bool *out, char what[80])
{
    const json_t *value = json_object_get(event, member);
    if (!json_is_boolean(value))
        return wrong(what, member, "true or false");
    *out = json_is_true(value);
    return true;
}

static bool has_word(const json_t *array, const char *word)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (text && strcmp(text, word) == 0)
            return true;
    }
    return false;
}

static bool get_choice(const json_t *event, const char *member, const char *first, const char *second, bool *is_second,
                       char what[80])
{
    const char *text = json_string_value(json_object_get(event, member));
    *is_second = text && strcmp(text, second) == 0;
    return (text && strcmp(text, first) == 0) || *is_second || wrong(what, member, "one of the words of the protocol");
}

/* ---- Events ---- */

static bool read_labels(const json_t *labels, char *out, size_t size, char what[80])
{
    *out = '\0';
    if (labels && !json_is_array(labels))
        return wrong(what, "labels", "a list of texts");
    for (size_t i = 0, at = 0; i < json_array_size(labels); i++) {
        char label[256];
        json_t *one = json_pack("{s:O}", "label", json_array_get(labels, i));
        bool good = get_text(one, "label", label, sizeof label, false, what);
        json_decref(one);
        if (!good)
            return false;
        int n = snprintf(out + at, size - at, "%s%s", i ? "; " : "", label);
        if (n < 0 || (size_t)n >= size - at)
            return wrong(what, "labels", "short enough");
        at += (size_t)n;
    }
    return true;
}

bool mica_wire_read_hello(const json_t *event, mica_adapter_hello *out, char what[80])
{
    int64_t protocol;
    bool chunk;
    const json_t *prompts = json_object_get(event, "prompts");
    if (!get_int(event, "protocol", MICA_ADAPTER_PROTOCOL, MICA_ADAPTER_PROTOCOL, &protocol, what) ||
        !get_text(event, "adapter", out->adapter, sizeof out->adapter, false, what) ||
        !get_text(event, "runtime", out->runtime, sizeof out->runtime, false, what) ||
        !get_text(event, "runtime_version", out->version, sizeof out->version, false, what) ||
        !get_choice(event, "clock", "monotonic", "other", &out->other_clock, what) ||
        !get_choice(event, "token_events", "exact", "chunk", &chunk, what) ||
        !get_bool(event, "cancel", &out->can_cancel, what) || !get_bool(event, "seed", &out->can_seed, what) ||
        !read_labels(json_object_get(event, "labels"), out->labels, sizeof out->labels, what))
        return false;
    out->exact = !chunk;
    out->takes_tokens = has_word(prompts, "tokens");
    out->takes_text = has_word(prompts, "text");
    return out->takes_tokens || out->takes_text || wrong(what, "prompts", "a list with tokens or text");
}

bool mica_wire_read_loaded(const json_t *event, mica_adapter_loaded *out, char what[80])
{
    int64_t context, threads;
    const json_t *bits = json_object_get(event, "bits_per_weight");
    if (!get_text(event, "backend", out->backend, sizeof out->backend, false, what) ||
        !get_text(event, "device", out->device, sizeof out->device, true, what) ||
        !get_text(event, "kv_type", out->kv_type, sizeof out->kv_type, true, what) ||
        !get_text(event, "file", out->file, sizeof out->file, true, what) ||
        !get_int_or_null(event, "file_bytes", 0, INT64_MAX, -1, &out->file_bytes, what) ||
        !get_int_or_null(event, "weight_bytes", 0, INT64_MAX, -1, &out->weight_bytes, what) ||
        !get_int(event, "context_limit", 1, INT32_MAX, &context, what) ||
        !get_int_or_null(event, "threads", 0, 100000, 0, &threads, what) ||
        !get_int_or_null(event, "pid", 1, INT32_MAX, -1, &out->pid, what) ||
        !get_int(event, "start_ns", 0, INT64_MAX, &out->start_ns, what) ||
        !get_int(event, "end_ns", 0, INT64_MAX, &out->end_ns, what))
        return false;
    if (bits && !json_is_null(bits) &&
        !(json_is_number(bits) && json_number_value(bits) > 0.0 && json_number_value(bits) <= 64.0))
        return wrong(what, "bits_per_weight", "a number up to 64");
    out->bits_per_weight = json_is_number(bits) ? json_number_value(bits) : NAN;
    out->context_limit = (int32_t)context;
    out->threads = (int32_t)threads;
    return true;
}

bool mica_wire_read_partition(const json_t *event, mica_adapter_partition *out, char what[80])
{
    if (!get_bool(event, "known", &out->known, what))
        return false;
    const json_t *note = json_object_get(event, "note");
    if (note && json_is_string(note) && json_string_length(note) > 0 &&
        !get_text(event, "note", out->note, sizeof out->note, true, what))
        return false;
    if (!out->known)
        return true;
    if (!get_text(event, "unit", out->unit, sizeof out->unit, false, what) ||
        !get_int(event, "total", 0, INT32_MAX, &out->total, what) ||
        !get_int(event, "fallback", 0, out->total, &out->fallback, what))
        return false;
    json_t *parts = json_object_get(event, "parts");
    if (!json_is_array(parts) || json_array_size(parts) > 10000)
        return wrong(what, "parts", "a list");
    out->parts = json_incref(parts);
    return true;
}

bool mica_wire_read_time(const json_t *event, int64_t *t_ns, char what[80])
{
    return get_int(event, "t_ns", 0, INT64_MAX, t_ns, what);
}

bool mica_wire_read_token(const json_t *event, int32_t *token, int64_t *t_ns, char what[80])
{
    int64_t id;
    if (!get_int(event, "token", -1, INT32_MAX, &id, what) || !mica_wire_read_time(event, t_ns, what))
        return false;
    *token = (int32_t)id;
    return true;
}

bool mica_wire_read_done(const json_t *event, mica_adapter_reply *reply, char what[80])
{
    static const char *const reasons[] = {"length", "eos", "context", "cancelled"};
    if (!mica_wire_read_time(event, &reply->done_ns, what) ||
        !get_text(event, "reason", reply->reason, sizeof reply->reason, false, what) ||
        !get_int(event, "prompt_n", 0, INT32_MAX, &reply->prompt_n, what) ||
        !get_int_or_null(event, "cached_n", 0, INT32_MAX, -1, &reply->cached_n, what) ||
        !get_int(event, "gen_n", 0, INT32_MAX, &reply->gen_n, what))
        return false;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reply->reason, reasons[i]) == 0)
            return true;
    return wrong(what, "reason", "one of the words of the protocol");
}
