/* result.c - the figures of a finished reply. Allocates nothing: it runs between the steps of other replies. */
#include <string.h>

#include "device/memory.h"
#include "session/session.h"

/* Lets v[root] sink to its place in the heap v[0..n), largest first. */
static void sink(int64_t *v, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && v[child + 1] > v[child])
            child++;
        if (v[root] >= v[child])
            return;
        int64_t t = v[root];
        v[root] = v[child];
        v[child] = t;
    }
}

/* Heapsort: in place, where the C library's qsort may allocate. */
static void sort_i64(int64_t *v, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(v, i, n);
    for (size_t end = n; end-- > 1;) {
        int64_t t = v[0];
        v[0] = v[end];
        v[end] = t;
        sink(v, 0, end);
    }
}

/* Linear interpolation between the closest ranks of sorted[0..n), in ms. */
static double percentile_ms(const int64_t *sorted, int32_t n, double p)
{
    if (n == 0)
        return 0.0;
    double rank = p * (n - 1);
    int32_t low = (int32_t)rank, high = low + 1 < n ? low + 1 : low;
    double a = (double)sorted[low], b = (double)sorted[high];
    return (a + (b - a) * (rank - low)) / 1e6;
}

void mica_reply_result(mica_reply *r, mica_result *out)
{
    mica_session *s = r->s;
    int32_t n = r->n_itl < s->options.n_ctx ? r->n_itl : s->options.n_ctx;
    double decode_ns = (double)(r->last_ns - r->first_ns), prefill_s = (double)r->prefill_ns / 1e9;
    memcpy(s->sorted, s->itl_ns, (size_t)n * sizeof *s->sorted);
    sort_i64(s->sorted, (size_t)n);
    *out = (mica_result){
        .stop_reason = r->stop_reason, .prompt_n = r->prompt_n, .cached_n = s->cached_n, .gen_n = r->gen_n,
        .dropped_n = s->dropped_n, .needed_n = strcmp(r->stop_reason, "context") == 0 ? s->n_tokens + 1 : 0,
        .load_ms = s->model->load_ms,
        .ttft_ms = r->gen_n > 0 && s->request_ns ? (double)(r->first_ns - s->request_ns) / 1e6 : 0.0,
        .tpot_ms = r->gen_n > 1 ? decode_ns / 1e6 / (r->gen_n - 1) : 0.0, .tpot_p50_ms = percentile_ms(s->sorted, n, 0.5),
        .tpot_p95_ms = percentile_ms(s->sorted, n, 0.95), .prefill_ms = prefill_s * 1e3,
        .prefill_tps = prefill_s > 0.0 ? r->prefill_n / prefill_s : 0.0,
        .decode_tps = decode_ns > 0.0 ? (r->gen_n - 1) / (decode_ns / 1e9) : 0.0,
        .peak_rss_bytes = mica_memory_peak_rss(s->options.sysroot), .seed = r->seed, .kernels = s->model->kernels.name,
        .n_threads = mica_pool_threads(s->pool), .drafted_n = r->drafted_n, .accepted_n = r->accepted_n, .forced_n = r->forced_n};
}
