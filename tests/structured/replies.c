/* Replies of random-weight models under schemas, for a validator to judge: replies SCHEMAS.jsonl PER_SCHEMA SEED MODEL.gguf ..
 *
 * Each line of the file is a schema. The models take turns; temperature 2 and nothing else that narrows the choice, so that
 * any token that is allowed may come. Limits are drawn at random, and replies that they cut are closed, so all must be valid.
 * Prints one JSON array a schema: [line number, [text, ..]]. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/rng.h"
#include "mica/mica.h"

enum { CTX = 1024, PROMPT = 12, MAX_MODELS = 8, LINE = 1 << 16 };

/* A model with a session. */
typedef struct speaker {
    mica_model *model;
    mica_session *session;
} speaker;

typedef struct counts {
    int replies, cut, tokens, forced;
} counts;

typedef struct text {
    char bytes[CTX * 64];
    size_t length;
} text;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "replies: %s: %s\n", what, why);
    exit(1);
}

static speaker open_speaker(const char *path)
{
    speaker s;
    mica_error err;
    mica_session_options o = mica_session_options_default();
    o.n_ctx = CTX;
    o.n_threads = 1;
    if (mica_model_open(path, NULL, &s.model, &err) || mica_session_new(s.model, &o, &s.session, &err))
        die(path, err.message);
    return s;
}

static int add_text(void *user, const char *bytes, size_t n)
{
    text *t = user;
    if (n > sizeof t->bytes - t->length)
        die("reply", "it is longer than its tokens can be");
    memcpy(t->bytes + t->length, bytes, n);
    t->length += n;
    return 0;
}

static int random_below(mica_rng *rng, int n) { return (int)(mica_rng_next(rng) % (unsigned)n); }

/* Where the limit has no room for the shortest text, it is doubled. */
static mica_status generate(const speaker *s, mica_generate_options *o, mica_result *result, mica_error *err)
{
    mica_status status;
    while ((status = mica_session_generate(s->session, o, result, err)) == MICA_INVALID_ARGUMENT && o->max_tokens < CTX)
        o->max_tokens *= 2;
    return status;
}

static void reply(const speaker *s, const mica_constraint *c, mica_rng *rng, text *t, counts *n)
{
    int32_t prompt[PROMPT];
    mica_error err = {0};
    mica_result result;
    mica_generate_options o = mica_generate_options_default();
    int32_t n_prompt = 1 + random_below(rng, PROMPT);
    for (int32_t i = 0; i < n_prompt; i++) /* the first and last tokens may be special ones */
        prompt[i] = 3 + random_below(rng, 270);
    o.max_tokens = 8 + random_below(rng, 24) * random_below(rng, 8);
    o.sampling = (mica_sampling){.temperature = 2, .top_p = 1, .typical_p = 1, .repeat_penalty = 1, .dry_base = 1.75f};
    o.sampling.seed = (int64_t)(mica_rng_next(rng) >> 32);
    o.constraint = c;
    o.close = true;
    o.on_text = add_text;
    o.user = t;
    t->length = 0;
    bool matches;
    if (mica_session_sync(s->session, prompt, (size_t)n_prompt, &err) || generate(s, &o, &result, &err))
        die("generate", err.message);
    if (mica_constraint_match(c, t->bytes, t->length, &matches, NULL, &err) || !matches)
        die("reply", "the constraint does not match it");
    n->replies++;
    n->cut += !strcmp(result.stop_reason, "length") || !strcmp(result.stop_reason, "context");
    n->tokens += result.gen_n;
    n->forced += result.forced_n;
}

static mica_constraint *compile(mica_model *model, const char *schema, size_t length)
{
    mica_constraint *c;
    mica_error err;
    mica_constraint_options o = mica_constraint_options_default();
    o.text = schema;
    o.length = length;
    if (mica_constraint_new(model, &o, &c, &err))
        die(schema, err.message);
    return c;
}

static void run_schema(const speaker *speakers, int n_speakers, const char *schema, size_t length, int line, int per_schema,
                       mica_rng *rng, counts *n)
{
    static text t;
    mica_constraint *constraints[MAX_MODELS];
    json_t *texts = json_array();
    for (int i = 0; i < n_speakers; i++)
        constraints[i] = compile(speakers[i].model, schema, length);
    for (int i = 0; i < per_schema; i++) {
        int who = (line + i) % n_speakers;
        reply(&speakers[who], constraints[who], rng, &t, n);
        json_t *value = json_stringn(t.bytes, t.length);
        if (!value)
            die(schema, "a reply is not UTF-8");
        json_array_append_new(texts, value);
    }
    for (int i = 0; i < n_speakers; i++)
        mica_constraint_free(constraints[i]);
    char *out = json_dumps(texts, JSON_COMPACT);
    printf("[%d,%s]\n", line, out);
    free(out);
    json_decref(texts);
}

int main(int n, char **arguments)
{
    static char line[LINE];
    speaker speakers[MAX_MODELS];
    counts total = {0};
    mica_rng rng;
    int n_speakers = n - 4;
    if (n_speakers < 1 || n_speakers > MAX_MODELS)
        die("usage", "replies SCHEMAS.jsonl PER_SCHEMA SEED MODEL.gguf .. (8 at most)");
    FILE *f = fopen(arguments[1], "r");
    if (!f)
        die(arguments[1], "cannot be opened");
    for (int i = 0; i < n_speakers; i++)
        speakers[i] = open_speaker(arguments[4 + i]);
    mica_rng_seed(&rng, strtoull(arguments[3], NULL, 10));
    for (int i = 0; fgets(line, sizeof line, f); i++)
        run_schema(speakers, n_speakers, line, strcspn(line, "\n"), i, atoi(arguments[2]), &rng, &total);
    fclose(f);
    for (int i = 0; i < n_speakers; i++) {
        mica_session_free(speakers[i].session);
        mica_model_close(speakers[i].model);
    }
    fprintf(stderr, "%d replies, %d of them cut and closed; %d tokens, %d of them forced\n", total.replies, total.cut,
            total.tokens, total.forced);
    return 0;
}
