/* examples.h - labelled requests for the classifier, and how well one does on them. Called by train.c and evaluate.c. */
#ifndef MICA_ROUTER_EXAMPLES_H
#define MICA_ROUTER_EXAMPLES_H
#include "router/classifier.h"

enum { MICA_EXAMPLES_MAX = 200000, MICA_SOURCES_MAX = 16, MICA_SPLIT_CHANCE = 0, MICA_SPLIT_TRAIN = 1, MICA_SPLIT_TEST = 2 };

typedef struct mica_example {
    bool narrow;
    int32_t split;      /* as the line says it */
    double chance;      /* [0, 1), from the hash of its group (else its text): all of a group fall on one side */
    char source[32];    /* "generated", "hand"; "" */
    uint16_t *bucket;   /* its features */
    int32_t n_features;
} mica_example;

typedef struct mica_examples {
    mica_example *item;
    size_t n;
} mica_examples;

/** Reads JSON lines and hashes their texts into `buckets`. On an error *out is empty. */
mica_status mica_examples_read(const char *jsonl, size_t length, int32_t buckets, uint64_t seed, mica_examples *out,
                               mica_error *err);
void mica_examples_free(mica_examples *examples);

/** Accuracy and calibration on those examples whose `use` is true (NULL: all), and of each source by itself. NULL without
 * memory. */
json_t *mica_examples_report(const mica_examples *examples, const bool *use, const mica_classifier *classifier);

/** The probability that an example is narrow. */
double mica_example_narrow(const mica_classifier *classifier, const mica_example *example);

#endif
