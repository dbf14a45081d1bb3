/* campaign.h - a workload as data: what a manifest says, the prompts, and the items that follow from both.
 *
 * Invariants:
 *  1. Item i is a function of the manifest, the number of prompts, i, and the tokens that are left when its turn comes:
 * integers only, so that it is the same on every machine and whoever computes it.
 *  2. The planned tokens of all items together are exactly the manifest's `tokens`.
 *  3. A campaign's id is the SHA-256 of what decides its results: the manifest and the model's bytes. The same manifest with
 *     another model, or one number changed, is another campaign.
 * Called by campaign_run.c and programs/cmd_campaign.c; docs/campaign.md explains the members. */
#ifndef MICA_BENCH_CAMPAIGN_H
#define MICA_BENCH_CAMPAIGN_H
#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

enum { MICA_LENGTH_CHOICES = 64 };
#define MICA_SHARD_MAX_S     600.0              /* a shard is what a crash may cost */
#define MICA_SHARD_MAX_ITEMS 65536              /* of one shard */
#define MICA_CAMPAIGN_TOKENS ((int64_t)1 << 50) /* the most of a campaign: sums of it never overflow */

/** How long prompts or replies are, in tokens. */
typedef struct mica_length {
    int32_t n;                                                   /* choices; 1: always the same */
    int32_t low[MICA_LENGTH_CHOICES], high[MICA_LENGTH_CHOICES]; /* uniform between both */
    int64_t weight[MICA_LENGTH_CHOICES], total;
    int32_t longest;
} mica_length;

typedef struct mica_campaign {
    char name[64], description[400];
    char model[1024], model_sha256[65]; /* sha256 "": any */
    char runtime[256], backend[16];
    char prompts[1024], prompts_sha256[65];
    mica_length prompt, reply;
    int32_t n_ctx, batch; /* batch: replies at a time, of the runtime "mica" */
    bool ignore_eos, greedy;
    double temperature, top_p;
    int32_t top_k;
    uint64_t seed;
    int64_t tokens;       /* of the whole campaign: prompts and replies together */
    int64_t shard_tokens; /* 0: from the measured rate */
    double shard_s;       /* what a shard should take at most */
    json_t *source;       /* as it was read */
} mica_campaign;

/** Reads JSON text. MICA_BAD_TEXT says what is wrong in it. */
mica_status mica_campaign_read(const char *json, size_t length, mica_campaign *out, mica_error *err);
mica_status mica_campaign_open(const char *path, mica_campaign *out, mica_error *err);
void mica_campaign_free(mica_campaign *c);

/** SHA-256 of a model's file. Of a folder, as some runtimes have them: of its files' names and hashes, in the order of names;
 * folders in it are refused, hidden files left out. `stop` (may be NULL) ends it with MICA_CANCELLED. */
mica_status mica_campaign_model_sha256(const char *path, bool (*stop)(void *user), void *user, char out[65], mica_error *err);

/** 64 hexadecimal digits. */
mica_status mica_campaign_id(const mica_campaign *c, const char *model_sha256, char out[65], mica_error *err);

/* ---- Prompts ---- */

/** Texts of a JSONL file, each line an object with "text" or "prompt". */
typedef struct mica_prompts {
    size_t n, capacity;
    char **text;
    size_t *length;
} mica_prompts;

#define MICA_PROMPTS_MAX ((size_t)256 << 20) /* bytes of a prompt file */

/** From a file, or from its bytes. MICA_BAD_FILE: it is another file than `sha256` says. */
mica_status mica_prompts_read(const char *data, size_t length, const char *name, const char *sha256, mica_prompts *out,
                              mica_error *err);
mica_status mica_prompts_open(const char *path, const char *sha256, mica_prompts *out, mica_error *err);
void mica_prompts_free(mica_prompts *p);

/* ---- Items and shards ---- */

/** One request. */
typedef struct mica_item {
    int64_t index;
    uint64_t prompt;           /* the text that it begins with; it goes on with those that follow */
    int32_t prompt_n, reply_n; /* tokens */
} mica_item;

/** Item `index` when `left` tokens (2 at least) are not given out yet: at most that long, and never one token is left over. */
mica_item mica_campaign_item(const mica_campaign *c, size_t n_prompts, int64_t index, int64_t left);

/** At least `bytes` bytes of the item's text, appended. It begins with the item's number, so that no prefix cache knows it. */
mica_status mica_item_text(const mica_item *item, const mica_prompts *prompts, size_t bytes, mica_buf *out, mica_error *err);

/** A piece of a campaign that is done or lost as a whole. */
typedef struct mica_shard {
    int64_t seq, first_item, before; /* before: planned tokens of all shards in front of it */
    int64_t n_items, tokens;         /* planned */
    char id[33];                     /* of the campaign and seq */
    char input[65];                  /* SHA-256 of all that decides its results */
    mica_item *items;
} mica_shard;

/** The shard that begins there: items until `target` tokens are reached, one at least. If `n_items` is above 0, exactly that
 * many. Its items are freed by mica_shard_free(). */
mica_status mica_shard_cut(const mica_campaign *c, const char *campaign_id, size_t n_prompts, const mica_shard *begin,
                           int64_t target, mica_shard *out, mica_error *err);
void mica_shard_free(mica_shard *shard);

/* ---- Answers ---- */

typedef enum mica_reason {
    MICA_REASON_LENGTH = 0,
    MICA_REASON_EOS = 1,
    MICA_REASON_CONTEXT = 2,
    MICA_REASON_OTHER = 3
} mica_reason;

/** Static. */
const char *mica_reason_name(mica_reason reason);
mica_reason mica_reason_of(const char *word);

/** What came of an item. Its events are times[first .. first + n) of the result. */
typedef struct mica_answer {
    int64_t started_ns, done_ns;
    int64_t prompt_n, cached_n, gen_n; /* cached_n -1: not counted */
    mica_reason reason;
    size_t first, n;
} mica_answer;

/** What came of a shard. Room for every item's reply is there from the beginning: a step allocates nothing. */
typedef struct mica_shard_result {
    size_t n;
    mica_answer *answers;
    int64_t *times, *tokens; /* tokens -1: not told */
    size_t room;
    json_t *samples;
    int64_t started_unix, wall_ns;
} mica_shard_result;

mica_status mica_shard_result_init(const mica_shard *shard, mica_shard_result *out, mica_error *err);
void mica_shard_result_free(mica_shard_result *r);

/** Sums over a result. */
typedef struct mica_shard_sums {
    int64_t prompt_tokens, cached_tokens, reply_tokens;
    double joules; /* NAN: no source */
} mica_shard_sums;

mica_shard_sums mica_shard_result_sum(const mica_shard_result *r);

/** Joules between the first and the last sample; NAN without counters. */
double mica_samples_joules(const json_t *samples);

#endif
