/* bandwidth.c - what memory gives: GB/s of plain reads by 1 or more threads, each over its own part of one buffer that no cache
 * holds.
 *
 *     bandwidth [-t THREADS] [-m MEGABYTES] [-r ROUNDS]
 *
 * Prints the median of the rounds. Memory is shared with other machines on many hosts: compare a decode rate only with a figure
 * of the same minute (bench/peers does). `mica roofline` measures with the same code, src/bench/machine.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mica/mica_ops.h"

enum { MAX_ROUNDS = 99 };

int main(int argc, char **argv)
{
    int threads = 1, rounds = 7;
    size_t bytes = (size_t)512 << 20;
    double rates[MAX_ROUNDS];
    mica_error err;
    for (int c; (c = getopt(argc, argv, "t:m:r:")) != -1;) {
        switch (c) {
        case 't': threads = atoi(optarg); break;
        case 'm': bytes = (size_t)atoi(optarg) << 20; break;
        case 'r': rounds = atoi(optarg); break;
        default: return 2;
        }
    }
    if (threads < 1 || threads > MICA_MAX_THREADS || rounds < 1 || rounds > MAX_ROUNDS || bytes == 0) {
        fprintf(stderr, "usage: bandwidth [-t 1..%d] [-m MEGABYTES] [-r 1..%d]\n", MICA_MAX_THREADS, MAX_ROUNDS);
        return 2;
    }
    if (mica_machine_read(threads, bytes, rounds, rates, &err)) {
        fprintf(stderr, "bandwidth: %s\n", err.message);
        return 1;
    }
    printf("%.2f GB/s\n", mica_stat_percentile(rates, (size_t)rounds, 0.5) * 1e-9);
    return 0;
}
