/* Replies under a constraint: valid whatever the model would like to say, the same whoever drives them, ended where they
 * must, closed where they are cut, and healed at the prompt's end. */
#include "reply_util.h"

#include "session/constraint.h"

enum { CTX = 300 };

static const char person[] = "{\"type\":\"object\",\"properties\":{\"full_name\":{\"type\":\"string\"},\"age\":{\"type\":"
                             "\"integer\",\"minimum\":0,\"maximum\":150},\"favourite_colours\":{\"type\":\"array\",\"items\":{"
                             "\"enum\":[\"red\",\"green\",\"blue\"]},\"maxItems\":3}},\"required\":["
                             "\"full_name\",\"age\",\"favourite_colours\"],\"additionalProperties\":false}";
static const char tree[] = "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":"
                           "\"integer\"},\"children\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"}}},"
                           "\"required\":[\"id\",\"children\"],\"additionalProperties\":false}}}";
static const char colours[] = "[\"red\",\"red fox\",\"green tea\",\"\\u4f60\\u597d\",\"\\u4f60\\u4eec\"]";

/* What the tests of equality and validity run with. */
static const struct constraint_text {
    mica_constraint_kind kind;
    const char *text;
} texts[] = {
    {MICA_CONSTRAINT_JSON_SCHEMA, person},
    {MICA_CONSTRAINT_JSON_SCHEMA, tree},
    {MICA_CONSTRAINT_JSON, NULL},
    {MICA_CONSTRAINT_CHOICES, colours},
    {MICA_CONSTRAINT_REGEX, "(item [0-9]{2,4}: (the|an) [a-e]+(, )?){1,4}end"},
    {MICA_CONSTRAINT_REGEX, "[\\u4e00-\\u9fff]{3,9}!"},
    {MICA_CONSTRAINT_GBNF, "root ::= \"<list>\" item+ \"</list>\"\nitem ::= \"<item>\" [a-z ]* \"</item>\""},
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

static mica_constraint *make_constraint(mica_model *model, mica_constraint_kind kind, const char *text)
{
    mica_constraint_options o = mica_constraint_options_default();
    mica_constraint *c = NULL;
    mica_error err;
    o.kind = kind;
    o.text = text;
    o.length = text ? strlen(text) : 0;
    if (mica_constraint_new(model, &o, &c, &err))
        fail_msg("%s: %s", text, err.message);
    return c;
}

static bool matches(const mica_constraint *c, const char *text, size_t n, size_t *prefix)
{
    bool whole;
    mica_error err;
    if (mica_constraint_match(c, text, n, &whole, prefix, &err))
        fail_msg("%s", err.message);
    return whole;
}

static mica_model *tiny(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", name);
    return open_model(path, NULL);
}

/* As run_alone(), with the request's own top_logprobs: without any, forced runs are computed together. */
static void run_plain(mica_session *s, const request *q, record *r)
{
    mica_error err = {.message = ""};
    mica_result result = {.stop_reason = "none"};
    start_record(r, s);
    mica_generate_options o = recorded(q, r);
    o.top_logprobs = q->o.top_logprobs;
    mica_status status = mica_session_sync(s, q->prompt, q->n, &err);
    if (!status)
        status = mica_session_generate(s, &o, &result, &err);
    record_end(r, s, status, &result, err.message);
}

static void expect_reply(const record *r, const char *text, const char *reason, const char *what)
{
    if (r->length != strlen(text) || memcmp(r->text, text, r->length) != 0 || strcmp(r->reason, reason) != 0)
        fail_msg("%s: \"%.*s\" (%s: %s), not \"%s\" (%s)", what, (int)r->length, r->text, r->reason, r->message, text, reason);
    assert_int_equal(r->status, MICA_OK);
    assert_int_equal(r->result.gen_n, r->n_tokens);
}

/* ---- validity ---- */

/* A reply that has ended is valid; one that was cut is the beginning of a valid one. */
static void expect_valid(const mica_constraint *c, const record *r, const char *what)
{
    size_t prefix;
    bool whole = matches(c, r->text, r->length, &prefix);
    if (r->status)
        fail_msg("%s: %s", what, r->message);
    if (prefix != r->length)
        fail_msg("%s: not valid after %zu bytes: %.*s", what, prefix, (int)r->length, r->text);
    if (!whole && strcmp(r->reason, "length") != 0)
        fail_msg("%s: ended too early (%s): %.*s", what, r->reason, (int)r->length, r->text);
}

static request random_request(int i)
{
    request q = make_request(i);
    q.o.sampling.temperature = i % 4 == 3 ? 0.0f : 2.0f;
    q.o.sampling.top_k = i % 3 == 0 ? 40 : 0;
    q.o.sampling.top_p = 1.0f;
    q.o.sampling.min_p = 0.0f;
    q.o.n_stop = 0;
    q.o.max_tokens = 10 + i % 150;
    return q;
}

static void check_validity(const char *name, int n)
{
    static record r;
    mica_model *model = tiny(name);
    mica_session *s = open_session(model, CTX, 1, 32);
    int complete = 0, cut = 0;
    for (int t = 0; t < N_TEXTS; t++) {
        mica_constraint *c = make_constraint(model, texts[t].kind, texts[t].text);
        for (int i = 0; i < n; i++) {
            char what[100];
            request q = random_request(i + 100 * t);
            q.o.constraint = c;
            snprintf(what, sizeof what, "%s, constraint %d, request %d", name, t, i);
            run_plain(s, &q, &r);
            expect_valid(c, &r, what);
            assert_true(r.n_tokens <= q.o.max_tokens);
            complete += strcmp(r.reason, "length") != 0;
            cut += strcmp(r.reason, "length") == 0;
        }
        mica_constraint_free(c);
    }
    assert_true(complete > n && cut > n / 2); /* both kinds of ends were met */
    mica_session_free(s);
    mica_model_close(model);
}

static void test_random_replies_are_valid(void **state)
{
    (void)state;
    check_validity("llama", 40);
    check_validity("qwen2", 40);
    check_validity("gemma3", 20);
}

/* ---- a close ---- */

static void check_close(const char *name, mica_full_policy policy)
{
    static record r;
    mica_model *model = tiny(name);
    int closed = 0;
    for (int t = 0; t < N_TEXTS; t++) {
        mica_constraint *c = make_constraint(model, texts[t].kind, texts[t].text);
        for (int room = 1; room < 120; room += 1 + room / 9) {
            char what[100];
            request q = random_request(room + t);
            bool by_context = room % 2;
            q.n = 5;
            mica_session_options o = mica_session_options_default();
            mica_session *s;
            mica_error err;
            o.n_ctx = by_context ? (int32_t)q.n + room : CTX;
            o.n_threads = 1;
            o.full_policy = policy;
            assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
            q.o.max_tokens = by_context ? -1 : room;
            q.o.constraint = c;
            q.o.close = true;
            snprintf(what, sizeof what, "%s, constraint %d, room for %d", name, t, room);
            run_plain(s, &q, &r);
            if (r.status) { /* only where even the shortest text is too long */
                assert_int_equal(r.status, MICA_INVALID_ARGUMENT);
                assert_non_null(strstr(r.message, "shortest reply"));
                assert_true(room < 90 && r.n_tokens == 0);
            } else {
                if (!matches(c, r.text, r.length, NULL))
                    fail_msg("%s: not closed: %.*s", what, (int)r.length, r.text);
                assert_true(r.n_tokens <= room);
                assert_int_equal(r.n_tokens, r.result.gen_n);
                closed += strcmp(r.reason, by_context ? "context" : "length") == 0;
            }
            mica_session_free(s);
        }
        mica_constraint_free(c);
    }
    assert_true(closed > 20);
    mica_model_close(model);
}

static void test_close(void **state)
{
    (void)state;
    check_close("llama", MICA_FULL_ERROR);
    check_close("qwen2", MICA_FULL_STOP);
}

/* ---- the same reply, whoever drives it ---- */

static mica_session *open_speculating(mica_model *model)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = CTX;
    o.n_threads = 1;
    o.prefill_chunk = 16;
    o.draft_max = 12;
    o.draft_model = model;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

static request varied_request(const mica_constraint *c, int i)
{
    request q = make_request(i);
    q.o.constraint = c;
    q.o.close = i % 3 == 1;
    q.o.token_healing = i % 2;
    q.o.max_tokens = 70 + i * 7;
    q.o.n_stop = 0;
    return q;
}

/* Tokens and text; where logits are told they are the same too. */
static void expect_same_text(const record *a, const record *b, const char *what)
{
    if (a->n_tokens != b->n_tokens || memcmp(a->tokens, b->tokens, (size_t)a->n_tokens * sizeof *a->tokens) != 0)
        fail_msg("%s: other tokens", what);
    if (a->length != b->length || memcmp(a->text, b->text, a->length) != 0 || strcmp(a->reason, b->reason) != 0)
        fail_msg("%s: other text or another end", what);
    assert_int_equal(a->result.forced_n, b->result.forced_n);
}

typedef struct totals {
    int32_t forced, accepted, healed;
} totals;

static void check_drivers(mica_model *model, const mica_constraint *c, int i, const char *what, totals *sum)
{
    static record want, got;
    mica_session *plain = open_session(model, CTX, 1, 64), *guessing = open_speculating(model);
    request q = varied_request(c, i);
    run_alone(plain, &q, &want);
    if (want.status)
        fail_msg("%s: %s", what, want.message);
    q.o.top_logprobs = 0;
    run_plain(plain, &q, &got); /* forced runs at once, in a session that knows the prompt already */
    expect_same_text(&want, &got, what);
    for (int kind = MICA_SPECULATE_LOOKUP; kind <= MICA_SPECULATE_BOTH; kind++) {
        q.o.speculate = (mica_speculation)kind;
        q.o.draft_n = 3 + i % 9;
        run_plain(guessing, &q, &got);
        expect_same_text(&want, &got, what);
        sum->accepted += got.result.accepted_n;
        run_alone(guessing, &q, &got);
        expect_same(&want, &got, what);
    }
    sum->forced += want.result.forced_n;
    sum->healed += want.result.prompt_n < (int32_t)q.n;
    mica_session_free(plain);
    mica_session_free(guessing);
}

static void test_drivers_agree(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "qwen2", "gemma3"};
    for (int m = 0; m < 3; m++) {
        mica_model *model = tiny(names[m]);
        totals sum = {0, 0, 0};
        for (int t = 0; t < N_TEXTS; t++) {
            mica_constraint *c = make_constraint(model, texts[t].kind, texts[t].text);
            for (int i = 0; i < 6; i++) {
                char what[100];
                snprintf(what, sizeof what, "%s, constraint %d, request %d", names[m], t, i);
                check_drivers(model, c, i + t, what, &sum);
            }
            mica_constraint_free(c);
        }
        assert_true(sum.forced > 100 && sum.accepted > 100 && sum.healed > 10);
        mica_model_close(model);
    }
}

/* No draft reaches beyond what the constraint allows: of ten tokens nine at most can be guessed. */
static void test_drafts_are_cut(void **state)
{
    static record r;
    mica_session *s = open_speculating(*state);
    mica_constraint *c = make_constraint(*state, MICA_CONSTRAINT_REGEX, "[xy]{1,10}");
    request q = scripted_request(*state, "xxxxX");
    q.o.constraint = c;
    q.o.speculate = MICA_SPECULATE_LOOKUP;
    q.o.draft_n = 8;
    run_plain(s, &q, &r);
    expect_reply(&r, "xxxxxxxxxx", "stop", "ten of them");
    assert_true(r.result.drafted_n > 0 && r.result.drafted_n <= 9);
    mica_constraint_free(c);
    mica_session_free(s);
}

/* All constraints at once in one batch, with a reply that has none; steps so small that forced runs do not fit into one. */
static void check_batch(mica_model *model, int32_t step, int32_t top_logprobs)
{
    static record want[N_TEXTS + 1], got[N_TEXTS + 1];
    mica_batch_options o = mica_batch_options_default();
    mica_constraint *c[N_TEXTS + 1] = {NULL};
    mica_batch *b;
    mica_error err;
    o.max_sessions = N_TEXTS + 1;
    o.n_ctx = CTX;
    o.n_threads = 1;
    o.step_tokens = step;
    assert_int_equal(mica_batch_new(model, &o, &b, &err), MICA_OK);
    for (int t = 0; t <= N_TEXTS; t++) {
        mica_session *s = open_session(model, CTX, 1, 64), *in_batch;
        c[t] = t < N_TEXTS ? make_constraint(model, texts[t].kind, texts[t].text) : NULL;
        request q = varied_request(c[t], t);
        q.o.top_logprobs = top_logprobs;
        run_plain(s, &q, &want[t]);
        mica_session_free(s);
        assert_int_equal(mica_batch_session_new(b, NULL, &in_batch, &err), MICA_OK);
        memset(&got[t], 0, sizeof got[t]);
        start_record(&got[t], in_batch);
        mica_generate_options options = recorded(&q, &got[t]);
        options.top_logprobs = top_logprobs;
        if (mica_batch_submit(in_batch, q.prompt, q.n, &options, &err))
            fail_msg("%s", err.message);
    }
    while (mica_batch_step(b) > 0)
        ;
    for (int t = 0; t <= N_TEXTS; t++) {
        expect_same_text(&want[t], &got[t], "batch");
        assert_true(want[t].logprobs == got[t].logprobs);
        assert_true(want[t].cache == got[t].cache);
        mica_constraint_free(c[t]);
    }
    mica_batch_free(b);
}

static void test_batches(void **state)
{
    (void)state;
    mica_model *model = tiny("qwen2");
    check_batch(model, 8, 0);
    check_batch(model, 64, 0);
    check_batch(model, 64, 5);
    mica_model_close(model);
}

/* A reply that has begun gets its share of every step, even if its forced runs meet a long prompt that was there before. */
static void test_forced_runs_do_not_starve(void **state)
{
    (void)state;
    static record slow, fast;
    mica_model *model = tiny("qwen2");
    mica_constraint *c = make_constraint(model, MICA_CONSTRAINT_JSON_SCHEMA, person);
    mica_batch_options o = mica_batch_options_default();
    mica_batch *b;
    mica_session *s[2];
    mica_error err;
    request q = make_request(0), one = make_request(1);
    o.max_sessions = 2;
    o.n_ctx = CTX;
    o.step_tokens = 2;
    assert_int_equal(mica_batch_new(model, &o, &b, &err), MICA_OK);
    q.n = 250;
    for (size_t i = 0; i < q.n; i++)
        q.prompt[i] = 3 + (int32_t)i;
    one.n = 1;
    one.o.constraint = c;
    one.o.max_tokens = 60;
    for (int i = 0; i < 2; i++) {
        const request *which = i == 0 ? &q : &one;
        record *r = i == 0 ? &slow : &fast;
        assert_int_equal(mica_batch_session_new(b, NULL, &s[i], &err), MICA_OK);
        start_record(r, s[i]);
        mica_generate_options options = recorded(which, r);
        options.top_logprobs = 0;
        assert_int_equal(mica_batch_submit(s[i], which->prompt, which->n, &options, &err), MICA_OK);
    }
    while (!fast.done && mica_batch_step(b) > 0)
        ;
    assert_int_equal(slow.n_tokens, 0); /* its prompt is still being read */
    assert_true(fast.n_tokens > 20);
    mica_batch_free(b);
    mica_constraint_free(c);
    mica_model_close(model);
}

/* ---- ends ---- */

static const char red_or_fox[] = "root ::= \"red\" | \"red fox\"", red_or_sed[] = "[rs]ed( fox)?";

static void test_scripted_ends(void **state)
{
    static record r;
    mica_session *s = open_session(*state, 64, 1, 0);
    mica_constraint *fox = make_constraint(*state, MICA_CONSTRAINT_GBNF, red_or_fox);
    mica_constraint *zzz = make_constraint(*state, MICA_CONSTRAINT_GBNF, "root ::= \"zzz\"");
    mica_constraint *x = make_constraint(*state, MICA_CONSTRAINT_REGEX, "x*");
    mica_constraint *any = make_constraint(*state, MICA_CONSTRAINT_REGEX, red_or_sed);
    request q = scripted_request(*state, "R");
    q.o.max_tokens = 64 - 10;
    q.o.constraint = fox;
    q.o.ignore_eos = true; /* case gr-17 */
    run_plain(s, &q, &r);
    expect_reply(&r, "red fox", "stop", "gr-17, red fox");
    q.o.ignore_eos = false;
    q.o.constraint = any; /* "red" is chosen here, as the model has it; the token of a forced text need not be the script's */
    run_plain(s, &q, &r);
    expect_reply(&r, "red fox", "stop", "nothing can follow: no further step");
    assert_int_equal(r.n_tokens, 2);
    q = scripted_request(*state, "E");
    q.o.constraint = zzz;
    q.o.ignore_eos = true;
    run_plain(s, &q, &r);
    expect_reply(&r, "zzz", "stop", "gr-17, zzz");
    assert_int_equal(r.result.forced_n, r.n_tokens);
    q = scripted_request(*state, "X"); /* x for ever, and may end at any time */
    q.o.constraint = x;
    q.o.ignore_eos = true;
    q.o.max_tokens = 9;
    run_plain(s, &q, &r);
    expect_reply(&r, "xxxxxxxxx", "length", "ignore_eos goes on where the text may end");
    q = scripted_request(*state, "J"); /* the model ends after its text, which is one of the constraint's */
    q.o.constraint = make_constraint(*state, MICA_CONSTRAINT_REGEX, "[{}a-z\":0-9]*");
    run_plain(s, &q, &r);
    expect_reply(&r, "{\"a\":1}", "eos", "the model ends where the text may end");
    mica_constraint_free((mica_constraint *)q.o.constraint);
    mica_constraint_free(fox);
    mica_constraint_free(zzz);
    mica_constraint_free(x);
    mica_constraint_free(any);
    mica_session_free(s);
}

/* A caller's stop token that is text ends the reply only where it may end, and is no text of it there. */
static void test_stop_tokens_and_strings(void **state)
{
    static record r;
    static const char *const stop[] = {"d f", "never"};
    mica_session *s = open_session(*state, 64, 1, 0);
    const mica_vocab *vocab = s->model->vocab;
    int32_t x = mica_vocab_find(vocab, "x", 1), fox = mica_vocab_find(vocab, "\xE2\x96\x81" "fox", 6);
    mica_constraint *c = make_constraint(*state, MICA_CONSTRAINT_REGEX, "y{2}x*"), *open;
    mica_constraint *rf = make_constraint(*state, MICA_CONSTRAINT_REGEX, red_or_sed);
    request q = scripted_request(*state, "X");
    assert_true(x >= 0 && fox >= 0);
    q.o.constraint = c;
    q.o.stop_tokens = &x;
    q.o.n_stop_tokens = 1;
    q.o.max_tokens = 20;
    run_plain(s, &q, &r);
    expect_reply(&r, "yy", "eos", "x ends it after yy");
    q.o.constraint = open = make_constraint(*state, MICA_CONSTRAINT_REGEX, "[xy]{3,}"); /* x would be text, but no choice yet */
    run_plain(s, &q, &r);
    assert_string_equal(r.reason, "eos");
    assert_true(r.length >= 3 && matches(open, r.text, r.length, NULL));
    q = scripted_request(*state, "R");
    q.o.constraint = rf;
    q.o.stop_tokens = &fox;
    q.o.n_stop_tokens = 1;
    run_plain(s, &q, &r);
    expect_reply(&r, "red", "eos", "fox ends it after red");
    q.o.n_stop_tokens = 0;
    q.o.stop = stop;
    q.o.n_stop = 2;
    run_plain(s, &q, &r);
    expect_reply(&r, "re", "stop", "a stop string");
    q.o.stop = (const char *const[]){"foxes"}; /* held back until the end, and then told */
    q.o.n_stop = 1;
    run_plain(s, &q, &r);
    expect_reply(&r, "red fox", "stop", "the beginning of a stop string at the end");
    mica_constraint_free(c);
    mica_constraint_free(rf);
    mica_constraint_free(open);
    mica_session_free(s);
}

/* ---- healing ---- */

static void test_healing(void **state)
{
    static record r;
    mica_session *s = open_session(*state, 64, 1, 0);
    mica_constraint *c = make_constraint(*state, MICA_CONSTRAINT_GBNF, "root ::= \"pha beta\"");
    request q = scripted_request(*state, "Sa"); /* the script goes on with "alpha": healing finds it from "a" */
    q.o.token_healing = true;
    run_plain(s, &q, &r);
    expect_reply(&r, "lpha beta gamma delta", "eos", "healing");
    assert_int_equal(r.result.prompt_n, 1);
    size_t n;
    const int32_t *tokens = mica_session_tokens(s, &n);
    assert_int_equal(tokens[1], mica_vocab_find(s->model->vocab, "alpha", 5));
    q = scripted_request(*state, "Sal");
    q.o.token_healing = true;
    run_plain(s, &q, &r);
    assert_int_equal(r.result.prompt_n, 2); /* one token only is taken back */
    q = scripted_request(*state, "Sal");
    q.o.token_healing = true;
    q.o.constraint = c;
    run_plain(s, &q, &r);
    expect_reply(&r, "pha beta", "stop", "healing with a constraint");
    q = scripted_request(*state, "S"); /* nothing stands before it: it stays */
    q.o.token_healing = true;
    run_plain(s, &q, &r);
    expect_reply(&r, "alpha beta gamma delta", "eos", "a prompt of one token");
    q.prompt[0] = mica_vocab_find(s->model->vocab, "x", 1);
    q.prompt[1] = mica_vocab_special_tokens(s->model->vocab)->bos;
    q.n = 2;
    q.o.max_tokens = 1;
    run_plain(s, &q, &r);
    assert_int_equal(r.result.prompt_n, 2); /* control tokens are no text */
    mica_constraint_free(c);
    mica_session_free(s);
}

/* Whatever the last token was: the text of prompt and reply goes on over it, and nothing is told twice. */
static void test_healed_text_is_whole(void **state)
{
    (void)state;
    static record r;
    static const char *const names[] = {"llama", "qwen2", "gemma3"};
    int changed = 0;
    for (int m = 0; m < 3; m++) {
        mica_model *model = tiny(names[m]);
        mica_session *s = open_session(model, CTX, 1, 32);
        for (int i = 0; i < 60; i++) {
            char *prompt, *all;
            size_t n_prompt, n_all, n;
            mica_error err;
            request q = random_request(i);
            q.n = 2 + (size_t)i % 20;
            if (i % 2) /* which longer tokens begin with */
                q.prompt[q.n - 1] = mica_vocab_find(s->model->vocab, i % 4 == 1 ? "t" : "a", 1);
            q.o.token_healing = true;
            q.o.ignore_eos = true;
            run_plain(s, &q, &r);
            assert_int_equal(r.status, MICA_OK);
            const int32_t *tokens = mica_session_tokens(s, &n);
            assert_int_equal(mica_model_detokenize(model, q.prompt, q.n, false, &prompt, &n_prompt, &err), MICA_OK);
            assert_int_equal(mica_model_detokenize(model, tokens, n, false, &all, &n_all, &err), MICA_OK);
            assert_true(n_all >= n_prompt);
            assert_memory_equal(all, prompt, n_prompt);
            changed += tokens[q.n - 1] != q.prompt[q.n - 1];
            mica_free(prompt);
            mica_free(all);
        }
        mica_session_free(s);
        mica_model_close(model);
    }
    assert_true(changed > 10);
}

/* ---- what is refused ---- */

static void expect_refused(mica_session *s, request q, const char *says)
{
    static record r;
    run_plain(s, &q, &r);
    assert_int_equal(r.status, MICA_INVALID_ARGUMENT);
    if (!strstr(r.message, says))
        fail_msg("\"%s\" does not say \"%s\"", r.message, says);
    q.o = mica_generate_options_default(); /* the session stays usable */
    q.o.max_tokens = 2;
    run_plain(s, &q, &r);
    assert_int_equal(r.status, MICA_OK);
}

/* Bans each token that "red fox" or "dog" begins with; returns their number. */
static size_t ban_beginnings(const mica_vocab *vocab, mica_logit_bias *ban, size_t room)
{
    size_t n = 0;
    for (int32_t i = 0; i < mica_vocab_size(vocab); i++) {
        char bytes[16];
        size_t length = mica_vocab_bytes(vocab, i, false, bytes, sizeof bytes);
        bool is_red = length <= 7 && memcmp(bytes, "red fox", length) == 0;
        bool is_dog = length <= 3 && memcmp(bytes, "dog", length) == 0;
        if (length > 0 && (is_red || is_dog)) {
            assert_true(n < room);
            ban[n++] = (mica_logit_bias){.token = i, .bias = -INFINITY};
        }
    }
    assert_true(n >= 3);
    return n;
}

static void test_refusals(void **state)
{
    mica_model *other = tiny("llama");
    mica_session *s = open_session(*state, 64, 1, 0);
    mica_constraint *foreign = make_constraint(other, MICA_CONSTRAINT_JSON, NULL);
    mica_constraint *bare = make_constraint(NULL, MICA_CONSTRAINT_JSON, NULL);
    mica_constraint *fox = make_constraint(*state, MICA_CONSTRAINT_CHOICES, "[\"red fox\",\"dog\"]");
    request q = scripted_request(*state, "R");
    q.o.constraint = foreign;
    expect_refused(s, q, "another model");
    q.o.constraint = bare;
    expect_refused(s, q, "another model");
    q.o.constraint = fox;
    q.o.close = true;
    q.o.max_tokens = 1;
    expect_refused(s, q, "shortest reply that the constraint allows takes 3 tokens");
    mica_logit_bias ban[64];
    q.o.max_tokens = 20;
    q.o.sampling.logit_bias = ban;
    q.o.sampling.n_logit_bias = ban_beginnings(s->model->vocab, ban, 64);
    expect_refused(s, q, "logit_bias bans every token that the constraint allows");
    mica_constraint_free(foreign);
    mica_constraint_free(bare);
    mica_constraint_free(fox);
    mica_session_free(s);
    mica_model_close(other);
}

static void test_bad_constraints(void **state)
{
    (void)state;
    static const struct {
        mica_constraint_kind kind;
        const char *text;
        mica_status code;
        const char *says;
    } bad[] = {{MICA_CONSTRAINT_CHOICES, "[]", MICA_INVALID_ARGUMENT, "empty"},
               {MICA_CONSTRAINT_CHOICES, "[1]", MICA_BAD_TEXT, "choice 1"},
               {MICA_CONSTRAINT_CHOICES, "{}", MICA_BAD_TEXT, "array"},
               {MICA_CONSTRAINT_CHOICES, "[\"a\"", MICA_BAD_TEXT, "not JSON"},
               {(mica_constraint_kind)9, "", MICA_INVALID_ARGUMENT, "kind"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica_constraint_options o = mica_constraint_options_default();
        mica_constraint *c = (mica_constraint *)&o;
        mica_error err;
        o.kind = bad[i].kind;
        o.text = bad[i].text;
        o.length = strlen(o.text);
        assert_int_equal(mica_constraint_new(NULL, &o, &c, &err), bad[i].code);
        assert_null(c);
        assert_non_null(strstr(err.message, bad[i].says));
    }
}

static void test_match(void **state)
{
    (void)state;
    size_t prefix;
    mica_constraint *c = make_constraint(NULL, MICA_CONSTRAINT_CHOICES, colours);
    assert_true(matches(c, "red", 3, &prefix) && prefix == 3);
    assert_true(matches(c, "red fox", 7, NULL));
    assert_false(matches(c, "red f", 5, &prefix));
    assert_int_equal(prefix, 5);
    assert_false(matches(c, "red dog", 7, &prefix));
    assert_int_equal(prefix, 4);
    assert_false(matches(c, "", 0, &prefix));
    assert_int_equal(prefix, 0);
    mica_constraint_free(c);
    mica_constraint_free(NULL);
}

/* ---- forced runs ---- */

/* Keys are not chosen; and what the run's end could be part of is. */
static void test_forced_runs(void **state)
{
    (void)state;
    static record r;
    mica_model *model = tiny("qwen2");
    mica_session *s = open_session(model, CTX, 1, 32);
    mica_constraint *c = make_constraint(model, MICA_CONSTRAINT_REGEX, "the long fixed start of this answer: (yes|no|north)");
    request q = random_request(1);
    q.o.constraint = c;
    q.o.max_tokens = -1;
    run_plain(s, &q, &r);
    expect_valid(c, &r, "a fixed beginning");
    assert_string_equal(r.reason, "stop");
    assert_true(r.result.forced_n > r.n_tokens / 2 && r.result.forced_n < r.n_tokens);
    mica_constraint_free(c);
    q.o.constraint = c = make_constraint(model, MICA_CONSTRAINT_REGEX, "abth(e|x)"); /* a, b, th: but there is a token "the" */
    run_plain(s, &q, &r);
    expect_valid(c, &r, "a token reaches beyond the run");
    assert_int_equal(r.result.forced_n, 2);
    mica_constraint_free(c);
    q.o.constraint = c = make_constraint(model, MICA_CONSTRAINT_REGEX, "abth(x|y)"); /* no token does */
    run_plain(s, &q, &r);
    expect_valid(c, &r, "no token reaches beyond the run");
    assert_int_equal(r.result.forced_n, 3);
    mica_constraint_free(c);
    mica_session_free(s);
    mica_model_close(model);
}

int main(void)
{
    mica_model *model = open_model(SCRIPTED, NULL);
#define TEST(f) cmocka_unit_test_prestate(f, model)
    const struct CMUnitTest tests[] = {
        TEST(test_match), TEST(test_bad_constraints), TEST(test_scripted_ends), TEST(test_stop_tokens_and_strings),
        TEST(test_healing), TEST(test_healed_text_is_whole), TEST(test_refusals), TEST(test_forced_runs),
        TEST(test_random_replies_are_valid), TEST(test_close), TEST(test_drivers_agree), TEST(test_batches),
        TEST(test_drafts_are_cut),
        TEST(test_forced_runs_do_not_starve),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mica_model_close(model);
    return failed;
}
