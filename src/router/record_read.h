/* record_read.h - a line of the log, read back. Nothing in it is trusted. Called by replay.c and explain.c. */
#ifndef MICA_ROUTER_RECORD_READ_H
#define MICA_ROUTER_RECORD_READ_H
#include "router/decide.h"
#include "router/request.h"

typedef struct mica_record {
    json_t *root;
    const char *id, *policy_hash; /* "" */
    mica_route_request_file *request;
    mica_route_state_file *state;
    mica_known_class known;
    char chosen[MICA_ROUTE_NAME_MAX]; /* first of the order; "" none */
    const json_t *decision;           /* borrowed */
} mica_record;

/** Takes a reference of `root`, an object whose "record" is "route". On an error nothing is to be freed. */
mica_status mica_record_read(json_t *root, mica_record *out, mica_error *err);
void mica_record_free(mica_record *record);

/** From the object "outcome"; what is absent or no number is unknown. False: it is no outcome. */
bool mica_record_outcome(const json_t *object, mica_route_outcome *out);

/** A number's value; NAN where it is none. */
double mica_record_real(const json_t *object, const char *key);
/** A text, "" where it is none. */
const char *mica_record_text(const json_t *object, const char *key);

#endif
