/* fault.h - what went wrong with a request, in the form that OpenAI's clients know: a status and {"error": {"message", "type",
 * "param", "code"}}. Called by all of serve. */
#ifndef MICA_SERVE_FAULT_H
#define MICA_SERVE_FAULT_H
#include <stdbool.h>

#include "base/error.h"

typedef struct mica_fault {
    int status;              /* HTTP */
    const char *type, *code; /* static; code may be NULL */
    char param[96];          /* "": none */
    char message[600];
} mica_fault;

/** 400 invalid_request_error about the field `param` (may be NULL). Returns false, for callers to return. */
bool mica_fault_bad(mica_fault *f, const char *param, const char *format, ...) __attribute__((format(printf, 3, 4)));
/** The same with another status and a code. */
bool mica_fault_set(mica_fault *f, int status, const char *code, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/** From the engine: what the caller can mend is a 400 about `param`, the rest a 500. */
bool mica_fault_engine(mica_fault *f, const mica_error *err, const char *param);

/** {"error": {...}}, compact. Always valid UTF-8, below 4 KiB. malloc'ed; NULL without memory. */
char *mica_fault_json(const mica_fault *f);

/** "Bad Request" */
const char *mica_http_reason(int status);

#endif
