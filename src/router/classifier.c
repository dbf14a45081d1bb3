#include "router/classifier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/xxh64.h"

enum { ENDS = 2048, WORD_MAX = 64 };

/* ---- Features ---- */

/* FNV-1a (public domain, Fowler, Noll, Vo), 64 bits; the kind of feature is its first byte. */
#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * FNV_PRIME;
    return hash;
}

typedef struct extractor {
    mica_features *out;
    uint32_t mask;
    uint8_t seen[MICA_BUCKETS_MAX / 8];
    char word[WORD_MAX + 2]; /* with a border at both ends */
    size_t length;           /* of the word, without borders */
    uint64_t before;         /* hash of the word before; 0: none */
    int n_words;
} extractor;

static void add(extractor *e, uint64_t hash)
{
    uint32_t bucket = (uint32_t)(hash ^ (hash >> 32)) & e->mask;
    uint8_t bit = (uint8_t)(1u << (bucket & 7));
    if ((e->seen[bucket >> 3] & bit) || e->out->n == MICA_FEATURES_MAX)
        return;
    e->seen[bucket >> 3] = (uint8_t)(e->seen[bucket >> 3] | bit);
    e->out->bucket[e->out->n++] = (uint16_t)bucket;
}

static void add_kind(extractor *e, char kind, const char *bytes, size_t n)
{
    add(e, hash_bytes(hash_bytes(FNV_START, &kind, 1), bytes, n));
}

/* The same of words that are hashed already. */
static void add_words(extractor *e, char kind, uint64_t first, uint64_t second)
{
    uint64_t hash = ((FNV_START ^ (unsigned char)kind) ^ first) * FNV_PRIME;
    add(e, ((hash ^ (hash >> 29)) ^ second) * FNV_PRIME);
}

static void end_word(extractor *e)
{
    size_t n = e->length;
    if (n == 0)
        return;
    e->word[0] = e->word[n + 1] = ' ';
    uint64_t word = hash_bytes(FNV_START, e->word + 1, n);
    add_words(e, 'w', word, 0);
    if (e->before)
        add_words(e, 'p', e->before, word);
    if (e->n_words == 0)
        add_words(e, '1', word, 0);
    else if (e->n_words == 1)
        add_words(e, '2', e->before, word);
    for (size_t size = 3; size <= 4; size++)
        for (size_t i = 0; i + size <= n + 2; i++)
            add_kind(e, 'c', e->word + i, size);
    e->before = word;
    e->n_words++;
    e->length = 0;
}

static void add_piece(extractor *e, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
        if (!letter || e->length == WORD_MAX)
            end_word(e);
        if (letter)
            e->word[1 + e->length++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        else if (c == '?' || c == '\n' || c == '{')
            add_kind(e, 's', text + i, 1);
    }
    end_word(e);
    e->before = 0;
}

void mica_features_of(const char *text, size_t length, int32_t buckets, mica_features *out)
{
    extractor e = {.out = out, .mask = (uint32_t)buckets - 1};
    size_t head = length < 2 * ENDS ? length : ENDS;
    char size = 0;
    out->n = 0;
    for (size_t left = length; left; left >>= 1)
        size++;
    add_kind(&e, 'l', &size, 1);
    add_piece(&e, text, head);
    if (head < length)
        add_piece(&e, text + length - ENDS, ENDS);
}

double mica_classifier_narrow(const mica_classifier *classifier, const mica_features *features)
{
    int64_t sum = 0; /* exact: at most 4,096 * 32,767 */
    for (int32_t i = 0; i < features->n; i++)
        sum += classifier->weight[features->bucket[i]];
    double score = classifier->bias;
    if (features->n > 0)
        score += classifier->scale * (double)sum / sqrt((double)features->n);
    return 1 / (1 + exp(-score / classifier->temperature));
}

/* ---- The file ---- */

static const mica_field_row fields[] = {
    MICA_PART_FIELD("schema", true),
    MICA_TEXT_FIELD(mica_classifier, name, "name", 0, true),
    MICA_TEXT_FIELD(mica_classifier, trained_on, "trained_on", 0, true),
    MICA_PART_FIELD("features", true),
    MICA_INT_FIELD(mica_classifier, buckets, "buckets", MICA_BUCKETS_MIN, MICA_BUCKETS_MAX, true),
    MICA_REAL_FIELD(mica_classifier, scale, "scale", 1e-12, 1e6, true),
    MICA_REAL_FIELD(mica_classifier, bias, "bias", -1e6, 1e6, true),
    MICA_REAL_FIELD(mica_classifier, temperature, "temperature", 0.01, 100, true),
    MICA_PART_FIELD("weights", true),
};

static const mica_field_table table = MICA_FIELD_TABLE("classifier", fields, false);

const mica_field_table *mica_classifier_table(size_t i) { return i == 0 ? &table : NULL; }

void mica_router_hash(uint64_t value, char out[17]) { snprintf(out, 17, "%016llx", (unsigned long long)value); }

static mica_status read_weights(const json_t *list, const char *where, mica_classifier *c, mica_error *err)
{
    c->weight = mica_new_array((size_t)c->buckets, sizeof *c->weight);
    if (!c->weight)
        return mica_fail_nomem(err, (size_t)c->buckets * sizeof *c->weight, "the classifier");
    for (size_t i = 0; i < (size_t)c->buckets; i++) {
        const json_t *value = json_array_get(list, i);
        json_int_t number = json_integer_value(value);
        if (!json_is_integer(value) || number < INT16_MIN + 1 || number > INT16_MAX)
            return mica_fail(err, MICA_BAD_TEXT, "%s/weights/%zu must be a whole number from -32767 to 32767", where, i);
        c->weight[i] = (int16_t)number;
    }
    return MICA_OK;
}

static mica_status read_root(const json_t *root, const char *where, mica_classifier *c, mica_error *err)
{
    const json_t *weights = json_object_get(root, "weights");
    mica_status status = mica_fields_read(root, where, &table, c, err);
    if (status)
        return status;
    if (json_integer_value(json_object_get(root, "schema")) != 1 || json_integer_value(json_object_get(root, "features")) != 1)
        return mica_fail(err, MICA_BAD_TEXT, "%s/schema and %s/features must be 1: train it again with this build", where,
                         where);
    if (c->buckets & (c->buckets - 1))
        return mica_fail(err, MICA_BAD_TEXT, "%s/buckets must be a power of two", where);
    if (!json_is_array(weights) || json_array_size(weights) != (size_t)c->buckets)
        return mica_fail(err, MICA_BAD_TEXT, "%s/weights must be a list of %lld numbers, one a bucket", where,
                         (long long)c->buckets);
    return read_weights(weights, where, c, err);
}

mica_status mica_classifier_read(const char *json, size_t length, const char *name, mica_classifier **out, mica_error *err)
{
    char where[192];
    json_t *root;
    mica_status status = mica_fields_load(json, length, name, &root, err);
    if (status)
        return status;
    mica_classifier *c = calloc(1, sizeof *c);
    snprintf(where, sizeof where, "%.120s: ", name);
    status = c ? read_root(root, where, c, err) : mica_fail_nomem(err, sizeof *c, "the classifier");
    json_decref(root);
    if (status) {
        mica_classifier_free(c);
        return status;
    }
    mica_router_hash(mica_xxh64_of(json, length), c->hash);
    *out = c;
    return MICA_OK;
}

void mica_classifier_free(mica_classifier *classifier)
{
    if (!classifier)
        return;
    free(classifier->weight);
    free(classifier);
}
