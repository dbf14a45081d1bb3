#include "constrain.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

bool mica_constrain_asked(const mica_opts *o) { return o->schema || o->any_json || o->grammar || o->regex || o->choice.n > 0; }

int mica_constrain_check(const mica_opts *o)
{
    if ((o->schema != NULL) + o->any_json + (o->grammar != NULL) + (o->regex != NULL) + (o->choice.n > 0) > 1)
        return mica_term_usage("a reply has one constraint: --schema, --any-json, --grammar, --regex or --choice");
    if (o->schema_lenient && !o->schema)
        return mica_term_usage("--schema-lenient needs --schema");
    if (o->schema_whitespace && !o->schema && !o->any_json)
        return mica_term_usage("--schema-whitespace needs --schema or --any-json");
    return CODE_OK;
}

/* A schema in place of a file name: an object; the schemas true and false can only come from a file. */
static bool is_inline(const char *text) { return text[strspn(text, " \t\r\n")] == '{'; }

/* The choices as the JSON array that the engine takes; *text is from malloc. */
static int choices_text(const mica_opt_list *list, char **text, size_t *length)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->n; i++) {
        json_t *item = json_string(list->item[i]);
        if (!item) {
            json_decref(array);
            return mica_term_usage("--choice: the text is not valid UTF-8");
        }
        json_array_append_new(array, item);
    }
    *text = mica_json_dumps(array, JSON_COMPACT);
    json_decref(array);
    if (!*text)
        return mica_term_error("not enough memory for --choice");
    *length = strlen(*text);
    return CODE_OK;
}

/* What of the constraint is text, and where it came from: *owned is to be freed. */
static int read_text(const mica_opts *o, mica_constraint_options *c, const char **option, char **owned)
{
    const char *file = NULL;
    c->kind = o->schema ? MICA_CONSTRAINT_JSON_SCHEMA : o->any_json ? MICA_CONSTRAINT_JSON : o->grammar ? MICA_CONSTRAINT_GBNF
              : o->regex ? MICA_CONSTRAINT_REGEX : MICA_CONSTRAINT_CHOICES;
    *option = o->schema ? "schema" : o->any_json ? "any-json" : o->grammar ? "grammar" : o->regex ? "regex" : "choice";
    *owned = NULL;
    if (o->schema && !is_inline(o->schema))
        file = o->schema;
    else if (o->grammar)
        file = o->grammar;
    int code = file          ? mica_load_file(file, owned, &c->length)
               : o->choice.n ? choices_text(&o->choice, owned, &c->length)
                             : CODE_OK;
    c->text = *owned ? *owned : o->schema ? o->schema : o->regex;
    if (!*owned)
        c->length = c->text ? strlen(c->text) : 0;
    return code;
}

int mica_constrain_load(const mica_opts *o, mica_model *model, mica_constraint **out)
{
    mica_constraint_options c = mica_constraint_options_default();
    const char *option;
    char *owned = NULL;
    mica_error err;
    *out = NULL;
    if (!mica_constrain_asked(o))
        return CODE_OK;
    int code = read_text(o, &c, &option, &owned);
    c.lenient = o->schema_lenient;
    c.whitespace = o->schema_whitespace;
    c.on_warning = mica_term_warning;
    if (code == CODE_OK && mica_constraint_new(model, &c, out, &err))
        code = err.code == MICA_OUT_OF_MEMORY ? mica_load_failed(&err) : mica_term_usage("--%s: %s", option, err.message);
    free(owned);
    return code;
}
