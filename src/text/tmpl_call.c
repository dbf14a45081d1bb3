#include "text/tmpl_attr.h"
#include "text/tmpl_exec.h"
#include "text/tmpl_text.h"

#include <string.h>

/* ---- Arguments of builtins ---- */

/* Length of the parameter name at p, which ends with a comma or the text. */
static size_t name_length(const char *p)
{
    const char *comma = strchr(p, ',');
    return comma ? (size_t)(comma - p) : strlen(p);
}

static bool bind_keyword(mica_run *run, const mica_kwarg *kw, const char *what, const char *params, mica_val *out)
{
    const char *p = params;
    for (size_t i = 0; *p; i++) {
        size_t n = name_length(p);
        if (mica_val_is(&kw->name, p, n)) {
            if (mica_arg_given(&out[i]))
                return mica_run_fail(run, "%s got multiple values for argument '%.*s'", what, (int)n, p);
            out[i] = kw->value;
            return true;
        }
        p += n + (p[n] == ',');
    }
    return mica_run_fail(run, "%s got an unexpected keyword argument '%.*s'", what, MICA_SHOW(&kw->name));
}

bool mica_args_bind(mica_run *run, const mica_args *args, const char *what, const char *params, size_t required,
                    mica_val out[MICA_MAX_PARAMS])
{
    size_t n = 0;
    for (const char *p = params; *p; n++) {
        out[n] = MICA_MISSING;
        p += name_length(p);
        p += *p == ',';
    }
    if (args->n_pos > n)
        return mica_run_fail(run, "%s takes at most %zu arguments, not %zu", what, n, args->n_pos);
    for (size_t i = 0; i < args->n_pos; i++)
        out[i] = args->pos[i];
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!bind_keyword(run, &args->kw[i], what, params, out))
            return false;
    }
    for (size_t i = 0; i < required; i++) {
        if (!mica_arg_given(&out[i]))
            return mica_run_fail(run, "%s misses its argument number %zu", what, i + 1);
    }
    return true;
}

bool mica_arg_int(mica_run *run, const mica_val *v, const char *name, int64_t standard, int64_t *out)
{
    if (!mica_arg_given(v)) {
        *out = standard;
        return true;
    }
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (!mica_val_is_int(v))
        return mica_run_fail(run, "the argument '%s' must be an integer, not %s", name, mica_val_type_name(v));
    *out = mica_val_as_int(v);
    return true;
}

bool mica_arg_text(mica_run *run, const mica_val *v, const char *name, mica_val *out)
{
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (v->type != MICA_V_STR)
        return mica_run_fail(run, "the argument '%s' must be a string, not %s", name, mica_val_type_name(v));
    *out = *v;
    return true;
}

/* ---- Macros ---- */

bool mica_macro_new(mica_run *run, mica_frame *frame, const mica_node *node, uint32_t first_default, mica_val *out)
{
    mica_macro *m = mica_tarena_alloc(&run->arena, sizeof *m);
    if (!m)
        return mica_run_no_memory(run);
    *m = (mica_macro){.def = node->macro, .node = node, .first_default = first_default, .frame = frame};
    *out = (mica_val){.type = MICA_V_MACRO, .macro = m};
    return true;
}

/* Takes the keyword `name` if it was given and not taken yet. */
static bool take_keyword(const mica_args *args, uint8_t *taken, const char *name, size_t n, mica_val *out)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!taken[i] && mica_val_is(&args->kw[i].name, name, n)) {
            taken[i] = 1;
            *out = args->kw[i].value;
            return true;
        }
    }
    return false;
}

static bool bind_caller(const mica_args *args, uint8_t *taken, mica_val *out)
{
    *out = MICA_NONE;
    take_keyword(args, taken, "caller", 6, out);
    if (out->type == MICA_V_NONE)
        *out = mica_val_undefined_hint("No caller defined");
    return true;
}

static bool bind_kwargs(mica_run *run, const mica_args *args, const uint8_t *taken, mica_val *out)
{
    if (!mica_dict_new(run, MICA_V_DICT, args->n_kw, out))
        return false;
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!taken[i] && !mica_dict_set(run, out->dict, &args->kw[i].name, &args->kw[i].value))
            return false;
    }
    return true;
}

static bool refuse_keywords(mica_run *run, const mica_args *args, const uint8_t *taken)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        const mica_val *name = &args->kw[i].name;
        if (!taken[i])
            return mica_run_fail(run, "the macro takes no keyword argument '%.*s'", MICA_SHOW(name));
    }
    return true;
}

static bool bind_macro(mica_run *run, const mica_macro *macro, const mica_args *args, mica_frame *frame)
{
    const mica_macro_def *m = macro->def;
    uint8_t *taken = mica_tarena_array(&run->arena, args->n_kw, 1);
    if (!taken)
        return mica_run_no_memory(run);
    for (size_t i = 0; i < m->n_params; i++) {
        mica_val *slot = &frame->slots[m->param_slots[i]];
        if (i < args->n_pos)
            *slot = args->pos[i];
        else
            take_keyword(args, taken, m->param_names[i].s, m->param_names[i].len, slot);
    }
    if (m->wants_caller && !bind_caller(args, taken, &frame->slots[m->caller_slot]))
        return false;
    if (m->wants_kwargs ? !bind_kwargs(run, args, taken, &frame->slots[m->kwargs_slot]) : !refuse_keywords(run, args, taken))
        return false;
    size_t extra = args->n_pos > m->n_params ? args->n_pos - m->n_params : 0;
    if (m->wants_varargs)
        return mica_tuple_new(run, args->pos + (args->n_pos - extra), extra, &frame->slots[m->varargs_slot]);
    if (extra)
        return mica_run_fail(run, "the macro takes not more than %zu argument(s)", m->n_params);
    return true;
}

/* Defaults are evaluated in the frame of the macro, in order, so that they may use the parameters before them. */
static bool fill_defaults(mica_run *run, const mica_macro *macro, mica_frame *frame)
{
    const mica_macro_def *m = macro->def;
    size_t n_defaults = macro->node->n_kids - macro->first_default;
    for (size_t i = 0; i < m->n_params; i++) {
        mica_val *slot = &frame->slots[m->param_slots[i]];
        if (mica_arg_given(slot))
            continue;
        if (i + n_defaults < m->n_params)
            *slot = mica_val_undefined_name(&m->param_names[i]);
        else if (!mica_eval(run, frame, macro->node->kids[macro->first_default + (i + n_defaults - m->n_params)], slot))
            return false;
    }
    return true;
}

bool mica_macro_call(mica_run *run, const mica_macro *macro, const mica_args *args, mica_val *out)
{
    mica_frame *frame = mica_frame_new(run, &macro->def->scope, macro->frame);
    if (!frame || !bind_macro(run, macro, args, frame) || !mica_frame_enter(run, &macro->def->scope, frame) ||
        !fill_defaults(run, macro, frame))
        return false;
    size_t start = run->out.length;
    return mica_exec(run, frame, macro->node->kids[0]) != MICA_FLOW_FAIL && mica_exec_captured(run, start, out);
}

bool mica_macro_attr(mica_run *run, const mica_macro *macro, const mica_val *name, mica_val *out, bool *found)
{
    const mica_macro_def *m = macro->def;
    *found = true;
    if (mica_val_is(name, "name", 4))
        *out = m->name;
    else if (mica_val_is(name, "arguments", 9))
        return mica_tuple_new(run, m->param_names, m->n_params, out);
    else if (mica_val_is(name, "catch_kwargs", 12))
        *out = mica_val_bool(m->wants_kwargs);
    else if (mica_val_is(name, "catch_varargs", 13))
        *out = mica_val_bool(m->wants_varargs);
    else if (mica_val_is(name, "caller", 6))
        *out = mica_val_bool(m->wants_caller);
    else
        *found = false;
    return true;
}

/* ---- All callables ---- */

static bool call_loop(mica_run *run, mica_loop *loop, const mica_args *args, mica_val *out)
{
    mica_val bound[MICA_MAX_PARAMS];
    if (!mica_args_bind(run, args, "loop()", "iterable", 1, bound))
        return false;
    if (!loop->node->loop->recursive)
        return mica_run_fail(run, "The loop must have the 'recursive' marker to be called recursively.");
    size_t start = run->out.length;
    return mica_exec_loop(run, loop->outer, loop->node, &bound[0], loop->depth0 + 1) != MICA_FLOW_FAIL &&
           mica_exec_captured(run, start, out);
}

static bool call_method(mica_run *run, const mica_method *method, const mica_args *args, mica_val *out)
{
    const mica_method_def *def = method->def;
    mica_val bound[MICA_MAX_PARAMS];
    if (!def->call)
        return mica_run_fail(run, "the method %s.%s() is not supported", mica_val_type_name(&method->self), def->name);
    if (!def->params)
        return def->call(run, &method->self, args, NULL, out);
    return mica_args_bind(run, args, def->name, def->params, def->required, bound) &&
           def->call(run, &method->self, args, bound, out);
}

static bool call_joiner(mica_run *run, mica_cycler *joiner, const mica_args *args, mica_val *out)
{
    mica_val bound[MICA_MAX_PARAMS];
    if (!mica_args_bind(run, args, "joiner", "", 0, bound))
        return false;
    *out = joiner->used ? joiner->separator : mica_val_literal("");
    joiner->used = true;
    return true;
}

bool mica_call(mica_run *run, const mica_val *callee, const mica_args *args, mica_val *out)
{
    switch (callee->type) {
    case MICA_V_UNDEFINED:
        return mica_run_fail_undefined(run, callee);
    case MICA_V_FUNCTION:
        return mica_function_call(run, (mica_function)callee->aux, args, out);
    case MICA_V_METHOD:
        return call_method(run, callee->method, args, out);
    case MICA_V_MACRO:
        return mica_macro_call(run, callee->macro, args, out);
    case MICA_V_LOOP:
        return call_loop(run, callee->loop, args, out);
    case MICA_V_JOINER:
        return call_joiner(run, callee->cycler, args, out);
    default:
        return mica_run_fail(run, "'%s' object is not callable", mica_val_type_name(callee));
    }
}
