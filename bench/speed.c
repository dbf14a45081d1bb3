/* speed.c - prefill and decode rates of the engine, measured as llama-bench measures its own: random tokens, no sampling, an empty
 * cache before each repetition. bench/peers runs both in turn.
 *
 *     speed MODEL [-t THREADS] [-p PREFILL] [-n DECODE] [-d DEPTH] [-b SEQUENCES] [-r REPETITIONS] [-k KERNELS] [-c CACHE]
 *
 * Prints the bytes of weights that one token reads, then one line a repetition: test, tokens, tokens per second. Decode at a depth: the
 * DEPTH tokens are computed once, and each repetition goes on from there. -b N: instead decode of N sequences in one batch, each after a
 * prompt of DEPTH tokens (at least one), greedily; tokens per second of all of them together, as llama-batched-bench's S_TG. CACHE: the
 * format of keys and values, f16, q8_0 or q4_0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mica/mica.h"

typedef struct job {
    const char *path, *kernels;
    int threads, prefill, decode, depth, sequences, repetitions;
    mica_kv_type cache;
} job;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(mica_status status, const mica_error *err)
{
    if (status) {
        fprintf(stderr, "speed: %s\n", err->message);
        exit(1);
    }
}

static int32_t *random_tokens(int n, int32_t n_vocab)
{
    int32_t *tokens = malloc((size_t)n * sizeof *tokens);
    if (!tokens)
        exit(1);
    for (int i = 0; i < n; i++)
        tokens[i] = (int32_t)(rand() % n_vocab);
    return tokens;
}

/* Seconds to bring tokens[from..to) into the cache, `step` at a time; [0, from) are there already. */
static double run(mica_session *s, const int32_t *tokens, int from, int to, int step)
{
    mica_error err;
    double start = now_s();
    for (int n = from + step; n <= to; n += step)
        check(mica_session_sync(s, tokens, (size_t)n, &err), &err);
    return now_s() - start;
}

/* All weights, but of an embedding that does not serve as output as well, where a token reads one row. */
static int64_t bytes_per_token(const mica_model *model)
{
    int64_t bytes = 0, embedding = 0;
    bool output = false;
    for (size_t i = 0; i < mica_model_tensor_count(model); i++) {
        mica_tensor_info t;
        mica_model_tensor(model, i, &t);
        bytes += t.bytes;
        output |= strcmp(t.name, "output.weight") == 0;
        embedding += strcmp(t.name, "token_embd.weight") == 0 ? t.bytes : 0;
    }
    return output ? bytes - embedding : bytes;
}

/* Decode of j->decode tokens after the first j->depth, which stay in the cache: the token after them is another each time. */
static void measure_decode(const job *j, mica_session *s, int32_t *tokens, int32_t n_vocab)
{
    mica_error err;
    for (int n = 256; j->depth > 0 && n < j->depth + 256; n += 256)
        check(mica_session_sync(s, tokens, (size_t)(n < j->depth ? n : j->depth), &err), &err);
    for (int r = 0; r <= j->repetitions; r++) {
        tokens[j->depth] = (tokens[j->depth] + 1) % n_vocab;
        double t = run(s, tokens, j->depth, j->depth + (r > 0 ? j->decode : 4), 1);
        if (r > 0)
            printf("decode %d@%d %.2f\n", j->decode, j->depth, j->decode / t);
        fflush(stdout);
    }
}

static void measure(const job *j, mica_model *model)
{
    mica_model_info info;
    mica_error err;
    mica_session *s;
    mica_session_options o = mica_session_options_default();
    int most = j->depth + (j->prefill > j->decode ? j->prefill : j->decode);
    mica_model_get_info(model, &info);
    o.n_ctx = most + 8;
    o.n_threads = j->threads;
    o.kv_k = o.kv_v = j->cache;
    check(mica_session_new(model, &o, &s, &err), &err);
    printf("weights %lld\n", (long long)bytes_per_token(model));
    int32_t *tokens = random_tokens(most + 1, info.n_vocab);
    for (int r = 0; r <= j->repetitions && j->prefill > 0; r++) {
        tokens[0] = (tokens[0] + 1) % info.n_vocab; /* nothing of the round before is reused */
        double t = run(s, tokens, 0, j->prefill, j->prefill);
        if (r > 0) /* the first round warms up */
            printf("prefill %d %.2f\n", j->prefill, j->prefill / t);
        fflush(stdout);
    }
    if (j->decode > 0)
        measure_decode(j, s, tokens, info.n_vocab);
    free(tokens);
    mica_session_free(s);
}

/* ---- many sequences ---- */

static mica_batch *open_batch(const job *j, mica_model *model, mica_session **sessions)
{
    mica_batch *b;
    mica_error err;
    mica_batch_options o = mica_batch_options_default();
    o.max_sessions = j->sequences;
    o.n_ctx = j->depth + j->decode + 8;
    o.n_threads = j->threads;
    o.kv_k = o.kv_v = j->cache;
    o.workspace_limit = (int64_t)4 << 30;
    check(mica_batch_new(model, &o, &b, &err), &err);
    for (int i = 0; i < j->sequences; i++)
        check(mica_batch_session_new(b, NULL, &sessions[i], &err), &err);
    return b;
}

typedef struct tally {
    long tokens;
    int started; /* sequences that have their first token */
} tally;

static int count_token(void *user, const mica_token_event *e)
{
    tally *count = user;
    count->tokens++;
    count->started += e->index == 0;
    return 0;
}

static void submit_all(const job *j, mica_session **sessions, int32_t n_vocab, tally *count)
{
    mica_error err;
    mica_generate_options o = mica_generate_options_default();
    int n = j->depth > 0 ? j->depth : 1;
    o.sampling.temperature = 0.0f;
    o.ignore_eos = true;
    o.max_tokens = j->decode + 1; /* the first one comes from the prompt */
    o.on_token = count_token;
    o.user = count;
    for (int i = 0; i < j->sequences; i++) {
        int32_t *tokens = random_tokens(n, n_vocab);
        check(mica_batch_submit(sessions[i], tokens, (size_t)n, &o, &err), &err);
        free(tokens);
    }
}

static void measure_batch(const job *j, mica_model *model)
{
    mica_model_info info;
    mica_session **sessions = calloc((size_t)j->sequences, sizeof *sessions);
    if (!sessions)
        exit(1);
    mica_model_get_info(model, &info);
    mica_batch *b = open_batch(j, model, sessions);
    for (int r = 0; r <= j->repetitions; r++) {
        tally count = {0, 0};
        int left = j->sequences;
        submit_all(j, sessions, info.n_vocab, &count);
        while (count.started < j->sequences && left == j->sequences) /* the prompts: those read first go on already */
            left = mica_batch_step(b);
        long before = count.tokens;
        double start = now_s();
        while (left == j->sequences) /* all of them run, until the first one ends */
            left = mica_batch_step(b);
        double t = now_s() - start;
        if (r > 0 && count.tokens > before)
            printf("batch %dx%d@%d %.2f\n", j->sequences, j->decode, j->depth, (double)(count.tokens - before) / t);
        while (mica_batch_step(b) > 0)
            ;
        fflush(stdout);
    }
    mica_batch_free(b);
    free(sessions);
}

static mica_kv_type cache_of(const char *name)
{
    if (strcmp(name, "q8_0") == 0)
        return MICA_KV_Q8_0;
    if (strcmp(name, "q4_0") == 0)
        return MICA_KV_Q4_0;
    if (strcmp(name, "f16") == 0)
        return MICA_KV_F16;
    fprintf(stderr, "speed: unknown cache format %s; f16, q8_0 and q4_0 are known\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    job j = {.threads = 1, .prefill = 512, .decode = 64, .repetitions = 5};
    for (int c; (c = getopt(argc, argv, "t:p:n:d:b:r:k:c:")) != -1;) {
        switch (c) {
        case 't': j.threads = atoi(optarg); break;
        case 'p': j.prefill = atoi(optarg); break;
        case 'n': j.decode = atoi(optarg); break;
        case 'd': j.depth = atoi(optarg); break;
        case 'b': j.sequences = atoi(optarg); break;
        case 'r': j.repetitions = atoi(optarg); break;
        case 'k': j.kernels = optarg; break;
        case 'c': j.cache = cache_of(optarg); break;
        default: return 2;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: speed MODEL [-t THREADS] [-p PREFILL] [-n DECODE] [-d DEPTH] [-b SEQUENCES] [-r REPETITIONS] "
                        "[-k KERNELS] [-c f16|q8_0|q4_0]\n");
        return 2;
    }
    mica_model_options o = mica_model_options_default();
    mica_model *model;
    mica_error err;
    o.kernels = j.kernels;
    check(mica_model_open(argv[optind], &o, &model, &err), &err);
    if (j.sequences > 0)
        measure_batch(&j, model);
    else
        measure(&j, model);
    mica_model_close(model);
    return 0;
}
