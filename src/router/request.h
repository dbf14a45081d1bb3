/* request.h - requests and states as JSON, beside the public functions: the records have them in the same form. Called by
 * record_read.c and record.c. */
#ifndef MICA_ROUTER_REQUEST_H
#define MICA_ROUTER_REQUEST_H
#include "mica/mica_router.h"
#include "router/fields.h"

/** From a value that is read already; takes a reference of it. `where` begins messages. */
mica_status mica_route_request_from(json_t *root, const char *where, mica_route_request_file **out, mica_error *err);
mica_status mica_route_state_from(json_t *root, const char *where, mica_route_state_file **out, mica_error *err);

/** The words of mica_thermal_status from MICA_THERMAL_NONE on. */
extern const char *const mica_route_thermal_words[];

#endif
