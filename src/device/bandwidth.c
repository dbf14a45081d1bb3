#include "device/bandwidth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map_huge.h"
#include "base/mem.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };
#define DEFAULT_BUFFER ((size_t)512 << 20)

typedef uint64_t line __attribute__((vector_size(LINE)));

typedef struct reader {
    const line *data;
    line *fill;           /* write there instead: each thread touches its own pages first */
    size_t lines;         /* of each thread */
    _Atomic uint64_t sum; /* so that nothing is optimised away */
} reader;

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

static void read_thread(void *user, int thread, int n_threads)
{
    reader *r = user;
    size_t mine = (size_t)thread * r->lines;
    (void)n_threads;
    if (r->fill)
        memset(r->fill + mine, 1 + thread, r->lines * LINE);
    else
        r->sum ^= read_all(r->data + mine, r->lines);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int32_t read_rounds(mica_pool *pool, reader *r, int32_t rounds, double seconds, double *rates)
{
    double bytes = (double)r->lines * LINE * mica_pool_threads(pool), spent = 0;
    int32_t n = 0;
    mica_pool_run(pool, read_thread, r);
    r->fill = NULL;
    while (n < rounds && (n < 3 || spent < seconds)) {
        int64_t start_ns = mica_now_ns();
        mica_pool_run(pool, read_thread, r);
        double t = (double)(mica_now_ns() - start_ns) * 1e-9;
        spent += t;
        rates[n++] = t > 0 ? bytes / t : INFINITY;
    }
    qsort(rates, (size_t)n, sizeof *rates, by_size);
    return n;
}

/* A reader for the whole lines of `bytes` that the team's threads divide evenly. */
static mica_status reader_make(const mica_pool *pool, size_t bytes, reader *r, mica_error *err)
{
    size_t threads = (size_t)mica_pool_threads(pool);
    *r = (reader){.lines = bytes / LINE / threads & ~(size_t)3};
    return r->lines ? MICA_OK
                    : mica_fail(err, MICA_INVALID_ARGUMENT, "%zu bytes are too few to read with %zu threads", bytes, threads);
}

mica_status mica_bandwidth_read(mica_pool *pool, size_t bytes, int32_t rounds, double seconds, double *rates, int32_t *n,
                                mica_error *err)
{
    reader r;
    size_t all = bytes ? bytes : DEFAULT_BUFFER;
    mica_status status = reader_make(pool, all, &r, err);
    if (status)
        return status;
    size_t room = mica_round_up(r.lines * (size_t)mica_pool_threads(pool) * LINE, HUGE_PAGE);
    line *buffer = mica_new_aligned(HUGE_PAGE, room);
    if (!buffer)
        return mica_fail_nomem(err, all, "the buffer that is read");
    mica_memory_collapse(buffer, room); /* as weights are mapped where the system can: small pages may cost a third */
    r.data = r.fill = buffer;
    *n = read_rounds(pool, &r, rounds, seconds, rates);
    free(buffer);
    return MICA_OK;
}

mica_status mica_bandwidth_read_from(mica_pool *pool, const void *data, size_t bytes, int32_t rounds, double seconds, double *rates, int32_t *n,
                                     mica_error *err)
{
    reader r;
    mica_status status = reader_make(pool, bytes, &r, err);
    r.data = data;
    if (!status)
        *n = read_rounds(pool, &r, rounds, seconds, rates);
    return status;
}
