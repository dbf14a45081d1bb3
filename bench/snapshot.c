/* snapshot.c - the time to the first token with a prompt computed, and with the same prompt restored from a snapshot file.
 *
 *     snapshot MODEL [-n TOKENS] [-t THREADS] [-r REPETITIONS] [-f FILE]
 *
 * Each repetition takes a new session: its KV cache is memory that was never touched, as after a start of the program. The file
 * is in the page cache. Prints one line a repetition in milliseconds, and the ratio of the medians. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mica/mica.h"

#define MAX_REPETITIONS 100

typedef struct job {
    const char *model, *file;
    int n, threads, repetitions;
} job;

typedef struct times {
    double computed, restored, saved, in_memory;
} times;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void check(mica_status status, const mica_error *err)
{
    if (status) {
        fprintf(stderr, "snapshot: %s\n", err->message);
        exit(1);
    }
}

static mica_session *new_session(const job *j, mica_model *model)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = j->n + 8;
    o.n_threads = j->threads;
    check(mica_session_new(model, &o, &s, &err), &err);
    return s;
}

/* The prompt, of which nothing or all is in the cache, and the first token of a greedy reply. */
static int32_t first_token(mica_session *s, const int32_t *tokens, int n)
{
    mica_generate_options o = mica_generate_options_default();
    mica_error err;
    size_t length;
    o.max_tokens = 1;
    o.sampling.temperature = 0;
    check(mica_session_sync(s, tokens, (size_t)n, &err), &err);
    check(mica_session_generate(s, &o, NULL, &err), &err);
    return mica_session_tokens(s, &length)[n];
}

static times measure(const job *j, mica_model *model, const int32_t *tokens)
{
    times t;
    mica_error err;
    void *bytes;
    size_t length;
    mica_session *s = new_session(j, model);
    double start = now_ms();
    int32_t computed = first_token(s, tokens, j->n);
    t.computed = now_ms() - start;
    check(mica_session_sync(s, tokens, (size_t)j->n, &err), &err); /* without the reply */
    start = now_ms();
    check(mica_session_snapshot(s, &bytes, &length, &err), &err);
    t.in_memory = now_ms() - start;
    mica_free(bytes);
    start = now_ms();
    check(mica_session_save(s, j->file, &err), &err);
    t.saved = now_ms() - start;
    mica_session_free(s);

    s = new_session(j, model);
    start = now_ms();
    check(mica_session_restore(s, j->file, &err), &err);
    int32_t restored = first_token(s, tokens, j->n);
    t.restored = now_ms() - start;
    mica_session_free(s);
    if (computed != restored) {
        fprintf(stderr, "snapshot: the first token differs\n");
        exit(1);
    }
    printf("computed %.2f ms, saved %.2f ms (in memory %.2f ms), restored %.2f ms, %zu bytes\n", t.computed, t.saved,
           t.in_memory, t.restored, length);
    fflush(stdout);
    return t;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    job j = {.file = "snapshot.tmp", .n = 1000, .repetitions = 5};
    double computed[MAX_REPETITIONS], restored[MAX_REPETITIONS];
    mica_model *model;
    mica_model_info info;
    mica_error err;
    for (int c; (c = getopt(argc, argv, "n:t:r:f:")) != -1;) {
        if (c == 'f')
            j.file = optarg;
        else if (c == '?')
            return 1;
        else
            *(c == 'n' ? &j.n : c == 't' ? &j.threads : &j.repetitions) = atoi(optarg);
    }
    if (optind + 1 != argc || j.n < 1 || j.repetitions < 1 || j.repetitions > MAX_REPETITIONS) {
        fprintf(stderr, "usage: snapshot MODEL [-n TOKENS] [-t THREADS] [-r REPETITIONS] [-f FILE]\n");
        return 1;
    }
    j.model = argv[optind];
    check(mica_model_open(j.model, NULL, &model, &err), &err);
    mica_model_get_info(model, &info);
    int32_t *tokens = malloc((size_t)j.n * sizeof *tokens);
    if (!tokens)
        return 1;
    for (int i = 0; i < j.n; i++)
        tokens[i] = (int32_t)(rand() % info.n_vocab);
    for (int r = 0; r < j.repetitions; r++) {
        times t = measure(&j, model, tokens);
        computed[r] = t.computed;
        restored[r] = t.restored;
    }
    qsort(computed, (size_t)j.repetitions, sizeof *computed, compare);
    qsort(restored, (size_t)j.repetitions, sizeof *restored, compare);
    double a = computed[j.repetitions / 2], b = restored[j.repetitions / 2];
    printf("median: computed %.2f ms, restored %.2f ms, %.0f times sooner\n", a, b, a / b);
    unlink(j.file);
    free(tokens);
    mica_model_close(model);
    return 0;
}
