/* tmpl_iter.h - walking over values: one interface for lists, strings, dicts, ranges, and the lazy results of map, select. */
#ifndef MICA_TEXT_TMPL_ITER_H
#define MICA_TEXT_TMPL_ITER_H
#include "text/tmpl_value.h"

struct mica_iter;
/* Of a lazy iterator: turns *item (of the source) into a result, or clears *keep. */
typedef bool (*mica_iter_step)(mica_run *run, void *user, mica_val *item, bool *keep);

typedef struct mica_iter {
    mica_val source;         /* what is walked; NONE: nothing */
    size_t pos;              /* items, bytes of a string, or pairs that were passed */
    struct mica_iter *inner; /* of a lazy iterator, and of the walk over a generator */
    mica_iter_step step;
    void *user;
} mica_iter;

/** Starts a walk over `v`; fails if it cannot be iterated. A generator is consumed by it. */
bool mica_iter_open(mica_run *run, const mica_val *v, mica_iter *it);
/** The next item, or *done. */
bool mica_iter_next(mica_run *run, mica_iter *it, mica_val *item, bool *done);
bool mica_val_is_iterable(const mica_val *v);

/** Makes a generator over a list that was built already, and one that is lazy over `source`. */
bool mica_gen_of_list(mica_run *run, const mica_val *list, mica_val *out);
bool mica_gen_lazy(mica_run *run, const mica_val *source, mica_iter_step step, void *user, mica_val *out);
/** list(v): always a new list. */
bool mica_list_of(mica_run *run, const mica_val *v, mica_val *out);

#endif
