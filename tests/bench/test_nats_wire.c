/* What coordinator and workers say to one another, without a server: every message comes back as it was sent, and of any damage
 * nothing but an error comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "bench/campaign_nats_open.h"
#include "bench/campaign_nats_wire.h"

#define SHA "6ad61b572bd8faac5ae1faf4aeff090a491547e7fa0f3cd0aa0569e69b5471f9"

static const char manifest[] =
    "{\"version\": 1, \"name\": \"t\", \"model\": {\"file\": \"m.gguf\"}, \"prompts\": {\"file\": \"p\", \"sha256\": \"" SHA
    "\"}, \"lengths\": {\"prompt\": {\"min\": 3, \"max\": 9}, \"reply\": {\"tokens\": 5}}, \"tokens\": 500}";

/* ---- Campaigns ---- */

static void test_notice(void **state)
{
    (void)state;
    mica_notice sent = {.model_sha256 = SHA, .ack_wait_s = 2.5, .prompts = {.sha256 = SHA, .bytes = 1000, .parts = 3}}, got;
    mica_error err;
    char *text;
    assert_int_equal(mica_campaign_read(manifest, strlen(manifest), &sent.campaign, &err), MICA_OK);
    assert_int_equal(mica_campaign_id(&sent.campaign, SHA, sent.id, &err), MICA_OK);
    assert_int_equal(mica_notice_write(&sent, sent.campaign.source, &text, &err), MICA_OK);
    assert_int_equal(mica_notice_read(text, strlen(text), &got, &err), MICA_OK);
    assert_string_equal(got.id, sent.id);
    assert_string_equal(got.model_sha256, SHA);
    assert_true(got.ack_wait_s == 2.5);
    assert_int_equal(got.prompts.bytes, 1000);
    assert_int_equal(got.prompts.parts, 3);
    assert_int_equal(got.campaign.tokens, 500);
    mica_notice_free(&got);

    /* Another manifest, or another model, under this id. */
    char *tokens = strstr(text, "\"tokens\":500");
    assert_non_null(tokens);
    tokens[9] = '6';
    assert_int_equal(mica_notice_read(text, strlen(text), &got, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "whose manifest is that of"));
    for (size_t n = 0; n < strlen(text); n++)
        assert_int_not_equal(mica_notice_read(text, n, &got, &err), MICA_OK);
    free(text);
    mica_notice_free(&sent);
}

/* ---- Shards ---- */

static void test_work(void **state)
{
    (void)state;
    mica_shard sent = {.seq = 7, .first_item = 100, .n_items = 12, .before = 900, .tokens = 130, .input = SHA}, got;
    mica_error err;
    char *text;
    memcpy(sent.id, SHA, 32);
    assert_int_equal(mica_work_write(&sent, &text, &err), MICA_OK);
    assert_int_equal(mica_work_read(text, strlen(text), &got, &err), MICA_OK);
    assert_memory_equal(&got, &sent, sizeof sent);
    char *n = strstr(text, "\"n_items\":12");
    assert_non_null(n);
    memcpy(n + 10, "-1", 2);
    assert_int_equal(mica_work_read(text, strlen(text), &got, &err), MICA_BAD_FILE);
    free(text);
    assert_int_equal(mica_work_read("[]", 2, &got, &err), MICA_BAD_FILE);
}

/* ---- Results ---- */

static void make_result(mica_shard_result *r)
{
    static mica_item items[3] = {{.reply_n = 4}, {.reply_n = 1}, {.reply_n = 9}};
    const mica_shard shard = {.n_items = 3, .items = items};
    assert_int_equal(mica_shard_result_init(&shard, r, NULL), MICA_OK);
    for (size_t i = 0; i < 3; i++) {
        mica_answer *a = &r->answers[i];
        a->started_ns = (int64_t)i * 1000;
        a->done_ns = a->started_ns + 900;
        a->prompt_n = 5 + (int64_t)i;
        a->cached_n = -1;
        a->n = i == 2 ? 3 : (size_t)items[i].reply_n; /* the last one ended early */
        a->gen_n = (int64_t)a->n;
        for (size_t k = 0; k < a->n; k++) {
            r->times[a->first + k] = a->started_ns + 10 * (int64_t)k;
            r->tokens[a->first + k] = (int64_t)(100 * i + k);
        }
    }
}

static mica_outcome make_outcome(const mica_shard_result *r)
{
    mica_outcome o = {.campaign = SHA, .input = SHA, .seq = 3, .started_unix = 1700000000, .wall_ns = 12345};
    memcpy(o.id, SHA, 32);
    o.head = json_pack("{s:s}", "runtime", "mica");
    assert_non_null(o.head);
    assert_int_equal(mica_shard_result_pack(r, &o.packed, NULL), MICA_OK);
    return o;
}

static void test_outcome(void **state)
{
    (void)state;
    mica_shard_result sent, got = {.n = 0};
    mica_outcome o, back;
    mica_error err;
    void *data;
    size_t length;
    make_result(&sent);
    o = make_outcome(&sent);
    assert_int_equal(mica_outcome_write(&o, &data, &length, &err), MICA_OK);
    assert_int_equal(mica_outcome_read(data, length, &back, &err), MICA_OK);
    assert_string_equal(back.campaign, SHA);
    assert_string_equal(back.id, o.id);
    assert_int_equal(back.seq, 3);
    assert_int_equal(back.wall_ns, 12345);
    assert_string_equal(json_string_value(json_object_get(back.head, "runtime")), "mica");
    assert_int_equal(mica_shard_result_unpack(&back.packed, 3, &got, &err), MICA_OK);
    for (size_t i = 0; i < 3; i++) {
        const mica_answer *a = &sent.answers[i], *b = &got.answers[i];
        assert_true(a->started_ns == b->started_ns && a->done_ns == b->done_ns && a->prompt_n == b->prompt_n &&
                    a->cached_n == b->cached_n && a->gen_n == b->gen_n && a->reason == b->reason && a->n == b->n);
        assert_memory_equal(sent.times + a->first, got.times + b->first, a->n * sizeof *sent.times);
        assert_memory_equal(sent.tokens + a->first, got.tokens + b->first, a->n * sizeof *sent.tokens);
    }
    mica_shard_result_free(&got);
    assert_int_equal(mica_shard_result_unpack(&back.packed, 4, &got, &err), MICA_BAD_FILE); /* of another shard */
    mica_shard_result_free(&got);
    mica_outcome_free(&back);
    free(data);
    json_decref(o.head);
    mica_packed_result_free(&o.packed);
    mica_shard_result_free(&sent);
}

static void test_failure(void **state)
{
    (void)state;
    mica_outcome o = {.campaign = SHA, .input = SHA, .seq = 3, .error = "no \"memory\""}, back;
    mica_error err;
    void *data;
    size_t length;
    memcpy(o.id, SHA, 32);
    assert_int_equal(mica_outcome_write(&o, &data, &length, &err), MICA_OK);
    assert_int_equal(mica_outcome_read(data, length, &back, &err), MICA_OK);
    assert_string_equal(back.error, "no \"memory\"");
    assert_null(back.head);
    mica_outcome_free(&back);
    free(data);
}

/* Cut anywhere, and with any byte changed: an error, or a message that can still be unpacked or refused; never more. */
static void test_damage(void **state)
{
    (void)state;
    mica_shard_result sent;
    mica_outcome o, back;
    mica_error err;
    mica_rng rng;
    void *data;
    size_t length, refused = 0;
    make_result(&sent);
    o = make_outcome(&sent);
    assert_int_equal(mica_outcome_write(&o, &data, &length, &err), MICA_OK);
    for (size_t n = 0; n < length; n++) {
        uint8_t *copy = malloc(n ? n : 1); /* of that size: a sanitizer sees a byte too far */
        assert_non_null(copy);
        memcpy(copy, data, n);
        assert_int_equal(mica_outcome_read(copy, n, &back, &err), MICA_BAD_FILE);
        free(copy);
    }
    mica_rng_seed(&rng, 5);
    for (int i = 0; i < 5000; i++) {
        mica_shard_result got = {.n = 0};
        size_t at = mica_rng_next(&rng) % length;
        uint8_t *bytes = data, before = bytes[at];
        bytes[at] = (uint8_t)mica_rng_next(&rng);
        mica_status status = mica_outcome_read(data, length, &back, &err);
        if (!status) {
            status = mica_shard_result_unpack(&back.packed, 3, &got, &err);
            mica_shard_result_free(&got);
            mica_outcome_free(&back);
        }
        refused += status != MICA_OK;
        bytes[at] = before;
    }
    assert_in_range(refused, 2000, 5000);
    free(data);
    json_decref(o.head);
    mica_packed_result_free(&o.packed);
    mica_shard_result_free(&sent);
}

static void test_blob_word(void **state)
{
    (void)state;
    mica_nats_blob sent = {.sha256 = SHA, .bytes = 5000000, .parts = 5}, got;
    mica_error err;
    char *text;
    assert_int_equal(mica_blob_word_write(&sent, &text, &err), MICA_OK);
    assert_true(mica_blob_word_read(text, strlen(text), &got));
    assert_string_equal(got.sha256, SHA);
    assert_true(got.bytes == 5000000 && got.parts == 5);
    free(text);
    static const char *const bad[] = {"", "{}", "[1]", "{\"sha256\": 1}", "{\"bytes\":5,\"parts\":6,\"sha256\":\"" SHA "\"}",
                                      "{\"bytes\":-5,\"parts\":1,\"sha256\":\"" SHA "\"}",
                                      "{\"bytes\":99999999999,\"parts\":1,\"sha256\":\"" SHA "\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(mica_blob_word_read(bad[i], strlen(bad[i]), &got));
}

/* ---- The list of shards that are not done ---- */

static void test_open_shards(void **state)
{
    (void)state;
    mica_open_shards o;
    mica_error err;
    memset(&o, 0, sizeof o);
    assert_null(mica_open_shards_slowest(&o));
    for (int64_t i = 0; i < 1000; i++) {
        mica_shard s = o.end;
        s.n_items = 3;
        s.tokens = 10;
        assert_int_equal(mica_open_shards_add(&o, &s, &err), MICA_OK);
    }
    assert_true(o.end.seq == 1000 && o.end.first_item == 3000 && o.end.before == 10000);
    for (int64_t i = 999; i >= 0; i -= 2) { /* the odd ones are done */
        mica_open_shard *s = mica_open_shards_find(&o, i);
        assert_non_null(s);
        mica_shard_row row = {.shard = s->shard, .wall_ns = 1000, .sums = {.reply_tokens = i == 1 ? 5 : 10}};
        mica_open_shards_remove(&o, s, &row);
    }
    assert_int_equal(o.n, 500);
    assert_int_equal(o.done_tokens, 5000);
    for (int64_t i = 0; i < 1001; i++)
        assert_int_equal(mica_open_shards_find(&o, i) != NULL, i < 1000 && i % 2 == 0);
    assert_null(mica_open_shards_find(&o, -1));
    assert_int_equal(mica_open_shards_slowest(&o)->sums.reply_tokens, 5);
    mica_open_shards_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notice),  cmocka_unit_test(test_work),      cmocka_unit_test(test_outcome),
        cmocka_unit_test(test_failure), cmocka_unit_test(test_damage),    cmocka_unit_test(test_blob_word),
        cmocka_unit_test(test_open_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
