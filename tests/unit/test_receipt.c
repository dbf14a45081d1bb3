/* Receipts and conditions: what they say of a reply on the scripted model, alone and in a batch; what is refused, when and why;
 * on machines that are folders (fake_tree.h), whose heat and energy are known. */
#include <math.h>

#include "base/map.h"
#include "base/sha256.h"
#include "mica/mica_receipt.h"
#include "model_util.h"
#include "fake_tree.h"
#include "session/require.h"

#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

/* ---- Machines ---- */

/* Two CPUs, a processor at `celsius` with a passive trip point at 90, one RAPL package. */
static void write_machine(const fake_tree *t, int celsius, long long energy_uj)
{
    char text[32];
    tree_flat(t, 2);
    snprintf(text, sizeof text, "%d", celsius * 1000);
    tree_line(t, "sys/class/thermal/thermal_zone0/type", "x86_pkg_temp");
    tree_line(t, "sys/class/thermal/thermal_zone0/temp", text);
    tree_line(t, "sys/class/thermal/thermal_zone0/trip_point_0_type", "passive");
    tree_line(t, "sys/class/thermal/thermal_zone0/trip_point_0_temp", "90000");
    tree_line(t, "sys/class/powercap/intel-rapl:0/name", "package-0");
    tree_line(t, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
    snprintf(text, sizeof text, "%lld", energy_uj);
    tree_line(t, "sys/class/powercap/intel-rapl:0/energy_uj", text);
}

static void set_cooling(const fake_tree *t, const char *state)
{
    tree_line(t, "sys/class/thermal/cooling_device0/type", "Processor");
    tree_line(t, "sys/class/thermal/cooling_device0/max_state", "10");
    tree_line(t, "sys/class/thermal/cooling_device0/cur_state", state);
}

typedef struct heating {
    fake_tree *tree;
    int n;
} heating;

/* After five tokens of a reply the machine has become hot and taken 9 J; it is looked at four times a second. */
static int heat_up(void *user, const mica_token_event *e)
{
    heating *h = user;
    h->n = e->index + 1;
    if (e->index == 5)
        write_machine(h->tree, 89, 10000000);
    if (e->index > 5)
        usleep(20000);
    return 0;
}

/* ---- A reply ---- */

typedef struct made {
    mica_receipt *receipt;
    mica_session *session;
} made;

/* `conditions` ends with NULL. */
static mica_receipt *new_receipt(mica_model *model, const char *root, const char *const *conditions)
{
    mica_receipt_options o = mica_receipt_options_default();
    mica_receipt *receipt = NULL;
    mica_error err;
    while (conditions && conditions[o.n_require])
        o.n_require++;
    o.require = conditions;
    o.sysroot = root;
    if (mica_receipt_new(model, &o, &receipt, &err))
        fail_msg("%s", err.message);
    return receipt;
}

static made make(mica_model *model, const char *root, const char *const *conditions, mica_full_policy policy)
{
    mica_session_options o = mica_session_options_default();
    made m = {.receipt = new_receipt(model, root, conditions)};
    mica_error err;
    o.n_ctx = 64;
    o.n_threads = 2;
    o.prefill_chunk = 8;
    o.full_policy = policy;
    if (mica_session_new(model, &o, &m.session, &err) || mica_session_set_receipt(m.session, m.receipt, &err))
        fail_msg("%s", err.message);
    return m;
}

static void unmake(made *m)
{
    mica_session_free(m->session);
    mica_receipt_free(m->receipt);
}

static mica_status say(const made *m, const char *prompt, int32_t n, mica_error *err)
{
    mica_generate_options o = mica_generate_options_default();
    o.sampling.temperature = 0.0f;
    o.max_tokens = n;
    mica_status status = mica_session_prompt(m->session, prompt, strlen(prompt), 0, err);
    return status ? status : mica_session_generate(m->session, &o, NULL, err);
}

static json_t *receipt_of(const mica_receipt *receipt)
{
    char *text;
    mica_error err;
    if (mica_receipt_json(receipt, &text, &err))
        fail_msg("%s", err.message);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    mica_free(text);
    return object;
}

static json_t *at(json_t *o, const char *a, const char *b)
{
    json_t *value = json_object_get(o, a);
    return b ? json_object_get(value, b) : value;
}

/* ---- Tests ---- */

static void test_says_what_ran(void **state)
{
    made m = make(*state, NULL, NULL, MICA_FULL_ERROR);
    mica_error err;
    mica_model_info info;
    mica_map file;
    mica_sha256 hash;
    char text[MICA_SHA256_TEXT];
    assert_int_equal(mica_receipt_json(m.receipt, &(char *){NULL}, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(say(&m, "E", -1, &err), MICA_OK);
    json_t *r = receipt_of(m.receipt);
    mica_model_get_info(*state, &info);
    assert_int_equal(mica_map_open(SCRIPTED, &file, NULL), MICA_OK);
    mica_sha256_start(&hash);
    mica_sha256_add(&hash, file.data, file.length);
    mica_sha256_text(&hash, text);
    mica_map_close(&file);
    assert_string_equal(json_string_value(at(r, "model", "sha256")), text);
    assert_string_equal(json_string_value(at(r, "model", "sha256_from")), "file");
    mica_sha256_start(&hash);
    mica_sha256_add(&hash, info.chat_template, strlen(info.chat_template));
    mica_sha256_text(&hash, text);
    assert_string_equal(json_string_value(at(r, "model", "template_sha256")), text);
    assert_string_equal(json_string_value(at(r, "kernels", "set")), info.kernels);
    assert_true(json_object_size(at(r, "kernels", "parts")) > 3);
    assert_string_equal(json_string_value(at(r, "status", NULL)), "MICA_OK");
    assert_string_equal(json_string_value(at(r, "stop_reason", NULL)), "eos");
    assert_int_equal(json_integer_value(at(r, "threads", "n")), 2);
    assert_int_equal(json_array_size(at(r, "threads", "cpus")), 2);
    assert_string_equal(json_string_value(at(r, "kv", "k")), "f16");
    assert_string_equal(json_string_value(at(r, "context", "policy")), "error");
    assert_int_equal(json_integer_value(at(r, "tokens", "gen_n")), 8);
    assert_string_equal(json_string_value(at(r, "speculation", "mode")), "off");
    assert_true(json_real_value(at(r, "times", "total_ms")) >= json_real_value(at(r, "times", "ttft_ms")));
    json_decref(r);
    unmake(&m);
}

static void test_cached_prefix_and_drops(void **state)
{
    made m = make(*state, NULL, NULL, MICA_FULL_SHIFT);
    mica_error err;
    assert_int_equal(say(&m, "SSSSSSSS", 1, &err), MICA_OK);
    assert_int_equal(say(&m, "SSSSSSSSE", 1, &err), MICA_OK);
    json_t *r = receipt_of(m.receipt);
    assert_true(json_integer_value(at(r, "tokens", "cached_n")) > 0);
    assert_int_equal(json_integer_value(at(r, "context", "dropped_n")), 0);
    json_decref(r);
    assert_int_equal(say(&m, "X", 100, &err), MICA_OK);
    r = receipt_of(m.receipt);
    assert_true(json_integer_value(at(r, "context", "dropped_n")) > 0);
    json_decref(r);
    unmake(&m);
}

static void test_heat_and_energy(void **state)
{
    fake_tree t = tree_new();
    mica_receipt_figures f;
    mica_error err;
    write_machine(&t, 50, 1000000);
    set_cooling(&t, "0");
    made m = make(*state, t.root, NULL, MICA_FULL_ERROR);
    assert_false(mica_receipt_get_figures(m.receipt, &f));
    assert_int_equal(mica_session_prompt(m.session, "E", 1, 0, &err), MICA_OK);
    write_machine(&t, 71, 3500000); /* while the reply is made: 2.5 J */
    assert_int_equal(mica_session_generate(m.session, NULL, NULL, &err), MICA_OK);
    json_t *r = receipt_of(m.receipt);
    assert_float_equal(json_real_value(json_object_get(at(r, "machine", "start"), "temp_c")), 50, 1e-6);
    assert_float_equal(json_real_value(json_object_get(at(r, "machine", "end"), "temp_c")), 71, 1e-6);
    assert_float_equal(json_real_value(at(r, "energy", "joules")), 2.5, 1e-6);
    assert_non_null(strstr(json_string_value(at(r, "energy", "source")), "rapl"));
    assert_true(json_is_false(at(r, "throttled", "value")));
    json_decref(r);
    assert_true(mica_receipt_get_figures(m.receipt, &f));
    assert_float_equal(f.joules, 2.5, 1e-6);
    assert_int_equal(f.throttled, MICA_NO);
    assert_int_equal(f.temp_max_mc, 71000);
    unmake(&m);
    tree_free(&t);
}

/* A monitor whose readings may be a minute old says nothing of a reply of milliseconds: not zero joules, but none. */
static void test_readings_that_are_too_old(void **state)
{
    fake_tree t = tree_new();
    mica_device_options d = mica_device_options_default();
    mica_receipt_options o = mica_receipt_options_default();
    mica_receipt_figures f;
    mica_error err;
    write_machine(&t, 50, 1000000);
    d.sysroot = t.root;
    for (int fresh = 0; fresh < 2; fresh++) {
        made m = {.session = open_session(*state, 64, 2, 8)};
        d.min_interval_ms = fresh ? 0 : 60000;
        assert_int_equal(mica_device_open(&d, &o.device, &err), MICA_OK);
        assert_int_equal(mica_receipt_new(*state, &o, &m.receipt, &err), MICA_OK);
        assert_int_equal(mica_session_set_receipt(m.session, m.receipt, &err), MICA_OK);
        mica_generate_options g = mica_generate_options_default();
        heating slow = {.tree = &t};
        g.sampling.temperature = 0.0f;
        g.max_tokens = 30;
        g.on_token = heat_up; /* takes half a second, so that a fresh reading is within a tenth of it */
        g.user = &slow;
        assert_int_equal(mica_session_prompt(m.session, "X", 1, 0, &err), MICA_OK);
        assert_int_equal(mica_session_generate(m.session, &g, NULL, &err), MICA_OK);
        assert_true(mica_receipt_get_figures(m.receipt, &f));
        if (fresh)
            assert_float_equal(f.joules, 9, 1e-6);
        else
            assert_true(isnan(f.joules));
        unmake(&m);
        mica_device_close(o.device);
        write_machine(&t, 50, 1000000);
    }
    tree_free(&t);
}

static void test_throttled_with_evidence(void **state)
{
    fake_tree t = tree_new();
    mica_error err;
    write_machine(&t, 95, 1000000);
    set_cooling(&t, "3");
    made m = make(*state, t.root, NULL, MICA_FULL_ERROR);
    assert_int_equal(say(&m, "E", -1, &err), MICA_OK);
    json_t *r = receipt_of(m.receipt);
    assert_true(json_is_true(at(r, "throttled", "value")));
    assert_non_null(strstr(json_string_value(at(r, "throttled", "evidence")), "cooling"));
    json_decref(r);
    unmake(&m);
    tree_free(&t);
}

/* A machine that tells nothing: null everywhere, never zero or false. */
static void test_unknown_is_null(void **state)
{
    fake_tree t = tree_new();
    mica_error err;
    tree_flat(&t, 2);
    made m = make(*state, t.root, NULL, MICA_FULL_ERROR);
    assert_int_equal(say(&m, "E", -1, &err), MICA_OK);
    json_t *r = receipt_of(m.receipt);
    assert_true(json_is_null(at(r, "energy", NULL)));
    assert_true(json_is_null(at(r, "throttled", "value")));
    assert_true(json_is_null(json_object_get(at(r, "machine", "end"), "temp_c")));
    assert_true(json_is_null(json_object_get(at(r, "machine", "end"), "on_mains")));
    json_decref(r);
    unmake(&m);
    tree_free(&t);
}

/* ---- Conditions ---- */

static void refused(mica_model *model, const char *root, const char *condition, const char *prompt, int32_t n,
                    mica_full_policy policy, const char *says)
{
    const char *conditions[] = {condition, NULL};
    made m = make(model, root, conditions, policy);
    mica_error err = {.message = ""};
    mica_status status = say(&m, prompt, n, &err);
    if (status != MICA_REFUSED || !strstr(err.message, says) || !strstr(err.message, condition))
        fail_msg("%s: %s: %s", condition, mica_status_name(status), err.message);
    unmake(&m);
}

static void allowed(mica_model *model, const char *root, const char *condition)
{
    const char *conditions[] = {condition, NULL};
    made m = make(model, root, conditions, MICA_FULL_SHIFT);
    mica_error err;
    if (say(&m, "E", -1, &err))
        fail_msg("%s: %s", condition, err.message);
    json_t *r = receipt_of(m.receipt);
    assert_string_equal(json_string_value(json_array_get(at(r, "require", NULL), 0)), condition);
    json_decref(r);
    unmake(&m);
}

static void test_conditions_of_the_engine(void **state)
{
    char kernels[64];
    mica_model_info info;
    mica_model_get_info(*state, &info);
    snprintf(kernels, sizeof kernels, "kernels=%s", info.kernels);
    const char *good[] = {kernels, "kv=f16", "threads>=2", "threads=2", "threads<=2", "ctx>=64", "no_drop"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        allowed(*state, NULL, good[i]);
    refused(*state, NULL, "kernels=sse9", "E", -1, MICA_FULL_ERROR, info.kernels);
    refused(*state, NULL, "kv=q8_0", "E", -1, MICA_FULL_ERROR, "f16");
    refused(*state, NULL, "threads>=3", "E", -1, MICA_FULL_ERROR, "2 threads");
    refused(*state, NULL, "threads<=1", "E", -1, MICA_FULL_ERROR, "2 threads");
    refused(*state, NULL, "ctx>=65", "E", -1, MICA_FULL_ERROR, "64 tokens");
    refused(*state, NULL, "model=0123456789", "E", -1, MICA_FULL_ERROR, "SHA-256");
    refused(*state, NULL, "template=0123456789", "E", -1, MICA_FULL_ERROR, "SHA-256");
}

static void test_condition_on_the_model(void **state)
{
    made m = make(*state, NULL, NULL, MICA_FULL_ERROR);
    mica_error err;
    char condition[MICA_REQUIRE_TEXT];
    assert_int_equal(say(&m, "E", 1, &err), MICA_OK);
    json_t *r = receipt_of(m.receipt);
    snprintf(condition, sizeof condition, "model=%s", json_string_value(at(r, "model", "sha256")));
    allowed(*state, NULL, condition);
    condition[6 + 12] = '\0'; /* a beginning is enough */
    allowed(*state, NULL, condition);
    json_decref(r);
    unmake(&m);
}

/* Refused when tokens would be dropped: with the prompt, or in the middle of the reply. Without the condition both go on. */
static void test_no_drop(void **state)
{
    char prompt[80];
    memset(prompt, 'S', 79);
    prompt[79] = '\0';
    refused(*state, NULL, "no_drop", prompt, 5, MICA_FULL_SHIFT, "dropped");
    refused(*state, NULL, "no_drop", "X", 100, MICA_FULL_SHIFT, "dropped");
}

static void test_conditions_of_the_machine(void **state)
{
    fake_tree t = tree_new();
    write_machine(&t, 70, 1000000);
    set_cooling(&t, "0");
    const char *good[] = {"max_temp=80", "max_joules=5", "not_throttled", "max_temp=70.5"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        allowed(*state, t.root, good[i]);
    refused(*state, t.root, "max_temp=60", "E", -1, MICA_FULL_ERROR, "70.0 C");
    set_cooling(&t, "3");
    refused(*state, t.root, "not_throttled", "E", -1, MICA_FULL_ERROR, "cooling");
    tree_free(&t);
}

/* What cannot be found out does not hold. */
static void test_conditions_that_nothing_tells(void **state)
{
    fake_tree t = tree_new();
    tree_flat(&t, 2);
    const char *unknown[] = {"max_temp=80", "max_joules=5", "not_throttled", "min_battery=20", "on_mains"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        refused(*state, t.root, unknown[i], "E", -1, MICA_FULL_ERROR, "nothing on this machine tells");
    tree_free(&t);
}

static void broken_meanwhile(mica_model *model, const char *condition, const char *says)
{
    fake_tree t = tree_new();
    heating h = {.tree = &t};
    const char *conditions[] = {condition, NULL};
    mica_generate_options o = mica_generate_options_default();
    mica_error err = {.message = ""};
    write_machine(&t, 50, 1000000);
    made m = make(model, t.root, conditions, MICA_FULL_SHIFT);
    o.sampling.temperature = 0.0f;
    o.max_tokens = 10000;
    o.on_token = heat_up;
    o.user = &h;
    assert_int_equal(mica_session_prompt(m.session, "X", 1, 0, &err), MICA_OK);
    mica_status status = mica_session_generate(m.session, &o, NULL, &err);
    if (status != MICA_REFUSED || !strstr(err.message, says))
        fail_msg("%s: %s: %s", condition, mica_status_name(status), err.message);
    assert_in_range(h.n, 6, 40);
    json_t *r = receipt_of(m.receipt);
    assert_string_equal(json_string_value(at(r, "status", NULL)), "MICA_REFUSED");
    json_decref(r);
    unmake(&m);
    tree_free(&t);
}

static void test_conditions_while_it_runs(void **state)
{
    broken_meanwhile(*state, "max_temp=80", "89.0 C");
    broken_meanwhile(*state, "max_joules=5", "9.0 J");
}

/* Too late to stop it, but not too late to say so: the look after the last token. */
static void test_condition_broken_at_the_end(void **state)
{
    fake_tree t = tree_new();
    const char *conditions[] = {"max_joules=5", NULL};
    mica_error err;
    write_machine(&t, 50, 1000000);
    made m = make(*state, t.root, conditions, MICA_FULL_ERROR);
    assert_int_equal(mica_session_prompt(m.session, "E", 1, 0, &err), MICA_OK);
    write_machine(&t, 50, 20000000);
    assert_int_equal(mica_session_generate(m.session, NULL, NULL, &err), MICA_REFUSED);
    assert_non_null(strstr(err.message, "19.0 J"));
    unmake(&m);
    tree_free(&t);
}

/* Replies one after another to a history that grows, without a new prompt: each is a request of its own. */
static void test_reply_without_a_prompt(void **state)
{
    fake_tree t = tree_new();
    const char *conditions[] = {"max_joules=3", NULL};
    mica_generate_options o = mica_generate_options_default();
    mica_receipt_figures f;
    mica_error err;
    write_machine(&t, 50, 1000000);
    made m = make(*state, t.root, conditions, MICA_FULL_SHIFT);
    o.sampling.temperature = 0.0f;
    o.max_tokens = 3;
    assert_int_equal(say(&m, "X", 3, &err), MICA_OK);
    write_machine(&t, 50, 9000000); /* between the two */
    assert_int_equal(mica_session_generate(m.session, &o, NULL, &err), MICA_OK);
    assert_true(mica_receipt_get_figures(m.receipt, &f));
    assert_float_equal(f.joules, 0, 1e-9);
    unmake(&m);
    tree_free(&t);
}

/* A refused prompt leaves the session as it was; a reply to what it has is refused for the same reason. */
static void test_refused_and_asked_again(void **state)
{
    const char *conditions[] = {"threads>=9", NULL};
    mica_error err;
    made m = make(*state, NULL, NULL, MICA_FULL_ERROR);
    mica_receipt *strict = new_receipt(*state, NULL, conditions);
    assert_int_equal(say(&m, "X", 3, &err), MICA_OK);
    assert_int_equal(mica_session_set_receipt(m.session, strict, &err), MICA_OK);
    assert_int_equal(say(&m, "E", 3, &err), MICA_REFUSED);
    assert_int_equal(mica_session_generate(m.session, NULL, NULL, &err), MICA_REFUSED);
    assert_int_equal(mica_session_set_receipt(m.session, m.receipt, &err), MICA_OK);
    assert_int_equal(say(&m, "E", -1, &err), MICA_OK);
    mica_receipt_free(strict);
    unmake(&m);
}

/* What a governor does. */
static int change_threads(void *user, const mica_token_event *e)
{
    mica_error err;
    if (e->index == 2)
        assert_int_equal(mica_session_set_threads(user, 1, NULL, &err), MICA_OK);
    return 0;
}

static mica_status with_fewer_threads(mica_model *model, const char *const *conditions, int *least, int *most)
{
    made m = make(model, NULL, conditions, MICA_FULL_SHIFT);
    mica_generate_options o = mica_generate_options_default();
    mica_error err;
    o.sampling.temperature = 0.0f;
    o.max_tokens = 10;
    o.on_token = change_threads;
    o.user = m.session;
    assert_int_equal(mica_session_prompt(m.session, "X", 1, 0, &err), MICA_OK);
    mica_status status = mica_session_generate(m.session, &o, NULL, &err);
    json_t *r = receipt_of(m.receipt);
    *least = (int)json_integer_value(at(r, "threads", "least"));
    *most = (int)json_integer_value(at(r, "threads", "most"));
    json_decref(r);
    unmake(&m);
    return status;
}

static void test_threads_that_change(void **state)
{
    int least, most;
    assert_int_equal(with_fewer_threads(*state, NULL, &least, &most), MICA_OK);
    assert_int_equal(least, 1);
    assert_int_equal(most, 2);
    assert_int_equal(with_fewer_threads(*state, (const char *[]){"threads=2", NULL}, &least, &most), MICA_REFUSED);
    assert_int_equal(least, 1);
}

static void test_malformed_conditions(void **state)
{
    static const char *const bad[] = {
        "",          "kernels",    "kernels=",   "kernels>=avx2",    "no_drop=1",    "threads",     "threads>2",
        "threads>=", "threads>=x", "threads=-1", "max_temp=hot",     "max_temp=1e3", "max_temp>=3", "max_joules= 5",
        "nonsense",  "model=xyz",  "model=abc",  "model=ABCDEF0123", "threads=0x2",  "=3",          "max_temp=1.2.3"};
    mica_condition c;
    mica_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (mica_condition_parse(bad[i], &c, &err) != MICA_INVALID_ARGUMENT)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_non_null(strstr(err.message, "kernels=NAME"));
    }
    char many[200];
    memset(many, 'k', 199);
    many[199] = '\0';
    assert_int_equal(mica_condition_parse(many, &c, &err), MICA_INVALID_ARGUMENT);
}

/* ---- Batches ---- */

typedef struct ended {
    mica_status status;
    char message[488];
    int n;
} ended;

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    ended *e = user;
    (void)result;
    e->status = status;
    e->n++;
    snprintf(e->message, sizeof e->message, "%s", error ? error->message : "");
}

static mica_status submit(mica_session *s, const char *prompt, int32_t n, ended *e, mica_model *model, mica_error *err)
{
    mica_generate_options o = mica_generate_options_default();
    int32_t *tokens;
    size_t n_tokens;
    assert_int_equal(mica_model_tokenize(model, prompt, strlen(prompt), 0, &tokens, &n_tokens, err), MICA_OK);
    o.sampling.temperature = 0.0f;
    o.max_tokens = n;
    o.on_done = on_done;
    o.user = e;
    mica_status status = mica_batch_submit(s, tokens, n_tokens, &o, err);
    mica_free(tokens);
    return status;
}

static void test_batch(void **state)
{
    const char *impossible[] = {"threads>=9", NULL};
    mica_batch_options o = mica_batch_options_default();
    mica_batch *batch;
    mica_session *s[2];
    mica_receipt *r[2] = {new_receipt(*state, NULL, NULL), new_receipt(*state, NULL, impossible)};
    ended e[2] = {{.n = 0}, {.n = 0}};
    mica_error err;
    o.max_sessions = 2;
    o.n_ctx = 64;
    o.n_threads = 2;
    assert_int_equal(mica_batch_new(*state, &o, &batch, &err), MICA_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mica_batch_session_new(batch, NULL, &s[i], &err), MICA_OK);
    assert_int_equal(mica_session_set_receipt(s[0], r[0], &err), MICA_OK);
    assert_int_equal(submit(s[0], "X", 20, &e[0], *state, &err), MICA_OK);
    assert_int_equal(mica_session_set_receipt(s[0], NULL, &err), MICA_INVALID_ARGUMENT); /* it is under way */
    assert_int_equal(mica_session_set_receipt(s[1], r[1], &err), MICA_OK);
    assert_int_equal(submit(s[1], "E", -1, &e[1], *state, &err), MICA_REFUSED);
    assert_int_equal(mica_session_set_receipt(s[1], NULL, &err), MICA_OK);
    assert_int_equal(submit(s[1], "E", -1, &e[1], *state, &err), MICA_OK); /* the refusal left it usable */
    while (mica_batch_step(batch) > 0)
        ;
    assert_int_equal(e[0].n, 1);
    assert_int_equal(e[1].n, 1);
    assert_int_equal(e[0].status, MICA_OK);
    json_t *receipt = receipt_of(r[0]);
    assert_int_equal(json_integer_value(at(receipt, "replies_at_once", NULL)), 2);
    assert_int_equal(json_integer_value(at(receipt, "tokens", "gen_n")), 20);
    assert_int_equal(json_integer_value(at(receipt, "threads", "n")), 2);
    json_decref(receipt);
    mica_batch_free(batch);
    mica_receipt_free(r[0]);
    mica_receipt_free(r[1]);
}

/* ---- Hashes that are kept ---- */

static const char *hash_source(const char *model_path, const char *cache, char hash[MICA_SHA256_TEXT])
{
    mica_receipt_options o = mica_receipt_options_default();
    mica_receipt *receipt;
    mica_model *model = open_model(model_path, NULL);
    mica_error err;
    o.hash_cache = cache;
    assert_int_equal(mica_receipt_new(model, &o, &receipt, &err), MICA_OK);
    made m = {.receipt = receipt, .session = open_session(model, 64, 1, 8)};
    assert_int_equal(mica_session_set_receipt(m.session, receipt, &err), MICA_OK);
    assert_int_equal(say(&m, "E", 1, &err), MICA_OK);
    json_t *r = receipt_of(receipt);
    snprintf(hash, MICA_SHA256_TEXT, "%s", json_string_value(at(r, "model", "sha256")));
    const char *from = strcmp(json_string_value(at(r, "model", "sha256_from")), "cache") == 0 ? "cache" : "file";
    json_decref(r);
    unmake(&m);
    mica_model_close(model);
    return from;
}

static void test_hash_cache(void **state)
{
    fake_tree t = tree_new();
    mica_map file;
    char cache[512], copy[512], first[MICA_SHA256_TEXT], again[MICA_SHA256_TEXT];
    (void)state;
    snprintf(cache, sizeof cache, "%s/hashes", t.root);
    snprintf(copy, sizeof copy, "%s/copy.gguf", t.root);
    assert_int_equal(mica_map_open(SCRIPTED, &file, NULL), MICA_OK);
    tree_bytes(&t, "copy.gguf", file.data, file.length);
    assert_string_equal(hash_source(SCRIPTED, cache, first), "file");
    assert_string_equal(hash_source(SCRIPTED, cache, again), "cache");
    assert_string_equal(first, again);
    assert_string_equal(hash_source(copy, cache, again), "file"); /* another path */
    assert_string_equal(first, again);
    assert_string_equal(hash_source(copy, cache, again), "cache");
    usleep(20000);
    tree_bytes(&t, "copy.gguf", file.data, file.length); /* written again: another time */
    assert_string_equal(hash_source(copy, cache, again), "file");
    assert_string_equal(hash_source(SCRIPTED, cache, again), "cache"); /* the others are still there */
    tree_line(&t, "hashes", "rubbish that is no line of hashes");
    assert_string_equal(hash_source(SCRIPTED, cache, again), "file");
    assert_string_equal(hash_source(SCRIPTED, cache, again), "cache");
    assert_string_equal(hash_source(SCRIPTED, "/proc/nowhere/hashes", again), "file");
    assert_string_equal(first, again);
    mica_map_close(&file);
    tree_free(&t);
}

static int set_up(void **state)
{
    *state = open_model(SCRIPTED, NULL);
    return 0;
}

static int tear_down(void **state)
{
    mica_model_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_what_ran),
        cmocka_unit_test(test_cached_prefix_and_drops),
        cmocka_unit_test(test_heat_and_energy),
        cmocka_unit_test(test_readings_that_are_too_old),
        cmocka_unit_test(test_throttled_with_evidence),
        cmocka_unit_test(test_unknown_is_null),
        cmocka_unit_test(test_conditions_of_the_engine),
        cmocka_unit_test(test_condition_on_the_model),
        cmocka_unit_test(test_no_drop),
        cmocka_unit_test(test_conditions_of_the_machine),
        cmocka_unit_test(test_conditions_that_nothing_tells),
        cmocka_unit_test(test_conditions_while_it_runs),
        cmocka_unit_test(test_condition_broken_at_the_end),
        cmocka_unit_test(test_malformed_conditions),
        cmocka_unit_test(test_reply_without_a_prompt),
        cmocka_unit_test(test_refused_and_asked_again),
        cmocka_unit_test(test_threads_that_change),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_hash_cache),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
