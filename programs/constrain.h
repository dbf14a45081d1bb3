/* constrain.h - from options to the constraint of a reply: --schema, --any-json, --grammar, --regex, --choice. Each
 * function returns an exit code and has printed one line when that is not CODE_OK. Called by reply.c and cmd_grammar.c. */
#ifndef MICA_PROGRAMS_CONSTRAIN_H
#define MICA_PROGRAMS_CONSTRAIN_H
#include "load.h"

/** Whether the options ask for a constraint. */
bool mica_constrain_asked(const mica_opts *o);

/** Refuses options that do not go together. */
int mica_constrain_check(const mica_opts *o);

/** Compiles the constraint for a model (NULL: only for matching); *out is NULL if none is asked for. CODE_USAGE if it does
 * not compile. */
int mica_constrain_load(const mica_opts *o, mica_model *model, mica_constraint **out);

#endif
