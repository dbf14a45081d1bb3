/* constraint.c - from the text of a constraint to its automaton and masks. */
#include "session/constraint.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "constraint/schema.h"
#include "session/engine.h"

mica_constraint_options mica_constraint_options_default(void)
{
    return (mica_constraint_options){.struct_size = sizeof(mica_constraint_options)};
}

/* ---- grammars ---- */

static mica_status check_choices(const json_t *array, mica_error *err)
{
    size_t i;
    json_t *item;
    if (!json_is_array(array))
        return mica_fail(err, MICA_BAD_TEXT, "the choices must be a JSON array of strings");
    if (json_array_size(array) == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the list of choices is empty: give at least one");
    json_array_foreach(array, i, item)
        if (!json_is_string(item))
            return mica_fail(err, MICA_BAD_TEXT, "choice %zu is not a string", i + 1);
    return MICA_OK;
}

static mica_status grammar_of_choices(const json_t *array, mica_grammar **out, mica_error *err)
{
    mica_status status = check_choices(array, err);
    if (status)
        return status;
    size_t n = json_array_size(array);
    const char **texts = mica_new_array(n, sizeof *texts);
    size_t *lengths = mica_new_array(n, sizeof *lengths);
    for (size_t i = 0; i < n && texts && lengths; i++) {
        texts[i] = json_string_value(json_array_get(array, i));
        lengths[i] = json_string_length(json_array_get(array, i));
    }
    status = texts && lengths ? mica_grammar_from_choices(texts, lengths, n, out, err)
                              : mica_fail_nomem(err, n * 16, "the choices");
    free(texts);
    free(lengths);
    return status;
}

static mica_status parse_choices(const char *text, size_t length, mica_grammar **out, mica_error *err)
{
    json_error_t why;
    json_t *array = mica_json_loadb(text, length, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    mica_status status = array                      ? grammar_of_choices(array, out, err)
                         : mica_json_no_memory(&why) ? mica_fail_nomem(err, length, "the choices")
                               : mica_fail_at(err, MICA_BAD_TEXT, why.position, "the choices are not JSON: %s", why.text);
    json_decref(array);
    return status;
}

static mica_status make_grammar(const mica_constraint_options *o, mica_grammar **out, mica_error *err)
{
    mica_schema_options schema = {o->lenient, o->whitespace, o->on_warning, o->user};
    const char *text = o->text ? o->text : "";
    size_t length = o->text ? o->length : 0;
    switch (o->kind) {
    case MICA_CONSTRAINT_JSON_SCHEMA:
        return mica_grammar_from_schema(text, length, &schema, out, err);
    case MICA_CONSTRAINT_JSON:
        return mica_grammar_any_json(&schema, out, err);
    case MICA_CONSTRAINT_GBNF:
        return mica_grammar_from_gbnf(text, length, out, err);
    case MICA_CONSTRAINT_REGEX:
        return mica_grammar_from_regex(text, length, out, err);
    case MICA_CONSTRAINT_CHOICES:
        return parse_choices(text, length, out, err);
    }
    return mica_fail(err, MICA_INVALID_ARGUMENT, "the kind of the constraint is %d; it must be between 0 and %d", (int)o->kind,
                     MICA_CONSTRAINT_CHOICES);
}

/* ---- compiling ---- */

/* The model's trie, made by whoever needs it first; where two threads make it at the same time one is dropped again. */
static mica_status trie_of(mica_model *m, const mica_token_trie **out, mica_error *err)
{
    mica_token_trie *trie = atomic_load(&m->trie), *made = NULL;
    if (!trie) {
        mica_status status = mica_token_trie_new(m->vocab, &made, err);
        if (status)
            return status;
        if (atomic_compare_exchange_strong(&m->trie, &trie, made))
            trie = made;
        else
            mica_token_trie_free(made);
    }
    *out = trie;
    return MICA_OK;
}

static mica_status compile(mica_constraint *c, const mica_grammar *grammar, mica_error *err)
{
    const mica_token_trie *trie;
    mica_status status = mica_automaton_new(grammar, &c->automaton, err);
    if (!status && c->model)
        status = trie_of(c->model, &trie, err);
    if (!status && c->model)
        status = mica_masks_new(c->automaton, trie, &c->masks, err);
    return status;
}

mica_status mica_constraint_from_grammar(mica_model *model, mica_grammar *g, mica_constraint **out, mica_error *err)
{
    mica_constraint *c = mica_new_array(1, sizeof *c);
    mica_status status;
    *out = NULL;
    if (c && model)
        mica_model_retain(model);
    if (c)
        c->model = model;
    status = c ? compile(c, g, err) : mica_fail_nomem(err, sizeof *c, "the constraint");
    mica_grammar_free(g);
    if (status)
        mica_constraint_free(c);
    else
        *out = c;
    return status;
}

mica_status mica_constraint_new(mica_model *model, const mica_constraint_options *options, mica_constraint **out,
                                mica_error *err)
{
    mica_constraint_options defaults = mica_constraint_options_default();
    mica_grammar *grammar = NULL;
    *out = NULL;
    mica_status status = make_grammar(options ? options : &defaults, &grammar, err);
    return status ? status : mica_constraint_from_grammar(model, grammar, out, err);
}

void mica_constraint_free(mica_constraint *c)
{
    if (!c)
        return;
    mica_masks_free(c->masks);
    mica_automaton_free(c->automaton);
    mica_model_close(c->model);
    free(c);
}

/* ---- matching ---- */

mica_status mica_constraint_match(const mica_constraint *c, const char *text, size_t length, bool *matches,
                                  size_t *valid_prefix, mica_error *err)
{
    mica_matcher *m;
    size_t taken = 0;
    *matches = false;
    mica_status status = mica_matcher_new(c->automaton, &m, err);
    if (status)
        return status;
    status = mica_matcher_push(m, text, length, &taken, err);
    *matches = !status && taken == length && mica_matcher_may_end(m);
    if (valid_prefix)
        *valid_prefix = taken;
    mica_matcher_free(m);
    return status;
}
