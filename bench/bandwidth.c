/* bandwidth.c - what memory gives: GB/s of plain reads by 1 or more threads, each over its own part of one buffer that no cache holds.
 *
 *     bandwidth [-t THREADS] [-m MEGABYTES] [-r ROUNDS]
 *
 * Prints the median of the rounds. Memory is shared with other machines on many hosts: compare a decode rate only with a figure of the
 * same minute (bench/peers does).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, MAX_ROUNDS = 99 };
typedef uint64_t line __attribute__((vector_size(64)));

typedef struct reader {
    const line *from;
    size_t n;
    pthread_barrier_t *gate;
    int rounds;
    uint64_t sum; /* so that nothing is optimised away */
} reader;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t read_all(const line *p, size_t n)
{
    line a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i + 4 <= n; i += 4) {
        __builtin_prefetch(p + i + 32);
        __builtin_prefetch(p + i + 34);
        a ^= p[i];
        b ^= p[i + 1];
        c ^= p[i + 2];
        d ^= p[i + 3];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
}

/* Two meetings a round: the main thread takes the time between them. */
static void *run(void *user)
{
    reader *r = user;
    for (int i = 0; i < r->rounds; i++) {
        pthread_barrier_wait(r->gate);
        r->sum ^= read_all(r->from, r->n);
        pthread_barrier_wait(r->gate);
    }
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int threads = 1, rounds = 7;
    size_t bytes = (size_t)512 << 20;
    for (int c; (c = getopt(argc, argv, "t:m:r:")) != -1;) {
        switch (c) {
        case 't': threads = atoi(optarg); break;
        case 'm': bytes = (size_t)atoi(optarg) << 20; break;
        case 'r': rounds = atoi(optarg); break;
        default: return 2;
        }
    }
    if (threads < 1 || threads > MAX_THREADS || rounds < 1 || rounds > MAX_ROUNDS || bytes == 0) {
        fprintf(stderr, "usage: bandwidth [-t 1..64] [-m MEGABYTES] [-r 1..99]\n");
        return 2;
    }
    line *data = aligned_alloc(4096, bytes);
    reader readers[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    pthread_barrier_t gate;
    double taken[MAX_ROUNDS];
    if (!data || pthread_barrier_init(&gate, NULL, (unsigned)threads + 1))
        return 1;
    memset(data, 1, bytes);
    size_t share = bytes / sizeof *data / (size_t)threads;
    for (int i = 0; i < threads; i++) {
        readers[i] = (reader){.from = data + (size_t)i * share, .n = share, .gate = &gate, .rounds = rounds};
        if (pthread_create(&ids[i], NULL, run, &readers[i]))
            return 1;
    }
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&gate);
        double start = now_s();
        pthread_barrier_wait(&gate);
        taken[i] = now_s() - start;
    }
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum ^= readers[i].sum;
    }
    qsort(taken, (size_t)rounds, sizeof *taken, ascending);
    printf("%.2f GB/s%s\n", (double)(share * (size_t)threads * sizeof *data) / taken[rounds / 2] * 1e-9, sum == 1 ? "\n" : "");
    free(data);
    return 0;
}
