/* text_routes.h - /tokenize, /detokenize, /apply-template: JSON in, JSON out. NULL: *fault says why. Called by routes.c. */
#ifndef MICA_SERVE_TEXT_ROUTES_H
#define MICA_SERVE_TEXT_ROUTES_H
#include "serve/fields.h"
#include "serve/request.h"

json_t *mica_text_tokenize(const mica_serve_context *context, const json_t *body, mica_fault *fault);
json_t *mica_text_detokenize(const mica_serve_context *context, const json_t *body, mica_fault *fault);
json_t *mica_text_template(const mica_serve_context *context, const json_t *body, mica_fault *fault);

#endif
