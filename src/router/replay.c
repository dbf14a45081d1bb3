/* replay.c - another policy on the same log: what it would have chosen, and what that would have taken.
 *
 * What is measured: the values of the rung that answered, for the policy under which it did, and for the other one where it
 * chooses that rung, too. What is estimated, for a rung that did not run: the prediction of predict.c for the tokens that the
 * answer really had, times the median of measured / predicted of that rung in this log where it answered at least
 * MEASURED_LEAST times; its quality is the mean of the grades of that rung and class in this log where there are at least as
 * many, else the ladder's. What cannot be told is left out, and every sum says of how many records it is.
 *
 * Regret: a policy's value less the best that any rung would have had which the new policy permits (or which answered): each
 * dimension by itself, so no policy can have none in all of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/json.h"
#include "router/record_read.h"

enum { RECORDS_MAX = 1000000, MEASURED_LEAST = 5, DIMENSIONS = 4 };

enum { USD, JOULES, MS, QUALITY };

static const char *const dimension_names[DIMENSIONS] = {"usd", "joules", "total_ms", "quality"};

/* One record under both policies. Rungs are those of the new policy's ladder, by index; -1: none, or not in it. */
typedef struct item {
    int8_t logged, chosen; /* first of the order */
    int8_t answered;
    int8_t used;    /* of the new policy's order, the first that is not known to have failed for this request; -1: none */
    float lost_ms;  /* what those before it took until they failed */
    uint8_t action, route_class, logged_action;
    bool kept, is_measured;
    uint16_t permitted;             /* bits: rungs that fit, and are not known to have failed */
    float measured[DIMENSIONS];     /* of the rung that answered; NAN */
    float predicted[MICA_ROUTE_RUNGS_MAX][DIMENSIONS];
} item;

typedef struct replay {
    const mica_route_policy *policy;
    json_t *outcomes; /* by id */
    item *items;
    size_t n, capacity;
    size_t damaged, unreadable, kept, same_action;
    double factor[MICA_ROUTE_RUNGS_MAX][DIMENSIONS];            /* measured / predicted */
    double grade[MICA_ROUTE_RUNGS_MAX][MICA_CLASSES];           /* NAN: too few */
    char why[200]; /* of the first unreadable record */
} replay;

/* ---- Lines ---- */

typedef mica_status use_line(replay *r, json_t *root, mica_error *err);

static mica_status each_line(replay *r, const char *log, size_t length, bool count, use_line *use, mica_error *err)
{
    mica_status status = MICA_OK;
    for (size_t at = 0; !status && at < length;) {
        const char *end = memchr(log + at, '\n', length - at);
        size_t n = end ? (size_t)(end - log) - at : length - at;
        json_t *root = n > 0 ? mica_json_loadb(log + at, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (json_is_object(root))
            status = use(r, root, err);
        else if (n > 0 && count)
            r->damaged++;
        json_decref(root);
        at += n + 1;
    }
    return status;
}

static mica_status take_outcome(replay *r, json_t *root, mica_error *err)
{
    const char *id = mica_record_text(root, "id");
    json_t *outcome = json_object_get(root, "outcome");
    if (strcmp(mica_record_text(root, "record"), "outcome") != 0 || !*id || !outcome)
        return MICA_OK;
    if (json_object_set(r->outcomes, id, outcome) != 0)
        return mica_fail_nomem(err, strlen(id), "the outcomes of the log");
    return MICA_OK;
}

/* ---- Records ---- */

static void predict_all(const replay *r, const mica_record *record, const mica_route_decision *d,
                        const mica_route_outcome *outcome, item *out)
{
    const mica_route_request *request = mica_route_request_of(record->request);
    const mica_route_state *state = mica_route_state_of(record->state);
    int64_t n_in = outcome->prompt_tokens >= 0 ? outcome->prompt_tokens : d->prompt_tokens;
    int64_t n_out = outcome->output_tokens >= 0 ? outcome->output_tokens : d->output_tokens;
    for (int32_t i = 0; i < d->n_candidates; i++) {
        const mica_rung *rung = &r->policy->ladder->rungs[i];
        mica_route_rung_state now = mica_candidate_state(state, rung->name);
        mica_prediction p;
        mica_predict(r->policy, rung, &now, request->task ? request->task : "", d->route_class, n_in, n_out, &p);
        const double values[DIMENSIONS] = {p.usd, p.joules, p.total_ms, p.quality};
        for (int k = 0; k < DIMENSIONS; k++)
            out->predicted[i][k] = (float)values[k];
        if (d->candidates[i].reason == MICA_ROUTE_FITS || d->candidates[i].reason == MICA_ROUTE_HOPS)
            out->permitted = (uint16_t)(out->permitted | (1u << i));
    }
}

static mica_status decide_again(replay *r, const mica_record *record, mica_route_decision *d, bool *kept, mica_error *err)
{
    mica_route_request request = *mica_route_request_of(record->request);
    if (request.rung && strcmp(request.rung, "auto") != 0 && mica_route_rung_find(r->policy, request.rung) < 0)
        request.rung = NULL; /* the new ladder does not have it: the router chooses */
    return mica_decide_known(r->policy, &request, mica_route_state_of(record->state), &record->known, d, kept, err);
}

static mica_status make_room(replay *r, mica_error *err)
{
    size_t wanted = r->capacity ? 2 * r->capacity : 256;
    if (r->n < r->capacity)
        return MICA_OK;
    if (r->n >= RECORDS_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the log has more than %d records: replay a part of it", RECORDS_MAX);
    item *grown = realloc(r->items, wanted * sizeof *grown);
    if (!grown)
        return mica_fail_nomem(err, wanted * sizeof *grown, "the records of the log");
    r->items = grown;
    r->capacity = wanted;
    return MICA_OK;
}

static void take_measured(const replay *r, const mica_route_outcome *o, item *out)
{
    const double values[DIMENSIONS] = {o->usd, o->joules, o->total_ms, o->quality};
    out->is_measured = o->ok && o->rung[0];
    out->answered = (int8_t)(out->is_measured ? mica_route_rung_find(r->policy, o->rung) : -1);
    for (int k = 0; k < DIMENSIONS; k++)
        out->measured[k] = out->is_measured ? (float)values[k] : NAN;
}

/* What failed for this request in the log would have failed again: the next rung of the order counts, and the time is lost. */
static void skip_failed(const replay *r, const mica_route_decision *d, const mica_route_outcome *o, item *out)
{
    double lost[MICA_ROUTE_RUNGS_MAX] = {0};
    unsigned failed = 0;
    for (int32_t i = 0; i < o->n_attempts; i++) {
        const mica_route_attempt *a = &o->attempts[i];
        int32_t rung = mica_route_rung_find(r->policy, a->rung);
        if (rung < 0 || rung == out->answered || strcmp(a->result, "ok") == 0 || strcmp(a->result, "cancelled") == 0)
            continue;
        failed |= 1u << rung;
        if (isfinite(a->end_ms - a->start_ms))
            lost[rung] += a->end_ms - a->start_ms;
    }
    out->permitted = (uint16_t)(out->permitted & ~failed);
    out->used = -1;
    for (int32_t i = 0; i < d->n_order && out->used < 0; i++) {
        if (failed & (1u << d->order[i]))
            out->lost_ms += (float)lost[d->order[i]];
        else
            out->used = (int8_t)d->order[i];
    }
}

static uint8_t logged_action(const mica_record *record)
{
    const char *name = mica_record_text(record->decision, "action");
    uint8_t i = 0;
    while (i < MICA_ROUTE_REFUSE && strcmp(mica_route_action_name((mica_route_action)i), name) != 0)
        i++;
    return i;
}

static mica_status add_item(replay *r, const mica_record *record, mica_error *err)
{
    mica_route_decision d;
    mica_route_outcome outcome = mica_route_outcome_default();
    const json_t *later = json_object_get(r->outcomes, record->id);
    mica_status status = make_room(r, err);
    if (status)
        return status;
    item *out = &r->items[r->n];
    memset(out, 0, sizeof *out);
    status = decide_again(r, record, &d, &out->kept, err);
    if (status)
        return status;
    if (!mica_record_outcome(later ? later : json_object_get(record->root, "outcome"), &outcome))
        outcome = mica_route_outcome_default();
    predict_all(r, record, &d, &outcome, out);
    take_measured(r, &outcome, out);
    skip_failed(r, &d, &outcome, out);
    out->action = (uint8_t)d.action;
    out->logged_action = logged_action(record);
    out->route_class = (uint8_t)d.route_class;
    out->chosen = (int8_t)(d.n_order > 0 ? d.order[0] : -1);
    out->logged = (int8_t)(record->chosen[0] ? mica_route_rung_find(r->policy, record->chosen) : -1);
    r->kept += out->kept;
    r->n++;
    return MICA_OK;
}

static mica_status take_record(replay *r, json_t *root, mica_error *err)
{
    mica_record record;
    mica_error reason;
    if (strcmp(mica_record_text(root, "record"), "route") != 0)
        return MICA_OK;
    mica_status status = mica_record_read(root, &record, &reason);
    if (!status) {
        status = add_item(r, &record, &reason);
        mica_record_free(&record);
    }
    if (status == MICA_OUT_OF_MEMORY || r->n >= RECORDS_MAX)
        return status ? mica_fail(err, status, "%s", reason.message) : MICA_OK;
    if (status && r->unreadable++ == 0)
        snprintf(r->why, sizeof r->why, "%.180s", reason.message);
    return MICA_OK;
}

/* ---- What the log says of the rungs ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_ratio(const replay *r, int rung, int dimension, double *work)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const item *it = &r->items[i];
        double ratio = it->answered == rung ? (double)it->measured[dimension] / (double)it->predicted[rung][dimension] : NAN;
        if (isfinite(ratio))
            work[n++] = ratio;
    }
    if (n < MEASURED_LEAST)
        return 1;
    qsort(work, n, sizeof *work, by_value);
    return n % 2 ? work[n / 2] : (work[n / 2 - 1] + work[n / 2]) / 2;
}

static double mean_grade(const replay *r, int rung, int value)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const item *it = &r->items[i];
        if (it->answered == rung && it->route_class == value && isfinite(it->measured[QUALITY])) {
            sum += (double)it->measured[QUALITY];
            n++;
        }
    }
    return n >= MEASURED_LEAST ? sum / (double)n : NAN;
}

static mica_status learn(replay *r, mica_error *err)
{
    double *work = mica_new_array(r->n, sizeof *work);
    if (!work)
        return mica_fail_nomem(err, r->n * sizeof *work, "the figures of the log");
    for (int rung = 0; rung < r->policy->ladder->n; rung++) {
        for (int k = 0; k < QUALITY; k++)
            r->factor[rung][k] = median_ratio(r, rung, k, work);
        for (int value = 0; value < MICA_CLASSES; value++)
            r->grade[rung][value] = mean_grade(r, rung, value);
    }
    free(work);
    return MICA_OK;
}

/* ---- Values ---- */

static bool was_measured(const item *it, int rung, int dimension)
{
    return rung >= 0 && it->answered == rung && isfinite(it->measured[dimension]);
}

static double value_of(const replay *r, const item *it, int rung, int dimension)
{
    if (rung < 0)
        return NAN;
    if (was_measured(it, rung, dimension))
        return (double)it->measured[dimension];
    if (dimension == QUALITY)
        return isnan(r->grade[rung][it->route_class]) ? (double)it->predicted[rung][QUALITY] : r->grade[rung][it->route_class];
    double lost = dimension == MS && rung == it->used ? (double)it->lost_ms : 0;
    return (double)it->predicted[rung][dimension] * r->factor[rung][dimension] + lost;
}

/* The policy of the log: the rung that answered, else the one it wanted. */
static int logged_rung(const item *it) { return it->answered >= 0 ? it->answered : it->is_measured ? -1 : it->logged; }

static double best_of(const replay *r, const item *it, int dimension)
{
    double best = NAN;
    for (int rung = 0; rung < r->policy->ladder->n; rung++) {
        if (!(it->permitted & (1u << rung)) && it->answered != rung)
            continue;
        double value = value_of(r, it, rung, dimension);
        bool better = dimension == QUALITY ? value > best : value < best;
        if (isfinite(value) && (isnan(best) || better))
            best = value;
    }
    return best;
}

typedef struct sums {
    size_t n, logged_measured, new_measured;
    double logged, chosen, best;
} sums;

static sums sum_up(const replay *r, int dimension)
{
    sums s = {0};
    for (size_t i = 0; i < r->n; i++) {
        const item *it = &r->items[i];
        int logged = logged_rung(it);
        double a = value_of(r, it, logged, dimension), b = value_of(r, it, it->used, dimension);
        if (!isfinite(a) || !isfinite(b))
            continue;
        double best = best_of(r, it, dimension);
        bool better = dimension == QUALITY ? a > best : a < best; /* the log's rung may be one that the new policy forbids */
        s.n++;
        s.logged += a;
        s.chosen += b;
        s.best += isfinite(best) && !better ? best : a;
        s.logged_measured += was_measured(it, logged, dimension);
        s.new_measured += was_measured(it, it->used, dimension);
    }
    return s;
}

/* ---- The report ---- */

static json_t *dimension_json(const replay *r, int dimension)
{
    sums s = sum_up(r, dimension);
    double sign = dimension == QUALITY ? -1 : 1, n = s.n ? (double)s.n : NAN;
    json_t *out = json_pack("{s:s, s:I, s:I, s:I}", "name", dimension_names[dimension], "records", (json_int_t)s.n,
                            "log_measured", (json_int_t)s.logged_measured, "new_measured", (json_int_t)s.new_measured);
    const char *const keys[] = {"log_mean", "new_mean", "best_mean", "log_regret", "new_regret", "difference"};
    const double values[] = {s.logged / n, s.chosen / n, s.best / n, sign * (s.logged - s.best) / n,
                             sign * (s.chosen - s.best) / n, (s.chosen - s.logged) / n};
    for (int i = 0; i < 6; i++)
        json_object_set_new(out, keys[i], isfinite(values[i]) ? json_real(values[i]) : json_null());
    return out;
}

/* How often each pair of choices occurs. */
static json_t *moves_json(const replay *r)
{
    json_t *out = json_array();
    size_t n = (size_t)r->policy->ladder->n + 2;
    for (size_t from = 0; from < n; from++) {
        size_t count[MICA_ROUTE_RUNGS_MAX + 3] = {0};
        for (size_t i = 0; i < r->n; i++) {
            const item *it = &r->items[i];
            size_t a = it->logged >= 0 ? (size_t)it->logged : n - 2 + (it->logged_action == MICA_ROUTE_QUEUE ? 0 : 1);
            size_t b = it->chosen >= 0 ? (size_t)it->chosen : n - 2 + (it->action == MICA_ROUTE_QUEUE ? 0 : 1);
            count[b] += a == from;
        }
        for (size_t to = 0; to < n; to++) {
            const char *names[2];
            for (int side = 0; side < 2; side++) {
                size_t k = side ? to : from;
                names[side] = k < n - 2 ? r->policy->ladder->rungs[k].name : k == n - 2 ? "(queue)" : "(none)";
            }
            if (count[to] > 0)
                mica_json_add(&out, json_pack("{s:s, s:s, s:I}", "log", names[0], "new", names[1], "records",
                                                     (json_int_t)count[to]));
        }
    }
    return out;
}

static json_t *factors_json(const replay *r)
{
    json_t *out = json_array();
    for (int rung = 0; rung < r->policy->ladder->n; rung++)
        mica_json_add(&out, json_pack("{s:s, s:f, s:f, s:f}", "rung", r->policy->ladder->rungs[rung].name, "usd",
                                             r->factor[rung][USD], "joules", r->factor[rung][JOULES], "total_ms",
                                             r->factor[rung][MS]));
    return out;
}

static mica_status write_report(const replay *r, char **report, size_t *length, mica_error *err)
{
    size_t same = 0, measured = 0;
    json_t *dimensions = json_array();
    for (size_t i = 0; i < r->n; i++) {
        same += r->items[i].chosen == r->items[i].logged && r->items[i].action == r->items[i].logged_action;
        measured += r->items[i].is_measured;
    }
    for (int k = 0; k < DIMENSIONS; k++)
        mica_json_add(&dimensions, dimension_json(r, k));
    json_t *root = json_pack("{s:{s:s, s:s, s:s}, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o}", "policy", "name",
                             r->policy->name, "version", r->policy->version, "hash", r->policy->hash, "records",
                             (json_int_t)r->n, "with_outcome", (json_int_t)measured, "same_choice", (json_int_t)same,
                             "class_from_log", (json_int_t)r->kept, "damaged_lines", (json_int_t)r->damaged,
                             "unreadable_records", (json_int_t)r->unreadable, "first_unreadable", r->why, "dimensions",
                             dimensions, "moves", moves_json(r), "factors", factors_json(r));
    *report = root ? mica_json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    *length = *report ? strlen(*report) : 0;
    return *report ? MICA_OK : mica_fail_nomem(err, 1, "the report of the replay");
}

mica_status mica_route_replay(const char *log, size_t length, const mica_route_policy *policy, char **report,
                              size_t *report_length, mica_error *err)
{
    replay r = {.policy = policy, .outcomes = json_object()};
    *report = NULL;
    mica_status status = r.outcomes ? MICA_OK : mica_fail_nomem(err, 1, "the outcomes of the log");
    if (!status)
        status = each_line(&r, log, length, false, take_outcome, err);
    if (!status)
        status = each_line(&r, log, length, true, take_record, err);
    if (!status && r.n + r.unreadable == 0)
        status = mica_fail(err, MICA_BAD_TEXT, "the log has no record of a decision (a line with \"record\": \"route\")");
    if (!status)
        status = learn(&r, err);
    if (!status)
        status = write_report(&r, report, report_length, err);
    json_decref(r.outcomes);
    free(r.items);
    return status;
}
