/* bandwidth.c - what memory gives: GB/s of plain reads by 1 or more threads, each over its own part of one buffer that no cache
 * holds, or of a file that is mapped as weights are.
 *
 *     bandwidth [-t THREADS] [-m MEGABYTES | -f FILE] [-r ROUNDS]
 *
 * Prints the median of the rounds. A file's pages may be slower than a fresh buffer: on a virtual machine by a quarter. Memory is
 * shared with other machines on many hosts: compare a decode rate only with a figure of the same minute (bench/peers does). `mica roofline`
 * measures with the same code, src/device/bandwidth.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "device/bandwidth.h"
#include "mica/mica_ops.h"

enum { MAX_ROUNDS = 99 };

static mica_status read_file(const char *path, int threads, int rounds, double *rates, mica_error *err)
{
    mica_map map = {0};
    mica_pool *pool = NULL;
    int32_t n;
    mica_status status = mica_map_open(path, &map, err);
    if (!status)
        status = mica_pool_new(threads, NULL, &pool, err);
    if (!status)
        status = mica_bandwidth_read_from(pool, map.data, map.length, rounds, INFINITY, rates, &n, err);
    mica_pool_free(pool);
    mica_map_close(&map);
    return status;
}

int main(int argc, char **argv)
{
    int threads = 1, rounds = 7;
    size_t bytes = (size_t)512 << 20;
    const char *file = NULL;
    double rates[MAX_ROUNDS];
    mica_error err;
    for (int c; (c = getopt(argc, argv, "t:m:f:r:")) != -1;) {
        switch (c) {
        case 't': threads = atoi(optarg); break;
        case 'm': bytes = (size_t)atoi(optarg) << 20; break;
        case 'f': file = optarg; break;
        case 'r': rounds = atoi(optarg); break;
        default: return 2;
        }
    }
    if (threads < 1 || threads > MICA_MAX_THREADS || rounds < 1 || rounds > MAX_ROUNDS || bytes == 0) {
        fprintf(stderr, "usage: bandwidth [-t 1..%d] [-m MEGABYTES | -f FILE] [-r 1..%d]\n", MICA_MAX_THREADS, MAX_ROUNDS);
        return 2;
    }
    if (file ? read_file(file, threads, rounds, rates, &err) : mica_machine_read(threads, bytes, rounds, rates, &err)) {
        fprintf(stderr, "bandwidth: %s\n", err.message);
        return 1;
    }
    printf("%.2f GB/s\n", mica_stat_percentile(rates, (size_t)rounds, 0.5) * 1e-9);
    return 0;
}
