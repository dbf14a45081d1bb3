/* json_file.h - JSON that people write: a protocol, a campaign's manifest, limits. One object, no member twice. The first fault
 * is told with its line. Called by protocol.c, campaign_manifest.c, slo.c. */
#ifndef MICA_BENCH_JSON_FILE_H
#define MICA_BENCH_JSON_FILE_H
#include <jansson.h>

#include "base/error.h"

/** `what` begins the messages: "the protocol". *object is yours: json_decref(). MICA_BAD_TEXT: it is no JSON object. */
mica_status mica_json_read(const char *what, const char *text, size_t length, json_t **object, mica_error *err);

/** The same of a file of at most 1 MiB. */
mica_status mica_json_open(const char *what, const char *path, json_t **object, mica_error *err);

/** Appends a text to a list, made by printf's rules; what is longer than 399 bytes is cut. */
void mica_json_say(json_t *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
