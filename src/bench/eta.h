/* eta.h - how long a protocol will still take, for people who wait: an estimate from what its phases say they take, and from
 * what the replies so far took. Figures never depend on it. Pure: times are given. Called by programs/cmd_bench.c. */
#ifndef MICA_BENCH_ETA_H
#define MICA_BENCH_ETA_H
#include "bench/protocol.h"

typedef struct mica_eta {
    const mica_protocol *protocol;
    int64_t start_ns, phase_ns; /* when it began, and when the phase `at` did */
    int32_t at;
    double reply_s; /* of a token of a reply, as a phase of replies took it; NAN: none has ended yet */
} mica_eta;

void mica_eta_begin(mica_eta *eta, const mica_protocol *protocol, int64_t now_ns);

/** Seconds that are left when phase `at` is `done`, 0..1, and in *part what part of the whole is behind: never 1 before the
 * end. */
double mica_eta_left(mica_eta *eta, int32_t at, double done, int64_t now_ns, double *part);

#endif
