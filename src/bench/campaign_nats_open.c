#include "bench/campaign_nats_open.h"

#include <stdlib.h>
#include <string.h>

static double rate_of(const mica_shard_row *row)
{
    return (double)(row->sums.prompt_tokens + row->sums.reply_tokens) / (double)row->wall_ns;
}

static void remember(mica_open_shards *o, const mica_shard_row *row)
{
    if (row->wall_ns <= 0)
        return;
    mica_shard_row *kept = &o->recent[o->n_recent++ % MICA_RECENT_SHARDS];
    *kept = *row;
    kept->head = NULL;
    kept->shard.items = NULL;
}

const mica_shard_row *mica_open_shards_slowest(const mica_open_shards *o)
{
    const mica_shard_row *slowest = NULL;
    for (size_t i = 0; i < o->n_recent && i < MICA_RECENT_SHARDS; i++)
        if (!slowest || rate_of(&o->recent[i]) < rate_of(slowest))
            slowest = &o->recent[i];
    return slowest;
}

static mica_status append(mica_open_shards *o, const mica_shard *shard, bool before, mica_error *err)
{
    if (o->n == o->capacity) {
        size_t room = o->capacity ? 2 * o->capacity : 256;
        mica_open_shard *grown = realloc(o->item, room * sizeof *grown);
        if (!grown)
            return mica_fail_nomem(err, room * sizeof *grown, "the shards of a campaign");
        o->item = grown;
        o->capacity = room;
    }
    o->item[o->n] = (mica_open_shard){.shard = *shard, .before = before};
    o->item[o->n++].shard.items = NULL;
    return MICA_OK;
}

static void move_end(mica_open_shards *o, const mica_shard *s)
{
    o->end = (mica_shard){.seq = s->seq + 1, .first_item = s->first_item + s->n_items, .before = s->before + s->tokens};
}

mica_status mica_open_shards_add(mica_open_shards *o, const mica_shard *shard, mica_error *err)
{
    mica_status status = append(o, shard, false, err);
    if (!status)
        move_end(o, shard);
    return status;
}

static mica_status read_row(void *user, const mica_shard_row *row, mica_error *err)
{
    mica_open_shards *o = user;
    move_end(o, &row->shard);
    if (!row->done)
        return append(o, &row->shard, true, err);
    o->done_tokens += row->shard.tokens;
    remember(o, row);
    return MICA_OK;
}

mica_status mica_open_shards_read(mica_store *store, const char *campaign_id, mica_open_shards *out, mica_error *err)
{
    memset(out, 0, sizeof *out);
    return mica_campaign_store_shards(store, campaign_id, read_row, out, err);
}

void mica_open_shards_free(mica_open_shards *o)
{
    free(o->item);
    o->item = NULL;
    o->n = o->capacity = 0;
}

mica_open_shard *mica_open_shards_find(mica_open_shards *o, int64_t seq)
{
    size_t low = 0, high = o->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->item[middle].shard.seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < o->n && o->item[low].shard.seq == seq ? &o->item[low] : NULL;
}

void mica_open_shards_remove(mica_open_shards *o, mica_open_shard *shard, const mica_shard_row *row)
{
    size_t at = (size_t)(shard - o->item);
    o->done_tokens += shard->shard.tokens;
    remember(o, row);
    memmove(shard, shard + 1, (o->n - at - 1) * sizeof *shard);
    o->n--;
}
