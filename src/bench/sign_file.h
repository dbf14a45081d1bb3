/* sign_file.h - minisign's files: lines of comments and of base64. Called by sign.c and sign_keys.c. */
#ifndef MICA_BENCH_SIGN_FILE_H
#define MICA_BENCH_SIGN_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { MICA_SIGN_LINES = 4, MICA_SIGN_FILE = 16 << 10 };

/** A small text file as its lines; they lie in `text`. */
typedef struct mica_sign_lines {
    char text[MICA_SIGN_FILE + 1];
    char *line[MICA_SIGN_LINES];
    size_t n;
} mica_sign_lines;

/** `what` names the file in messages: "signature". MICA_BAD_FILE: too large, or fewer than `wanted` lines. */
mica_status mica_sign_lines_read(const char *path, const char *what, size_t wanted, mica_sign_lines *out, mica_error *err);
/** Base64 of exactly n bytes. */
bool mica_sign_decode(const char *text, uint8_t *out, size_t n);
/** Adds a line of base64 to `text`, which has room for it. */
void mica_sign_encode(const uint8_t *bytes, size_t n, char *text, size_t size);
/** In one step. secret: for its owner only. fresh: refuses to replace a file. */
mica_status mica_sign_write(const char *path, const char *text, bool secret, bool fresh, mica_error *err);

#endif
