/* no_constraints.c - in place of src/constraint/ and constraint.c, in a build with MICA_CONSTRAINTS=OFF: no constraint can be made, and
 * the error says so. What a reply does without one, healing tokens among it, is in guide.c and needs none of this: of the inner functions
 * only those that free something, or tell how much memory there would be, are ever called. The tests' full build has nothing of this file. */
#if defined(MICA_NO_CONSTRAINTS)
#include "session/constraint.h"

static mica_status refuse(mica_error *err)
{
    return mica_fail(err, MICA_UNSUPPORTED, "this build has no constraints: it was made with MICA_CONSTRAINTS=OFF");
}

/* ---- mica.h ---- */

mica_constraint_options mica_constraint_options_default(void)
{
    return (mica_constraint_options){.struct_size = sizeof(mica_constraint_options)};
}

mica_status mica_constraint_new(mica_model *model, const mica_constraint_options *options, mica_constraint **out, mica_error *err)
{
    (void)model, (void)options;
    *out = NULL;
    return refuse(err);
}

void mica_constraint_free(mica_constraint *c) { (void)c; }

mica_status mica_constraint_match(const mica_constraint *c, const char *text, size_t length, bool *matches, size_t *valid_prefix,
                                  mica_error *err)
{
    (void)c, (void)text, (void)length;
    *matches = false;
    if (valid_prefix)
        *valid_prefix = 0;
    return refuse(err);
}

/* ---- what engine.c and plan.c ask: there is nothing to free, and nothing to keep ---- */

void mica_token_trie_free(mica_token_trie *t) { (void)t; }

size_t mica_masks_most_bytes(int32_t n_vocab) { return (void)n_vocab, 0; }

/* ---- what guide.c and guide_run.c do with a constraint ---- */

mica_status mica_matcher_new(const mica_automaton *a, mica_matcher **out, mica_error *err)
{
    (void)a;
    *out = NULL;
    return refuse(err);
}

void mica_matcher_free(mica_matcher *m) { (void)m; }

mica_status mica_matcher_copy(mica_matcher *to, const mica_matcher *from, mica_error *err)
{
    (void)to, (void)from;
    return refuse(err);
}

mica_status mica_matcher_push(mica_matcher *m, const void *bytes, size_t n, size_t *taken, mica_error *err)
{
    (void)m, (void)bytes, (void)n;
    if (taken)
        *taken = 0;
    return refuse(err);
}

bool mica_matcher_may_end(const mica_matcher *m) { return (void)m, false; }

bool mica_matcher_must_end(const mica_matcher *m) { return (void)m, false; }

size_t mica_matcher_forced(mica_matcher *m, char *out, size_t capacity) { return (void)m, (void)out, (void)capacity, 0; }

size_t mica_matcher_shortest_end(mica_matcher *m, char *out, size_t capacity) { return (void)m, (void)out, (void)capacity, 0; }

mica_status mica_masks_fill(mica_masks *k, mica_matcher *m, uint32_t *mask, int32_t *n_allowed, mica_error *err)
{
    (void)k, (void)m, (void)mask, (void)n_allowed;
    return refuse(err);
}
#endif
