/* route_train.c - mica route train and test: the classifier from labelled examples, and how right it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/newfile.h"
#include "base/json.h"
#include "load.h"
#include "route.h"

int mica_route_print_report(const mica_opts *o, char *report, void (*print)(const json_t *report))
{
    json_t *root = mica_json_loads(report, 0, NULL);
    mica_free(report);
    if (!root)
        return mica_term_error("not enough memory for the report");
    if (o->json)
        return mica_json_line(root) ? CODE_OK : CODE_FAILED;
    print(root);
    json_decref(root);
    return CODE_OK;
}

/* ---- Figures ---- */

static double real(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static void print_row(const char *name, const json_t *r)
{
    if (json_integer_value(json_object_get(r, "n")) > 0)
        printf("  %-24s %6lld %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", name,
               (long long)json_integer_value(json_object_get(r, "n")), real(r, "accuracy"), real(r, "narrow_recall"),
               real(r, "complex_recall"), real(r, "log_loss"), real(r, "brier"), real(r, "ece"));
}

static void print_figures(const char *name, const json_t *r)
{
    const char *source;
    json_t *of_source;
    print_row(name, r);
    json_object_foreach(json_object_get(r, "sources"), source, of_source)
    {
        char label[64];
        snprintf(label, sizeof label, "  %.40s", source);
        print_row(label, of_source);
    }
}

static void print_head(void)
{
    printf("  %-24s %6s %9s %9s %9s %9s %9s %9s\n", "", "n", "accuracy", "narrow", "complex", "log loss", "brier", "ECE");
}

static void print_calibration(const json_t *r)
{
    size_t i;
    json_t *item;
    printf("\n  reliability: says narrow     n     said       is\n");
    json_array_foreach(json_object_get(r, "reliability"), i, item)
        printf("               %3.0f to %3.0f %% %6lld %8.3f %8.3f\n", 100 * real(item, "from"), 100 * real(item, "to"),
               (long long)json_integer_value(json_object_get(item, "n")), real(item, "predicted"), real(item, "narrow"));
    printf("\n  min_confidence   decided  of these right\n");
    json_array_foreach(json_object_get(r, "thresholds"), i, item)
        printf("  %14.2f %9.3f %15.3f\n", real(item, "min_confidence"), real(item, "decided"), real(item, "accuracy"));
}

static void print_training(const json_t *r)
{
    printf("classifier %s: %lld examples, %lld for its temperature (%.2f), %lld held out\n",
           json_string_value(json_object_get(r, "hash")), (long long)json_integer_value(json_object_get(r, "trained")),
           (long long)json_integer_value(json_object_get(r, "tuned")), real(r, "temperature"),
           (long long)json_integer_value(json_object_get(r, "held_out")));
    print_head();
    print_figures("trained on", json_object_get(r, "on_trained"));
    print_figures("held out", json_object_get(r, "on_held_out"));
    print_calibration(json_object_get(r, "on_held_out"));
}

static void print_test(const json_t *r)
{
    print_head();
    print_figures("all", r);
    print_calibration(r);
}

/* ---- Commands ---- */

int mica_route_train_command(const mica_opts *o)
{
    mica_route_train_options options = mica_route_train_options_default();
    char *lines, *model = NULL, *report = NULL;
    size_t length, n_model, n_report;
    mica_error err;
    if (o->n_args < 2 || !o->out)
        return mica_term_usage("mica route train needs examples and a place: mica route train EXAMPLES --out FILE");
    int code = mica_load_file(o->args[1], &lines, &length);
    if (code != CODE_OK)
        return code;
    options.seed = o->seed >= 0 ? (uint64_t)o->seed : options.seed;
    mica_status status = mica_route_train(lines, length, &options, &model, &n_model, &report, &n_report, &err);
    free(lines);
    if (!status)
        status = mica_newfile_put(o->out, MICA_NEWFILE_SHARED, model, n_model, &err);
    mica_free(model);
    if (!status)
        return mica_route_print_report(o, report, print_training);
    mica_free(report);
    return mica_load_failed(&err);
}

int mica_route_test_command(const mica_opts *o)
{
    char *model, *lines, *report = NULL;
    size_t n_model, length, n_report;
    mica_error err;
    if (o->n_args < 3)
        return mica_term_usage("mica route test needs a classifier and examples: mica route test CLASSIFIER.json FILE.jsonl");
    int code = mica_load_file(o->args[1], &model, &n_model);
    if (code != CODE_OK)
        return code;
    code = mica_load_file(o->args[2], &lines, &length);
    if (code == CODE_OK) {
        if (mica_route_evaluate(model, n_model, lines, length, &report, &n_report, &err))
            code = mica_load_failed(&err);
        free(lines);
    }
    free(model);
    return code == CODE_OK ? mica_route_print_report(o, report, print_test) : code;
}
