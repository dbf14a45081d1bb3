/* What no policy, request or state may bring about, over thousands of random ones:
 *   1. a private request is never given to a remote rung, nor is any if the policy does not allow egress;
 *   2. a local rung is never chosen on a device under its RAM threshold, over the policy's part of the RAM, or of unknown RAM;
 *   3. a rung without its file, that is unhealthy, without a network, of too small a context is never chosen;
 *   4. what the request limits (deadline, money, energy, schema, tools, the rung) holds for every rung of the order;
 *   5. every rung is in the order or has a reason in words; the order has no rung twice and no more than the policy's hops;
 *   6. the same in gives the same out, and through a record and its replay, too. */
#include "route_util.h"

#include "base/rng.h"

enum { ROUNDS = 4000 };

static mica_rng rng;

static uint64_t below(uint64_t n) { return mica_rng_next(&rng) % n; }
static bool chance(int percent) { return below(100) < (uint64_t)percent; }
static double between(double low, double high) { return low + (high - low) * mica_rng_unit(&rng); }

typedef struct text {
    char data[40000];
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    t->n += (size_t)vsnprintf(t->data + t->n, sizeof t->data - t->n, format, args);
    va_end(args);
    assert_true(t->n < sizeof t->data);
}

static const char *one_of(const char *const *words, uint64_t n) { return words[below(n)]; }

/* ---- Random policies ---- */

static const char *const orders[] = {"ladder", "smallest", "score"};
static const char *const sides[] = {"none", "local", "remote"};
static const char *const offlines[] = {"run", "degrade", "queue"};
static const char *const classes[] = {"unknown", "narrow", "complex"};
static const char *const heats[] = {"none", "light", "moderate", "severe", "critical"};
static const char *const tasks[] = {"classify", "extract", "code", "plan"};

static void add_rung(text *t, int i)
{
    bool remote = chance(35);
    add(t, "%s{\"name\":\"r%d\",\"kind\":\"%s\",\"context\":%d", i > 0 ? "," : "", i, remote ? "remote" : "local",
        (int)(1000 + below(16000)));
    if (remote)
        add(t, ",\"endpoint\":{\"url\":\"http://127.0.0.1:9/v1\"}");
    else
        add(t, ",\"file\":\"m%d\",\"weights_bytes\":%llu,\"min_ram_bytes\":%llu", i,
            (unsigned long long)(1 + below(3000000000)),
            (unsigned long long)below(6000000000));
    if (!remote && chance(70))
        add(t, ",\"kv_bytes_per_token\":%d,\"fixed_bytes\":%d", (int)below(300000), (int)below(300000000));
    if (chance(80))
        add(t, ",\"prefill_tps\":%.3f", between(1, 2000));
    if (chance(80))
        add(t, ",\"decode_tps\":%.3f", between(0.5, 200));
    if (chance(60))
        add(t, ",\"watts\":%.2f", between(0, 20));
    if (remote && chance(70))
        add(t, ",\"ttft_ms\":%.1f,\"usd_per_million_in\":%.3f,\"usd_per_million_out\":%.3f", between(10, 3000), between(0, 5),
            between(0, 20));
    add(t, ",\"schema\":%s,\"tools\":%s", chance(70) ? "true" : "false", chance(50) ? "true" : "false");
    if (chance(80))
        add(t, ",\"quality\":{\"narrow\":%.2f,\"complex\":%.2f,\"tasks\":{\"extract\":%.2f}}", between(0, 1), between(0, 1),
            between(0, 1));
    add(t, "}");
}

static void add_when(text *t, int i)
{
    add(t, "%s{\"name\":\"w%d\"", i > 0 ? "," : "", i);
    if (chance(40))
        add(t, ",\"thermal_at_least\":\"%s\"", one_of(heats, 5));
    if (chance(40))
        add(t, ",\"battery_below\":%.2f", between(0, 1));
    if (chance(30))
        add(t, ",\"on_battery\":%s", chance(50) ? "true" : "false");
    if (chance(20))
        add(t, ",\"metered\":true");
    if (chance(30))
        add(t, ",\"forbid\":\"%s\"", one_of(sides, 3));
    if (chance(40))
        add(t, ",\"prefer\":\"%s\"", one_of(sides, 3));
    if (chance(40))
        add(t, ",\"order\":\"%s\"", one_of(orders, 3));
    if (chance(40))
        add(t, ",\"max_output_tokens\":%d", (int)(1 + below(500)));
    if (chance(20))
        add(t, ",\"max_weights_bytes\":%llu", (unsigned long long)below(3000000000));
    add(t, "}");
}

static void add_rules(text *t)
{
    static const char *const conditions[] = {",\"task\":[\"code\",\"plan\"]", ",\"pattern\":\"(?i)secret|prove\"",
                                             ",\"has_schema\":true", ",\"prompt_tokens_at_least\":500", ""};
    add(t, ",\"rules\":[");
    int n = (int)below(5);
    for (int i = 0; i < n; i++) {
        add(t, "%s{\"name\":\"q%d\"%s", i > 0 ? "," : "", i, one_of(conditions, 5));
        if (chance(30))
            add(t, ",\"private\":true}");
        else
            add(t, ",\"class\":\"%s\"}", one_of(classes, 3));
    }
    add(t, "]");
}

static void make_policy(text *t)
{
    int n = 1 + (int)below(8);
    t->n = 0;
    add(t,
        "{\"schema\":1,\"name\":\"p\",\"version\":\"1\",\"bytes_per_token\":%.2f,\"memory\":{\"ram_fraction\":%.3f},\"hops\":%d",
        between(1, 8), between(0.05, 1), (int)(1 + below(8)));
    add(t, ",\"allow_egress\":%s,\"ladder\":{\"schema\":1,\"name\":\"l\",\"version\":\"1\",\"rungs\":[",
        chance(50) ? "true" : "false");
    for (int i = 0; i < n; i++)
        add_rung(t, i);
    add(t, "]},\"classes\":{");
    for (int i = 0; i < 3; i++)
        add(t,
            "%s\"%s\":{\"order\":\"%s\",\"prefer\":\"%s\",\"offline\":\"%s\",\"min_quality\":%.2f,\"output_tokens\":%d,\"per_second\":1,"
               "\"per_joule\":%.2f}", i > 0 ? "," : "", classes[i], one_of(orders, 3), one_of(sides, 3), one_of(offlines, 3),
            chance(70) ? 0 : between(0, 1), (int)(1 + below(600)), between(0, 1));
    add(t, "},\"when\":[");
    int whens = (int)below(4);
    for (int i = 0; i < whens; i++)
        add_when(t, i);
    add(t, "],\"offline\":{\"degraded_prompt\":\"Be brief.\",\"queue_when_nothing_fits\":%s}", chance(50) ? "true" : "false");
    add_rules(t);
    add(t, "}");
}

/* ---- Random requests and states ---- */

static void make_request(mica_route_request *r)
{
    static const char *const texts[] = {"Prove that there are infinitely many primes.", "Is this spam?", "My SECRET is out",
                                        ""};
    *r = mica_route_request_default();
    r->task = chance(50) ? one_of(tasks, 4) : NULL;
    r->route_class = chance(30) ? (mica_route_class)below(3) : MICA_CLASS_AUTO;
    if (chance(70)) {
        r->text = one_of(texts, 4);
        r->length = strlen(r->text);
    }
    r->prompt_tokens = chance(60) ? (int64_t)below(2000) : -1;
    r->output_tokens = chance(60) ? (int64_t)below(1000) : -1;
    r->has_schema = chance(15);
    r->has_tools = chance(15);
    r->is_private = chance(30);
    r->deadline_ms = chance(15) ? (int64_t)below(90000) : -1;
    r->max_usd = chance(7) ? between(0, 0.01) : NAN;
    r->max_joules = chance(10) ? between(0, 500) : NAN;
    r->rung = chance(10) ? "r0" : NULL;
}

static int answer(void) { return (int)below(3) - 1; }

static void make_state(mica_route_state *s, mica_route_rung_state rungs[8], char names[8][4])
{
    *s = mica_route_state_default();
    s->device.ram_bytes = chance(90) ? (int64_t)below(16000000000) : -1;
    s->device.available_bytes = chance(60) ? (int64_t)below(6000000000) : -1;
    s->device.thermal = (mica_thermal_status)((int)below(6) - 1);
    s->device.battery = chance(70) ? between(0, 1) : NAN;
    s->device.on_battery = answer();
    s->network = answer();
    s->metered = answer();
    s->rungs = rungs;
    for (size_t i = 0; i < 8; i++) {
        snprintf(names[i], 4, "r%zu", i);
        if (chance(15))
            continue;
        mica_route_rung_state *r = &rungs[s->n_rungs++];
        *r = mica_route_rung_state_default(names[i]);
        r->file = chance(80) ? MICA_YES : answer();
        r->resident = answer();
        r->healthy = chance(80) ? MICA_UNKNOWN : answer();
        r->prefill_tps = chance(50) ? between(1, 2000) : NAN;
        r->decode_tps = chance(50) ? between(1, 200) : NAN;
        r->wait_ms = chance(30) ? between(0, 5000) : NAN;
    }
}

/* ---- What must hold, looked up in the policy's own text ---- */

static const mica_route_rung_state *state_of(const mica_route_state *s, const char *name)
{
    for (size_t i = 0; i < s->n_rungs; i++)
        if (strcmp(s->rungs[i].name, name) == 0)
            return &s->rungs[i];
    return NULL;
}

static double number_of(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static void check_local(const json_t *policy, const json_t *rung, const mica_route_candidate *c, const mica_route_decision *d,
                        const mica_route_state *s)
{
    const mica_route_rung_state *now = state_of(s, c->rung);
    double tokens = fmin((double)(d->prompt_tokens + d->output_tokens), number_of(rung, "context"));
    double bytes = number_of(rung, "weights_bytes") + number_of(rung, "fixed_bytes") + tokens * number_of(rung,
                                                                                                          "kv_bytes_per_token");
    double part = number_of(json_object_get(policy, "memory"), "ram_fraction");
    assert_true(s->device.ram_bytes >= 0);
    assert_true((double)s->device.ram_bytes >= number_of(rung, "min_ram_bytes"));
    assert_true(bytes <= part * (double)s->device.ram_bytes);
    assert_true(bytes == (double)c->memory_bytes);
    assert_non_null(now);
    assert_true(now->file == MICA_YES || now->resident == MICA_YES);
}

static void check_rung(const json_t *policy, const mica_route_candidate *c, const mica_route_decision *d,
                       const mica_route_request *r, const mica_route_state *s)
{
    const json_t *rung = json_array_get(json_object_get(json_object_get(policy, "ladder"), "rungs"), (size_t)atoi(c->rung + 1));
    const mica_route_rung_state *now = state_of(s, c->rung);
    bool remote = strcmp(json_string_value(json_object_get(rung, "kind")), "remote") == 0;
    assert_int_equal(remote, c->remote);
    if (remote) {
        assert_true(json_is_true(json_object_get(policy, "allow_egress")));
        assert_false(r->is_private);
        assert_false(d->is_private);
        assert_int_not_equal(s->network, MICA_NO);
    } else {
        check_local(policy, rung, c, d, s);
    }
    assert_false(now && now->healthy == MICA_NO);
    assert_true((double)(d->prompt_tokens + d->output_tokens) <= number_of(rung, "context"));
    assert_true(!r->has_schema || json_is_true(json_object_get(rung, "schema")));
    assert_true(!r->has_tools || json_is_true(json_object_get(rung, "tools")));
    assert_true(r->deadline_ms < 0 || c->total_ms <= (double)r->deadline_ms);
    assert_true(isnan(r->max_usd) || c->usd <= r->max_usd);
    assert_true(isnan(r->max_joules) || c->joules <= r->max_joules);
    assert_true(!r->rung || strcmp(r->rung, c->rung) == 0);
}

static void check_decision(const json_t *policy, const mica_route_decision *d, const mica_route_request *r,
                           const mica_route_state *s)
{
    unsigned in_order = 0;
    assert_true(d->n_order <= json_integer_value(json_object_get(policy, "hops")));
    assert_true((d->action == MICA_ROUTE_RUN) == (d->n_order > 0));
    for (int32_t i = 0; i < d->n_order; i++) {
        assert_false(in_order & (1u << d->order[i]));
        in_order |= 1u << d->order[i];
        check_rung(policy, &d->candidates[d->order[i]], d, r, s);
    }
    for (int32_t i = 0; i < d->n_candidates; i++) {
        assert_true(strlen(d->candidates[i].why) > 3);
        if (d->action == MICA_ROUTE_RUN)
            assert_true((d->candidates[i].reason == MICA_ROUTE_FITS) == ((in_order >> i) & 1));
    }
    if (d->action == MICA_ROUTE_QUEUE) { /* only what may leave waits for the network */
        assert_int_equal(s->network, MICA_NO);
        assert_false(r->is_private || d->is_private);
        assert_true(json_is_true(json_object_get(policy, "allow_egress")));
    }
    assert_true(strlen(d->message) > 3);
}

/* ---- The same again ---- */

static void check_again(const mica_route_policy *policy, const mica_route_decision *d, const mica_route_request *r,
                        const mica_route_state *s)
{
    mica_route_decision twice;
    mica_error err = {0};
    char *line = NULL, *same = NULL, *report = NULL, *words;
    size_t length = 0, n;
    assert_int_equal(mica_route_decide(policy, r, s, &twice, &err), MICA_OK);
    if (mica_route_record(policy, d, r, s, NULL, &line, &length, &err) || mica_route_record(policy, &twice, r, s, NULL, &same,
                                                                                            &n, &err))
        fail_msg("%s", err.message);
    assert_string_equal(line, same);
    mica_free(same);
    if (mica_route_replay(line, length, policy, &report, &n, &err))
        fail_msg("%s: %s", err.message, line);
    json_t *root = json_loads(report, 0, NULL);
    if (json_integer_value(json_object_get(root, "same_choice")) != 1)
        fail_msg("the replay chose otherwise: %s\n%s", report, line);
    json_decref(root);
    assert_int_equal(mica_route_explain(line, length, &words, &n, &err), MICA_OK);
    assert_non_null(strstr(words, d->message));
    mica_free(words);
    mica_free(report);
    mica_free(line);
}

static void test_properties(void **state)
{
    static text t;
    int run = 0, queued = 0, remote_first = 0;
    (void)state;
    mica_rng_seed(&rng, 20261130);
    for (int round = 0; round < ROUNDS; round++) {
        mica_route_request r;
        mica_route_state s;
        mica_route_rung_state rungs[8];
        char names[8][4];
        mica_route_decision d;
        mica_error err = {0};
        make_policy(&t);
        json_t *json = json_loads(t.data, 0, NULL);
        mica_route_policy *policy = policy_of(t.data);
        for (int k = 0; k < 5; k++) {
            make_request(&r);
            make_state(&s, rungs, names);
            if (mica_route_decide(policy, &r, &s, &d, &err))
                fail_msg("%s", err.message);
            check_decision(json, &d, &r, &s);
            if (k == 0)
                check_again(policy, &d, &r, &s);
            run += d.action == MICA_ROUTE_RUN;
            queued += d.action == MICA_ROUTE_QUEUE;
            remote_first += d.n_order > 0 && d.candidates[d.order[0]].remote;
        }
        mica_route_policy_release(policy);
        json_decref(json);
    }
    /* The random situations are not all of one kind. */
    assert_true(run > ROUNDS / 2 && queued > ROUNDS / 100 && remote_first > ROUNDS / 20);
    print_message("%d decisions: %d run, %d of these at a server first, %d queued\n", 5 * ROUNDS, run, remote_first, queued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_properties)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
