#include "text/tmpl_exec.h"
#include "text/tmpl_text.h"

#include <string.h>

/* Statements. */

/* ---- Frames ---- */

mica_frame *mica_frame_new(mica_run *run, const mica_scope *scope, mica_frame *up)
{
    mica_frame *frame = mica_tarena_array(&run->arena, 1, sizeof *frame + scope->n_slots * sizeof *frame->slots);
    if (!frame) {
        mica_run_no_memory(run);
        return NULL;
    }
    frame->up = up; /* the slots are cleared, which is MISSING */
    return frame;
}

/* What a name means outside of the template: a variable of the request, or a global function. The same at any time. */
static mica_val resolve_outside(mica_run *run, uint32_t symbol)
{
    const mica_val *name = &run->tmpl->symbols[symbol];
    if (!run->is_resolved[symbol]) {
        const mica_val *found = mica_dict_get(run, run->variables, name->s, name->len);
        run->is_resolved[symbol] = 1;
        if (found)
            run->resolved[symbol] = *found;
        else if (mica_val_is(name, "self", 4))
            run->resolved[symbol] = (mica_val){.type = MICA_V_SELF};
        else if (!mica_function_find(name->s, name->len, &run->resolved[symbol]))
            run->resolved[symbol] = MICA_MISSING;
    }
    return run->resolved[symbol];
}

bool mica_frame_enter(mica_run *run, const mica_scope *scope, mica_frame *frame)
{
    for (size_t i = 0; i < scope->n_slots; i++) {
        const mica_slot_load *load = &scope->loads[i];
        const mica_frame *from = frame;
        switch (load->action) {
        case MICA_LOAD_PARAMETER:
            break;
        case MICA_LOAD_RESOLVE:
            frame->slots[i] = resolve_outside(run, load->symbol);
            break;
        case MICA_LOAD_ALIAS:
            for (uint32_t hops = load->from.hops; hops; hops--)
                from = from->up;
            frame->slots[i] = from->slots[load->from.slot];
            break;
        case MICA_LOAD_UNDEFINED:
            frame->slots[i] = MICA_MISSING;
            break;
        }
    }
    return mica_run_charge(run, scope->n_slots);
}

static mica_frame *enter_new(mica_run *run, const mica_scope *scope, mica_frame *up)
{
    mica_frame *frame = mica_frame_new(run, scope, up);
    return frame && mica_frame_enter(run, scope, frame) ? frame : NULL;
}

/* ---- Assignment ---- */

static mica_val *slot_of(mica_frame *frame, const mica_node *node)
{
    for (uint32_t i = 0; i < node->ref.hops; i++)
        frame = frame->up;
    return &frame->slots[node->ref.slot];
}

static bool unpack(mica_run *run, mica_frame *frame, const mica_node *target, const mica_val *value)
{
    mica_val items;
    if (!mica_val_is_iterable(value))
        return mica_run_fail(run, "cannot unpack non-iterable %s object", mica_val_type_name(value));
    if (value->type == MICA_V_LIST || value->type == MICA_V_TUPLE)
        items = *value;
    else if (!mica_list_of(run, value, &items))
        return false;
    if (items.seq->n != target->n_kids)
        return mica_run_fail(run, "cannot unpack %zu values into %u names", items.seq->n, target->n_kids);
    for (uint32_t i = 0; i < target->n_kids; i++) {
        if (!mica_exec_assign(run, frame, target->kids[i], &items.seq->items[i]))
            return false;
    }
    return true;
}

bool mica_exec_assign(mica_run *run, mica_frame *frame, const mica_node *target, const mica_val *value)
{
    if (target->type == MICA_N_TUPLE)
        return unpack(run, frame, target, value);
    mica_val *slot = slot_of(frame, target);
    if (target->type == MICA_N_NAME) {
        *slot = *value;
        return true;
    }
    if (slot->type != MICA_V_NAMESPACE)
        return mica_run_fail(run, "cannot assign attribute on non-namespace object");
    return mica_dict_set(run, slot->dict, &target->text, value);
}

static mica_flow exec_set(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val value;
    bool ok = mica_eval(run, frame, node->kids[1], &value) && mica_exec_assign(run, frame, node->kids[0], &value);
    return ok ? MICA_FLOW_NEXT : MICA_FLOW_FAIL;
}

/* ---- Output and captured output ---- */

bool mica_exec_captured(mica_run *run, size_t start, mica_val *out)
{
    size_t n = run->out.length - start;
    bool ok = mica_val_copy(run, n ? run->out.data + start : "", n, out);
    run->out.length = start;
    return ok;
}

static mica_flow exec_data(mica_run *run, const mica_node *node)
{
    if (!mica_run_charge(run, node->text.len))
        return MICA_FLOW_FAIL;
    mica_buf_append(&run->out, node->text.s, node->text.len);
    return mica_text_ok(run, &run->out) ? MICA_FLOW_NEXT : MICA_FLOW_FAIL;
}

static mica_flow exec_output(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val value;
    bool ok = mica_eval(run, frame, node->kids[0], &value) && mica_text_write(run, &run->out, &value);
    return ok ? MICA_FLOW_NEXT : MICA_FLOW_FAIL;
}

/* Runs a body in a frame of its own and captures what it writes. A break or continue drops that. */
static mica_flow capture(mica_run *run, mica_frame *frame, const mica_node *body, mica_val *text)
{
    size_t start = run->out.length;
    mica_flow flow = mica_exec(run, frame, body);
    if (flow == MICA_FLOW_NEXT)
        return mica_exec_captured(run, start, text) ? flow : MICA_FLOW_FAIL;
    run->out.length = start;
    return flow;
}

static mica_flow exec_set_block(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val text;
    mica_frame *inner = enter_new(run, node->scope, frame);
    if (!inner)
        return MICA_FLOW_FAIL;
    mica_flow flow = capture(run, inner, node->kids[1], &text);
    if (flow != MICA_FLOW_NEXT)
        return flow;
    bool ok = (!node->kids[2] || mica_eval_filter(run, inner, node->kids[2], &text, &text)) &&
              mica_exec_assign(run, frame, node->kids[0], &text);
    return ok ? MICA_FLOW_NEXT : MICA_FLOW_FAIL;
}

static mica_flow exec_filter_block(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val text;
    mica_frame *inner = enter_new(run, node->scope, frame);
    if (!inner)
        return MICA_FLOW_FAIL;
    mica_flow flow = capture(run, inner, node->kids[0], &text);
    if (flow != MICA_FLOW_NEXT)
        return flow;
    bool ok = mica_eval_filter(run, inner, node->kids[1], &text, &text) && mica_text_write(run, &run->out, &text);
    return ok ? MICA_FLOW_NEXT : MICA_FLOW_FAIL;
}

/* ---- Control ---- */

static mica_flow exec_if(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val test;
    uint32_t i = 0;
    for (; i + 1 < node->n_kids; i += 2) {
        if (!mica_eval(run, frame, node->kids[i], &test))
            return MICA_FLOW_FAIL;
        if (mica_val_truth(&test))
            return mica_exec(run, frame, node->kids[i + 1]);
    }
    return i < node->n_kids ? mica_exec(run, frame, node->kids[i]) : MICA_FLOW_NEXT;
}

/* The condition of a loop: a lazy iterator over what the loop iterates. */
typedef struct loop_test {
    const mica_node *node;
    mica_frame *frame;
} loop_test;

static bool step_loop_test(mica_run *run, void *user, mica_val *item, bool *keep)
{
    loop_test *t = user;
    mica_val result;
    if (!mica_exec_assign(run, t->frame, t->node->kids[0], item) || !mica_eval(run, t->frame, t->node->kids[2], &result))
        return false;
    *keep = mica_val_truth(&result);
    return true;
}

static bool open_filtered(mica_run *run, mica_frame *outer, const mica_node *node, const mica_val *iterable, mica_val *out)
{
    loop_test *t = mica_tarena_alloc(&run->arena, sizeof *t);
    if (!t)
        return mica_run_no_memory(run);
    *t = (loop_test){.node = node, .frame = enter_new(run, &node->loop->test, outer)};
    return t->frame && mica_gen_lazy(run, iterable, step_loop_test, t, out);
}

static mica_loop *loop_new(mica_run *run, mica_frame *outer, const mica_node *node, const mica_val *iterable, int64_t depth0)
{
    mica_loop *loop = mica_tarena_array(&run->arena, 1, sizeof *loop);
    if (!loop) {
        mica_run_no_memory(run);
        return NULL;
    }
    loop->iterable = *iterable;
    loop->node = node;
    loop->outer = outer;
    loop->index0 = -1;
    loop->depth0 = depth0;
    loop->length = -1;
    mica_val source = *iterable;
    loop->filtered = node->kids[2] != NULL;
    if (loop->filtered && !open_filtered(run, outer, node, iterable, &source))
        return NULL;
    return mica_iter_open(run, &source, &loop->iter) ? loop : NULL;
}

/* jinja2 clears its mark at the end of a body, so that the else part also runs after a loop whose bodies all ended early. */
mica_flow mica_exec_loop(mica_run *run, mica_frame *outer, const mica_node *node, const mica_val *iterable, int64_t depth0)
{
    const mica_for *def = node->loop;
    bool done, completed = false;
    mica_val item;
    mica_loop *loop = loop_new(run, outer, node, iterable, depth0);
    mica_frame *frame = loop ? mica_frame_new(run, &def->body, outer) : NULL;
    if (!frame)
        return MICA_FLOW_FAIL;
    mica_flow flow = MICA_FLOW_NEXT;
    while (flow != MICA_FLOW_BREAK) {
        if (!mica_loop_next(run, loop, &item, &done))
            return MICA_FLOW_FAIL;
        if (done)
            break;
        if (def->extended)
            frame->slots[def->loop_slot] = (mica_val){.type = MICA_V_LOOP, .loop = loop};
        if (!mica_exec_assign(run, frame, node->kids[0], &item) || !mica_frame_enter(run, &def->body, frame))
            return MICA_FLOW_FAIL;
        flow = mica_exec(run, frame, node->kids[3]);
        if (flow == MICA_FLOW_FAIL)
            return flow;
        completed |= flow == MICA_FLOW_NEXT;
    }
    if (completed || !node->kids[4])
        return MICA_FLOW_NEXT;
    frame = enter_new(run, &def->other, outer);
    return frame ? mica_exec(run, frame, node->kids[4]) : MICA_FLOW_FAIL;
}

static mica_flow exec_for(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val iterable;
    if (!mica_eval(run, frame, node->kids[1], &iterable))
        return MICA_FLOW_FAIL;
    return mica_exec_loop(run, frame, node, &iterable, 0);
}

static mica_flow exec_with(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val value;
    mica_frame *inner = enter_new(run, node->scope, frame);
    if (!inner)
        return MICA_FLOW_FAIL;
    for (uint32_t i = 1; i + 1 < node->n_kids; i += 2) {
        if (!mica_eval(run, frame, node->kids[i + 1], &value) || !mica_exec_assign(run, inner, node->kids[i], &value))
            return MICA_FLOW_FAIL;
    }
    return mica_exec(run, inner, node->kids[0]);
}

/* ---- Macros ---- */

static mica_flow exec_macro(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val macro;
    if (!mica_macro_new(run, frame, node, 1, &macro))
        return MICA_FLOW_FAIL;
    *slot_of(frame, node) = macro;
    return MICA_FLOW_NEXT;
}

static mica_flow exec_call_block(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_val caller, callee, text;
    mica_args args = {0};
    if (!mica_macro_new(run, frame, node, 2, &caller))
        return MICA_FLOW_FAIL;
    bool ok;
    if (!node->kids[1]) {
        ok = mica_macro_call(run, caller.macro, &args, &text);
    } else {
        const mica_node *call = node->kids[1];
        ok = mica_eval(run, frame, call->kids[0], &callee) && mica_eval_args(run, frame, call, 1, &caller, &args) &&
             mica_call(run, &callee, &args, &text);
    }
    return ok && mica_text_write(run, &run->out, &text) ? MICA_FLOW_NEXT : MICA_FLOW_FAIL;
}

/* ---- Dispatch ---- */

static mica_flow exec_body(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_flow flow = MICA_FLOW_NEXT;
    for (uint32_t i = 0; i < node->n_kids && flow == MICA_FLOW_NEXT; i++)
        flow = mica_exec(run, frame, node->kids[i]);
    return flow;
}

static mica_flow exec_node(mica_run *run, mica_frame *frame, const mica_node *node)
{
    switch (node->type) {
    case MICA_N_BODY:
        return exec_body(run, frame, node);
    case MICA_N_DATA:
        return exec_data(run, node);
    case MICA_N_OUTPUT:
        return exec_output(run, frame, node);
    case MICA_N_IF:
        return exec_if(run, frame, node);
    case MICA_N_FOR:
        return exec_for(run, frame, node);
    case MICA_N_BREAK:
        return MICA_FLOW_BREAK;
    case MICA_N_CONTINUE:
        return MICA_FLOW_CONTINUE;
    case MICA_N_SET:
        return exec_set(run, frame, node);
    case MICA_N_SETBLOCK:
        return exec_set_block(run, frame, node);
    case MICA_N_MACRO:
        return exec_macro(run, frame, node);
    case MICA_N_CALLBLOCK:
        return exec_call_block(run, frame, node);
    case MICA_N_FILTERBLOCK:
        return exec_filter_block(run, frame, node);
    case MICA_N_WITH:
        return exec_with(run, frame, node);
    default:
        mica_run_record(run, "an expression stands where a statement is expected");
        return MICA_FLOW_FAIL;
    }
}

mica_flow mica_exec(mica_run *run, mica_frame *frame, const mica_node *node)
{
    mica_flow flow = MICA_FLOW_FAIL;
    if (++run->depth > MICA_TMPL_MAX_DEPTH)
        mica_run_record(run, "the template is nested too deeply, or a macro calls itself without end");
    else if (mica_run_charge(run, 0))
        flow = exec_node(run, frame, node);
    run->depth--;
    if (flow == MICA_FLOW_FAIL && !run->line) {
        run->line = node->line;
        run->offset = node->offset;
    }
    return flow;
}

bool mica_exec_template(mica_run *run)
{
    const struct mica_template *t = run->tmpl;
    run->resolved = mica_tarena_array(&run->arena, t->n_symbols, sizeof *run->resolved);
    run->is_resolved = mica_tarena_array(&run->arena, t->n_symbols, 1);
    if (!run->resolved || !run->is_resolved)
        return mica_run_no_memory(run);
    mica_frame *frame = enter_new(run, &t->scope, NULL);
    return frame && mica_exec(run, frame, t->root) != MICA_FLOW_FAIL;
}
