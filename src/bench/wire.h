/* wire.h - the adapter protocol as JSON: requests to lines, events to structs. Nothing here waits or writes; every member is
 * checked. docs/adapter-protocol.md is the text that this follows. Called by adapter_proc.c. */
#ifndef MICA_BENCH_WIRE_H
#define MICA_BENCH_WIRE_H
#include "bench/adapter.h"

/** Requests. Each is the caller's: json_decref(); NULL without memory. */
json_t *mica_wire_hello(int64_t id);
json_t *mica_wire_load(int64_t id, const mica_adapter_load_request *request);
json_t *mica_wire_generate(int64_t id, const mica_adapter_request *request);
json_t *mica_wire_plain(int64_t id, const char *op);

/** Events. On a failure `what` says which member is wrong, in a few words. */
bool mica_wire_read_hello(const json_t *event, mica_adapter_hello *out, char what[80]);
bool mica_wire_read_loaded(const json_t *event, mica_adapter_loaded *out, char what[80]);
bool mica_wire_read_partition(const json_t *event, mica_adapter_partition *out, char what[80]);
/** first_token and token. */
bool mica_wire_read_token(const json_t *event, int32_t *token, int64_t *t_ns, char what[80]);
bool mica_wire_read_done(const json_t *event, mica_adapter_reply *reply, char what[80]);
bool mica_wire_read_time(const json_t *event, int64_t *t_ns, char what[80]);

#endif
