/* libFuzzer target: the files that people write for mica-ops and the router, each reader with the same bytes: a campaign's
 * manifest, its prompts, limits for CI, a protocol, a table of prices. What is taken is used a little. */
#include "base/sha256.h"
#include "bench/campaign.h"
#include "bench/json_file.h"
#include "bench/protocol.h"
#include "bench/slo.h"
#include "fuzz_util.h"
#include "mica/mica_ops.h"

static void check_shard(const mica_campaign *c)
{
    mica_shard begin = {.seq = 0}, shard;
    mica_error err = {0};
    char id[65];
    if (mica_campaign_id(c, "0", id, &err) || strlen(id) != 64)
        abort();
    mica_status status = mica_shard_cut(c, id, 5, &begin, c->tokens < 10000 ? c->tokens : 10000, &shard, &err);
    fuzz_check(status, &err, !status);
    if (status)
        return;
    for (int64_t i = 0; i < shard.n_items; i++) {
        const mica_item *item = &shard.items[i];
        if (item->prompt_n < 1 || item->reply_n < 1 || item->prompt_n + (int64_t)item->reply_n > c->n_ctx || item->prompt >= 5)
            abort();
    }
    if (shard.n_items < 1 || shard.tokens > c->tokens)
        abort();
    mica_shard_free(&shard);
}

static void check_campaign(const char *text, size_t size)
{
    mica_campaign c;
    mica_error err = {0};
    mica_status status = mica_campaign_read(text, size, &c, &err);
    fuzz_check(status, &err, !status);
    if (status)
        return;
    check_shard(&c);
    mica_campaign_free(&c);
}

static void check_limits(const char *text, size_t size)
{
    json_t *slo, *broken = json_array(), *said, *summary = json_pack("{s:f, s:n}", "steady_tps", 20.0, "ttft_512_p95_ms");
    mica_error err = {0};
    size_t i;
    mica_status status = mica_json_read("the limits", text, size, &slo, &err);
    fuzz_check(status, &err, !status);
    if (!status) {
        status = mica_slo_check(slo, &err);
        fuzz_check(status, &err, !status);
        if (!status && mica_slo_judge(slo, summary, broken) != (json_array_size(broken) == 0))
            abort();
        json_array_foreach(broken, i, said) fuzz_check_text(json_string_value(said));
        json_decref(slo);
    }
    json_decref(summary);
    json_decref(broken);
}

static void check_prompts(const char *text, size_t size)
{
    mica_prompts prompts;
    mica_sha256 h;
    mica_error err = {0};
    char hash[MICA_SHA256_TEXT];
    mica_sha256_start(&h);
    mica_sha256_add(&h, text, size);
    mica_sha256_text(&h, hash);
    mica_status status = mica_prompts_read(text, size, "fuzz", hash, &prompts, &err);
    fuzz_check(status, &err, !status);
    if (!status)
        mica_prompts_free(&prompts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    mica_protocol protocol;
    mica_prices *prices = NULL;
    mica_error err = {0};
    check_campaign(text, size);
    check_limits(text, size);
    check_prompts(text, size);
    mica_status status = mica_protocol_read(text, size, &protocol, &err);
    fuzz_check(status, &err, !status);
    if (!status) {
        mica_protocol_sustained(&protocol, NULL);
        mica_protocol_free(&protocol);
    }
    status = mica_prices_read(text, size, &prices, &err);
    fuzz_check(status, &err, prices != NULL);
    mica_free(prices);
    return 0;
}
