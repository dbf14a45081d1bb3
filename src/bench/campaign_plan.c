/* campaign_plan.c - from a manifest to items and shards, and the sums of what came of them. Pure functions. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/campaign.h"
#include "bench/sample_energy.h"

/* ---- Items ---- */

/* The remainder favours small numbers by at most 2^-40 for the weights and lengths that a manifest may have. */
static int32_t draw_length(const mica_length *l, mica_rng *rng)
{
    int64_t at = (int64_t)(mica_rng_next(rng) % (uint64_t)l->total);
    int32_t i = 0;
    while (at >= l->weight[i])
        at -= l->weight[i++];
    return l->low[i] + (int32_t)(mica_rng_next(rng) % (uint64_t)(l->high[i] - l->low[i] + 1));
}

mica_item mica_campaign_item(const mica_campaign *c, size_t n_prompts, int64_t index, int64_t left)
{
    mica_rng rng;
    uint64_t mixed = c->seed;
    mixed = mica_splitmix64(&mixed) ^ (uint64_t)index; /* near seeds must not share items, only shifted */
    mica_rng_seed(&rng, mixed);
    mica_item item = {.index = index, .prompt_n = draw_length(&c->prompt, &rng), .reply_n = draw_length(&c->reply, &rng)};
    item.prompt = mica_rng_next(&rng) % (n_prompts ? n_prompts : 1);
    if (item.prompt_n + 1 > left)
        item.prompt_n = (int32_t)(left - 1);
    if (item.prompt_n + item.reply_n > left)
        item.reply_n = (int32_t)(left - item.prompt_n);
    if (item.prompt_n + item.reply_n == left - 1)
        item.reply_n++;
    return item;
}

mica_status mica_item_text(const mica_item *item, const mica_prompts *prompts, size_t bytes, mica_buf *out, mica_error *err)
{
    mica_buf_printf(out, "%lld. ", (long long)item->index + 1);
    for (size_t i = (size_t)item->prompt % prompts->n; out->length < bytes && !out->failed; i = (i + 1) % prompts->n) {
        mica_buf_append(out, prompts->text[i], prompts->length[i]);
        mica_buf_puts(out, "\n\n");
    }
    return out->failed ? mica_fail_nomem(err, bytes, "a prompt") : MICA_OK;
}

/* ---- Shards ---- */

static void hash_number(crypto_hash_sha256_state *state, int64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    crypto_hash_sha256_update(state, bytes, sizeof bytes);
}

/* The campaign's id stands for the manifest (with the hash of the prompts) and the model. */
static void hash_input(mica_shard *s, const char *campaign_id)
{
    uint8_t digest[32];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const uint8_t *)campaign_id, strlen(campaign_id));
    hash_number(&state, s->seq);
    crypto_hash_sha256_state id = state;
    crypto_hash_sha256_final(&id, digest);
    sodium_bin2hex(s->id, sizeof s->id, digest, 16);
    for (int64_t i = 0; i < s->n_items; i++) {
        hash_number(&state, s->items[i].index);
        hash_number(&state, (int64_t)s->items[i].prompt);
        hash_number(&state, s->items[i].prompt_n);
        hash_number(&state, s->items[i].reply_n);
    }
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2hex(s->input, sizeof s->input, digest, sizeof digest);
}

static mica_status add_item(mica_shard *s, int64_t *capacity, const mica_item *item, mica_error *err)
{
    if (s->n_items == *capacity) {
        int64_t room = *capacity ? 2 * *capacity : 64;
        mica_item *grown = realloc(s->items, (size_t)room * sizeof *grown);
        if (!grown)
            return mica_fail_nomem(err, (size_t)room * sizeof *grown, "the items of a shard");
        s->items = grown;
        *capacity = room;
    }
    s->items[s->n_items++] = *item;
    s->tokens += item->prompt_n + item->reply_n;
    return MICA_OK;
}

mica_status mica_shard_cut(const mica_campaign *c, const char *campaign_id, size_t n_prompts, const mica_shard *begin,
                           int64_t target, mica_shard *out, mica_error *err)
{
    int64_t capacity = 0, wanted = begin->n_items > 0 ? begin->n_items : MICA_SHARD_MAX_ITEMS;
    mica_status status = MICA_OK;
    *out = (mica_shard){.seq = begin->seq, .first_item = begin->first_item, .before = begin->before};
    if (wanted > MICA_SHARD_MAX_ITEMS)
        return mica_fail(err, MICA_BAD_FILE, "a stored shard has %lld items; at most %d are possible", (long long)wanted,
                         MICA_SHARD_MAX_ITEMS);
    while (!status && out->n_items < wanted && (begin->n_items > 0 || out->n_items == 0 || out->tokens < target)) {
        int64_t left = c->tokens - out->before - out->tokens;
        if (left < 2)
            break;
        mica_item item = mica_campaign_item(c, n_prompts, out->first_item + out->n_items, left);
        /* Below the target, but not by more than it could be above it: shards end nearest to it. */
        if (begin->n_items == 0 && out->n_items > 0 && out->tokens + item.prompt_n + item.reply_n > target)
            break;
        status = add_item(out, &capacity, &item, err);
    }
    if (!status && out->n_items == 0)
        status = mica_fail(err, MICA_BAD_FILE, "there is no shard %lld of the campaign: all its tokens are given out",
                           (long long)out->seq);
    if (status)
        mica_shard_free(out);
    else
        hash_input(out, campaign_id);
    return status;
}

void mica_shard_free(mica_shard *shard)
{
    free(shard->items);
    shard->items = NULL;
}

/* ---- Results ---- */

static const char *const reasons[] = {"length", "eos", "context", "other"};

const char *mica_reason_name(mica_reason reason)
{
    return reasons[(unsigned)reason <= MICA_REASON_OTHER ? reason : MICA_REASON_OTHER];
}

mica_reason mica_reason_of(const char *word)
{
    for (int i = 0; i < MICA_REASON_OTHER; i++)
        if (strcmp(word, reasons[i]) == 0)
            return (mica_reason)i;
    return strcmp(word, "stop") == 0 ? MICA_REASON_EOS : MICA_REASON_OTHER;
}

mica_status mica_shard_result_init(const mica_shard *shard, mica_shard_result *out, mica_error *err)
{
    *out = (mica_shard_result){.n = (size_t)shard->n_items, .started_unix = (int64_t)time(NULL)};
    out->answers = mica_new_array(out->n, sizeof *out->answers);
    for (size_t i = 0; out->answers && i < out->n; i++) {
        out->answers[i].first = out->room;
        out->room += (size_t)shard->items[i].reply_n;
    }
    out->times = mica_new_array(out->room, sizeof *out->times);
    out->tokens = mica_new_array(out->room, sizeof *out->tokens);
    out->samples = json_array();
    if (out->answers && out->times && out->tokens && out->samples)
        return MICA_OK;
    mica_status status = mica_fail_nomem(err, out->room * 16, "the answers of a shard");
    mica_shard_result_free(out);
    return status;
}

void mica_shard_result_free(mica_shard_result *r)
{
    free(r->answers);
    free(r->times);
    free(r->tokens);
    json_decref(r->samples);
    *r = (mica_shard_result){.n = 0};
}

mica_shard_sums mica_shard_result_sum(const mica_shard_result *r)
{
    mica_shard_sums sums = {.joules = mica_samples_joules(r->samples)};
    for (size_t i = 0; i < r->n; i++) {
        sums.prompt_tokens += r->answers[i].prompt_n;
        sums.cached_tokens += r->answers[i].cached_n > 0 ? r->answers[i].cached_n : 0;
        sums.reply_tokens += r->answers[i].gen_n;
    }
    return sums;
}

double mica_samples_joules(const json_t *samples)
{
    mica_sample_energy e;
    mica_sample_energy_of(samples, INT64_MIN, INT64_MAX, &e);
    return e.joules;
}
