#include "text/tmpl_iter.h"

#include "text/tmpl_ustr.h"

bool mica_val_is_iterable(const mica_val *v)
{
    switch (v->type) {
    case MICA_V_UNDEFINED: case MICA_V_STR: case MICA_V_LIST: case MICA_V_TUPLE: case MICA_V_DICT: case MICA_V_RANGE:
    case MICA_V_GEN: case MICA_V_VIEW: case MICA_V_LOOP:
        return true;
    default:
        return false;
    }
}

bool mica_iter_open(mica_run *run, const mica_val *v, mica_iter *it)
{
    *it = (mica_iter){.source = *v};
    if (v->type == MICA_V_GEN)
        it->inner = v->iter;
    else if (v->type == MICA_V_LOOP)
        return mica_run_fail(run, "iterating over the loop variable is not supported");
    else if (v->type != MICA_V_UNDEFINED && !mica_val_is_iterable(v))
        return mica_run_fail(run, "'%s' object is not iterable", mica_val_type_name(v));
    return true;
}

static bool next_pair(mica_run *run, mica_iter *it, mica_val *item, bool *done)
{
    mica_view view = it->source.type == MICA_V_DICT ? MICA_VIEW_KEYS : (mica_view)it->source.aux;
    const mica_dict *dict = it->source.dict;
    *done = it->pos >= dict->n;
    if (*done)
        return true;
    const mica_pair *p = &dict->pairs[it->pos++];
    if (view == MICA_VIEW_ITEMS)
        return mica_tuple_new(run, (mica_val[]){p->key, p->value}, 2, item);
    *item = view == MICA_VIEW_KEYS ? p->key : p->value;
    return true;
}

static bool next_char(mica_iter *it, mica_val *item, bool *done)
{
    const mica_val *s = &it->source;
    *done = it->pos >= s->len;
    if (*done)
        return true;
    size_t n = 1;
    if (!(s->flags & MICA_VF_ASCII))
        mica_ustr_decode(s->s + it->pos, s->len - it->pos, &n);
    *item = (mica_val){.type = MICA_V_STR, .flags = n == 1 ? MICA_VF_ASCII : 0, .len = (uint32_t)n, .s = s->s + it->pos};
    it->pos += n;
    return true;
}

/* Generators nest by filters written one after the other; the depth of the run bounds them together with the evaluator. */
static bool next_inner(mica_run *run, mica_iter *it, mica_val *item, bool *done)
{
    if (++run->depth > MICA_TMPL_MAX_DEPTH)
        return mica_run_fail(run, "the template is nested too deeply");
    bool ok = true, keep = false;
    *done = false;
    while (ok && !keep && !*done) {
        ok = mica_iter_next(run, it->inner, item, done);
        keep = true;
        if (ok && !*done && it->step)
            ok = it->step(run, it->user, item, &keep);
    }
    run->depth--;
    return ok;
}

bool mica_iter_next(mica_run *run, mica_iter *it, mica_val *item, bool *done)
{
    if (!mica_run_charge(run, 0))
        return false;
    if (it->inner)
        return next_inner(run, it, item, done);
    switch (it->source.type) {
    case MICA_V_LIST: case MICA_V_TUPLE:
        *done = it->pos >= it->source.seq->n;
        if (!*done)
            *item = it->source.seq->items[it->pos++];
        return true;
    case MICA_V_STR:
        return next_char(it, item, done);
    case MICA_V_DICT: case MICA_V_VIEW:
        return next_pair(run, it, item, done);
    case MICA_V_RANGE:
        *done = it->pos >= (size_t)it->source.range->n;
        if (!*done)
            *item = mica_val_int(it->source.range->start + (int64_t)it->pos++ * it->source.range->step);
        return true;
    case MICA_V_UNDEFINED:
        *done = true;
        return true;
    default: /* a lazy iterator over something that cannot be walked: Python too notices only now */
        return mica_run_fail(run, "'%s' object is not iterable", mica_val_type_name(&it->source));
    }
}

static bool new_gen(mica_run *run, mica_iter **it, mica_val *out)
{
    *it = mica_tarena_alloc(&run->arena, sizeof **it);
    if (!*it)
        return mica_run_no_memory(run);
    *out = (mica_val){.type = MICA_V_GEN, .iter = *it};
    return true;
}

bool mica_gen_of_list(mica_run *run, const mica_val *list, mica_val *out)
{
    mica_val source = *list;
    mica_iter *it;
    return new_gen(run, &it, out) && mica_iter_open(run, &source, it);
}

bool mica_gen_lazy(mica_run *run, const mica_val *source, mica_iter_step step, void *user, mica_val *out)
{
    mica_val from = *source;
    mica_iter *it, *inner = mica_tarena_alloc(&run->arena, sizeof *inner);
    if (!inner)
        return mica_run_no_memory(run);
    *inner = (mica_iter){.source = from};
    if ((mica_val_is_iterable(&from) && !mica_iter_open(run, &from, inner)) || !new_gen(run, &it, out))
        return false;
    *it = (mica_iter){.source = MICA_NONE, .inner = inner, .step = step, .user = user};
    return true;
}

bool mica_list_of(mica_run *run, const mica_val *v, mica_val *out)
{
    mica_iter it;
    mica_val list, item;
    bool done;
    if (!mica_iter_open(run, v, &it) || !mica_seq_new(run, MICA_V_LIST, v->type == MICA_V_LIST ? v->seq->n : 0, &list))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            break;
        if (!mica_seq_push(run, &list, &item))
            return false;
    }
    *out = list;
    return true;
}
