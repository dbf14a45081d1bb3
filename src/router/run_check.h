/* run_check.h - whether a remote reply is what the request's schema allows. Local replies are by construction. Called by
 * run_attempt.c. */
#ifndef MICA_ROUTER_RUN_CHECK_H
#define MICA_ROUTER_RUN_CHECK_H
#include "router/run_body.h"
#include "router/run_try.h"

/** The constraint of the body's schema, without a model; *out NULL where it has none. */
mica_status mica_check_new(const mica_run_body *body, mica_constraint **out, mica_error *err);

/** False: the attempt has failed. Blanks and the order of members do not count. `schema` NULL: any object. */
bool mica_check_reply(const mica_constraint *check, const json_t *schema, const char *text, size_t length, mica_try *t);

#endif
