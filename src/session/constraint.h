/* constraint.h - the inside of a mica_constraint: an automaton and its masks over the model's vocabulary. Immutable but for the
 * cache of the masks, which has a lock of its own. Read by guide.c. */
#ifndef MICA_SESSION_CONSTRAINT_H
#define MICA_SESSION_CONSTRAINT_H
#include "constraint/mask.h"

struct mica_constraint {
    mica_model *model; /* a reference; NULL: only for mica_constraint_match() */
    mica_automaton *automaton;
    mica_masks *masks; /* NULL without a model */
};

/** A constraint of a finished grammar, which is freed in every case. Otherwise as mica_constraint_new(). */
mica_status mica_constraint_from_grammar(mica_model *model, mica_grammar *g, mica_constraint **out, mica_error *err);

#endif
