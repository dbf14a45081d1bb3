#include "bench/campaign_postgres.h"

#ifdef MICA_HAVE_POSTGRES
#include <inttypes.h>
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench/campaign_pack.h"

struct mica_mirror {
    PGconn *connection;
    /* of one update */
    mica_store *store;
    const char *campaign;
    uint8_t *there; /* a bit a shard */
    size_t n_bits;
    int64_t copied;
};

/* The columns of the store's table shard, and its blobs (campaign_pack.h). */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS mica_campaign (id text PRIMARY KEY, created bigint NOT NULL, name text NOT NULL, "
    "model text NOT NULL, tokens bigint NOT NULL, manifest text NOT NULL);"
    "CREATE TABLE IF NOT EXISTS mica_shard (id text PRIMARY KEY, campaign text NOT NULL REFERENCES mica_campaign, "
    "seq bigint NOT NULL, input text NOT NULL, first_item bigint NOT NULL, n_items bigint NOT NULL, before bigint NOT NULL, "
    "planned bigint NOT NULL, started bigint NOT NULL, wall_ns bigint NOT NULL, prompt_tokens bigint NOT NULL, "
    "cached_tokens bigint NOT NULL, reply_tokens bigint NOT NULL, joules double precision, head text NOT NULL, "
    "answers bytea NOT NULL, times bytea NOT NULL, tokens bytea NOT NULL, samples bytea NOT NULL, UNIQUE (campaign, seq))";

static const char insert_campaign[] = "INSERT INTO mica_campaign VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
static const char insert_shard[] = "INSERT INTO mica_shard VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, "
                                   "$14, $15, $16, $17, $18, $19) ON CONFLICT DO NOTHING";

static mica_status fail(const mica_mirror *m, mica_error *err)
{
    char text[200];
    snprintf(text, sizeof text, "%.190s", PQerrorMessage(m->connection));
    text[strcspn(text, "\n")] = '\0';
    return mica_fail(err, MICA_IO_ERROR, "the PostgreSQL database: %s", *text ? text : "no memory");
}

/* Frees the result. */
static mica_status expect(const mica_mirror *m, PGresult *result, ExecStatusType wanted, mica_error *err)
{
    bool good = PQresultStatus(result) == wanted;
    PQclear(result);
    return good ? MICA_OK : fail(m, err);
}

static void be_quiet(void *user, const char *message)
{
    (void)user;
    (void)message; /* "relation exists, skipping" */
}

mica_status mica_mirror_open(const char *url, mica_mirror **out, mica_error *err)
{
    mica_mirror *m = calloc(1, sizeof *m);
    if (!m)
        return mica_fail_nomem(err, sizeof *m, "a copy of the results");
    m->connection = PQconnectdb(url);
    mica_status status = MICA_OK;
    if (PQstatus(m->connection) == CONNECTION_OK) {
        PQsetNoticeProcessor(m->connection, be_quiet, NULL);
        status = expect(m, PQexec(m->connection, schema), PGRES_COMMAND_OK, err);
    } else {
        status = fail(m, err);
    }
    if (status)
        mica_mirror_close(m);
    else
        *out = m;
    return status;
}

void mica_mirror_close(mica_mirror *mirror)
{
    if (!mirror)
        return;
    PQfinish(mirror->connection);
    free(mirror);
}

/* ---- What is there ---- */

static mica_status read_there(mica_mirror *m, mica_error *err)
{
    const char *values[] = {m->campaign};
    static const char sql[] = "SELECT seq FROM mica_shard WHERE campaign = $1 ORDER BY seq";
    PGresult *r = PQexecParams(m->connection, sql, 1, NULL, values, NULL, NULL, 0);
    int n = PQresultStatus(r) == PGRES_TUPLES_OK ? PQntuples(r) : -1;
    int64_t last = n > 0 ? strtoll(PQgetvalue(r, n - 1, 0), NULL, 10) : -1;
    bool sane = last < MICA_CAMPAIGN_TOKENS / 2;
    m->n_bits = sane ? (size_t)(last + 1) : 0;
    m->there = n >= 0 && sane ? calloc(m->n_bits / 8 + 1, 1) : NULL;
    for (int i = 0; m->there && i < n; i++) {
        int64_t seq = strtoll(PQgetvalue(r, i, 0), NULL, 10);
        if (seq >= 0 && seq <= last)
            m->there[seq / 8] |= (uint8_t)(1 << (seq % 8));
    }
    PQclear(r);
    return m->there ? MICA_OK : n >= 0 ? mica_fail_nomem(err, m->n_bits / 8, "a copy of the results") : fail(m, err);
}

static bool is_there(const mica_mirror *m, int64_t seq)
{
    return (uint64_t)seq < m->n_bits && m->there[seq / 8] & (1 << (seq % 8));
}

/* ---- What is not ---- */

typedef struct putting {
    mica_mirror *mirror;
    mica_status status;
    mica_error *err;
} putting;

static bool put_campaign(void *user, const mica_campaign_row *row)
{
    putting *p = user;
    char created[24], tokens[24];
    if (strcmp(row->id, p->mirror->campaign) != 0)
        return true;
    char *manifest = mica_json_dumps(row->manifest, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(created, sizeof created, "%" PRId64, row->created);
    snprintf(tokens, sizeof tokens, "%" PRId64, row->tokens);
    const char *values[] = {row->id, created, row->name, row->model_sha256, tokens, manifest};
    PGresult *r = manifest ? PQexecParams(p->mirror->connection, insert_campaign, 6, NULL, values, NULL, NULL, 0) : NULL;
    p->status = manifest ? expect(p->mirror, r, PGRES_COMMAND_OK, p->err) : mica_fail_nomem(p->err, 0, "a manifest");
    free(manifest);
    return false;
}

enum { NUMBERS = 10, COLUMNS = 19 };

static mica_status insert(mica_mirror *m, const mica_shard_row *row, const mica_packed_result *packed, const char *head,
                          mica_error *err)
{
    const mica_shard *s = &row->shard;
    const int64_t numbers[NUMBERS] = {s->first_item,      s->n_items,   s->before,
                                      s->tokens,          row->started_unix, row->wall_ns,
                                      row->sums.prompt_tokens, row->sums.cached_tokens, row->sums.reply_tokens, s->seq};
    char text[NUMBERS][24], joules[40];
    for (int i = 0; i < NUMBERS; i++)
        snprintf(text[i], sizeof text[i], "%" PRId64, numbers[i]);
    snprintf(joules, sizeof joules, "%.17g", row->sums.joules);
    const char *values[COLUMNS] = {s->id, m->campaign, text[9], s->input};
    int lengths[COLUMNS] = {0}, formats[COLUMNS] = {0};
    for (int i = 0; i < 9; i++)
        values[4 + i] = text[i];
    values[13] = isfinite(row->sums.joules) ? joules : NULL;
    values[14] = head;
    for (int i = 0; i < MICA_PACKED_PARTS; i++) {
        values[15 + i] = packed->data[i];
        lengths[15 + i] = (int)packed->length[i];
        formats[15 + i] = 1;
    }
    PGresult *r = PQexecParams(m->connection, insert_shard, COLUMNS, NULL, values, lengths, formats, 0);
    return expect(m, r, PGRES_COMMAND_OK, err);
}

static mica_status put_shard(void *user, const mica_shard_row *row, mica_error *err)
{
    mica_mirror *m = user;
    mica_shard_result result;
    mica_packed_result packed;
    if (!row->done || is_there(m, row->shard.seq))
        return MICA_OK;
    char *head = mica_json_dumps(row->head, JSON_COMPACT | JSON_SORT_KEYS);
    mica_status status = head ? mica_campaign_store_result(m->store, m->campaign, row, &result, err)
                              : mica_fail_nomem(err, 0, "what computed a shard");
    if (!status) {
        status = mica_shard_result_pack(&result, &packed, err);
        mica_shard_result_free(&result);
        if (!status) {
            status = insert(m, row, &packed, head, err);
            mica_packed_result_free(&packed);
        }
    }
    m->copied += !status;
    free(head);
    return status;
}

mica_status mica_mirror_update(mica_mirror *mirror, mica_store *store, const char *campaign_id, int64_t *copied,
                               mica_error *err)
{
    putting p = {.mirror = mirror, .err = err};
    mirror->store = store;
    mirror->campaign = campaign_id;
    mirror->copied = 0;
    if (PQstatus(mirror->connection) != CONNECTION_OK)
        PQreset(mirror->connection);
    mica_status status = read_there(mirror, err);
    if (!status)
        status = mica_campaign_store_list(store, put_campaign, &p, err);
    status = status ? status : p.status;
    if (!status)
        status = mica_campaign_store_shards(store, campaign_id, put_shard, mirror, err);
    free(mirror->there);
    mirror->there = NULL;
    *copied = mirror->copied;
    return status;
}

#else

mica_status mica_mirror_open(const char *url, mica_mirror **out, mica_error *err)
{
    (void)url;
    *out = NULL;
    return mica_fail(err, MICA_UNSUPPORTED, "this build has no PostgreSQL: it was made without libpq");
}

void mica_mirror_close(mica_mirror *mirror)
{
    (void)mirror;
}

mica_status mica_mirror_update(mica_mirror *mirror, mica_store *store, const char *campaign_id, int64_t *copied,
                               mica_error *err)
{
    (void)mirror;
    (void)store;
    (void)campaign_id;
    *copied = 0;
    return mica_fail(err, MICA_UNSUPPORTED, "this build has no PostgreSQL: it was made without libpq");
}

#endif
