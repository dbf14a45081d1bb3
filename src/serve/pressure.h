/* pressure.h - what the server does when the machine runs short of memory: once a second the HTTP thread looks at the machine,
 * and the scheduler's thread gives memory back, step by step (mica_memory.h): cached prefixes, which go to the prefix file
 * first, where there is one; the session beside the slots; then new requests are refused. Called by http.c and connection.c. */
#ifndef MICA_SERVE_PRESSURE_H
#define MICA_SERVE_PRESSURE_H
#include "mica/mica_device.h"
#include "serve/fault.h"

typedef struct mica_pressure_watch mica_pressure_watch;
struct mica_server;

/** Begins to look. The scheduler exists. */
mica_status mica_pressure_watch_new(struct mica_server *s, mica_pressure_watch **out, mica_error *err);
/** After the scheduler's thread has ended. NULL is fine. */
void mica_pressure_watch_free(mica_pressure_watch *w);

/** After the scheduler's thread has ended: the prefix file has what was cached, and the memory has not. NULL is fine. */
bool mica_pressure_has_saved(const mica_pressure_watch *w);

/** On the HTTP thread: whether new requests are refused now; then *fault says so (503). */
bool mica_pressure_refuses(const mica_pressure_watch *w, mica_fault *fault);

/** The monitor that it looks with; for the HTTP thread. NULL is fine, and then the answer. */
mica_device *mica_pressure_device(const mica_pressure_watch *w);

#endif
