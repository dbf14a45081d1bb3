/* evaluate.c - examples, and how right a classifier is on them: accuracy, calibration, and what a threshold leaves. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/json.h"
#include "base/xxh64.h"
#include "router/examples.h"
#include "router/rules.h"

enum { BINS = 10 };

/* ---- Reading ---- */

typedef struct line {
    int32_t route_class, split;
    char group[64], source[32];
} line;

static const char *const splits[] = {"train", "test", NULL};

static const mica_field_row line_fields[] = {
    MICA_PART_FIELD("text", true),
    MICA_CHOICE_FIELD(line, route_class, "class", 0, mica_route_class_words, true),
    MICA_CHOICE_FIELD(line, split, "split", MICA_SPLIT_TRAIN, splits, false),
    MICA_TEXT_FIELD(line, group, "group", 1, false),
    MICA_TEXT_FIELD(line, source, "source", 1, false),
};

static const mica_field_table line_table = MICA_FIELD_TABLE("labelled request", line_fields, false);

static double chance_of(const char *text, size_t length, uint64_t seed)
{
    mica_xxh64 hash;
    mica_xxh64_start(&hash, seed);
    mica_xxh64_add(&hash, text, length);
    return (double)(mica_xxh64_value(&hash) >> 11) * 0x1p-53;
}

static mica_status add_features(const char *text, size_t length, int32_t buckets, mica_example *out, mica_error *err)
{
    mica_features features;
    mica_features_of(text, length, buckets, &features);
    out->n_features = features.n;
    out->bucket = mica_new_array((size_t)features.n, sizeof *out->bucket);
    if (!out->bucket)
        return mica_fail_nomem(err, (size_t)features.n * sizeof *out->bucket, "the examples");
    memcpy(out->bucket, features.bucket, (size_t)features.n * sizeof *out->bucket);
    return MICA_OK;
}

static mica_status read_line(const char *json, size_t length, size_t number, int32_t buckets, uint64_t seed, mica_example *out,
                             mica_error *err)
{
    char where[40];
    line l = {.split = MICA_SPLIT_CHANCE};
    json_t *root;
    snprintf(where, sizeof where, "line %zu", number);
    mica_status status = mica_fields_load(json, length, where, &root, err);
    if (status)
        return status;
    const json_t *text = json_object_get(root, "text");
    snprintf(where, sizeof where, "line %zu: ", number);
    status = mica_fields_read(root, where, &line_table, &l, err);
    if (!status && (!json_is_string(text) || json_string_length(text) == 0))
        status = mica_fail(err, MICA_BAD_TEXT, "%s/text must be a text of at least one byte", where);
    if (!status && l.route_class == MICA_CLASS_UNKNOWN)
        status = mica_fail(err, MICA_BAD_TEXT, "%s/class must be \"narrow\" or \"complex\": unknown is what lies between",
                           where);
    if (!status)
        status = add_features(json_string_value(text), json_string_length(text), buckets, out, err);
    out->narrow = l.route_class == MICA_CLASS_NARROW;
    out->split = l.split;
    memcpy(out->source, l.source, sizeof out->source);
    if (!status)
        out->chance = l.group[0] ? chance_of(l.group, strlen(l.group), seed)
                                 : chance_of(json_string_value(text), json_string_length(text), seed);
    json_decref(root);
    return status;
}

static mica_status read_lines(const char *jsonl, size_t length, int32_t buckets, uint64_t seed, mica_examples *out,
                              mica_error *err)
{
    mica_status status = MICA_OK;
    for (size_t at = 0, number = 1; !status && at < length; number++) {
        const char *end = memchr(jsonl + at, '\n', length - at);
        size_t n = end ? (size_t)(end - jsonl) - at : length - at;
        if (n > 0)
            status = read_line(jsonl + at, n, number, buckets, seed, &out->item[out->n++], err);
        at += n + 1;
    }
    return status;
}

mica_status mica_examples_read(const char *jsonl, size_t length, int32_t buckets, uint64_t seed, mica_examples *out,
                               mica_error *err)
{
    size_t lines = 1;
    *out = (mica_examples){0};
    for (size_t i = 0; i < length; i++)
        lines += jsonl[i] == '\n';
    if (lines > MICA_EXAMPLES_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there are %zu lines of examples; %d are possible", lines,
                         MICA_EXAMPLES_MAX);
    out->item = mica_new_array(lines, sizeof *out->item);
    if (!out->item)
        return mica_fail_nomem(err, lines * sizeof *out->item, "the examples");
    mica_status status = read_lines(jsonl, length, buckets, seed, out, err);
    if (!status && out->n == 0)
        status = mica_fail(err, MICA_BAD_TEXT, "there is no example: a line is {\"text\": \"...\", \"class\": \"narrow\"}");
    if (status)
        mica_examples_free(out);
    return status;
}

void mica_examples_free(mica_examples *examples)
{
    for (size_t i = 0; i < examples->n; i++)
        free(examples->item[i].bucket);
    free(examples->item);
    *examples = (mica_examples){0};
}

double mica_example_narrow(const mica_classifier *classifier, const mica_example *example)
{
    mica_features features = {.n = example->n_features};
    memcpy(features.bucket, example->bucket, (size_t)example->n_features * sizeof *example->bucket);
    return mica_classifier_narrow(classifier, &features);
}

/* ---- Figures ---- */

typedef struct tally {
    size_t n, right, narrow, narrow_right, bin_n[BINS], bin_narrow[BINS];
    double loss, brier, bin_p[BINS];
    size_t sure_n[5], sure_right[5]; /* at the confidences below */
} tally;

static const double confidences[5] = {0.6, 0.7, 0.8, 0.9, 0.95};

static void count(tally *t, double p, bool narrow)
{
    double of_label = narrow ? p : 1 - p, sure = p > 0.5 ? p : 1 - p;
    bool right = (p > 0.5) == narrow;
    int bin = p >= 1 ? BINS - 1 : (int)(p * BINS);
    t->n++;
    t->right += right;
    t->narrow += narrow;
    t->narrow_right += narrow && right;
    t->loss -= log(of_label > 1e-12 ? of_label : 1e-12);
    t->brier += (1 - of_label) * (1 - of_label);
    t->bin_n[bin]++;
    t->bin_narrow[bin] += narrow;
    t->bin_p[bin] += p;
    for (int i = 0; i < 5; i++) {
        t->sure_n[i] += sure >= confidences[i];
        t->sure_right[i] += sure >= confidences[i] && right;
    }
}

static json_t *part(size_t k, size_t n) { return n > 0 ? json_real((double)k / (double)n) : json_null(); }

static json_t *bins_json(const tally *t, double *ece)
{
    json_t *out = json_array();
    *ece = 0;
    for (int i = 0; i < BINS; i++) {
        double n = (double)t->bin_n[i];
        if (t->bin_n[i] == 0)
            continue;
        double p = t->bin_p[i] / n, is = (double)t->bin_narrow[i] / n;
        *ece += n / (double)t->n * fabs(p - is);
        mica_json_add(&out, json_pack("{s:f, s:f, s:I, s:f, s:f}", "from", (double)i / BINS, "to",
                                             (double)(i + 1) / BINS,
                                             "n", (json_int_t)t->bin_n[i], "predicted", p, "narrow", is));
    }
    return out;
}

static json_t *tally_json(const tally *t)
{
    double ece, n = (double)t->n;
    json_t *thresholds = json_array(), *bins = bins_json(t, &ece);
    for (int i = 0; i < 5; i++)
        mica_json_add(&thresholds, json_pack("{s:f, s:o, s:o}", "min_confidence", confidences[i],
                                                    "decided", part(t->sure_n[i], t->n),
                                                    "accuracy", part(t->sure_right[i], t->sure_n[i])));
    return json_pack("{s:I, s:o, s:o, s:o, s:f, s:f, s:f, s:o, s:o}", "n", (json_int_t)t->n,
                     "accuracy", part(t->right, t->n), "narrow_recall", part(t->narrow_right, t->narrow),
                     "complex_recall", part(t->right - t->narrow_right, t->n - t->narrow), "log_loss", t->loss / n,
                     "brier", t->brier / n, "ece", ece, "reliability", bins, "thresholds", thresholds);
}

json_t *mica_examples_report(const mica_examples *examples, const bool *use, const mica_classifier *classifier)
{
    tally all = {0}, by_source[MICA_SOURCES_MAX] = {0};
    const char *source[MICA_SOURCES_MAX];
    int n_sources = 0;
    for (size_t i = 0; i < examples->n; i++) {
        const mica_example *e = &examples->item[i];
        int k = 0;
        if (use && !use[i])
            continue;
        double p = mica_example_narrow(classifier, e);
        count(&all, p, e->narrow);
        while (k < n_sources && strcmp(source[k], e->source) != 0)
            k++;
        if (k == n_sources && k < MICA_SOURCES_MAX)
            source[n_sources++] = e->source;
        if (k < MICA_SOURCES_MAX)
            count(&by_source[k], p, e->narrow);
    }
    json_t *sources = json_object();
    for (int k = 0; k < n_sources; k++)
        mica_json_set(&sources, *source[k] ? source[k] : "(none)", tally_json(&by_source[k]));
    if (all.n == 0)
        return json_pack("{s:i, s:o}", "n", 0, "sources", sources);
    json_t *out = tally_json(&all);
    json_object_set_new(out, "sources", sources);
    return out;
}

mica_status mica_route_evaluate(const char *model, size_t model_length, const char *jsonl, size_t length, char **report,
                                size_t *report_length, mica_error *err)
{
    mica_classifier *classifier = NULL;
    mica_examples examples = {0};
    *report = NULL;
    mica_status status = mica_classifier_read(model, model_length, "the classifier", &classifier, err);
    if (!status)
        status = mica_examples_read(jsonl, length, (int32_t)classifier->buckets, 0, &examples, err);
    if (!status) {
        json_t *root = mica_examples_report(&examples, NULL, classifier);
        *report = root ? mica_json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
        *report_length = *report ? strlen(*report) : 0;
        json_decref(root);
        status = *report ? MICA_OK : mica_fail_nomem(err, 1, "the report");
    }
    mica_examples_free(&examples);
    mica_classifier_free(classifier);
    return status;
}
