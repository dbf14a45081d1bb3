/* libFuzzer target: compiles an arbitrary schema, strict and lenient. Time, depth and memory are bounded, so every input must
 * end: with an error that has a message, or with a grammar that matches some text. */
#include <stdlib.h>
#include <string.h>

#include "constraint/schema.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_warning(void *user, const char *message)
{
    (void)user;
    if (!message[0] || mica_utf8_check(message, strlen(message)) != strlen(message))
        abort();
}

static mica_status compile(const uint8_t *data, size_t size, bool lenient)
{
    mica_grammar *g;
    mica_error err = {0};
    mica_schema_options options = {.lenient = lenient, .whitespace = size % 2, .on_warning = check_warning};
    mica_status status = mica_grammar_from_schema((const char *)data, size, &options, &g, &err);
    if (status == MICA_OK && (!g || g->failure || g->root < 0 || g->root >= g->n_rules))
        abort();
    if (status != MICA_OK && (g || err.code != status || !err.message[0] ||
                              mica_utf8_check(err.message, strlen(err.message)) != strlen(err.message)))
        abort();
    mica_grammar_free(g);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 20000)
        return 0;
    bool strict = compile(data, size, false) == MICA_OK, lenient = compile(data, size, true) == MICA_OK;
    if (strict && !lenient)
        abort(); /* lenient allows more, never less */
    return 0;
}
