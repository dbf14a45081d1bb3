#include "text/tmpl_attr.h"
#include "text/tmpl_exec.h"
#include "text/tmpl_text.h"

#include <string.h>

/* Expressions. Each kind has a function of its own, so that the frame of the recursive mica_eval() stays small. */

static bool eval_name(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_frame *f = frame;
    for (uint32_t i = 0; i < node->ref.hops; i++)
        f = f->up;
    *out = f->slots[node->ref.slot];
    if (out->type == MICA_V_MISSING)
        *out = mica_val_undefined_name(&run->tmpl->symbols[node->symbol]);
    return true;
}

static bool eval_items(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val list;
    if (!mica_seq_new(run, node->type == MICA_N_LIST ? MICA_V_LIST : MICA_V_TUPLE, node->n_kids, &list))
        return false;
    for (uint32_t i = 0; i < node->n_kids; i++) {
        if (!mica_eval(run, frame, node->kids[i], &list.seq->items[i]))
            return false;
    }
    list.seq->n = node->n_kids;
    *out = list;
    return true;
}

static bool eval_dict(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val dict, key, value;
    if (!mica_dict_new(run, MICA_V_DICT, node->n_kids / 2, &dict))
        return false;
    for (uint32_t i = 0; i + 1 < node->n_kids; i += 2) {
        if (!mica_eval(run, frame, node->kids[i], &key) || !mica_eval(run, frame, node->kids[i + 1], &value) ||
            !mica_dict_set(run, dict.dict, &key, &value))
            return false;
    }
    *out = dict;
    return true;
}

static bool eval_getattr(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val object;
    return mica_eval(run, frame, node->kids[0], &object) && mica_attr_get(run, &object, &node->text, out);
}

static bool eval_slice(mica_run *run, mica_frame *frame, const mica_val *object, const mica_node *slice, mica_val *out)
{
    mica_val parts[3] = {MICA_NONE, MICA_NONE, MICA_NONE};
    for (uint32_t i = 0; i < 3; i++) {
        if (slice->kids[i] && !mica_eval(run, frame, slice->kids[i], &parts[i]))
            return false;
    }
    return mica_attr_slice(run, object, &parts[0], &parts[1], &parts[2], out);
}

static bool eval_getitem(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val object, key;
    if (!mica_eval(run, frame, node->kids[0], &object))
        return false;
    if (node->kids[1]->type == MICA_N_SLICE)
        return eval_slice(run, frame, &object, node->kids[1], out);
    return mica_eval(run, frame, node->kids[1], &key) && mica_attr_item(run, &object, &key, out);
}

/* Arguments that stand for themselves; *list adds as many as it has. */
static bool add_positional(mica_run *run, mica_frame *frame, const mica_node *arg, mica_val *list)
{
    mica_val v, item;
    mica_iter it;
    bool done;
    if (arg->type != MICA_N_STAR)
        return mica_eval(run, frame, arg, &v) && mica_seq_push(run, list, &v);
    if (!mica_eval(run, frame, arg->kids[0], &v) || !mica_iter_open(run, &v, &it))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            return true;
        if (!mica_seq_push(run, list, &item))
            return false;
    }
}

static bool add_keyword(mica_run *run, mica_args *args, mica_kwarg *room, const mica_val *name, const mica_val *value)
{
    if (name->type != MICA_V_STR)
        return mica_run_fail(run, "keywords must be strings");
    for (size_t i = 0; i < args->n_kw; i++) {
        if (mica_val_same_text(&args->kw[i].name, name))
            return mica_run_fail(run, "the keyword argument '%.*s' is given twice", MICA_SHOW(name));
    }
    if (!mica_run_charge(run, args->n_kw))
        return false;
    room[args->n_kw++] = (mica_kwarg){.name = *name, .value = *value};
    return true;
}

/* Keyword arguments, and the pairs of **dict. `room` has place for all. */
static bool add_keywords(mica_run *run, mica_frame *frame, const mica_node *arg, mica_kwarg **room, mica_args *args)
{
    mica_val v;
    if (!mica_eval(run, frame, arg->kids[0], &v))
        return false;
    if (arg->type == MICA_N_KEYWORD)
        return add_keyword(run, args, *room, &arg->text, &v);
    if (v.type != MICA_V_DICT)
        return mica_run_fail(run, "the argument after ** must be a mapping, not %s", mica_val_type_name(&v));
    mica_kwarg *larger = mica_tarena_array(&run->arena, args->n_kw + v.dict->n + 1, sizeof *larger);
    if (!larger)
        return mica_run_no_memory(run);
    if (args->n_kw)
        memcpy(larger, *room, args->n_kw * sizeof *larger);
    *room = larger;
    args->kw = larger;
    for (size_t i = 0; i < v.dict->n; i++) {
        if (!add_keyword(run, args, larger, &v.dict->pairs[i].key, &v.dict->pairs[i].value))
            return false;
    }
    return true;
}

bool mica_eval_args(mica_run *run, mica_frame *frame, const mica_node *node, uint32_t first, const mica_val *caller,
                    mica_args *args)
{
    *args = (mica_args){0};
    uint32_t n = node->n_kids - first;
    if (n == 0 && !caller)
        return true;
    mica_val positional, name = mica_val_literal("caller");
    mica_kwarg *room = NULL;
    if (!mica_seq_new(run, MICA_V_LIST, n, &positional))
        return false;
    for (uint32_t i = first; i < node->n_kids; i++) {
        const mica_node *arg = node->kids[i];
        if (arg->type != MICA_N_KEYWORD && arg->type != MICA_N_DSTAR) {
            if (!add_positional(run, frame, arg, &positional))
                return false;
            continue;
        }
        if (!room) {
            room = mica_tarena_array(&run->arena, n + 1, sizeof *room);
            if (!room)
                return mica_run_no_memory(run);
            args->kw = room;
        }
        if (!add_keywords(run, frame, arg, &room, args))
            return false;
    }
    if (caller && !room) {
        room = mica_tarena_array(&run->arena, 1, sizeof *room);
        if (!room)
            return mica_run_no_memory(run);
        args->kw = room;
    }
    args->pos = positional.seq->items;
    args->n_pos = positional.seq->n;
    return !caller || add_keyword(run, args, room, &name, caller);
}

static bool eval_call(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val callee;
    mica_args args;
    return mica_eval(run, frame, node->kids[0], &callee) && mica_eval_args(run, frame, node, 1, NULL, &args) &&
           mica_call(run, &callee, &args, out);
}

bool mica_eval_filter(mica_run *run, mica_frame *frame, const mica_node *node, const mica_val *value, mica_val *out)
{
    mica_val v = *value;
    mica_args args;
    if (node->kids[0] && !mica_eval_filter(run, frame, node->kids[0], value, &v)) /* a chain in a block */
        return false;
    if (!node->filter)
        return mica_run_fail(run, "there is no filter named '%.*s'", MICA_SHOW(&node->text));
    return mica_eval_args(run, frame, node, 1, NULL, &args) && mica_filter_apply(run, node->filter, &v, &args, out);
}

static bool eval_filter(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val value;
    mica_args args;
    if (!mica_eval(run, frame, node->kids[0], &value))
        return false;
    if (!node->filter)
        return mica_run_fail(run, "there is no filter named '%.*s'", MICA_SHOW(&node->text));
    return mica_eval_args(run, frame, node, 1, NULL, &args) && mica_filter_apply(run, node->filter, &value, &args, out);
}

static bool eval_test(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val value;
    mica_args args;
    bool result;
    if (!mica_eval(run, frame, node->kids[0], &value))
        return false;
    if (!node->test)
        return mica_run_fail(run, "there is no test named '%.*s'", MICA_SHOW(&node->text));
    if (!mica_eval_args(run, frame, node, 1, NULL, &args) || !mica_test_apply(run, node->test, &value, &args, &result))
        return false;
    *out = mica_val_bool(result);
    return true;
}

static bool eval_binary(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val a, b;
    return mica_eval(run, frame, node->kids[0], &a) && mica_eval(run, frame, node->kids[1], &b) &&
           mica_op_binary(run, (mica_op)node->op, &a, &b, out);
}

static bool eval_unary(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val a;
    if (!mica_eval(run, frame, node->kids[0], &a))
        return false;
    if (node->type == MICA_N_UNARY)
        return mica_op_unary(run, (mica_op)node->op, &a, out);
    *out = mica_val_bool(!mica_val_truth(&a));
    return true;
}

static bool eval_logic(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    if (!mica_eval(run, frame, node->kids[0], out))
        return false;
    if (mica_val_truth(out) == (node->type == MICA_N_OR))
        return true;
    return mica_eval(run, frame, node->kids[1], out);
}

static bool eval_compare(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val left, right;
    bool holds = true;
    if (!mica_eval(run, frame, node->kids[0], &left))
        return false;
    for (uint32_t i = 1; i < node->n_kids && holds; i++) {
        const mica_node *operand = node->kids[i];
        if (!mica_eval(run, frame, operand->kids[0], &right) ||
            !mica_op_compare(run, (mica_op)operand->op, &left, &right, &holds))
            return false;
        left = right;
    }
    *out = mica_val_bool(holds);
    return true;
}

static bool eval_concat(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val part, *parts = mica_tarena_array(&run->arena, node->n_kids, sizeof *parts);
    if (!parts)
        return mica_run_no_memory(run);
    for (uint32_t i = 0; i < node->n_kids; i++) {
        if (!mica_eval(run, frame, node->kids[i], &part) || !mica_text_str(run, &part, &parts[i]))
            return false;
    }
    return mica_val_join(run, parts, node->n_kids, out);
}

static bool eval_cond(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    mica_val test;
    if (!mica_eval(run, frame, node->kids[0], &test))
        return false;
    if (mica_val_truth(&test))
        return mica_eval(run, frame, node->kids[1], out);
    if (node->kids[2])
        return mica_eval(run, frame, node->kids[2], out);
    *out = mica_val_undefined_hint("the inline if-expression evaluated to false and no else section was defined.");
    return true;
}

static bool eval_node(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    switch (node->type) {
    case MICA_N_CONST:
        *out = node->text;
        return true;
    case MICA_N_NAME:
        return eval_name(run, frame, node, out);
    case MICA_N_TUPLE: case MICA_N_LIST:
        return eval_items(run, frame, node, out);
    case MICA_N_DICT:
        return eval_dict(run, frame, node, out);
    case MICA_N_GETATTR:
        return eval_getattr(run, frame, node, out);
    case MICA_N_GETITEM:
        return eval_getitem(run, frame, node, out);
    case MICA_N_CALL:
        return eval_call(run, frame, node, out);
    case MICA_N_FILTER:
        return eval_filter(run, frame, node, out);
    case MICA_N_TEST:
        return eval_test(run, frame, node, out);
    case MICA_N_BINARY:
        return eval_binary(run, frame, node, out);
    case MICA_N_UNARY: case MICA_N_NOT:
        return eval_unary(run, frame, node, out);
    case MICA_N_AND: case MICA_N_OR:
        return eval_logic(run, frame, node, out);
    case MICA_N_COMPARE:
        return eval_compare(run, frame, node, out);
    case MICA_N_CONCAT:
        return eval_concat(run, frame, node, out);
    case MICA_N_COND:
        return eval_cond(run, frame, node, out);
    default:
        return mica_run_fail(run, "a statement stands where an expression is expected");
    }
}

bool mica_eval(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out)
{
    bool ok;
    if (++run->depth > MICA_TMPL_MAX_DEPTH)
        ok = mica_run_fail(run, "the template is nested too deeply, or a macro calls itself without end");
    else
        ok = mica_run_charge(run, 0) && eval_node(run, frame, node, out);
    run->depth--;
    if (!ok && !run->line) { /* the innermost node that failed */
        run->line = node->line;
        run->offset = node->offset;
    }
    return ok;
}
