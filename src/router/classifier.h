/* classifier.h - narrow or complex? Logistic regression over hashed n-grams of a request's text. One file made by train.c, read
 * here; applying it allocates nothing and is a pure function. Called by policy_read.c, decide.c and train.c.
 *
 * Features of a text: its first and last 2,048 bytes (long inputs carry the instruction at one end), lower case, cut into
 * words; every word, every two words in a row, the first one and first two words once more as such, every 3 and 4 characters
 * of a word with its borders, the size of the text as a power of two, whether it asks (?) and has lines. Each is hashed to a
 * bucket; each bucket that occurs counts once, divided by the square root of their number. */
#ifndef MICA_ROUTER_CLASSIFIER_H
#define MICA_ROUTER_CLASSIFIER_H
#include "mica/mica_router.h"
#include "router/fields.h"

enum { MICA_BUCKETS_MIN = 256, MICA_BUCKETS_MAX = 65536, MICA_FEATURES_MAX = 4096 };

/** The buckets of one text, each once, in order of appearance; what comes after MICA_FEATURES_MAX is left out. */
typedef struct mica_features {
    int32_t n;
    uint16_t bucket[MICA_FEATURES_MAX];
} mica_features;

void mica_features_of(const char *text, size_t length, int32_t buckets, mica_features *out);

typedef struct mica_classifier {
    char name[MICA_ROUTE_NAME_MAX], trained_on[400];
    int64_t buckets;
    double scale;       /* of the weights: value = scale * integer */
    double bias;
    double temperature; /* the score is divided by it: set on examples that were not trained on */
    char hash[17];      /* XXH64 of the file's text */
    int16_t *weight;    /* buckets */
} mica_classifier;

mica_status mica_classifier_read(const char *json, size_t length, const char *name, mica_classifier **out, mica_error *err);
void mica_classifier_free(mica_classifier *classifier);

/** The probability that a text of these features is narrow. */
double mica_classifier_narrow(const mica_classifier *classifier, const mica_features *features);

/** 16 hexadecimal digits of a text's XXH64. */
void mica_router_hash(uint64_t value, char out[17]);

const mica_field_table *mica_classifier_table(size_t i);

#endif
