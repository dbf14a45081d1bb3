/* sign.h - signatures of files that minisign checks, and the other way round: Ed25519 through libsodium, key and signature
 * files in minisign's formats (its manual, "Key and signature format"). Nothing in a file is trusted; secrets are
 * wiped from memory.
 *
 *     untrusted comment: <anything>
 *     base64("Ed" or "ED", key id (8), signature (64))      "ED": of the BLAKE2b-512 hash of the file; "Ed": of the file
 *     trusted comment: <text>
 *     base64(signature of the signature and the text)
 *
 * Called by programs. */
#ifndef MICA_BENCH_SIGN_H
#define MICA_BENCH_SIGN_H
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { MICA_SIGN_COMMENT = 1024, MICA_SIGN_PATH = 4200 };

typedef struct mica_public_key {
    uint8_t id[8], key[32];
} mica_public_key;

typedef struct mica_secret_key {
    uint8_t id[8], key[64];
} mica_secret_key;

/** The key's id as people see it: 16 hexadecimal digits. */
void mica_key_id(const uint8_t id[8], char out[17]);

/** Makes a pair and writes both files; neither may be there. password NULL: the secret key is stored as it is. */
mica_status mica_keys_make(const char *secret_path, const char *public_path, const char *password, char id[17],
                           mica_error *err);

/** A file, or the 56 characters of its second line themselves. */
mica_status mica_public_key_read(const char *file_or_key, mica_public_key *out, mica_error *err);

/** Whether the secret key in that file needs a password. */
mica_status mica_secret_key_locked(const char *path, bool *locked, mica_error *err);
/** MICA_INVALID_ARGUMENT: the password is wrong, or one is needed. Wipe it with mica_secret_key_wipe(). */
mica_status mica_secret_key_read(const char *path, const char *password, mica_secret_key *out, mica_error *err);
void mica_secret_key_wipe(mica_secret_key *key);

/** The signature's path where none is given: PATH.minisig. MICA_INVALID_ARGUMENT: it is too long. */
mica_status mica_signature_path(const char *path, char out[MICA_SIGN_PATH], mica_error *err);

/** Signs the file at `path`. comment NULL: the time and the file's name. legacy: the file itself, not its hash. */
mica_status mica_file_sign(const char *path, const char *signature_path, const mica_secret_key *key, const char *comment,
                           bool legacy, mica_error *err);
/** MICA_BAD_FILE: not what the key signed, or no signature at all. */
mica_status mica_file_check(const char *path, const char *signature_path, const mica_public_key *key,
                            char comment[MICA_SIGN_COMMENT], mica_error *err);

#endif
