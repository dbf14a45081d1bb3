#include "bench/campaign_pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/record.h"

enum { COLUMNS = 7 };

/* ---- To bytes ---- */

static mica_status pack_answers(const mica_shard_result *r, void **bytes, size_t *length, mica_error *err)
{
    size_t n = r->n;
    int64_t *columns = mica_new_array(n * COLUMNS, sizeof *columns);
    if (!columns)
        return mica_fail_nomem(err, n * COLUMNS * sizeof *columns, "the answers of a shard");
    for (size_t k = 0; k < n; k++) {
        const mica_answer *a = &r->answers[k];
        const int64_t values[COLUMNS] = {a->started_ns, a->done_ns, a->prompt_n,  a->cached_n,
                                         a->gen_n,      a->reason,  (int64_t)a->n};
        for (size_t c = 0; c < COLUMNS; c++)
            columns[c * n + k] = values[c];
    }
    mica_status status = mica_pack_ints(columns, n * COLUMNS, bytes, length, err);
    free(columns);
    return status;
}

/* The events of all answers behind one another, without the room between them. */
static mica_status pack_events(const mica_shard_result *r, const int64_t *values, void **bytes, size_t *length, mica_error *err)
{
    size_t at = 0;
    int64_t *all = mica_new_array(r->room, sizeof *all);
    if (!all)
        return mica_fail_nomem(err, r->room * sizeof *all, "the events of a shard");
    for (size_t k = 0; k < r->n; k++) {
        memcpy(all + at, values + r->answers[k].first, r->answers[k].n * sizeof *all);
        at += r->answers[k].n;
    }
    mica_status status = mica_pack_ints(all, at, bytes, length, err);
    free(all);
    return status;
}

static mica_status pack_samples(const json_t *samples, void **bytes, size_t *length, mica_error *err)
{
    char *text = mica_json_dumps(samples, JSON_COMPACT);
    mica_status status = text ? mica_pack_text(text, strlen(text), bytes, length, err) : mica_fail_nomem(err, 0, "samples");
    free(text);
    return status;
}

mica_status mica_shard_result_pack(const mica_shard_result *r, mica_packed_result *out, mica_error *err)
{
    void **d = out->data;
    size_t *n = out->length;
    *out = (mica_packed_result){.data = {NULL}};
    mica_status status = pack_answers(r, &d[MICA_PACKED_ANSWERS], &n[MICA_PACKED_ANSWERS], err);
    if (!status)
        status = pack_events(r, r->times, &d[MICA_PACKED_TIMES], &n[MICA_PACKED_TIMES], err);
    if (!status)
        status = pack_events(r, r->tokens, &d[MICA_PACKED_TOKENS], &n[MICA_PACKED_TOKENS], err);
    if (!status)
        status = pack_samples(r->samples, &d[MICA_PACKED_SAMPLES], &n[MICA_PACKED_SAMPLES], err);
    if (status)
        mica_packed_result_free(out);
    return status;
}

void mica_packed_result_free(mica_packed_result *packed)
{
    for (int i = 0; i < MICA_PACKED_PARTS; i++)
        free(packed->data[i]);
    *packed = (mica_packed_result){.data = {NULL}};
}

/* ---- From bytes ---- */

/* False: numbers that no result has. */
static bool read_answers(const int64_t *columns, size_t n, mica_shard_result *out)
{
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        mica_answer *a = &out->answers[k];
        int64_t reason = columns[5 * n + k], events = columns[6 * n + k];
        if (reason < 0 || reason > MICA_REASON_OTHER || events < 0 || (uint64_t)events > out->room - at)
            return false;
        *a = (mica_answer){.started_ns = columns[k],
                           .done_ns = columns[n + k],
                           .prompt_n = columns[2 * n + k],
                           .cached_n = columns[3 * n + k],
                           .gen_n = columns[4 * n + k],
                           .reason = (mica_reason)reason,
                           .first = at,
                           .n = (size_t)events};
        at += a->n;
    }
    return at == out->room;
}

static mica_status unpack_ints(const mica_packed_result *p, int part, int64_t **values, size_t *n, mica_error *err)
{
    if (!p->data[part] || p->length[part] == 0)
        return mica_fail(err, MICA_BAD_FILE, "a stored shard has no samples");
    return mica_unpack_ints(p->data[part], p->length[part], values, n, err);
}

mica_status mica_shard_result_unpack(const mica_packed_result *packed, size_t n, mica_shard_result *out, mica_error *err)
{
    int64_t *columns = NULL;
    size_t n_columns = 0, n_tokens = 0, length = 0;
    char *text = NULL;
    mica_status status = unpack_ints(packed, MICA_PACKED_ANSWERS, &columns, &n_columns, err);
    if (!status)
        status = unpack_ints(packed, MICA_PACKED_TIMES, &out->times, &out->room, err);
    if (!status)
        status = unpack_ints(packed, MICA_PACKED_TOKENS, &out->tokens, &n_tokens, err);
    if (!status)
        status = mica_unpack_text(packed->data[MICA_PACKED_SAMPLES], packed->length[MICA_PACKED_SAMPLES], &text, &length, err);
    out->samples = text ? mica_json_loadb(text, length, 0, NULL) : NULL;
    out->answers = mica_new_array(n, sizeof *out->answers);
    out->n = n;
    bool good = !status && out->answers && n_columns == n * COLUMNS && n_tokens == out->room && json_is_array(out->samples) &&
                read_answers(columns, n, out);
    free(columns);
    free(text);
    return status || good ? status : mica_fail(err, MICA_BAD_FILE, "the samples of a stored shard are damaged");
}
