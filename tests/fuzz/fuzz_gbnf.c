/* libFuzzer target: reads an arbitrary text as a grammar. Every input must end with a grammar whose nodes are all in range,
 * or with an error that has a message. */
#include "mica/mica.h"

#include <stdlib.h>
#include <string.h>

#include "constraint/grammar.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_node(const mica_grammar *g, const mica_gnode_data *node)
{
    bool has_children = node->kind == MICA_G_SEQ || node->kind == MICA_G_ALT || node->kind == MICA_G_REPEAT;
    if (has_children && (node->first < 0 || node->count < 1 || node->count > g->n_children - node->first))
        abort();
    for (int32_t i = 0; has_children && i < node->count; i++)
        if (g->children[node->first + i] < 0 || &g->nodes[g->children[node->first + i]] >= node)
            abort();
    if ((node->kind == MICA_G_CALL && (node->first < 0 || node->first >= g->n_rules)) ||
        (node->kind == MICA_G_FSM && (node->first < 0 || node->first >= g->n_fsms)) ||
        (node->kind == MICA_G_SET && (node->first < 0 || node->first >= g->n_sets)) ||
        (node->kind == MICA_G_LITERAL && (node->first < 0 || node->count < 1 || node->count > g->n_bytes - node->first)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_grammar *g;
    mica_error err = {0};
    mica_status status = mica_grammar_from_gbnf((const char *)data, size, &g, &err);
    if (status == MICA_OK) {
        for (int32_t i = 0; i < g->n_nodes; i++)
            check_node(g, &g->nodes[i]);
        if (g->root < 0 || g->root >= g->n_rules || g->rules[g->root].body < 0)
            abort();
    } else if (g || err.code != status || !err.message[0] || err.position > (int64_t)size ||
               mica_utf8_check(err.message, strlen(err.message)) != strlen(err.message))
        abort();
    mica_grammar_free(g);
    return 0;
}
