/* tmpl_exec.h - the evaluator: frames, loops and macros at run time. Called by chat.c; its parts call one another. */
#ifndef MICA_TEXT_TMPL_EXEC_H
#define MICA_TEXT_TMPL_EXEC_H
#include "text/tmpl_ast.h"
#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"

/* The variables of one entered scope. Kept as long as the rendering, because a macro may refer to it. */
typedef struct mica_frame {
    struct mica_frame *up;
    mica_val slots[];
} mica_frame;

/* A macro or the caller of a call block: code with the frame that it was defined in. */
typedef struct mica_macro {
    const mica_macro_def *def;
    const mica_node *node;
    uint32_t first_default; /* kid of node */
    mica_frame *frame;
} mica_macro;

/* The variable `loop`. */
typedef struct mica_loop {
    mica_iter iter;
    mica_val iterable;
    const mica_node *node;
    mica_frame *outer;
    int64_t index0, depth0, length; /* length -1: not known yet */
    mica_val after, current, before, changed; /* MISSING where there is none */
    bool filtered;
} mica_loop;

typedef enum mica_flow { MICA_FLOW_FAIL, MICA_FLOW_NEXT, MICA_FLOW_BREAK, MICA_FLOW_CONTINUE } mica_flow;

/** Renders the template into run->out. */
bool mica_exec_template(mica_run *run);

mica_frame *mica_frame_new(mica_run *run, const mica_scope *scope, mica_frame *up);
/** Gives all slots but parameters their values on entry. */
bool mica_frame_enter(mica_run *run, const mica_scope *scope, mica_frame *frame);
mica_flow mica_exec(mica_run *run, mica_frame *frame, const mica_node *node);
/** Runs a loop over `iterable`; recursive loops come here again. */
mica_flow mica_exec_loop(mica_run *run, mica_frame *outer, const mica_node *node, const mica_val *iterable, int64_t depth0);
bool mica_exec_assign(mica_run *run, mica_frame *frame, const mica_node *target, const mica_val *value);
/** Cuts what was written since `start` off the output, as a string. */
bool mica_exec_captured(mica_run *run, size_t start, mica_val *out);

bool mica_eval(mica_run *run, mica_frame *frame, const mica_node *node, mica_val *out);
/** Evaluates the arguments in kids[first ...]; `caller` (or NULL) is added as a keyword. */
bool mica_eval_args(mica_run *run, mica_frame *frame, const mica_node *node, uint32_t first, const mica_val *caller,
                    mica_args *args);
/** A filter node, with its value given. */
bool mica_eval_filter(mica_run *run, mica_frame *frame, const mica_node *node, const mica_val *value, mica_val *out);

bool mica_macro_new(mica_run *run, mica_frame *frame, const mica_node *node, uint32_t first_default, mica_val *out);
bool mica_macro_call(mica_run *run, const mica_macro *macro, const mica_args *args, mica_val *out);
bool mica_macro_attr(mica_run *run, const mica_macro *macro, const mica_val *name, mica_val *out, bool *found);

bool mica_loop_next(mica_run *run, mica_loop *loop, mica_val *item, bool *done);
bool mica_loop_attr(mica_run *run, const mica_val *loop, const mica_val *name, mica_val *out, bool *found);

#endif
