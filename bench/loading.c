/* loading.c - what mapping a model file saves against reading it into the heap: the time from asking for the model to its first
 * token.
 *
 *     loading [-r ROUNDS] [-t THREADS] MODEL
 *
 * Prints medians, cold (the file's pages dropped from the page cache before) and warm. The engine itself only maps, so the
 * heap's time is that of reading the whole file into fresh memory plus that of a warm start.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "mica/mica.h"

enum { MAX_ROUNDS = 99, PIECE = 1 << 20 };

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "loading: %s\n", what);
    exit(1);
}

static void drop_pages(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        die("the file's pages cannot be dropped");
    close(fd);
}

/* Milliseconds until the first token of a short prompt. */
static double start_ms(const char *path, int threads)
{
    int64_t from = mica_now_ns();
    mica_model *model;
    mica_session *session = NULL;
    mica_error err;
    mica_session_options options = mica_session_options_default();
    mica_generate_options generate = mica_generate_options_default();
    options.n_threads = threads;
    options.n_ctx = 256;
    generate.max_tokens = 1;
    if (mica_model_open(path, NULL, &model, &err) || mica_session_new(model, &options, &session, &err) ||
        mica_session_prompt(session, "The capital of France is", 24, 0, &err) ||
        mica_session_generate(session, &generate, NULL, &err))
        die(err.message);
    double ms = (double)(mica_now_ns() - from) * 1e-6;
    mica_session_free(session);
    mica_model_close(model);
    return ms;
}

static double read_ms(const char *path)
{
    int64_t from = mica_now_ns();
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        die("cannot open the file");
    size_t length = (size_t)st.st_size, at = 0;
    char *data = malloc(length);
    if (!data)
        die("not enough memory for the file");
    while (at < length) {
        ssize_t n = read(fd, data + at, length - at < PIECE ? length - at : PIECE);
        if (n <= 0)
            die("cannot read the file");
        at += (size_t)n;
    }
    double ms = (double)(mica_now_ns() - from) * 1e-6;
    __asm__ volatile("" : : "r"(data) : "memory"); /* the bytes are wanted, whatever the compiler knows of malloc */
    free(data);
    close(fd);
    return ms;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

static void compare(const char *path, int threads, int rounds, bool cold)
{
    double mapped[MAX_ROUNDS], heap[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        if (cold)
            drop_pages(path);
        mapped[i] = start_ms(path, threads);
        if (cold)
            drop_pages(path);
        heap[i] = read_ms(path);
        heap[i] += start_ms(path, threads); /* its pages are there now */
    }
    double m = median(mapped, rounds), h = median(heap, rounds);
    printf("%s: mapped %.1f ms, heap %.1f ms: mapping saves %.0f %%\n", cold ? "cold" : "warm", m, h, 100 * (1 - m / h));
}

int main(int argc, char **argv)
{
    int rounds = 5, threads = 0;
    for (int c; (c = getopt(argc, argv, "r:t:")) != -1;) {
        switch (c) {
        case 'r': rounds = atoi(optarg); break;
        case 't': threads = atoi(optarg); break;
        default: return 2;
        }
    }
    if (optind + 1 != argc || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: loading [-r 1..99] [-t THREADS] MODEL\n");
        return 2;
    }
    start_ms(argv[optind], threads); /* the program's own pages */
    compare(argv[optind], threads, rounds, true);
    compare(argv[optind], threads, rounds, false);
    return 0;
}
