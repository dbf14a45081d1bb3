/* Random texts from schemas, for a validator to judge: sample SCHEMAS.jsonl PER_SCHEMA SEED
 *
 * Each line of the file is a schema. Walks over the bytes that the automaton allows, at random; where a text grows long it is
 * completed in the shortest way. Prints one JSON array a schema: [line number, [text, ..]]. What the automaton says about the
 * text is checked on the way: each byte that it forces must be possible, and each text that it calls complete must be accepted
 * from the start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/rng.h"
#include "constraint/automaton.h"
#include "constraint/schema.h"

#define MAX_TEXT  20000
#define LONG_TEXT 400 /* from here on, texts are completed with a growing probability */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "sample: %s: %s\n", what, why);
    exit(1);
}

/* The bytes that may follow. */
static int allowed_bytes(const mica_matcher *m, mica_matcher *probe, unsigned char *out)
{
    int n = 0;
    size_t taken = 1;
    mica_error err = {0};
    for (int b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        if ((taken == 1 && mica_matcher_copy(probe, m, &err)) || mica_matcher_push(probe, &byte, 1, &taken, &err))
            die("matcher", err.message);
        if (taken == 1)
            out[n++] = byte;
    }
    return n;
}

/* Marks, digits and letters come often, so that structure is met as well as odd characters. */
static unsigned char choose(mica_rng *rng, const unsigned char *bytes, int n)
{
    for (int tries = 0; tries < 6; tries++) {
        unsigned char byte = bytes[mica_rng_next(rng) % (unsigned)n];
        if (strchr("\"]},:-.0123456789", byte) || mica_rng_next(rng) % 4 == 0)
            return byte;
    }
    return bytes[mica_rng_next(rng) % (unsigned)n];
}

static size_t complete(mica_matcher *m, char *text, size_t length)
{
    size_t n = mica_matcher_shortest_end(m, text + length, MAX_TEXT - length), taken;
    mica_error err = {0};
    if (n > MAX_TEXT - length)
        die("shortest end", "it is too long");
    if (mica_matcher_push(m, text + length, n, &taken, &err) || taken != n)
        die("shortest end", "it is not allowed");
    return length + n;
}

static void check_forced(mica_matcher *m, mica_matcher *probe)
{
    char forced[256];
    size_t n = mica_matcher_forced(m, forced, sizeof forced), taken;
    mica_error err = {0};
    unsigned char bytes[256];
    if (n == 0)
        return;
    if (mica_matcher_may_end(m) || allowed_bytes(m, probe, bytes) != 1 || bytes[0] != (unsigned char)forced[0])
        die("forced bytes", "there are others");
    if (mica_matcher_copy(probe, m, &err) || mica_matcher_push(probe, forced, n, &taken, &err) || taken != n)
        die("forced bytes", "they are not allowed");
}

static size_t walk(mica_matcher *m, mica_matcher *probe, mica_rng *rng, char *text)
{
    size_t length = 0, taken;
    mica_error err = {0};
    mica_matcher_reset(m);
    while (!mica_matcher_must_end(m)) {
        unsigned char bytes[256];
        if (mica_matcher_may_end(m) && mica_rng_next(rng) % 4 == 0)
            break;
        if (length > LONG_TEXT + mica_rng_next(rng) % 2000)
            return complete(m, text, length);
        if (mica_rng_next(rng) % 16 == 0)
            check_forced(m, probe);
        int n = allowed_bytes(m, probe, bytes);
        if (n == 0)
            die("dead end", "no byte may follow, and the text may not end");
        text[length] = (char)choose(rng, bytes, n);
        if (mica_matcher_push(m, text + length++, 1, &taken, &err) || taken != 1)
            die("matcher", "a byte that was allowed is not");
    }
    if (!mica_matcher_may_end(m))
        die("dead end", "the text must end, but may not");
    return length;
}

static void sample_schema(const char *schema, size_t length, int line, int per_schema, mica_rng *rng)
{
    mica_grammar *g;
    mica_automaton *a;
    mica_matcher *m, *probe;
    mica_error err = {0};
    static char text[MAX_TEXT + 1];
    char *out;
    size_t taken = 0;
    if (mica_grammar_from_schema(schema, length, NULL, &g, &err) || mica_automaton_new(g, &a, &err) ||
        mica_matcher_new(a, &m, &err) || mica_matcher_new(a, &probe, &err))
        die(schema, err.message);
    mica_grammar_free(g);
    json_t *texts = json_array();
    for (int i = 0; i < per_schema; i++) {
        size_t n = walk(m, probe, rng, text);
        mica_matcher_reset(m);
        if (mica_matcher_push(m, text, n, &taken, &err) || taken != n || !mica_matcher_may_end(m))
            die(schema, "a text that was complete is not accepted");
        json_t *value = json_stringn(text, n);
        if (!value)
            die(schema, "a text is not UTF-8");
        json_array_append_new(texts, value);
    }
    out = json_dumps(texts, JSON_COMPACT);
    printf("[%d,%s]\n", line, out);
    free(out);
    json_decref(texts);
    mica_matcher_free(m);
    mica_matcher_free(probe);
    mica_automaton_free(a);
}

int main(int n, char **arguments)
{
    static char line[1 << 16];
    mica_rng rng;
    if (n != 4)
        die("usage", "sample SCHEMAS.jsonl PER_SCHEMA SEED");
    FILE *f = fopen(arguments[1], "r");
    if (!f)
        die(arguments[1], "cannot be opened");
    mica_rng_seed(&rng, strtoull(arguments[3], NULL, 10));
    for (int i = 0; fgets(line, sizeof line, f); i++)
        sample_schema(line, strcspn(line, "\n"), i, atoi(arguments[2]), &rng);
    fclose(f);
    return 0;
}
