/* receipts.h - what is kept of replies: the receipts that requests ask for and the conditions they set ("x_mica"), events for
 * the telemetry, and the machine's figures in /metrics. A choice has a receipt of its own; it is made on the preparing thread,
 * where hashing a model's file for the first time holds up nobody's reply. Called by request.c, choice.c, schedule.c and
 * routes.c. */
#ifndef MICA_SERVE_RECEIPTS_H
#define MICA_SERVE_RECEIPTS_H
#include "base/buf.h"
#include "serve/request.h"

/** "x_mica": {"receipt": true, "require": ["no_drop", ...]} */
bool mica_receipts_read(mica_request *r, mica_fault *fault);

/** A request that goes to a router's rungs asks for what only the model that is served can give: then the job has failed. */
bool mica_receipts_refuse(mica_job *job);

/** Once the choices are there; nothing where nobody wants any. */
bool mica_receipts_make(mica_request *r, mica_fault *fault);

/** Adds "receipt" (of more choices: "receipts") to the object of timings, if it was asked for. */
void mica_receipts_add(const mica_request *r, json_t *timings);

/** A reply has ended: its event. */
void mica_receipts_tell(const mica_choice *c, mica_status status);

/** The lines of /metrics about sinks and machine; `device` NULL: nothing of the machine. */
void mica_receipts_metrics(const mica_serve_context *context, mica_device *device, mica_buf *out);

#endif
