/* fields.h - typed access to the fields of a JSON request. A field that is absent or null leaves *out as it is; one of the
 * wrong type or out of range is a fault that names it. Called by the api_*.c. */
#ifndef MICA_SERVE_FIELDS_H
#define MICA_SERVE_FIELDS_H
#include <jansson.h>
#include <stdint.h>

#include "serve/fault.h"

/** The body of a request: one JSON object, of limited depth, without duplicate keys. NULL: *fault says why. Release with
 * json_decref(). */
json_t *mica_fields_parse(const char *body, size_t length, mica_fault *fault);

/** The member, or NULL if it is absent or null. */
json_t *mica_field(const json_t *object, const char *name);
bool mica_field_bool(const json_t *object, const char *name, bool *out, mica_fault *fault);
bool mica_field_int(const json_t *object, const char *name, int64_t low, int64_t high, int64_t *out, mica_fault *fault);
bool mica_field_int32(const json_t *object, const char *name, int32_t low, int32_t high, int32_t *out, mica_fault *fault);
/** A whole number is a real one, too. */
bool mica_field_real(const json_t *object, const char *name, double low, double high, float *out, mica_fault *fault);
/** Borrowed from the object. */
bool mica_field_text(const json_t *object, const char *name, const char **out, mica_fault *fault);

#endif
