/* train.c - trains the classifier: logistic regression by gradient steps, one example after the other in an order of chance,
 * with a decay of all weights after each epoch; weights to 16 bits; then one temperature, set on examples that were not
 * trained on, so that its probabilities are right. The report is of examples that neither saw. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/xxh64.h"
#include "router/examples.h"

typedef struct training {
    mica_route_train_options options;
    mica_examples examples;
    bool *is_test, *is_tuning; /* of each example; neither: it is trained on */
    size_t *order;
    size_t n_train, n_tuning, n_test;
    double *weight, bias;
    mica_classifier model;
} training;

mica_route_train_options mica_route_train_options_default(void)
{
    return (mica_route_train_options){.struct_size = sizeof(mica_route_train_options),
                                      .buckets = 4096,
                                      .epochs = 60,
                                      .rate = 0.5,
                                      .l2 = 1e-4,
                                      .held_out = 0.2,
                                      .seed = 1,
                                      .name = ""};
}

static mica_status check_options(const mica_route_train_options *o, mica_error *err)
{
    if (o->struct_size != sizeof *o)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the options are not from mica_route_train_options_default()");
    if (o->buckets < MICA_BUCKETS_MIN || o->buckets > MICA_BUCKETS_MAX || (o->buckets & (o->buckets - 1)))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d buckets: a power of two from %d to %d is possible", o->buckets,
                         MICA_BUCKETS_MIN, MICA_BUCKETS_MAX);
    if (o->epochs < 1 || o->epochs > 1000 || !(o->rate > 0 && o->rate <= 10) || !(o->l2 >= 0 && o->l2 <= 1))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "epochs must be from 1 to 1000, rate above 0 up to 10, l2 from 0 to 1");
    if (!(o->held_out > 0 && o->held_out <= 0.4))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the part held out must be above 0 and at most 0.4");
    if (!o->name || strlen(o->name) >= MICA_ROUTE_NAME_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the model's name must have less than %d bytes", MICA_ROUTE_NAME_MAX);
    return MICA_OK;
}

/* ---- Which example is for what ---- */

static mica_status split(training *t, mica_error *err)
{
    size_t n = t->examples.n;
    t->is_test = mica_new_array(n, sizeof *t->is_test);
    t->is_tuning = mica_new_array(n, sizeof *t->is_tuning);
    t->order = mica_new_array(n, sizeof *t->order);
    t->weight = mica_new_array((size_t)t->options.buckets, sizeof *t->weight);
    t->model.weight = mica_new_array((size_t)t->options.buckets, sizeof *t->model.weight);
    if (!t->is_test || !t->is_tuning || !t->order || !t->weight || !t->model.weight)
        return mica_fail_nomem(err, n * 16 + (size_t)t->options.buckets * 10, "the training");
    for (size_t i = 0; i < n; i++) {
        const mica_example *e = &t->examples.item[i];
        double part = t->options.held_out;
        t->is_test[i] = e->split == MICA_SPLIT_TEST || (e->split == MICA_SPLIT_CHANCE && e->chance < part);
        t->is_tuning[i] = !t->is_test[i] && e->chance >= 1 - part;
        t->n_test += t->is_test[i];
        t->n_tuning += t->is_tuning[i];
        if (!t->is_test[i] && !t->is_tuning[i])
            t->order[t->n_train++] = i;
    }
    if (t->n_train < 10 || t->n_tuning < 5)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "%zu examples to train on and %zu to set the temperature are too few: give more lines, or more groups",
                         t->n_train, t->n_tuning);
    return MICA_OK;
}

/* ---- Weights ---- */

static double score_of(const training *t, const mica_example *e)
{
    double sum = 0;
    for (int32_t i = 0; i < e->n_features; i++)
        sum += t->weight[e->bucket[i]];
    return t->bias + sum / sqrt((double)e->n_features);
}

static void step(training *t, const mica_example *e, double rate)
{
    double wrong = 1 / (1 + exp(-score_of(t, e))) - (e->narrow ? 1 : 0);
    double change = rate * wrong / sqrt((double)e->n_features);
    for (int32_t i = 0; i < e->n_features; i++)
        t->weight[e->bucket[i]] -= change;
    t->bias -= rate * wrong * 0.1; /* slower: it stands in every example */
}

static void shuffle(size_t *order, size_t n, mica_rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)(mica_rng_unit(rng) * (double)i), held = order[i - 1];
        order[i - 1] = order[k];
        order[k] = held;
    }
}

static void train(training *t)
{
    mica_rng rng;
    mica_rng_seed(&rng, t->options.seed);
    for (int32_t epoch = 0; epoch < t->options.epochs; epoch++) {
        double rate = t->options.rate / (1 + 0.1 * epoch);
        double kept = 1 - rate * t->options.l2 * (double)t->n_train;
        shuffle(t->order, t->n_train, &rng);
        for (size_t i = 0; i < t->n_train; i++)
            step(t, &t->examples.item[t->order[i]], rate);
        for (int32_t b = 0; b < t->options.buckets; b++)
            t->weight[b] *= kept > 0 ? kept : 0;
    }
}

static void to_integers(training *t)
{
    double most = 1e-9;
    for (int32_t b = 0; b < t->options.buckets; b++)
        most = fabs(t->weight[b]) > most ? fabs(t->weight[b]) : most;
    t->model.buckets = t->options.buckets;
    t->model.scale = most / INT16_MAX;
    t->model.bias = t->bias;
    t->model.temperature = 1;
    for (int32_t b = 0; b < t->options.buckets; b++)
        t->model.weight[b] = (int16_t)lround(t->weight[b] / t->model.scale);
}

/* ---- Temperature ---- */

static double tuning_loss(training *t, double temperature)
{
    double loss = 0;
    t->model.temperature = temperature;
    for (size_t i = 0; i < t->examples.n; i++) {
        if (!t->is_tuning[i])
            continue;
        double p = mica_example_narrow(&t->model, &t->examples.item[i]);
        double of_label = t->examples.item[i].narrow ? p : 1 - p;
        loss -= log(of_label > 1e-12 ? of_label : 1e-12);
    }
    return loss;
}

/* From 0.1 to 10 in 81 steps of 6 %: finer than the examples can tell. */
static void set_temperature(training *t)
{
    double best = 1, least = INFINITY;
    for (int i = 0; i <= 80; i++) {
        double temperature = 0.1 * pow(100, i / 80.0), loss = tuning_loss(t, temperature);
        if (loss < least) {
            least = loss;
            best = temperature;
        }
    }
    t->model.temperature = round(best * 1e4) / 1e4;
}

/* ---- Results ---- */

static json_t *model_json(const training *t, uint64_t data_hash)
{
    char hash[17], from[200];
    json_t *weights = json_array();
    mica_router_hash(data_hash, hash);
    snprintf(from, sizeof from,
             "%zu examples, %zu for the temperature, %zu held out; lines %s, seed %llu, %d epochs, rate %g, l2 %g",
             t->n_train, t->n_tuning, t->n_test, hash, (unsigned long long)t->options.seed, t->options.epochs, t->options.rate,
             t->options.l2);
    for (int32_t b = 0; b < t->options.buckets; b++)
        mica_json_add(&weights, json_integer(t->model.weight[b]));
    return json_pack("{s:i, s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:o}", "schema", 1, "name", t->options.name, "trained_on", from,
                     "features", 1, "buckets", (int)t->options.buckets, "scale", t->model.scale, "bias", t->model.bias,
                     "temperature", t->model.temperature, "weights", weights);
}

/* One line. */
static mica_status dump(json_t *root, size_t digits, char **text, size_t *length, mica_error *err)
{
    char *json = root ? mica_json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(digits)) : NULL;
    json_decref(root);
    *length = json ? strlen(json) + 1 : 0;
    *text = json ? realloc(json, *length + 1) : NULL;
    if (json && !*text)
        free(json);
    if (*text)
        memcpy(*text + *length - 1, "\n", 2);
    return *text ? MICA_OK : mica_fail_nomem(err, 1, "the classifier's file");
}

/* The figures are those of the file: it is read back. */
static mica_status report_on(const training *t, const char *model, size_t length, char **report, size_t *report_length,
                             mica_error *err)
{
    mica_classifier *written;
    mica_status status = mica_classifier_read(model, length, "the classifier", &written, err);
    if (status)
        return status;
    bool *trained = mica_new_array(t->examples.n, sizeof *trained);
    if (!trained) {
        mica_classifier_free(written);
        return mica_fail_nomem(err, t->examples.n, "the report");
    }
    for (size_t i = 0; i < t->examples.n; i++)
        trained[i] = !t->is_test[i] && !t->is_tuning[i];
    json_t *root = json_pack("{s:s, s:f, s:I, s:I, s:I, s:o, s:o}", "hash", written->hash, "temperature", written->temperature,
                             "trained", (json_int_t)t->n_train, "tuned", (json_int_t)t->n_tuning, "held_out",
                             (json_int_t)t->n_test, "on_trained", mica_examples_report(&t->examples, trained, written),
                             "on_held_out", mica_examples_report(&t->examples, t->is_test, written));
    free(trained);
    mica_classifier_free(written);
    return dump(root, 6, report, report_length, err);
}

static void free_training(training *t)
{
    mica_examples_free(&t->examples);
    free(t->is_test);
    free(t->is_tuning);
    free(t->order);
    free(t->weight);
    free(t->model.weight);
}

mica_status mica_route_train(const char *jsonl, size_t length, const mica_route_train_options *options, char **model,
                             size_t *model_length, char **report, size_t *report_length, mica_error *err)
{
    training t = {.options = options ? *options : mica_route_train_options_default()};
    *model = NULL;
    if (report)
        *report = NULL;
    mica_status status = check_options(&t.options, err);
    if (!status)
        status = mica_examples_read(jsonl, length, t.options.buckets, t.options.seed, &t.examples, err);
    if (!status)
        status = split(&t, err);
    if (!status) {
        train(&t);
        to_integers(&t);
        set_temperature(&t);
        status = dump(model_json(&t, mica_xxh64_of(jsonl, length)), 15, model, model_length, err);
    }
    if (!status && report)
        status = report_on(&t, *model, *model_length, report, report_length, err);
    if (status) {
        mica_free(*model);
        *model = NULL;
    }
    free_training(&t);
    return status;
}
