#include <limits.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/campaign.h"
#include "base/json.h"
#include "bench/json_file.h"

#define MAX_SEED ((int64_t)1 << 53) /* what every JSON reader keeps */
enum { MAX_CTX = 1 << 20, MAX_BATCH = 256, MAX_WEIGHT = 1000000 };

/* The reader of one object: the first fault is told, and ends it. */
typedef struct reader {
    const json_t *object;
    const char *where; /* "", "prompts: " */
    mica_error *err;
    mica_status status;
} reader;

static void refuse(reader *r, const char *name, const char *what)
{
    if (!r->status)
        r->status = mica_fail(r->err, MICA_BAD_TEXT, "the campaign's manifest: %s\"%.60s\" %s", r->where, name, what);
}

static void only_known(reader *r, const char *const *names)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)r->object, key, value)
    {
        size_t i = 0;
        while (names[i] && strcmp(names[i], key) != 0)
            i++;
        if (!names[i])
            refuse(r, key, "is no member that is known");
    }
}

/* `low` 1: the text must be there and not empty. */
static void read_text(reader *r, const char *name, size_t low, char *out, size_t size)
{
    const json_t *value = json_object_get(r->object, name);
    const char *text = json_string_value(value);
    char what[80];
    if (!value && low == 0)
        return;
    snprintf(what, sizeof what, "must be a text of %zu to %zu bytes", low, size - 1);
    if (!text || strlen(text) < low || strlen(text) >= size || strlen(text) != json_string_length(value))
        refuse(r, name, what);
    else
        snprintf(out, size, "%s", text);
}

static void read_int(reader *r, const char *name, int64_t low, int64_t high, bool needed, int64_t *out)
{
    const json_t *value = json_object_get(r->object, name);
    char what[100];
    if (!value && !needed)
        return;
    snprintf(what, sizeof what, "must be a whole number from %lld to %lld", (long long)low, (long long)high);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        refuse(r, name, what);
    else
        *out = json_integer_value(value);
}

static void read_real(reader *r, const char *name, double low, double high, double *out)
{
    const json_t *value = json_object_get(r->object, name);
    char what[100];
    if (!value)
        return;
    snprintf(what, sizeof what, "must be a number from %g to %g", low, high);
    if (!json_is_number(value) || !(json_number_value(value) >= low && json_number_value(value) <= high))
        refuse(r, name, what);
    else
        *out = json_number_value(value);
}

static void read_sha256(reader *r, bool needed, char out[65])
{
    read_text(r, "sha256", needed ? 64 : 0, out, 65);
    if (*out && strspn(out, "0123456789abcdef") != 64)
        refuse(r, "sha256", "must be 64 hexadecimal digits in lower case");
}

static const json_t *object_of(reader *r, const char *name, bool needed)
{
    const json_t *value = json_object_get(r->object, name);
    if ((value || needed) && !json_is_object(value))
        refuse(r, name, "must be an object");
    return json_is_object(value) ? value : NULL;
}

/* ---- Lengths ---- */

static void read_choice(reader *r, const json_t *value, mica_length *out)
{
    static const char *const names[] = {"tokens", "min", "max", "weight", NULL};
    reader c = {.object = value, .where = r->where, .err = r->err, .status = r->status};
    int64_t low = 0, high = 0, weight = 1;
    if (!json_is_object(value)) {
        refuse(r, "choices", "must be objects with \"tokens\", or \"min\" and \"max\"");
        return;
    }
    only_known(&c, names);
    if (json_object_get(value, "tokens")) {
        read_int(&c, "tokens", 1, MAX_CTX, true, &low);
        high = low;
        if (json_object_get(value, "min") || json_object_get(value, "max"))
            refuse(&c, "tokens", "does not go with \"min\" and \"max\"");
    } else {
        read_int(&c, "min", 1, MAX_CTX, true, &low);
        read_int(&c, "max", low > 1 ? low : 1, MAX_CTX, true, &high);
    }
    read_int(&c, "weight", 1, MAX_WEIGHT, false, &weight);
    r->status = c.status;
    out->low[out->n] = (int32_t)low;
    out->high[out->n] = (int32_t)high;
    out->weight[out->n++] = weight;
    out->total += weight;
    out->longest = high > out->longest ? (int32_t)high : out->longest;
}

/* An object {"tokens": 128}, {"min": 16, "max": 256}, or an array of such with weights. */
static void read_length(reader *r, const char *name, mica_length *out)
{
    const json_t *value = json_object_get(r->object, name);
    size_t n = json_array_size(value);
    reader inner = *r;
    inner.where = strcmp(name, "prompt") == 0 ? "lengths, prompt: " : "lengths, reply: ";
    if (json_is_array(value) && n >= 1 && n <= MICA_LENGTH_CHOICES) {
        for (size_t i = 0; i < n; i++)
            read_choice(&inner, json_array_get(value, i), out);
    } else if (json_is_object(value)) {
        read_choice(&inner, value, out);
    } else {
        refuse(r, name, "must be an object with \"tokens\", or \"min\" and \"max\", or an array of 1 to 64 of them");
        return;
    }
    r->status = inner.status;
}

/* ---- The whole ---- */

static void read_model(reader *r, mica_campaign *out)
{
    static const char *const names[] = {"file", "sha256", NULL};
    reader m = {.object = object_of(r, "model", true), .where = "model: ", .err = r->err, .status = r->status};
    if (!m.object)
        return;
    only_known(&m, names);
    read_text(&m, "file", 1, out->model, sizeof out->model);
    read_sha256(&m, false, out->model_sha256);
    r->status = m.status;
}

static void read_prompts(reader *r, mica_campaign *out)
{
    static const char *const names[] = {"file", "sha256", NULL};
    reader p = {.object = object_of(r, "prompts", true), .where = "prompts: ", .err = r->err, .status = r->status};
    if (!p.object)
        return;
    only_known(&p, names);
    read_text(&p, "file", 1, out->prompts, sizeof out->prompts);
    read_sha256(&p, true, out->prompts_sha256);
    r->status = p.status;
}

static void read_lengths(reader *r, mica_campaign *out)
{
    static const char *const names[] = {"prompt", "reply", NULL};
    reader l = {.object = object_of(r, "lengths", true), .where = "lengths: ", .err = r->err, .status = r->status};
    if (!l.object)
        return;
    only_known(&l, names);
    read_length(&l, "prompt", &out->prompt);
    read_length(&l, "reply", &out->reply);
    r->status = l.status;
}

static void read_sampling(reader *r, mica_campaign *out)
{
    static const char *const names[] = {"temperature", "top_k", "top_p", NULL};
    reader s = {.object = object_of(r, "sampling", false), .where = "sampling: ", .err = r->err, .status = r->status};
    int64_t top_k = 40;
    out->greedy = !s.object;
    out->temperature = 0.8;
    out->top_p = 0.95;
    if (!s.object)
        return;
    only_known(&s, names);
    read_real(&s, "temperature", 0.01, 100, &out->temperature);
    read_real(&s, "top_p", 0.01, 1, &out->top_p);
    read_int(&s, "top_k", 0, INT32_MAX, false, &top_k);
    out->top_k = (int32_t)top_k;
    r->status = s.status;
}

static void read_shards(reader *r, mica_campaign *out)
{
    static const char *const names[] = {"seconds", "tokens", NULL};
    reader s = {.object = object_of(r, "shards", false), .where = "shards: ", .err = r->err, .status = r->status};
    out->shard_s = 300;
    if (!s.object)
        return;
    only_known(&s, names);
    read_real(&s, "seconds", 0.1, MICA_SHARD_MAX_S, &out->shard_s);
    read_int(&s, "tokens", 2, MICA_CAMPAIGN_TOKENS, false, &out->shard_tokens);
    r->status = s.status;
}

static void read_numbers(reader *r, mica_campaign *out)
{
    int64_t n_ctx = 1024, batch = 8, seed = 1;
    const json_t *ignore = json_object_get(r->object, "ignore_eos");
    char what[100];
    read_int(r, "n_ctx", 16, MAX_CTX, false, &n_ctx);
    read_int(r, "batch", 1, MAX_BATCH, false, &batch);
    read_int(r, "seed", 0, MAX_SEED, false, &seed);
    read_int(r, "tokens", 2, MICA_CAMPAIGN_TOKENS, true, &out->tokens);
    if (ignore && !json_is_boolean(ignore))
        refuse(r, "ignore_eos", "must be true or false");
    out->ignore_eos = !json_is_false(ignore);
    out->n_ctx = (int32_t)n_ctx;
    out->batch = (int32_t)batch;
    out->seed = (uint64_t)seed;
    /* An item may get a token more than it drew, so that no single one is left at the end. */
    snprintf(what, sizeof what, "is %d, but the longest prompt and reply with one token more need %lld", out->n_ctx,
             (long long)out->prompt.longest + out->reply.longest + 1);
    if (!r->status && (int64_t)out->prompt.longest + out->reply.longest + 1 > n_ctx)
        refuse(r, "n_ctx", what);
}

static void read_members(reader *r, mica_campaign *out)
{
    static const char *const names[] = {"version", "name",    "description", "model", "runtime",  "backend",
                                        "prompts", "lengths", "n_ctx",       "batch", "sampling", "ignore_eos",
                                        "seed",    "tokens",  "shards",      NULL};
    int64_t version;
    read_int(r, "version", 1, 1, true, &version); /* first: a later version may have members that are not known here */
    only_known(r, names);
    snprintf(out->runtime, sizeof out->runtime, "mica");
    snprintf(out->backend, sizeof out->backend, "default");
    read_text(r, "name", 1, out->name, sizeof out->name);
    read_text(r, "description", 0, out->description, sizeof out->description);
    read_text(r, "runtime", 0, out->runtime, sizeof out->runtime);
    read_text(r, "backend", 0, out->backend, sizeof out->backend);
    if (!*out->runtime)
        refuse(r, "runtime", "must not be empty");
    if (strcmp(out->backend, "default") != 0 && strcmp(out->backend, "cpu") != 0 && strcmp(out->backend, "gpu") != 0 &&
        strcmp(out->backend, "npu") != 0)
        refuse(r, "backend", "must be default, cpu, gpu or npu");
    read_model(r, out);
    read_prompts(r, out);
    read_lengths(r, out);
    read_sampling(r, out);
    read_shards(r, out);
    read_numbers(r, out);
}

/* Takes the object over. */
static mica_status take(json_t *root, mica_campaign *out, mica_error *err)
{
    reader r = {.object = root, .where = "", .err = err, .status = MICA_OK};
    read_members(&r, out);
    out->source = root;
    if (r.status)
        mica_campaign_free(out);
    return r.status;
}

mica_status mica_campaign_read(const char *json, size_t length, mica_campaign *out, mica_error *err)
{
    json_t *root;
    memset(out, 0, sizeof *out);
    mica_status status = mica_json_read("the campaign's manifest", json, length, &root, err);
    return status ? status : take(root, out, err);
}

mica_status mica_campaign_open(const char *path, mica_campaign *out, mica_error *err)
{
    json_t *root;
    memset(out, 0, sizeof *out);
    mica_status status = mica_json_open("the campaign's manifest", path, &root, err);
    return status ? status : take(root, out, err);
}

void mica_campaign_free(mica_campaign *c)
{
    json_decref(c->source);
    c->source = NULL;
}

mica_status mica_campaign_id(const mica_campaign *c, const char *model_sha256, char out[65], mica_error *err)
{
    uint8_t digest[32];
    crypto_hash_sha256_state state;
    char *text = mica_json_dumps(c->source, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return mica_fail_nomem(err, 0, "a campaign's manifest");
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const uint8_t *)text, strlen(text) + 1);
    crypto_hash_sha256_update(&state, (const uint8_t *)model_sha256, strlen(model_sha256));
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(out, 65, digest, sizeof digest);
    free(text);
    return MICA_OK;
}
