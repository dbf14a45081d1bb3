/* speed.c - prefill and decode rates of the engine, measured as llama-bench measures its own: random tokens, no sampling, an empty
 * cache before each repetition. bench/peers runs both in turn.
 *
 *     speed MODEL [-t THREADS] [-p PREFILL] [-n DECODE] [-d DEPTH] [-r REPETITIONS] [-k KERNELS]
 *
 * Prints one line a repetition: test, tokens, tokens per second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mica/mica.h"

typedef struct job {
    const char *path, *kernels;
    int threads, prefill, decode, depth, repetitions;
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
    check(mica_session_new(model, &o, &s, &err), &err);
    for (int r = 0; r <= j->repetitions; r++) {
        int32_t *tokens = random_tokens(most + 1, info.n_vocab);
        if (j->prefill > 0) {
            double t = run(s, tokens, 0, j->prefill, j->prefill);
            if (r > 0) /* the first round warms up */
                printf("prefill %d %.2f\n", j->prefill, j->prefill / t);
        }
        if (j->decode > 0) {
            tokens[0] = (tokens[0] + 1) % info.n_vocab; /* nothing of the prefill is reused */
            if (j->depth > 0)
                run(s, tokens, 0, j->depth, j->depth);
            double t = run(s, tokens, j->depth, j->depth + (r > 0 ? j->decode : 4), 1);
            if (r > 0)
                printf("decode %d@%d %.2f\n", j->decode, j->depth, j->decode / t);
        }
        fflush(stdout);
        free(tokens);
    }
    mica_session_free(s);
}

int main(int argc, char **argv)
{
    job j = {.threads = 1, .prefill = 512, .decode = 64, .repetitions = 5};
    for (int c; (c = getopt(argc, argv, "t:p:n:d:r:k:")) != -1;) {
        switch (c) {
        case 't': j.threads = atoi(optarg); break;
        case 'p': j.prefill = atoi(optarg); break;
        case 'n': j.decode = atoi(optarg); break;
        case 'd': j.depth = atoi(optarg); break;
        case 'r': j.repetitions = atoi(optarg); break;
        case 'k': j.kernels = optarg; break;
        default: return 2;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: speed MODEL [-t THREADS] [-p PREFILL] [-n DECODE] [-d DEPTH] [-r REPETITIONS] [-k KERNELS]\n");
        return 2;
    }
    mica_model_options o = mica_model_options_default();
    mica_model *model;
    mica_error err;
    o.kernels = j.kernels;
    check(mica_model_open(argv[optind], &o, &model, &err), &err);
    measure(&j, model);
    mica_model_close(model);
    return 0;
}
