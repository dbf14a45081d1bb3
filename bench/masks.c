/* masks.c - how long the masks of a constraint take over a text.
 *
 *     masks MODEL CONSTRAINT TEXT [-r REPETITIONS] [-c] [-v]
 *     masks MODEL -s [-r PASSES] [-c]        for bench/structured
 *     masks MODEL -d
 *
 * CONSTRAINT is a file: a grammar (*.gbnf), else a JSON Schema. TEXT is a file with a text that it allows, or the text's start;
 * it is cut into the model's tokens, and the mask before each of them is timed. Prints one JSON object: times of compiling in
 * milliseconds; "cold": a fresh constraint and matcher for each repetition, "warm": the same constraint again, both in
 * microseconds over all tokens; and the number of tokens. A token that is not in its mask is an error. -c: the thread's
 * processor time instead of the clock's, for machines that are busy. -v: also the first repetition's cold masks, one line
 * each.
 *
 * -s: reads lines, each a JSON array of a schema (as text) and texts that it allows, and answers each with a line {"compile":
 * milliseconds from the schema's text to a constraint that is ready, "tokens": the texts' token ids, "cold": [[mask, advance],
 * ..], "warm": [[[mask, advance], ..], ..]}: microseconds for each token, of a first pass over all texts and of PASSES
 * further ones. An answer may also be {"refused": why}. -d: prints a JSON array of the tokens' bytes in hexadecimal, null for
 * those without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "constraint/mask.h"
#include "constraint/schema.h"

typedef struct job {
    mica_grammar *grammar;
    mica_token_trie *trie;
    const mica_vocab *vocab;
    int32_t *tokens;
    size_t n_tokens;
    uint32_t *mask;
    double *times; /* microseconds, room for all repetitions */
    size_t n_times;
    double trie_ms;
} job;

static void check(mica_status status, const mica_error *err)
{
    if (status) {
        fprintf(stderr, "masks: %s\n", err->message);
        exit(1);
    }
}

static char *read_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    long size;
    if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) {
        perror(path);
        exit(1);
    }
    char *data = malloc((size_t)size + 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    *length = (size_t)size;
    return data;
}

static mica_grammar *read_grammar(const char *path)
{
    size_t length, n = strlen(path);
    char *text = read_file(path, &length);
    mica_grammar *g;
    mica_error err;
    if (n > 5 && !strcmp(path + n - 5, ".gbnf"))
        check(mica_grammar_from_gbnf(text, length, &g, &err), &err);
    else
        check(mica_grammar_from_schema(text, length, NULL, &g, &err), &err);
    free(text);
    return g;
}

static bool use_cpu_time, verbose;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(use_cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double since_us(int64_t start) { return (double)(now_ns() - start) * 1e-3; }

/* The masks of the whole text, one time each. */
static void run(job *j, mica_masks *masks, mica_matcher *m)
{
    mica_error err;
    for (size_t i = 0; i < j->n_tokens; i++) {
        char bytes[1024];
        size_t n = mica_vocab_bytes(j->vocab, j->tokens[i], false, bytes, sizeof bytes), taken;
        int64_t start = now_ns();
        check(mica_masks_fill(masks, m, j->mask, NULL, &err), &err);
        j->times[j->n_times++] = since_us(start);
        if (verbose)
            printf("%8.2f us before \"%.*s\"\n", j->times[j->n_times - 1], (int)n, bytes);
        if (!(j->mask[j->tokens[i] / 32] >> j->tokens[i] % 32 & 1)) {
            fprintf(stderr, "masks: token %zu of the text (\"%.*s\") is not allowed\n", i, (int)n, bytes);
            exit(1);
        }
        check(mica_matcher_push(m, bytes, n, &taken, &err), &err);
    }
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void print_times(job *j, const char *name)
{
    double sum = 0;
    size_t n = j->n_times;
    for (size_t i = 0; i < n; i++)
        sum += j->times[i];
    qsort(j->times, n, sizeof *j->times, compare);
    printf(", \"%s\": {\"mean_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f, \"max_us\": %.2f}", name, sum / (double)n,
           j->times[n / 2], j->times[(n * 99 + 99) / 100 - 1], j->times[n - 1]);
    j->n_times = 0;
}

static void run_cold(job *j, int repetitions)
{
    double compile = 0, prepare = 0;
    mica_error err;
    for (int r = 0; r < repetitions; r++) {
        mica_automaton *a;
        mica_masks *masks;
        mica_matcher *m;
        int64_t start = now_ns();
        check(mica_automaton_new(j->grammar, &a, &err), &err);
        compile += since_us(start);
        start = now_ns();
        check(mica_masks_new(a, j->trie, &masks, &err), &err);
        prepare += since_us(start);
        check(mica_matcher_new(a, &m, &err), &err);
        run(j, masks, m);
        verbose = false;
        mica_matcher_free(m);
        mica_masks_free(masks);
        mica_automaton_free(a);
    }
    printf("\"automaton_ms\": %.3f, \"masks_ms\": %.3f", compile / repetitions / 1e3, prepare / repetitions / 1e3);
    print_times(j, "cold");
}

static void run_warm(job *j, int repetitions)
{
    mica_error err;
    mica_automaton *a;
    mica_masks *masks;
    mica_matcher *m;
    check(mica_automaton_new(j->grammar, &a, &err), &err);
    check(mica_masks_new(a, j->trie, &masks, &err), &err);
    check(mica_matcher_new(a, &m, &err), &err);
    run(j, masks, m);
    j->n_times = 0;
    for (int r = 0; r < repetitions; r++) {
        mica_matcher_reset(m);
        run(j, masks, m);
    }
    print_times(j, "warm");
    mica_matcher_free(m);
    mica_masks_free(masks);
    mica_automaton_free(a);
}

/* ---- -s: many schemas, one process ---- */

/* A text of the request, cut into tokens. */
typedef struct text_tokens {
    int32_t *ids;
    size_t n;
} text_tokens;

/* Adds [mask, advance] for each token; false: a token is not allowed. */
static bool pass(job *j, mica_masks *masks, mica_matcher *m, const text_tokens *text, json_t *times, mica_error *err)
{
    mica_matcher_reset(m);
    for (size_t i = 0; i < text->n; i++) {
        char bytes[1024];
        size_t n = mica_vocab_bytes(j->vocab, text->ids[i], false, bytes, sizeof bytes), taken;
        int64_t start = now_ns();
        check(mica_masks_fill(masks, m, j->mask, NULL, err), err);
        double mask = since_us(start);
        start = now_ns();
        check(mica_matcher_push(m, bytes, n, &taken, err), err);
        double advance = since_us(start);
        json_array_append_new(times, json_pack("[f, f]", mask, advance));
        if (!(j->mask[text->ids[i] / 32] >> text->ids[i] % 32 & 1) || taken != n) {
            mica_fail(err, MICA_BAD_TEXT, "token %zu of a text (\"%.*s\") is not allowed", i, (int)n, bytes);
            return false;
        }
    }
    return true;
}

static bool all_passes(job *j, mica_masks *masks, mica_matcher *m, const text_tokens *texts, size_t n, int passes,
                       json_t *answer, mica_error *err)
{
    json_t *warm = json_array();
    bool good = true;
    json_object_set_new(answer, "warm", warm);
    for (int r = -1; r < passes && good; r++) { /* the first is the cold one */
        json_t *times = json_array();
        for (size_t i = 0; i < n && good; i++)
            good = pass(j, masks, m, &texts[i], times, err);
        if (r < 0)
            json_object_set_new(answer, "cold", times);
        else
            json_array_append_new(warm, times);
    }
    return good;
}

static bool serve_schema(job *j, const char *schema, const text_tokens *texts, size_t n, int passes, json_t *answer,
                         mica_error *err)
{
    mica_grammar *g = NULL;
    mica_automaton *a = NULL;
    mica_masks *masks = NULL;
    mica_matcher *m = NULL;
    int64_t start = now_ns();
    bool good = !mica_grammar_from_schema(schema, strlen(schema), NULL, &g, err) && !mica_automaton_new(g, &a, err) &&
                !mica_masks_new(a, j->trie, &masks, err);
    json_object_set_new(answer, "compile", json_real(since_us(start) / 1e3));
    good = good && !mica_matcher_new(a, &m, err) && all_passes(j, masks, m, texts, n, passes, answer, err);
    mica_matcher_free(m);
    mica_masks_free(masks);
    mica_automaton_free(a);
    mica_grammar_free(g);
    return good;
}

static json_t *serve_line(job *j, const char *line, int passes)
{
    json_error_t why;
    mica_error err = {0};
    json_t *request = json_loads(line, 0, &why), *answer = json_object(), *tokens = json_array();
    size_t n = json_array_size(request);
    text_tokens *texts = calloc(n + 1, sizeof *texts);
    if (n < 2 || !texts) {
        fprintf(stderr, "masks: a line must be an array of a schema and texts: %s\n", why.text);
        exit(1);
    }
    json_object_set_new(answer, "tokens", tokens);
    for (size_t i = 1; i < n; i++) {
        text_tokens *t = &texts[i - 1];
        const json_t *text = json_array_get(request, i);
        check(mica_vocab_tokenize(j->vocab, json_string_value(text), json_string_length(text), 0, &t->ids, &t->n, &err), &err);
        json_t *ids = json_array();
        for (size_t k = 0; k < t->n; k++)
            json_array_append_new(ids, json_integer(t->ids[k]));
        json_array_append_new(tokens, ids);
    }
    if (!serve_schema(j, json_string_value(json_array_get(request, 0)), texts, n - 1, passes, answer, &err))
        json_object_set_new(answer, "refused", json_string(err.message));
    for (size_t i = 0; i + 1 < n; i++)
        free(texts[i].ids);
    free(texts);
    json_decref(request);
    return answer;
}

static void serve(job *j, int passes)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        json_t *answer = serve_line(j, line, passes);
        json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        fflush(stdout);
        json_decref(answer);
    }
    free(line);
}

static void dump(const mica_vocab *v)
{
    for (int32_t t = 0; t < mica_vocab_size(v); t++) {
        char bytes[4096];
        size_t n = mica_vocab_bytes(v, t, false, bytes, sizeof bytes);
        printf(n ? "%s\"" : "%snull", t ? ",\n" : "[");
        for (size_t i = 0; i < n; i++)
            printf("%02x", (unsigned char)bytes[i]);
        if (n)
            putchar('"');
    }
    printf("]\n");
}

/* ---- One constraint, one text ---- */

static void run_files(job *j, const char *constraint, const char *path, int repetitions)
{
    mica_error err;
    size_t length;
    int64_t start = now_ns();
    j->grammar = read_grammar(constraint);
    printf("{\"grammar_ms\": %.3f, \"trie_ms\": %.3f, ", since_us(start) / 1e3, j->trie_ms);
    char *text = read_file(path, &length);
    check(mica_vocab_tokenize(j->vocab, text, length, 0, &j->tokens, &j->n_tokens, &err), &err);
    j->times = malloc(((size_t)repetitions + 1) * (j->n_tokens + 1) * sizeof *j->times);
    if (!j->times || !j->n_tokens)
        exit(1);
    run_cold(j, repetitions);
    run_warm(j, repetitions);
    printf(", \"tokens\": %zu}\n", j->n_tokens);
    free(text);
    free(j->tokens);
    free(j->times);
    mica_grammar_free(j->grammar);
}

int main(int argc, char **argv)
{
    int repetitions = 20, option, served = 0, dumped = 0;
    while ((option = getopt(argc, argv, "r:cvsd")) != -1) {
        use_cpu_time |= option == 'c';
        verbose |= option == 'v';
        served |= option == 's';
        dumped |= option == 'd';
        if (option == '?' || (option == 'r' && (repetitions = atoi(optarg)) < 1))
            optind = argc + 1;
    }
    if (argc - optind != (served || dumped ? 1 : 3)) {
        fprintf(stderr, "usage: masks MODEL CONSTRAINT TEXT [-r REPETITIONS] [-c] [-v], masks MODEL -s [-r PASSES] [-c], "
                        "masks MODEL -d\n");
        return 2;
    }
    mica_error err;
    mica_gguf *gguf;
    mica_vocab *vocab;
    job j = {0};
    check(mica_gguf_open(argv[optind], &gguf, &err), &err);
    check(mica_vocab_load(gguf, NULL, NULL, &vocab, &err), &err);
    j.vocab = vocab;
    int64_t start = now_ns();
    check(mica_token_trie_new(vocab, &j.trie, &err), &err);
    j.trie_ms = since_us(start) / 1e3;
    j.mask = malloc(MICA_MASK_WORDS(mica_vocab_size(vocab)) * sizeof *j.mask);
    if (!j.mask)
        return 1;
    if (dumped)
        dump(vocab);
    else if (served)
        serve(&j, repetitions);
    else
        run_files(&j, argv[optind + 1], argv[optind + 2], repetitions);
    free(j.mask);
    mica_token_trie_free(j.trie);
    mica_vocab_free(vocab);
    mica_gguf_close(gguf);
    return 0;
}
