#include "serve/fault.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "serve/limits.h"

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 429:
        return "rate_limit_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

static bool set(mica_fault *f, int status, const char *code, const char *param, const char *format, va_list args)
{
    *f = (mica_fault){.status = status, .type = type_of(status), .code = code};
    snprintf(f->param, sizeof f->param, "%s", param ? param : "");
    vsnprintf(f->message, sizeof f->message, format, args);
    return false;
}

bool mica_fault_bad(mica_fault *f, const char *param, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(f, 400, NULL, param, format, args);
    va_end(args);
    return false;
}

bool mica_fault_set(mica_fault *f, int status, const char *code, const char *param, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(f, status, code, param, format, args);
    va_end(args);
    return false;
}

bool mica_fault_engine(mica_fault *f, const mica_error *err, const char *param)
{
    switch (err->code) {
    case MICA_INVALID_ARGUMENT:
    case MICA_UNSUPPORTED:
    case MICA_BAD_TEMPLATE:
    case MICA_BAD_TEXT:
        return mica_fault_bad(f, param, "%s", err->message);
    case MICA_REFUSED:
        return mica_fault_set(f, 412, "requirement_not_met", "x_mica.require", "%s", err->message);
    case MICA_CONTEXT_FULL:
        return mica_fault_set(f, 400, "context_length_exceeded", param, "%s", err->message);
    case MICA_TOO_HOT:
        return mica_fault_set(f, 503, "device_too_hot", param, "%s", err->message);
    default:
        return mica_fault_set(f, 500, "engine_error", NULL, "%s", err->message);
    }
}

/* Replaces what is not UTF-8, or was cut in the middle of a character, by '?'. */
static json_t *clean_text(const char *text)
{
    char copy[600];
    size_t n = strlen(text), at = 0;
    while (at < n) {
        unsigned char c = (unsigned char)text[at];
        size_t length = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 0;
        json_t *whole = length && at + length <= n ? json_stringn(text + at, length) : NULL;
        if (whole)
            memcpy(copy + at, text + at, length);
        else
            copy[at] = '?';
        json_decref(whole);
        at += whole ? length : 1;
    }
    return json_stringn(copy, n);
}

char *mica_fault_json(const mica_fault *f)
{
    json_t *param = *f->param ? clean_text(f->param) : json_null();
    json_t *error = json_pack("{s:{s:o, s:s, s:o, s:s?}}", "error", "message", clean_text(f->message), "type", f->type, "param",
                              param, "code", f->code);
    char *text = error ? mica_json_dumps(error, MICA_JSON_FLAGS) : NULL;
    json_decref(error);
    return text;
}

const char *mica_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}
