#include "text/tmpl_attr.h"
#include "text/tmpl_exec.h"

/* The variable `loop`: looks one item ahead only when a template asks for it, as jinja2's LoopContext. */

bool mica_loop_next(mica_run *run, mica_loop *loop, mica_val *item, bool *done)
{
    *done = false;
    if (loop->after.type != MICA_V_MISSING) {
        *item = loop->after;
        loop->after = MICA_MISSING;
    } else if (!mica_iter_next(run, &loop->iter, item, done)) {
        return false;
    }
    if (*done)
        return true;
    loop->index0++;
    loop->before = loop->current;
    loop->current = *item;
    return true;
}

static bool peek(mica_run *run, mica_loop *loop, bool *is_last)
{
    *is_last = false;
    if (loop->after.type != MICA_V_MISSING)
        return true;
    if (!mica_iter_next(run, &loop->iter, &loop->after, is_last))
        return false;
    if (*is_last)
        loop->after = MICA_MISSING;
    return true;
}

/* A generator has no length: the rest of it is read, and the loop goes on over that. */
static bool measure(mica_run *run, mica_loop *loop)
{
    mica_val rest, item;
    bool done;
    if (loop->length >= 0)
        return true;
    if (!loop->filtered && loop->iterable.type != MICA_V_GEN)
        return mica_val_length(run, &loop->iterable, &loop->length);
    if (!mica_seq_new(run, MICA_V_LIST, 0, &rest))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &loop->iter, &item, &done))
            return false;
        if (done)
            break;
        if (!mica_seq_push(run, &rest, &item))
            return false;
    }
    loop->length = (int64_t)rest.seq->n + loop->index0 + 1 + (loop->after.type != MICA_V_MISSING);
    return mica_iter_open(run, &rest, &loop->iter);
}

static bool loop_cycle(mica_run *run, const mica_val *self, const mica_args *args, const mica_val *bound, mica_val *out)
{
    (void)bound;
    if (args->n_pos == 0 || args->n_kw)
        return mica_run_fail(run, "no items for cycling given");
    *out = args->pos[(size_t)self->loop->index0 % args->n_pos];
    return true;
}

static bool loop_changed(mica_run *run, const mica_val *self, const mica_args *args, const mica_val *bound, mica_val *out)
{
    (void)bound;
    mica_val now;
    bool same = false;
    if (args->n_kw)
        return mica_run_fail(run, "loop.changed() takes no keyword arguments");
    if (!mica_tuple_new(run, args->pos, args->n_pos, &now))
        return false;
    if (self->loop->changed.type != MICA_V_MISSING && !mica_val_equal(run, &self->loop->changed, &now, &same))
        return false;
    self->loop->changed = now;
    *out = mica_val_bool(!same);
    return true;
}

const mica_method_def mica_loop_methods[] = {{.name = "cycle", .call = loop_cycle}, {.name = "changed", .call = loop_changed},
                                             {0}};

typedef enum field { INDEX, INDEX0, REVINDEX, REVINDEX0, FIRST, LAST, LENGTH, PREVITEM, NEXTITEM, DEPTH, DEPTH0,
                    N_FIELDS } field;

static field find_field(const mica_val *name)
{
    static const char *const names[] = {"index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem",
                                        "nextitem", "depth", "depth0"};
    for (field i = 0; i < N_FIELDS; i++) {
        if (mica_val_is(name, names[i], __builtin_strlen(names[i])))
            return i;
    }
    return N_FIELDS;
}

bool mica_loop_attr(mica_run *run, const mica_val *value, const mica_val *name, mica_val *out, bool *found)
{
    mica_loop *loop = value->loop;
    field f = find_field(name);
    bool is_last;
    *found = f != N_FIELDS;
    switch (f) {
    case INDEX: case INDEX0:
        *out = mica_val_int(loop->index0 + (f == INDEX));
        return true;
    case REVINDEX: case REVINDEX0: case LENGTH:
        if (!measure(run, loop))
            return false;
        *out = mica_val_int(f == LENGTH ? loop->length : loop->length - loop->index0 - (f == REVINDEX0));
        return true;
    case FIRST:
        *out = mica_val_bool(loop->index0 == 0);
        return true;
    case LAST:
        if (!peek(run, loop, &is_last))
            return false;
        *out = mica_val_bool(is_last);
        return true;
    case PREVITEM:
        *out = loop->index0 == 0 ? mica_val_undefined_hint("there is no previous item") : loop->before;
        return true;
    case NEXTITEM:
        if (!peek(run, loop, &is_last))
            return false;
        *out = is_last ? mica_val_undefined_hint("there is no next item") : loop->after;
        return true;
    case DEPTH: case DEPTH0:
        *out = mica_val_int(loop->depth0 + (f == DEPTH));
        return true;
    case N_FIELDS:
        break;
    }
    return true;
}
