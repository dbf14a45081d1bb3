/* libFuzzer target: the first line is a pattern, the rest a text. Every pattern must end with a language or with an error
 * that has a message; and the language, its encoding as bytes and its difference from itself must agree about the text. */
#include "mica/mica.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/grammar_match.h"
#include "constraint/regular.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_language(const mica_regular *r, const char *text, size_t length)
{
    mica_grammar *g;
    mica_regular *rest;
    mica_error err = {0};
    if (mica_grammar_new(&g, &err))
        return;
    int32_t root = mica_grammar_rule(g, "root");
    mica_grammar_define(g, root, mica_grammar_regular(g, r, MICA_ENCODE_UTF8));
    mica_status status = mica_grammar_finish(g, root, &err);
    if (status == MICA_OK && grammar_matches(g, text, length) != mica_regular_matches(r, text, length))
        abort();
    if (mica_regular_is_empty(r) && (status == MICA_OK || mica_regular_matches(r, text, length)))
        abort();
    mica_grammar_free(g);
    if (mica_regular_without(r, r, &rest, &err) == MICA_OK && !mica_regular_is_empty(rest))
        abort();
    mica_regular_free(rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t length = end ? (size_t)(end - data) : size, rest = end ? size - length - 1 : 0;
    for (int scope = 0; scope < 2; scope++) {
        mica_regular *r;
        mica_error err = {0};
        mica_pattern_scope where = scope ? MICA_PATTERN_SEARCH : MICA_PATTERN_WHOLE;
        mica_status status = mica_regular_parse((const char *)data, length, where, &r, &err);
        if (status == MICA_OK)
            check_language(r, (const char *)data + size - rest, rest < GRAMMAR_MATCH_MAX ? rest : GRAMMAR_MATCH_MAX);
        else if (r || err.code != status || !err.message[0] || err.position > (int64_t)length ||
                 mica_utf8_check(err.message, strlen(err.message)) != strlen(err.message))
            abort();
        mica_regular_free(r);
    }
    return 0;
}
