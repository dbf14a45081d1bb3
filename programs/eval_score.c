#include "eval_score.h"

#include <stdlib.h>
#include <string.h>

/* ---- Classes ---- */

/* Where failed, a class that nobody reads. */
static mica_eval_class *class_of(mica_eval_score *s, const char *name, mica_eval_class *lost)
{
    for (size_t i = 0; i < s->n_classes; i++)
        if (strcmp(s->classes[i].name, name) == 0)
            return &s->classes[i];
    mica_eval_class *grown = realloc(s->classes, (s->n_classes + 1) * sizeof *grown);
    char *copy = strdup(name);
    if (grown)
        s->classes = grown;
    if (!grown || !copy) {
        free(copy);
        s->failed = true;
        return lost;
    }
    s->classes[s->n_classes] = (mica_eval_class){.name = copy};
    return &s->classes[s->n_classes++];
}

static void count(mica_eval_score *s, const char *name, int hits, int wrong, int missed)
{
    mica_eval_class lost, *c = class_of(s, name, &lost);
    if (c == &lost)
        return;
    c->hits += hits;
    c->wrong += wrong;
    c->missed += missed;
}

double mica_eval_precision(const mica_eval_class *c)
{
    return c->hits + c->wrong > 0 ? (double)c->hits / (double)(c->hits + c->wrong) : 0.0;
}

double mica_eval_recall(const mica_eval_class *c)
{
    return c->hits + c->missed > 0 ? (double)c->hits / (double)(c->hits + c->missed) : 0.0;
}

double mica_eval_f1(const mica_eval_class *c)
{
    int64_t all = 2 * c->hits + c->wrong + c->missed;
    return all > 0 ? 2.0 * (double)c->hits / (double)all : 0.0;
}

mica_eval_class mica_eval_total(const mica_eval_score *s)
{
    mica_eval_class total = {.name = NULL};
    for (size_t i = 0; i < s->n_classes; i++) {
        total.hits += s->classes[i].hits;
        total.wrong += s->classes[i].wrong;
        total.missed += s->classes[i].missed;
    }
    return total;
}

/* ---- Kinds ---- */

static double score_label(mica_eval_score *s, const json_t *wanted, const json_t *result)
{
    const char *want = json_string_value(wanted), *got = json_string_value(json_object_get(result, "label"));
    if (strcmp(want, got) == 0) {
        count(s, want, 1, 0, 0);
        return 1.0;
    }
    count(s, want, 0, 0, 1);
    count(s, got, 0, 1, 0);
    return 0.0;
}

/* Numbers are compared as numbers, whether they are written as 5 or 5.0. */
static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) <= json_number_value(b) && json_number_value(a) >= json_number_value(b);
    return json_equal(a, b);
}

static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0);
}

static double score_data(mica_eval_score *s, const json_t *wanted, const json_t *result)
{
    const json_t *data = json_object_get(result, "data");
    const char *key;
    json_t *want;
    double right = 1.0;
    json_object_foreach((json_t *)wanted, key, want)
    {
        const json_t *got = json_object_get(data, key);
        bool nothing = is_nothing(want) && is_nothing(got), same = nothing || (got && same_value(want, got));
        if (!nothing)
            count(s, key, same, !same && !is_nothing(got), !same && !is_nothing(want));
        right = same ? right : 0.0;
    }
    return right;
}

static bool has_span(const json_t *list, const json_t *span)
{
    size_t i;
    json_t *other;
    json_array_foreach((json_t *)list, i, other)
    {
        if (json_equal(json_object_get(other, "start"), json_object_get(span, "start")) &&
            json_equal(json_object_get(other, "end"), json_object_get(span, "end")) &&
            json_equal(json_object_get(other, "type"), json_object_get(span, "type")))
            return true;
    }
    return false;
}

static double score_spans(mica_eval_score *s, const json_t *wanted, const json_t *result)
{
    const json_t *got = json_object_get(result, "spans");
    size_t i;
    json_t *span;
    double right = 1.0;
    json_array_foreach((json_t *)wanted, i, span)
    {
        bool hit = has_span(got, span);
        const char *type = json_string_value(json_object_get(span, "type"));
        count(s, type ? type : "?", hit, 0, !hit);
        right = hit ? right : 0.0;
    }
    json_array_foreach((json_t *)got, i, span)
    {
        if (has_span(wanted, span))
            continue;
        count(s, json_string_value(json_object_get(span, "type")), 0, 1, 0);
        right = 0.0;
    }
    return right;
}

static double words_of(const char *text)
{
    double n = 0.0;
    for (const char *p = text; p && *(p += strspn(p, " \t\r\n")); p += strcspn(p, " \t\r\n"))
        n += 1.0;
    return n;
}

static double score_facts(mica_eval_score *s, const json_t *item, const json_t *result)
{
    const json_t *facts = json_object_get(item, "facts");
    const char *summary = json_string_value(json_object_get(result, "summary"));
    size_t i, k, kept = 0;
    json_t *fact, *text;
    json_array_foreach((json_t *)facts, i, fact)
    {
        bool found = false;
        json_array_foreach(fact, k, text)
        {
            found = found || strcasestr(summary, json_string_value(text));
        }
        kept += found;
    }
    s->bounded += json_is_true(json_object_get(result, "complete"));
    s->words += words_of(summary);
    s->input_words += words_of(json_string_value(json_object_get(item, "input")));
    return json_array_size(facts) ? (double)kept / (double)json_array_size(facts) : 0.0;
}

static double score_completion(const json_t *wanted, const json_t *result)
{
    const char *want = json_string_value(wanted), *got = json_string_value(json_object_get(result, "completion"));
    return strncmp(got, want, strlen(want)) == 0 ? 1.0 : 0.0;
}

/* ---- Items ---- */

/* The facts of an item are lists of texts. */
static bool are_facts(const json_t *value)
{
    size_t i, k;
    json_t *fact, *text;
    json_array_foreach((json_t *)value, i, fact)
    {
        if (!json_is_array(fact))
            return false;
        json_array_foreach(fact, k, text)
        {
            if (!json_is_string(text))
                return false;
        }
    }
    return json_is_array(value);
}

static bool is_right_kind(mica_task_kind kind, const json_t *value)
{
    if (kind == MICA_TASK_EXTRACT)
        return json_is_object(value);
    if (kind == MICA_TASK_REDACT)
        return json_is_array(value);
    return kind == MICA_TASK_SUMMARISE ? are_facts(value) : json_is_string(value);
}

static double score_item(mica_eval_score *s, mica_task_kind kind, const json_t *item, const json_t *wanted,
                         const json_t *result)
{
    switch (kind) {
    case MICA_TASK_CLASSIFY:
    case MICA_TASK_ROUTE:
        return score_label(s, wanted, result);
    case MICA_TASK_EXTRACT:
        return score_data(s, wanted, result);
    case MICA_TASK_REDACT:
        return score_spans(s, wanted, result);
    case MICA_TASK_SUMMARISE:
        return score_facts(s, item, result);
    case MICA_TASK_COMPLETE:
        break;
    }
    return score_completion(wanted, result);
}

bool mica_eval_add(mica_eval_score *s, mica_task_kind kind, const json_t *item, const json_t *result, double ms,
                   const char **missing)
{
    static const char *const fields[] = {"label", "label", "data", "facts", "spans", "expected"};
    const json_t *wanted = json_object_get(item, fields[kind]);
    *missing = fields[kind];
    if (!is_right_kind(kind, wanted))
        return false;
    double *grown = realloc(s->ms, ((size_t)s->n + 1) * sizeof *grown);
    if (!grown) {
        s->failed = true;
        return true;
    }
    s->ms = grown;
    s->ms[s->n++] = ms;
    s->right += score_item(s, kind, item, wanted, result);
    return true;
}

void mica_eval_free(mica_eval_score *s)
{
    for (size_t i = 0; i < s->n_classes; i++)
        free(s->classes[i].name);
    free(s->classes);
    free(s->ms);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double mica_eval_quantile(mica_eval_score *s, double q)
{
    if (s->n == 0)
        return 0.0;
    qsort(s->ms, (size_t)s->n, sizeof *s->ms, by_value);
    return s->ms[(size_t)(q * (double)(s->n - 1) + 0.5)];
}
