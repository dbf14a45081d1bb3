#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"
#include "text/tmpl_text.h"

#include <string.h>
#include <time.h>

/* Global functions: jinja2's, and raise_exception and strftime_now of transformers. */

static bool call_range(mica_run *run, const mica_args *args, mica_val *out)
{
    int64_t v[3] = {0, 0, 1};
    mica_val bound[MICA_MAX_PARAMS];
    if (!mica_args_bind(run, args, "range()", "0,1,2", 1, bound))
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (!mica_arg_int(run, &bound[i], "range()", v[i], &v[i]))
            return false;
    }
    if (!mica_arg_given(&bound[1])) {
        v[1] = v[0];
        v[0] = 0;
    }
    if (v[2] == 0)
        return mica_run_fail(run, "range() arg 3 must not be zero");
    /* The distance fits 64 unsigned bits whatever the signs are. */
    uint64_t distance = v[2] > 0 ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
    uint64_t step = v[2] > 0 ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
    bool empty = v[2] > 0 ? v[1] <= v[0] : v[1] >= v[0];
    uint64_t n = empty ? 0 : (distance - 1) / step + 1;
    if (n > MICA_TMPL_MAX_RANGE)
        return mica_run_fail(run, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", MICA_TMPL_MAX_RANGE);
    mica_range *r = mica_tarena_alloc(&run->arena, sizeof *r);
    if (!r)
        return mica_run_no_memory(run);
    *r = (mica_range){.start = v[0], .stop = v[1], .step = v[2], .n = (int64_t)n};
    *out = (mica_val){.type = MICA_V_RANGE, .range = r};
    return true;
}

/* Pairs of an iterable of two-element things, or of a dict. */
static bool add_pairs(mica_run *run, mica_dict *dict, const mica_val *from)
{
    mica_iter it;
    mica_val item, pair;
    bool done;
    if (from->type == MICA_V_DICT) {
        for (size_t i = 0; i < from->dict->n; i++) {
            if (!mica_dict_set(run, dict, &from->dict->pairs[i].key, &from->dict->pairs[i].value))
                return false;
        }
        return true;
    }
    if (!mica_iter_open(run, from, &it))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            return true;
        if (!mica_list_of(run, &item, &pair))
            return false;
        if (pair.seq->n != 2)
            return mica_run_fail(run, "a dict is made of pairs, not of %zu values", pair.seq->n);
        if (!mica_dict_set(run, dict, &pair.seq->items[0], &pair.seq->items[1]))
            return false;
    }
}

static bool call_dict(mica_run *run, mica_vtype type, const mica_args *args, mica_val *out)
{
    mica_val dict;
    if (args->n_pos > 1)
        return mica_run_fail(run, "dict expected at most 1 argument, got %zu", args->n_pos);
    if (!mica_dict_new(run, type, args->n_kw, &dict))
        return false;
    if (args->n_pos && !add_pairs(run, dict.dict, &args->pos[0]))
        return false;
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!mica_dict_set(run, dict.dict, &args->kw[i].name, &args->kw[i].value))
            return false;
    }
    *out = dict;
    return true;
}

static bool call_cycler(mica_run *run, const mica_args *args, mica_val *out)
{
    mica_val items;
    mica_cycler *c = mica_tarena_array(&run->arena, 1, sizeof *c);
    if (!c)
        return mica_run_no_memory(run);
    if (args->n_pos == 0 || args->n_kw)
        return mica_run_fail(run, "at least one item has to be provided");
    if (!mica_tuple_new(run, args->pos, args->n_pos, &items))
        return false;
    c->items = items.seq->items;
    c->n = items.seq->n;
    *out = (mica_val){.type = MICA_V_CYCLER, .cycler = c};
    return true;
}

static bool call_joiner(mica_run *run, const mica_args *args, mica_val *out)
{
    mica_val bound[MICA_MAX_PARAMS];
    mica_cycler *c = mica_tarena_array(&run->arena, 1, sizeof *c);
    if (!c)
        return mica_run_no_memory(run);
    if (!mica_args_bind(run, args, "joiner()", "sep", 0, bound))
        return false;
    c->separator = mica_arg_given(&bound[0]) ? bound[0] : mica_val_literal(", ");
    *out = (mica_val){.type = MICA_V_JOINER, .cycler = c};
    return true;
}

static bool call_raise(mica_run *run, const mica_args *args, mica_val *out)
{
    (void)out;
    mica_val bound[MICA_MAX_PARAMS], text;
    if (!mica_args_bind(run, args, "raise_exception()", "message", 1, bound) || !mica_text_soft(run, &bound[0], &text))
        return false;
    return mica_run_fail(run, "%.*s", (int)text.len, text.s);
}

static bool call_strftime(mica_run *run, const mica_args *args, mica_val *out)
{
    mica_val bound[MICA_MAX_PARAMS], format;
    if (!mica_args_bind(run, args, "strftime_now()", "format", 1, bound) || !mica_arg_text(run, &bound[0], "format", &format))
        return false;
    return mica_text_strftime(run, &format, run->now_unix, out);
}

bool mica_function_call(mica_run *run, mica_function function, const mica_args *args, mica_val *out)
{
    switch (function) {
    case MICA_F_RANGE:
        return call_range(run, args, out);
    case MICA_F_DICT:
        return call_dict(run, MICA_V_DICT, args, out);
    case MICA_F_NAMESPACE:
        return call_dict(run, MICA_V_NAMESPACE, args, out);
    case MICA_F_CYCLER:
        return call_cycler(run, args, out);
    case MICA_F_JOINER:
        return call_joiner(run, args, out);
    case MICA_F_LIPSUM:
        return mica_run_fail(run, "lipsum() is not supported: it gives random text");
    case MICA_F_RAISE:
        return call_raise(run, args, out);
    case MICA_F_STRFTIME:
        return call_strftime(run, args, out);
    }
    return mica_run_fail(run, "an unknown function was called");
}

bool mica_function_find(const char *name, size_t length, mica_val *out)
{
    static const struct {
        const char *name;
        mica_function function;
    } table[] = {{"range", MICA_F_RANGE}, {"dict", MICA_F_DICT}, {"namespace", MICA_F_NAMESPACE}, {"cycler", MICA_F_CYCLER},
                 {"joiner", MICA_F_JOINER}, {"lipsum", MICA_F_LIPSUM}, {"raise_exception", MICA_F_RAISE},
                 {"strftime_now", MICA_F_STRFTIME}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0) {
            *out = (mica_val){.type = MICA_V_FUNCTION, .aux = (uint16_t)table[i].function};
            return true;
        }
    }
    return false;
}
