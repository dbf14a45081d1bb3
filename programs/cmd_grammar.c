/* cmd_grammar.c - mica grammar match and compile: a constraint and texts, without a reply. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "commands.h"
#include "constrain.h"
#include "constraint/automaton_impl.h" /* for its size */
#include "session/constraint.h"

#define SHOWN 60 /* bytes of a text's good part that are shown: its end */

/* ---- match ---- */

static int load_text(const mica_opts *o, char **text, size_t *length)
{
    *text = NULL;
    if ((o->text != NULL) == (o->text_file != NULL))
        return mica_term_usage("give the text to match with --text or --text-file");
    if (o->text_file)
        return mica_load_file(o->text_file, text, length) == CODE_OK ? CODE_OK : CODE_USAGE;
    *length = strlen(o->text);
    *text = strdup(o->text);
    return *text ? CODE_OK : mica_term_error("not enough memory for the text");
}

static void print_prefix(const char *text, size_t length, size_t good)
{
    size_t from = good > SHOWN ? good - SHOWN : 0;
    while (from < good && ((unsigned char)text[from] & 0xC0) == 0x80)
        from++;
    printf("no match: %s after %zu of %zu bytes: ", good == length ? "the text ends too early," : "cannot go on", good, length);
    json_t *shown = mica_json_text(text + from, good - from);
    char *quoted = shown ? mica_json_dumps(shown, JSON_ENCODE_ANY) : NULL;
    printf("%s%s\n", from > 0 ? "..." : "", quoted ? quoted : "");
    free(quoted);
    json_decref(shown);
}

static int match(const mica_opts *o, const mica_constraint *c)
{
    char *text;
    size_t length = 0, good = 0;
    bool matches = false;
    mica_error err;
    int code = load_text(o, &text, &length);
    if (code == CODE_OK && mica_constraint_match(c, text, length, &matches, &good, &err))
        code = mica_term_usage("%s", err.message);
    if (code == CODE_OK && o->json)
        code = mica_json_line(json_pack("{s:b, s:I, s:I}", "matches", matches, "bytes", (json_int_t)length, "valid_prefix",
                                        (json_int_t)good))
                   ? CODE_OK
                   : CODE_FAILED;
    else if (code == CODE_OK && matches)
        puts("match");
    else if (code == CODE_OK)
        print_prefix(text, length, good);
    free(text);
    return code == CODE_OK && !matches ? CODE_FAILED : code;
}

/* ---- compile ---- */

typedef struct measured {
    double compile_ms, first_us, again_us; /* the mask's time when it is new, and when it is kept */
    int32_t n_states, n_edges, n_allowed, n_vocab;
    size_t taken, length; /* of --text */
} measured;

/* The mask after the text, twice. */
static mica_status measure_mask(const mica_constraint *c, mica_matcher *m, measured *out, mica_error *err)
{
    uint32_t *mask = calloc(MICA_MASK_WORDS(out->n_vocab), sizeof *mask);
    if (!mask)
        return mica_fail_nomem(err, MICA_MASK_WORDS(out->n_vocab) * 4, "a mask");
    int64_t start = mica_now_ns();
    mica_status status = mica_masks_fill(c->masks, m, mask, &out->n_allowed, err);
    int64_t middle = mica_now_ns();
    if (!status)
        status = mica_masks_fill(c->masks, m, mask, &out->n_allowed, err);
    out->first_us = (double)(middle - start) / 1e3;
    out->again_us = (double)(mica_now_ns() - middle) / 1e3;
    free(mask);
    return status;
}

static mica_status measure(const mica_constraint *c, const mica_model *model, const char *text, measured *out, mica_error *err)
{
    mica_model_info info;
    mica_matcher *m;
    mica_model_get_info(model, &info);
    out->n_vocab = info.n_vocab;
    mica_status status = mica_matcher_new(c->automaton, &m, err);
    if (status)
        return status;
    out->length = text ? strlen(text) : 0;
    status = mica_matcher_push(m, text ? text : "", out->length, &out->taken, err);
    if (!status && out->taken == out->length)
        status = measure_mask(c, m, out, err);
    mica_matcher_free(m);
    return status;
}

static int print_measured(const mica_opts *o, const measured *m)
{
    if (o->json) {
        json_t *all = json_pack("{s:b, s:f, s:i, s:i}", "compiles", 1, "compile_ms", m->compile_ms, "states", (int)m->n_states,
                                "edges", (int)m->n_edges);
        if (m->n_vocab > 0)
            json_object_update_new(all, json_pack("{s:i, s:i, s:f, s:f}", "allowed_tokens", (int)m->n_allowed, "n_vocab",
                                                  (int)m->n_vocab, "first_mask_us", m->first_us, "mask_us", m->again_us));
        return mica_json_line(all) ? CODE_OK : CODE_FAILED;
    }
    printf("compiles in %.2f ms: %" PRId32 " states, %" PRId32 " edges\n", m->compile_ms, m->n_states, m->n_edges);
    if (m->n_vocab > 0)
        printf("%" PRId32 " of %" PRId32 " tokens may %s; the mask took %.1f us, and %.1f us again\n", m->n_allowed, m->n_vocab,
               m->length > 0 ? "follow the text" : "begin the text", m->first_us, m->again_us);
    return CODE_OK;
}

/* The model's trie is made once, by its first constraint, and is not part of what others take. */
static int make_trie(mica_model *model)
{
    mica_constraint_options o = mica_constraint_options_default();
    mica_constraint *c;
    mica_error err;
    o.kind = MICA_CONSTRAINT_REGEX;
    o.text = "a";
    o.length = 1;
    if (mica_constraint_new(model, &o, &c, &err))
        return mica_load_failed(&err);
    mica_constraint_free(c);
    return CODE_OK;
}

static int compile(const mica_opts *o, mica_model *model)
{
    measured m = {0};
    mica_constraint *c = NULL;
    mica_error err;
    int code = model ? make_trie(model) : CODE_OK;
    if (code != CODE_OK)
        return code;
    int64_t start = mica_now_ns();
    code = mica_constrain_load(o, model, &c);
    m.compile_ms = (double)(mica_now_ns() - start) / 1e6;
    if (code == CODE_OK) {
        m.n_states = c->automaton->n_states;
        m.n_edges = c->automaton->n_edges;
    }
    if (code == CODE_OK && model && measure(c, model, o->text, &m, &err))
        code = mica_term_usage("%s", err.message);
    if (code == CODE_OK && m.taken < m.length)
        code = mica_term_usage("--text: the constraint allows only its first %zu bytes", m.taken);
    if (code == CODE_OK)
        code = print_measured(o, &m);
    mica_constraint_free(c);
    return code;
}

/* ---- the command ---- */

static int run_compile(const mica_opts *o)
{
    mica_model *model = NULL;
    int code = o->text_file ? mica_term_usage("mica grammar compile takes --text, not --text-file") : CODE_OK;
    if (code == CODE_OK && o->model)
        code = mica_load_model(o, o->model, &model);
    if (code == CODE_OK)
        code = compile(o, model);
    mica_model_close(model);
    return code;
}

static int run_match(const mica_opts *o)
{
    mica_constraint *c;
    int code = mica_constrain_load(o, NULL, &c);
    if (code != CODE_OK)
        return CODE_USAGE; /* 1 would say that the text does not match */
    code = match(o, c);
    mica_constraint_free(c);
    return code;
}

int mica_cmd_grammar(const mica_opts *o)
{
    int code = mica_constrain_check(o);
    if (code == CODE_OK && !mica_constrain_asked(o))
        code = mica_term_usage("no constraint is given: --schema, --any-json, --grammar, --regex or --choice");
    if (code != CODE_OK)
        return code;
    if (strcmp(o->args[0], "match") == 0)
        return run_match(o);
    if (strcmp(o->args[0], "compile") == 0)
        return run_compile(o);
    return mica_term_usage("mica grammar: \"%s\" is neither match nor compile", o->args[0]);
}
