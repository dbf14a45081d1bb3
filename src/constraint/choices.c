/* choices.c - a list of texts as a grammar. */
#include "constraint/grammar.h"

#include <stdlib.h>

#include "base/mem.h"
#include "text/utf8.h"

mica_status mica_grammar_from_choices(const char *const *texts, const size_t *lengths, size_t n, mica_grammar **out,
                                      mica_error *err)
{
    mica_grammar *g;
    *out = NULL;
    if (n == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a list of choices needs at least one");
    for (size_t i = 0; i < n; i++)
        if (mica_utf8_check(texts[i], lengths[i]) != lengths[i])
            return mica_fail(err, MICA_BAD_TEXT, "choice %zu is not valid UTF-8", i + 1);
    mica_gnode *nodes = mica_new_array(n, sizeof *nodes);
    if (!nodes)
        return mica_fail_nomem(err, n * sizeof *nodes, "choices");
    mica_status status = mica_grammar_new(&g, err);
    if (!status) {
        for (size_t i = 0; i < n; i++)
            nodes[i] = mica_grammar_literal(g, texts[i], lengths[i]);
        int32_t root = mica_grammar_rule(g, "root");
        mica_grammar_define(g, root, mica_grammar_alt(g, nodes, n));
        status = mica_grammar_finish(g, root, err);
        if (status)
            mica_grammar_free(g);
        else
            *out = g;
    }
    free(nodes);
    return status;
}
