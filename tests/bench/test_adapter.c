/* The client of adapters: a well-behaved one gives true times and counts; each kind of misbehaviour ends with its own word, a
 * sentence, and no process left behind. */
#include "adapter_util.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "bench/procmem.h"

typedef struct outcome {
    mica_status status;
    char fault[16];
    mica_error err;
    mica_adapter_reply reply;
    mica_adapter *adapter; /* NULL: closed */
} outcome;

static mica_adapter_load_request load_request(const char *backend)
{
    return (mica_adapter_load_request){.model = "/m/model.gguf", .backend = backend, .n_ctx = 256};
}

static mica_adapter_request text_request(int32_t prompt_n, int32_t n)
{
    static const char text[] = "one two three four five six seven eight nine ten";
    return (mica_adapter_request){
        .text = text, .text_length = sizeof text - 1, .prompt_n = prompt_n, .n = n, .greedy = true, .ignore_eos = true};
}

/* Opens, loads, confirms "cpu" and asks for one reply of 12 tokens: the first failure is the outcome. */
static outcome run_mode(const char *mode, const char *limits)
{
    fake_tree t = tree_new();
    outcome o = {.status = MICA_OK};
    char label[80];
    mica_adapter_options options = mica_adapter_options_default();
    mica_adapter_load_request load = load_request("cpu");
    mica_adapter_request request = text_request(32, 12);
    fake_folder(&t, mode, limits);
    o.status = mica_adapter_proc_open(t.root, &options, &o.adapter, o.fault, &o.err);
    if (!o.status)
        o.status = mica_adapter_load(o.adapter, &load, &o.err);
    if (!o.status)
        o.status = mica_adapter_ask_partition(o.adapter, &o.err);
    if (!o.status)
        o.status = mica_adapter_confirm(o.adapter, "cpu", false, label, &o.err);
    if (!o.status)
        o.status = mica_adapter_generate(o.adapter, &request, &o.reply, &o.err);
    if (o.adapter)
        snprintf(o.fault, sizeof o.fault, "%s", o.adapter->fault);
    tree_free(&t);
    return o;
}

static void end(outcome *o)
{
    mica_adapter_reply_free(&o->reply);
    mica_adapter_close(o->adapter);
    o->adapter = NULL;
}

/* No child of ours is left, dead or alive. */
static void no_children(void)
{
    assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void test_good(void **state)
{
    (void)state;
    outcome o = run_mode("good", FAKE_LIMITS);
    if (o.status)
        fail_msg("%s", o.err.message);
    const mica_adapter_reply *r = &o.reply;
    assert_string_equal(o.adapter->hello.runtime, "fake runtime");
    assert_string_equal(o.adapter->hello.labels, "a fake");
    assert_true(o.adapter->hello.exact && o.adapter->hello.takes_tokens && o.adapter->hello.takes_text);
    assert_int_equal(o.adapter->loaded.file_bytes, 1000);
    assert_true(o.adapter->loaded.usable_ns > o.adapter->loaded.asked_ns);
    assert_int_equal(r->n_events, 12);
    assert_int_equal(r->gen_n, 12);
    assert_int_equal(r->prompt_n, 32);
    assert_string_equal(r->reason, "length");
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(r->tokens[i], 100 + (int)i);
    assert_true(r->token_ns[0] - r->started_ns >= 32 * 50000); /* it really sleeps */
    assert_true(r->token_ns[11] - r->token_ns[0] >= 11 * 2000000);
    end(&o);
    no_children();
}

static void test_more_replies_and_unload(void **state)
{
    (void)state;
    outcome o = run_mode("good", FAKE_LIMITS);
    mica_adapter_load_request load = load_request("cpu");
    const int32_t ids[] = {1, 2, 3, 4, 5};
    mica_adapter_request tokens = {
        .tokens = ids, .prompt_n = 5, .n = 3, .temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 42};
    mica_adapter_request none = text_request(8, 0);
    assert_int_equal(o.status, MICA_OK);
    assert_int_equal(mica_adapter_generate(o.adapter, &tokens, &o.reply, &o.err), MICA_OK);
    assert_int_equal(o.reply.prompt_n, 5);
    assert_int_equal(o.reply.n_events, 3);
    assert_int_equal(mica_adapter_load(o.adapter, &load, &o.err), MICA_INVALID_ARGUMENT); /* one is loaded */
    assert_int_equal(mica_adapter_generate(o.adapter, &none, &o.reply, &o.err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_adapter_unload(o.adapter, &o.err), MICA_OK);
    assert_int_equal(mica_adapter_generate(o.adapter, &tokens, &o.reply, &o.err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_adapter_load(o.adapter, &load, &o.err), MICA_OK);
    assert_int_equal(mica_adapter_generate(o.adapter, &tokens, &o.reply, &o.err), MICA_OK);
    end(&o);
    no_children();
}

static void test_text_only(void **state)
{
    (void)state;
    const int32_t ids[] = {1, 2};
    mica_adapter_request tokens = {.tokens = ids, .prompt_n = 2, .n = 3, .greedy = true};
    outcome o = run_mode("text", FAKE_LIMITS);
    assert_int_equal(o.status, MICA_OK);
    assert_int_equal(mica_adapter_generate(o.adapter, &tokens, &o.reply, &o.err), MICA_UNSUPPORTED);
    assert_non_null(strstr(o.err.message, "token ids"));
    end(&o);
}

static void test_chunks(void **state)
{
    (void)state;
    outcome o = run_mode("chunk", FAKE_LIMITS);
    assert_int_equal(o.status, MICA_OK);
    assert_false(o.adapter->hello.exact);
    assert_int_equal(o.reply.n_events, 4);
    assert_int_equal(o.reply.gen_n, 12);
    assert_int_equal(o.reply.tokens[0], -1);
    end(&o);
}

static void test_memory_is_the_childs(void **state)
{
    (void)state;
    outcome o = run_mode("good", FAKE_LIMITS);
    mica_procmem m;
    int64_t ticks;
    assert_int_equal(o.status, MICA_OK);
    int64_t pid = o.adapter->loaded.pid;
    assert_true(pid > 0 && pid != getpid());
    assert_true(mica_proc_descends(NULL, pid, getpid()));
    assert_false(mica_proc_descends(NULL, getpid(), pid));
    assert_int_equal(mica_procmem_read(NULL, pid, &m, &o.err), MICA_OK);
    assert_true(m.usage.peak_bytes > 24 << 20); /* the fake's ballast */
    assert_true(m.usage.peak_bytes >= m.usage.rss_bytes);
    assert_true(mica_proc_ticks(NULL, pid, &ticks) && ticks >= 0);
    end(&o);
    assert_int_equal(mica_procmem_read(NULL, pid, &m, &o.err), MICA_IO_ERROR);
}

/* ---- Misbehaviour ---- */

static const struct {
    const char *mode, *limits, *fault, *says;
} bad[] = {
    {"late_hello", "\"hello_s\": 1, \"quit_s\": 1", "late", "too late during hello"},
    {"late_load", "\"load_s\": 1", "late", "too late during load"},
    {"late_token", "\"token_s\": 1", "late", "too late during generate"},
    {"deaf", "\"hello_s\": 1", "late", "too late during hello"},
    {"lying_backend", FAKE_LIMITS, "", ""}, /* asked for cpu, it says cpu: the lie is tested below */
    {"unknown_backend", FAKE_LIMITS, "backend", "does not tell what computes"},
    {"partition", FAKE_LIMITS, "backend", "3 of 24 layers fell back"},
    {"dying", FAKE_LIMITS, "died", "it last said: out of luck"},
    {"dying_hello", FAKE_LIMITS, "died", "ended during hello"},
    {"garbage", FAKE_LIMITS, "garbage", "not JSON"},
    {"duplicate", FAKE_LIMITS, "garbage", "not JSON"},
    {"wrong_id", FAKE_LIMITS, "garbage", "another id"},
    {"wrong_type", FAKE_LIMITS, "garbage", "t_ns"},
    {"early_token", FAKE_LIMITS, "garbage", "at the wrong time"},
    {"clock_back", FAKE_LIMITS, "clock", "went backwards"},
    {"clock_future", FAKE_LIMITS, "clock", "future"},
    {"clock_past", FAKE_LIMITS, "clock", "before it was asked"},
    {"long_line", FAKE_LIMITS, "long", "a line of more than 1048576 bytes"},
    {"no_newline", FAKE_LIMITS, "long", "a line of more than 1048576 bytes"},
    {"endless", FAKE_LIMITS, "endless", "goes on after the last token"},
    {"miscount", FAKE_LIMITS, "count", "sent 12 tokens but says that there were 13"},
    {"prompt_off", FAKE_LIMITS, "count", "16 tokens where 32 were asked for"},
    {"refuses", FAKE_LIMITS, "refused", "this is no model of mine"},
    {"not_set_up", FAKE_LIMITS, "refused", "run adapters/fake/setup"},
};

static void test_misbehaviour(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t start_ns = mica_now_ns();
        outcome o = run_mode(bad[i].mode, bad[i].limits);
        bool wanted = strcmp(o.fault, bad[i].fault) == 0 && (o.status != MICA_OK) == (*bad[i].fault != '\0') &&
                      (!*bad[i].says || strstr(o.err.message, bad[i].says));
        if (!wanted)
            fail_msg("%s: status %d, fault \"%s\", %s", bad[i].mode, o.status, o.fault, o.status ? o.err.message : "");
        if (o.adapter && *bad[i].fault) { /* nothing more is asked of it */
            mica_adapter_request request = text_request(8, 2);
            assert_int_equal(mica_adapter_generate(o.adapter, &request, &o.reply, &o.err), MICA_INVALID_ARGUMENT);
        }
        end(&o);
        no_children();
        assert_true(mica_now_ns() - start_ns < 60 * (int64_t)1000000000);
    }
}

static void test_lying_about_the_backend(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_adapter *a;
    mica_error err;
    char label[80];
    mica_adapter_options options = mica_adapter_options_default();
    mica_adapter_load_request load = load_request("npu");
    fake_folder(&t, "lying_backend", FAKE_LIMITS);
    assert_int_equal(mica_adapter_proc_open(t.root, &options, &a, NULL, &err), MICA_OK);
    assert_int_equal(mica_adapter_load(a, &load, &err), MICA_OK);
    assert_int_equal(mica_adapter_confirm(a, "npu", true, label, &err), MICA_OK); /* allowed, and in the name */
    assert_string_equal(label, "npu (fell back to cpu)");
    assert_int_equal(mica_adapter_confirm(a, "default", false, label, &err), MICA_OK);
    assert_string_equal(label, "cpu");
    assert_int_equal(mica_adapter_confirm(a, "npu", false, label, &err), MICA_UNSUPPORTED);
    assert_non_null(strstr(err.message, "--allow-fallback"));
    assert_string_equal(a->fault, "backend");
    mica_adapter_close(a);
    tree_free(&t);
}

static void test_orphans_are_ended(void **state)
{
    (void)state;
    outcome o = run_mode("orphan", FAKE_LIMITS);
    const char *at = strstr(o.err.message, "child ");
    assert_string_equal(o.fault, "died");
    assert_non_null(at);
    pid_t child = (pid_t)strtol(at + 6, NULL, 10);
    assert_true(child > 1);
    end(&o);
    for (int i = 0; i < 200 && kill(child, 0) == 0; i++) { /* init may take a moment to bury it */
        char text[512];
        snprintf(text, sizeof text, "/proc/%d/stat", child);
        FILE *f = fopen(text, "r");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        text[n] = '\0';
        if (f)
            fclose(f);
        if (n > 0 && strstr(text, ") Z "))
            return;
        usleep(10000);
    }
    assert_true(kill(child, 0) != 0);
}

static void test_noise_does_not_block(void **state)
{
    (void)state;
    outcome o = run_mode("noisy", FAKE_LIMITS);
    assert_int_equal(o.status, MICA_OK);
    end(&o);
}

static void test_slow_quit(void **state)
{
    (void)state;
    outcome o = run_mode("slow_quit", "\"quit_s\": 1");
    assert_int_equal(o.status, MICA_OK);
    int64_t start_ns = mica_now_ns();
    end(&o);
    assert_true(mica_now_ns() - start_ns < 30 * (int64_t)1000000000);
    no_children();
}

static bool stop_now(void *user)
{
    return *(const int *)user > 0;
}

static void test_stop(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_adapter *a = NULL;
    mica_error err;
    int stop = 0;
    mica_adapter_reply reply = {.n_events = 0};
    mica_adapter_options options = mica_adapter_options_default();
    mica_adapter_load_request load = load_request("cpu");
    mica_adapter_request request = text_request(32, 12);
    options.stop = stop_now;
    options.user = &stop;
    fake_folder(&t, "late_token", FAKE_LIMITS);
    assert_int_equal(mica_adapter_proc_open(t.root, &options, &a, NULL, &err), MICA_OK);
    assert_int_equal(mica_adapter_load(a, &load, &err), MICA_OK);
    stop = 1;
    assert_int_equal(mica_adapter_generate(a, &request, &reply, &err), MICA_CANCELLED);
    assert_string_equal(a->fault, "stopped");
    mica_adapter_reply_free(&reply);
    mica_adapter_close(a);
    tree_free(&t);
    no_children();
}

/* ---- Manifests ---- */

static void test_manifests(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{\"name\": \"x\", \"protocol\": 1}", "command"},
        {"{\"name\": \"x\", \"protocol\": 2, \"command\": [\"true\"]}", "protocol 1"},
        {"{\"protocol\": 1, \"command\": [\"true\"]}", "name"},
        {"{\"name\": \"x\", \"protocol\": 1, \"command\": [1]}", "no text"},
        {"{\"name\": \"x\", \"protocol\": 1, \"command\": [\"true\"], \"timeouts\": {\"nap_s\": 1}}", "nap_s"},
        {"{\"name\": \"x\", \"protocol\": 1, \"command\": [\"true\"], \"timeouts\": {\"load_s\": -1}}", "load_s"},
        {"{\"name\": \"x\", \"protocol\": 1, \"command\": [\"./not-there\"]}", "cannot start"},
        {"[]", "name"},
        {"{", "not JSON"},
    };
    mica_adapter_options options = mica_adapter_options_default();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_tree t = tree_new();
        mica_adapter *a = NULL;
        mica_error err;
        tree_line(&t, "manifest.json", cases[i].text);
        mica_status status = mica_adapter_proc_open(t.root, &options, &a, NULL, &err);
        if (!status || !strstr(err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].text, status ? err.message : "was taken");
        tree_free(&t);
    }
    mica_adapter *a = NULL;
    mica_error err;
    assert_int_equal(mica_adapter_proc_open("/nonexistent", &options, &a, NULL, &err), MICA_IO_ERROR);
    no_children();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_more_replies_and_unload),
        cmocka_unit_test(test_text_only),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_memory_is_the_childs),
        cmocka_unit_test(test_misbehaviour),
        cmocka_unit_test(test_lying_about_the_backend),
        cmocka_unit_test(test_orphans_are_ended),
        cmocka_unit_test(test_noise_does_not_block),
        cmocka_unit_test(test_slow_quit),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_manifests),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
