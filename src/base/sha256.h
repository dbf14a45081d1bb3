/* sha256.h - SHA-256 (FIPS 180-4): names a model's file, tokenizer and template in receipts. In portable C, as fast as a disk
 * that a file is read from for the first time. Called by session/identity. */
#ifndef MICA_BASE_SHA256_H
#define MICA_BASE_SHA256_H
#include <stddef.h>
#include <stdint.h>

#define MICA_SHA256_TEXT 65 /* 64 hexadecimal digits in lower case, and the end */

typedef struct mica_sha256 {
    uint32_t state[8];
    uint64_t bytes;     /* so far */
    uint8_t block[64];  /* its first bytes % 64 are not processed yet */
} mica_sha256;

void mica_sha256_start(mica_sha256 *h);
void mica_sha256_add(mica_sha256 *h, const void *data, size_t length);
/** Ends it. */
void mica_sha256_text(mica_sha256 *h, char out[MICA_SHA256_TEXT]);

#endif
