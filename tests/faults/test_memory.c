/* Every allocation that the library makes is refused once, one after the other, until a run meets no refusal any more: each
 * run ends with MICA_OUT_OF_MEMORY or does its work, nothing is left behind (blocks, mapped memory, descriptors, threads,
 * files), and the next run without a refusal gives the same result as the first. */
#include <dirent.h>
#include <unistd.h>

#include "../unit/snapshot_util.h"
#include "inject.h"
#include "mica/mica_governor.h"
#include "mica/mica_receipt.h"
#include "mica/mica_tasks.h"
#include "mica/mica_tools.h"

#define LLAMA MICA_TEST_DATA "/tiny/llama.gguf"
#define START 0xCBF29CE484222325ull

typedef struct world {
    mica_model *model;
    folder folder;
    uint64_t hash; /* of what a run gave */
    char path[192];
} world;

static void add(world *w, const void *data, size_t n) { w->hash = hash_bytes(w->hash, data, n); }
static void add_text(world *w, const char *text) { add(w, text, strlen(text) + 1); }

/* The form of a JSON text: its numbers are measured, and differ. */
static void add_form(world *w, const char *text, size_t length)
{
    uint32_t mask = mica_faults_plan()->mask;
    mica_faults_plan()->mask = 0; /* this is the test's */
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    char *form = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    assert_non_null(form);
    for (const char *c = form; *c; c++)
        if (!strchr("0123456789.+-e", *c))
            add(w, c, 1);
    free(form);
    json_decref(object);
    mica_faults_plan()->mask = mask;
}

/* ---- What is done: a model and text ---- */

static mica_status text_of(world *w, mica_model *model, mica_error *err)
{
    static const char text[] = "E xylophone \xF0\x9F\x99\x82 <|im_end|>";
    int32_t *tokens = NULL;
    char *back = NULL, *key = NULL, *value = NULL, *kernels = NULL;
    size_t n, length;
    mica_status status = mica_model_tokenize(model, text, sizeof text - 1, MICA_TOKENIZE_PARSE_SPECIAL, &tokens, &n, err);
    if (!status) {
        add(w, tokens, n * sizeof *tokens);
        status = mica_model_detokenize(model, tokens, n, true, &back, &length, err);
    }
    if (!status) {
        add(w, back, length);
        status = mica_model_metadata(model, 0, &key, &value, err);
    }
    if (!status) {
        add_text(w, value);
        status = mica_model_explain_kernels(model, &kernels, err);
    }
    if (!status)
        add_text(w, kernels);
    mica_free(tokens);
    mica_free(back);
    mica_free(key);
    mica_free(value);
    mica_free(kernels);
    return status;
}

static mica_status do_model(world *w, mica_error *err)
{
    mica_model *model;
    mica_status status = mica_model_open(SCRIPTED, NULL, &model, err);
    if (status)
        return status;
    status = text_of(w, model, err);
    mica_model_close(model);
    return status;
}

static mica_status do_other_model(world *w, mica_error *err)
{
    mica_model *model;
    mica_status status = mica_model_open(LLAMA, NULL, &model, err);
    if (status)
        return status;
    status = text_of(w, model, err);
    mica_model_close(model);
    return status;
}

/* ---- A session ---- */

static mica_session_options small_options(void)
{
    mica_session_options o = mica_session_options_default();
    o.n_ctx = 64;
    o.n_threads = 2;
    o.prefill_chunk = 16;
    return o;
}

static int hash_text(void *user, const char *text, size_t length)
{
    add(user, text, length);
    return 0;
}

static mica_generate_options reply_options(world *w)
{
    mica_generate_options g = mica_generate_options_default();
    g.max_tokens = 4;
    g.sampling.temperature = 0;
    g.ignore_eos = true;
    g.on_text = hash_text;
    g.user = w;
    return g;
}

static int hash_logits(void *user, size_t position, const float *logits)
{
    (void)position;
    add(user, logits, 8 * sizeof *logits);
    return 0;
}

static mica_status embed_and_score(world *w, mica_session *s, mica_error *err)
{
    int32_t tokens[9];
    mica_model_info info;
    mica_model_get_info(w->model, &info);
    float vector[4096];
    some_tokens(tokens, 9);
    assert_in_range(info.n_embd, 1, 4096);
    mica_status status = mica_session_score(s, tokens, 9, 4, hash_logits, w, err);
    if (!status)
        status = mica_session_embed(s, tokens, 9, MICA_POOLING_MEAN, true, vector, err);
    if (!status)
        add(w, vector, (size_t)info.n_embd * sizeof *vector);
    return status;
}

static mica_status save_and_go_on(world *w, mica_session *s, mica_error *err)
{
    mica_session_options o = small_options();
    mica_session *other = NULL;
    void *state = NULL;
    size_t n;
    mica_generate_options g = reply_options(w);
    mica_status status = mica_session_save(s, w->path, err);
    if (!status)
        status = mica_session_snapshot(s, &state, &n, err);
    if (!status)
        status = mica_session_new(w->model, &o, &other, err);
    if (!status)
        status = mica_session_restore(other, w->path, err);
    if (!status)
        status = mica_session_restore_memory(other, state, n, err);
    if (!status)
        status = mica_session_generate(other, &g, NULL, err);
    mica_session_free(other);
    mica_free(state);
    return status;
}

static mica_status do_session(world *w, mica_error *err)
{
    mica_session_options o = small_options();
    mica_generate_options g = reply_options(w);
    mica_session *s;
    o.draft_max = 4;
    g.speculate = MICA_SPECULATE_LOOKUP;
    mica_status status = mica_session_new(w->model, &o, &s, err);
    if (status)
        return status;
    status = mica_session_prompt(s, "E x E x E", 9, 0, err);
    if (!status)
        status = mica_session_generate(s, &g, NULL, err);
    if (!status)
        status = save_and_go_on(w, s, err);
    if (!status)
        status = embed_and_score(w, s, err);
    if (!status)
        status = mica_session_set_threads(s, 3, NULL, err);
    mica_session_free(s);
    return status;
}

/* ---- Constraints ---- */

static const mica_constraint_options constraints[] = {
    {.kind = MICA_CONSTRAINT_JSON_SCHEMA,
     .text = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":150},"
             "\"b\":{\"enum\":[\"x\",1,null]},\"c\":{\"$ref\":\"#/$defs/s\"},"
             "\"d\":{\"type\":\"string\",\"pattern\":\"^[a-c]{1,3}\\\\p{L}$\"}},\"required\":[\"a\"],"
             "\"additionalProperties\":{\"type\":\"number\",\"multipleOf\":0.5},"
             "\"$defs\":{\"s\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/s\"},\"maxItems\":2}}}"},
    {.kind = MICA_CONSTRAINT_JSON, .text = "", .whitespace = true},
    {.kind = MICA_CONSTRAINT_GBNF,
     .text = "root ::= [a-z]+ (\" \" number){1,2}\nnumber ::= \"-\"? [0-9]+ | \"(\" root \")\"\n"},
    {.kind = MICA_CONSTRAINT_REGEX, .text = "(ab|c[d-f]?){2,5}x\\d*"},
    {.kind = MICA_CONSTRAINT_CHOICES, .text = "[\"positive\",\"negative\",\"n/a\"]"},
};

static mica_status constrained_reply(world *w, const mica_constraint *c, mica_error *err)
{
    mica_session_options o = small_options();
    mica_generate_options g = reply_options(w);
    mica_session *s;
    o.constrained = true;
    g.constraint = c;
    g.max_tokens = 20;
    g.close = true;
    mica_status status = mica_session_new(w->model, &o, &s, err);
    if (status)
        return status;
    status = mica_session_prompt(s, "E", 1, 0, err);
    if (!status)
        status = mica_session_generate(s, &g, NULL, err);
    mica_session_free(s);
    return status;
}

static mica_status one_constraint(world *w, size_t i, mica_error *err)
{
    mica_constraint_options o = constraints[i];
    mica_constraint *c;
    bool matches;
    size_t prefix;
    o.struct_size = sizeof o;
    o.length = strlen(o.text);
    mica_status status = mica_constraint_new(w->model, &o, &c, err);
    if (status)
        return status;
    status = mica_constraint_match(c, "{\"a\":12", 7, &matches, &prefix, err);
    if (!status) {
        add(w, &prefix, sizeof prefix);
        status = constrained_reply(w, c, err);
    }
    mica_constraint_free(c);
    return status;
}

static mica_status do_schema(world *w, mica_error *err) { return one_constraint(w, 0, err); }

static mica_status do_grammars(world *w, mica_error *err)
{
    mica_status status = MICA_OK;
    for (size_t i = 1; i < sizeof constraints / sizeof *constraints && !status; i++)
        status = one_constraint(w, i, err);
    return status;
}

/* ---- Chat and tools ---- */

static const char tool_list[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"says\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"}},\"required\":[\"q\"]}}}]";
static const char request[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief. <|im_end|>\"},{\"role\":\"user\",\"content\":\"E \xC3\xA9\"},"
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
    "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"q\\\":"
    "\\\"<|im_end|>\\\"}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"7\"}]}";

static int hash_event(void *user, const mica_tool_event *event)
{
    add(user, &event->kind, sizeof event->kind);
    add(user, event->text, event->length);
    return 0;
}

static mica_status parse_calls(world *w, const mica_tools *tools, mica_error *err)
{
    static const char reply[] =
        "Well. <tool_call>\n{\"name\": \"f\", \"arguments\": {\"q\": \"a b\"}}\n</tool_call> <tool_call>{\"na";
    mica_tool_parser *parser;
    mica_status status = mica_tool_parser_new(tools, 5, hash_event, w, &parser, err);
    if (status)
        return status;
    for (size_t i = 0; i < sizeof reply - 1 && !status; i += 7)
        status = mica_tool_parser_feed(parser, reply + i, sizeof reply - 1 - i < 7 ? sizeof reply - 1 - i : 7, err);
    if (!status)
        status = mica_tool_parser_finish(parser, err);
    mica_tool_parser_free(parser);
    return status;
}

static mica_status do_tools(world *w, mica_error *err)
{
    mica_chat_options o = mica_chat_options_default();
    mica_tools *tools;
    int32_t *tokens = NULL;
    char *text = NULL;
    size_t n, length;
    mica_status status = mica_tools_new(w->model, tool_list, sizeof tool_list - 1, NULL, &tools, err);
    if (status)
        return status;
    o.tools = tools;
    o.now_unix = 0;
    status = mica_chat_tokenize(w->model, request, sizeof request - 1, &o, &tokens, &n, &text, &length, err);
    if (!status) {
        add(w, tokens, n * sizeof *tokens);
        add(w, text, length);
        status = parse_calls(w, tools, err);
    }
    mica_free(tokens);
    mica_free(text);
    mica_tools_free(tools);
    return status;
}

/* A template that uses much of the language. */
static mica_status do_template(world *w, mica_error *err)
{
    static const char text[] =
        "{%- macro say(m, n=2) -%}[{{ m.role|upper }}:{{ m.content|trim|default('-') }}{{ '%03d' % n }}]{%- endmacro -%}"
        "{% set ns = namespace(i=0) %}{% for m in messages if m.role != 'tool' %}{% set ns.i = ns.i + loop.index %}"
        "{{ say(m, ns.i) }}"
        "{% if loop.first and 'Be' in m.content %}{{ {'a': [1, 2.5, none], 'b': m}|tojson(indent=2) }}{% endif %}{% endfor %}"
        "{{ messages|map(attribute='role')|join(',') }}{{ range(5)|list|reverse|list }}"
        "{{ 'x,y'.split(',')[1].replace('y', 'z') * 3 }}"
        "{{ strftime_now('%Y') }}{% if not add_generation_prompt is defined %}no{% endif %}{{ messages[-1:]|length }}";
    char *out;
    size_t length;
    mica_status status =
        mica_template_render(text, sizeof text - 1, request, sizeof request - 1, "<s>", NULL, 0, &out, &length, err);
    if (status)
        return status;
    add(w, out, length);
    mica_free(out);
    return MICA_OK;
}

/* ---- A batch ---- */

typedef struct ends {
    world *w;
    mica_status worst;
    int n;
    mica_error err;
} ends;

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    ends *e = user;
    (void)result;
    e->n++;
    if (status) {
        e->worst = status;
        e->err = *error;
    }
}

static mica_status run_batch(world *w, mica_batch *batch, mica_session *const s[2], mica_error *err)
{
    ends e = {.w = w};
    mica_generate_options g = mica_generate_options_default();
    int32_t tokens[40];
    int n = 0;
    mica_status status = MICA_OK;
    g.max_tokens = 4;
    g.sampling.temperature = 0;
    g.on_done = on_done;
    g.user = &e;
    some_tokens(tokens, 40);
    for (; n < 2 && !status; n++)
        status = mica_batch_submit(s[n], tokens, 40 - (size_t)n, &g, err);
    n -= status != MICA_OK;
    while (mica_batch_step(batch) > 0)
        ;
    assert_int_equal(e.n, n);
    for (int i = 0; i < 2 && !status; i++) {
        size_t all;
        const int32_t *history = mica_session_tokens(s[i], &all);
        add(w, history, all * sizeof *history);
    }
    if (!status && e.worst)
        *err = e.err;
    return status ? status : e.worst;
}

static mica_status do_batch(world *w, mica_error *err)
{
    mica_batch_options o = mica_batch_options_default();
    mica_batch *batch;
    mica_session *s[2] = {NULL, NULL};
    int64_t restored;
    o.max_sessions = 2;
    o.n_ctx = 64;
    o.n_threads = 2;
    mica_status status = mica_batch_new(w->model, &o, &batch, err);
    if (status)
        return status;
    for (int i = 0; i < 2 && !status; i++)
        status = mica_batch_session_new(batch, NULL, &s[i], err);
    if (!status)
        status = run_batch(w, batch, s, err);
    if (!status)
        status = mica_batch_save_prefixes(batch, w->path, err);
    if (!status)
        status = mica_batch_restore_prefixes(batch, w->path, &restored, err);
    mica_session_free(s[0]);
    mica_batch_free(batch); /* and the other one */
    return status;
}

/* ---- Receipts, tasks, the governor ---- */

static mica_status receipt_of(world *w, mica_session *s, mica_receipt *receipt, mica_error *err)
{
    mica_generate_options g = reply_options(w);
    char *text;
    mica_status status = mica_session_set_receipt(s, receipt, err);
    if (!status)
        status = mica_session_prompt(s, "E", 1, 0, err);
    if (!status)
        status = mica_session_generate(s, &g, NULL, err);
    if (!status)
        status = mica_receipt_json(receipt, &text, err);
    if (!status) {
        add_form(w, text, strlen(text));
        mica_free(text);
    }
    (void)mica_session_set_receipt(s, NULL, NULL);
    return status;
}

static mica_status do_receipt(world *w, mica_error *err)
{
    static const char *const conditions[] = {"no_drop", "max_temp=1000"};
    unlink(w->path); /* or the hash would come from the file that the run before left */
    mica_receipt_options o = mica_receipt_options_default();
    mica_session_options so = small_options();
    mica_model *model = NULL; /* one that has not been hashed yet */
    mica_receipt *receipt = NULL;
    mica_session *s = NULL;
    o.require = conditions;
    o.n_require = 1;
    o.hash_cache = w->path;
    mica_status status = mica_model_open(SCRIPTED, NULL, &model, err);
    if (!status)
        status = mica_receipt_new(model, &o, &receipt, err);
    if (!status)
        status = mica_session_new(model, &so, &s, err);
    if (!status)
        status = receipt_of(w, s, receipt, err);
    mica_session_free(s);
    mica_receipt_free(receipt);
    mica_model_close(model);
    return status;
}

static mica_status do_redact(world *w, mica_error *err)
{
    static const char task[] = "{\"version\":1,\"kind\":\"redact\",\"name\":\"r\",\"description\":\"d\","
                               "\"detect\":[\"email\",\"phone\",\"iban\",\"card\","
                               "\"ip\",\"date\"],\"replacement\":\"[{type}]\"}";
    static const char text[] =
        "Write to ann@example.org or +44 20 7946 0958, DE89 3704 0044 0532 0130 00, 10.0.0.1, 2024-05-06.";
    mica_task_input input = mica_task_input_default();
    mica_task *t;
    char *result;
    size_t n;
    input.text = text;
    input.length = sizeof text - 1;
    mica_status status = mica_task_new(NULL, task, sizeof task - 1, &t, err);
    if (status)
        return status;
    status = mica_task_run(t, NULL, &input, &result, &n, err);
    if (!status) {
        add_form(w, result, n);
        mica_free(result);
    }
    mica_task_free(t);
    return status;
}

static mica_status do_classify(world *w, mica_error *err)
{
    static const char task[] = "{\"version\":1,\"kind\":\"classify\",\"name\":\"c\",\"description\":\"d\","
                               "\"prompt\":{\"text\":\"{examples}T: {input}\\nL:\",\"example\":\"T: {input}\\nL: {output}\\n\","
                               "\"examples\":[{\"input\":\"a\",\"output\":\"x\"}],\"chat\":false},"
                               "\"labels\":[\"x\",\"y\",\"zz\"]}";
    mica_session_options o = small_options();
    mica_task_input input = mica_task_input_default();
    mica_task *t = NULL;
    mica_session *s = NULL;
    char *result;
    size_t n;
    input.text = "b";
    input.length = 1;
    mica_status status = mica_task_new(w->model, task, sizeof task - 1, &t, err);
    if (!status)
        status = mica_session_new(w->model, &o, &s, err);
    if (!status)
        status = mica_task_run(t, s, &input, &result, &n, err);
    if (!status) {
        add_form(w, result, n);
        mica_free(result);
    }
    mica_session_free(s);
    mica_task_free(t);
    return status;
}

static mica_status do_governor(world *w, mica_error *err)
{
    static const char policy[] = "{\"version\":1,\"objective\":\"sustained\",\"name\":\"n\",\"max_tokens\":100}";
    mica_device_options d = mica_device_options_default();
    mica_governor_options g = mica_governor_options_default();
    mica_session_options o = small_options();
    mica_generate_options r = reply_options(w);
    mica_device *device = NULL;
    mica_governor *governor = NULL;
    mica_session *s = NULL;
    mica_status status = mica_device_open(&d, &device, err);
    g.device = device;
    g.policy = policy;
    g.policy_length = sizeof policy - 1;
    if (!status)
        status = mica_governor_new(&g, &governor, err);
    o.governor = governor;
    if (!status)
        status = mica_session_new(w->model, &o, &s, err);
    if (!status)
        status = mica_session_prompt(s, "E", 1, 0, err);
    if (!status)
        status = mica_session_generate(s, &r, NULL, err);
    mica_session_free(s);
    mica_governor_free(governor);
    mica_device_close(device);
    return status;
}

/* ---- One refusal after the other ---- */

typedef mica_status (*work_fn)(world *w, mica_error *err);

/* Those that have `part` in them. */
static int count_names(const char *path, const char *part)
{
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strstr(e->d_name, part) != NULL;
    if (dir)
        closedir(dir);
    return n;
}

typedef struct left {
    mica_faults_live live;
    int descriptors, threads, files;
} left;

/* A thread that has been joined may be in the list for a moment. */
static void wait_for_threads(int n)
{
    for (int i = 0; i < 200 && count_names("/proc/self/task", "") > n; i++)
        usleep(1000);
}

static left what_is_left(const world *w)
{
    return (left){mica_faults_live_now(), count_names("/proc/self/fd", ""), count_names("/proc/self/task", ""),
                  count_names(w->folder.dir, ".tmp-")};
}

/* Returns whether nothing is. */
static bool nothing_left(const char *name, int64_t n, const left *before, const left *after)
{
    mica_fault_plan *p = mica_faults_plan();
    bool is = true;
    if (after->live.blocks != before->live.blocks || after->live.mapped_bytes != before->live.mapped_bytes ||
        after->descriptors != before->descriptors || after->threads != before->threads || after->files > before->files) {
        is = false;
        print_error("%s, allocation %lld (%s): %lld blocks, %lld mapped bytes, %d descriptors, %d threads, %d files are left\n",
                    name, (long long)n, p->call, (long long)(after->live.blocks - before->live.blocks),
                 (long long)(after->live.mapped_bytes - before->live.mapped_bytes), after->descriptors - before->descriptors,
                 after->threads - before->threads, after->files - before->files);
    }
    return is;
}

/* What a run said is so: an error that is one of memory, or the work. */
static bool is_true(const char *name, int64_t n, mica_status status, const mica_error *err, bool same)
{
    mica_fault_plan *p = mica_faults_plan();
    bool memory = status == MICA_OUT_OF_MEMORY && err->code == status && (strstr(err->message, "memory") || strstr(err->message, "thread"));
    if (status && !memory)
        print_error("%s, allocation %lld (%s): %s: %s\n", name, (long long)n, p->call, mica_status_name(status), err->message);
    else if (!status && !same)
        print_error("%s, allocation %lld (%s): it says that all is well, and gives something else\n", name, (long long)n, p->call);
    return status ? memory : same;
}

static mica_status once(work_fn work, world *w, int64_t first, int64_t last, mica_error *err)
{
    mica_fault_plan *p = mica_faults_plan();
    *p = (mica_fault_plan){.mask = 1u << CALL_ALLOC | 1u << CALL_THREAD, .error = 1, .first = first, .last = last};
    w->hash = START;
    *err = (mica_error){.message = ""};
    mica_status status = work(w, err);
    p->mask = 0;
    return status;
}

/* Of so many points some hundred are tried, unless all are wanted (scripts/test-faults). */
static int64_t stride_of(int64_t points)
{
    enum { MOST = 150 };
    const char *wanted = getenv("MICA_FAULTS");
    return points <= MOST || (wanted && strcmp(wanted, "all") == 0) ? 1 : (points + MOST - 1) / MOST;
}

/* Returns how many points were tried. `all`: from the n-th allocation on every one is refused. */
static int64_t in_turn(const char *name, work_fn work, world *w, bool all)
{
    mica_fault_plan *p = mica_faults_plan();
    mica_error err;
    for (int i = 0; i < 2; i++) /* what libraries keep, they have then */
        if (once(work, w, 0, 0, &err))
            fail_msg("%s: %s", name, err.message);
    uint64_t expected = w->hash;
    left before = what_is_left(w);
    int64_t n = 1, tried = 0, stride = stride_of(p->seen);
    int wrong = 0;
    for (;; n += stride, tried++) {
        mica_status status = once(work, w, n, all ? INT64_MAX : n, &err);
        if (p->hit == 0)
            break;
        wait_for_threads(before.threads);
        left after = what_is_left(w);
        wrong += !is_true(name, n, status, &err, w->hash == expected) + !nothing_left(name, n, &before, &after);
        before = after; /* tell of each leak once */
    }
    if (wrong)
        fail_msg("%s: %d times something was wrong", name, wrong);
    if (once(work, w, 0, 0, &err) || w->hash != expected)
        fail_msg("%s: afterwards: %s", name, err.message);
    return tried;
}

static void check(const char *name, work_fn work)
{
    world w = {.model = NULL};
    folder_make(&w.folder);
    snprintf(w.path, sizeof w.path, "%s/kept", w.folder.dir);
    w.model = open_model(SCRIPTED, NULL);
    int64_t points = in_turn(name, work, &w, false) + in_turn(name, work, &w, true);
    printf("faults: memory, library, %s: %lld\n", name, (long long)points);
    mica_model_close(w.model);
    folder_remove(&w.folder);
}

#define TEST(name)                                                                                                             \
    static void test_##name(void **state)                                                                                      \
    {                                                                                                                          \
        (void)state;                                                                                                           \
        check(#name, do_##name);                                                                                               \
    }

TEST(model)
TEST(other_model)
TEST(session)
TEST(schema)
TEST(grammars)
TEST(tools)
TEST(template)
TEST(batch)
TEST(receipt)
TEST(redact)
TEST(classify)
TEST(governor)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),    cmocka_unit_test(test_other_model), cmocka_unit_test(test_session),
        cmocka_unit_test(test_schema),   cmocka_unit_test(test_grammars),    cmocka_unit_test(test_tools),
        cmocka_unit_test(test_template), cmocka_unit_test(test_batch),       cmocka_unit_test(test_receipt),
        cmocka_unit_test(test_redact),   cmocka_unit_test(test_classify),    cmocka_unit_test(test_governor),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
