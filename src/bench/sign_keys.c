/* sign_keys.c - key files. A secret key: "Ed", how the password becomes a key ("Sc", scrypt, or two zeros: none), "B2" (the
 * check is BLAKE2b-256), salt, the two limits of scrypt, and then 104 bytes, which are XORed with what scrypt gives: key id,
 * secret key, and the check of "Ed", id and key, by which a wrong password is told. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/map.h"
#include "bench/sign.h"
#include "bench/sign_file.h"

enum { SALT = 32, HIDDEN = 8 + 64 + 32, SECRET = 2 + 2 + 2 + SALT + 8 + 8 + HIDDEN, PUBLIC = 2 + 8 + 32, PUBLIC_TEXT = 56 };
enum { AT_KDF = 2, AT_CHECK_NAME = 4, AT_SALT = 6, AT_OPS = AT_SALT + SALT, AT_MEMORY = AT_OPS + 8, AT_HIDDEN = AT_MEMORY + 8 };
/* Of new keys: 128 MiB, half a second on a small machine. minisign takes 1 GiB, and reads what the file says. */
#define OPS    (UINT64_C(1) << 22)
#define MEMORY (UINT64_C(1) << 27)
#define MOST_MEMORY (UINT64_C(1) << 31) /* a file must not take all of a machine */

static mica_status sodium_is_ready(mica_error *err)
{
    return sodium_init() >= 0 ? MICA_OK : mica_fail(err, MICA_IO_ERROR, "libsodium cannot be used: it has no random numbers");
}

void mica_key_id(const uint8_t id[8], char out[17])
{
    snprintf(out, 17, "%016llX", (unsigned long long)mica_load_le64(id));
}

/* ---- The public key ---- */

mica_status mica_public_key_read(const char *file_or_key, mica_public_key *out, mica_error *err)
{
    mica_sign_lines lines;
    uint8_t bytes[PUBLIC];
    const char *text = file_or_key;
    if (strlen(text) != PUBLIC_TEXT || !mica_sign_decode(text, bytes, PUBLIC)) {
        mica_status status = mica_sign_lines_read(file_or_key, "public key", 2, &lines, err);
        if (status)
            return status;
        text = lines.line[1];
    }
    if (!mica_sign_decode(text, bytes, PUBLIC) || memcmp(bytes, "Ed", 2) != 0)
        return mica_fail(err, MICA_BAD_FILE, "%s is no public key of minisign", mica_path_tail(file_or_key));
    memcpy(out->id, bytes + 2, sizeof out->id);
    memcpy(out->key, bytes + 10, sizeof out->key);
    return MICA_OK;
}

/* ---- The secret key ---- */

static mica_status read_secret(const char *path, uint8_t bytes[SECRET], bool *locked, mica_error *err)
{
    mica_sign_lines lines;
    mica_status status = mica_sign_lines_read(path, "secret key", 2, &lines, err);
    if (status)
        return status;
    bool good = mica_sign_decode(lines.line[1], bytes, SECRET) && memcmp(bytes, "Ed", 2) == 0 &&
                memcmp(bytes + AT_CHECK_NAME, "B2", 2) == 0;
    sodium_memzero(&lines, sizeof lines);
    *locked = good && memcmp(bytes + AT_KDF, "Sc", 2) == 0;
    if (good && (*locked || memcmp(bytes + AT_KDF, "\0\0", 2) == 0))
        return MICA_OK;
    return mica_fail(err, MICA_BAD_FILE, "%s is no secret key of minisign", mica_path_tail(path));
}

mica_status mica_secret_key_locked(const char *path, bool *locked, mica_error *err)
{
    uint8_t bytes[SECRET];
    mica_status status = read_secret(path, bytes, locked, err);
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

/* Locks, or unlocks. */
static mica_status turn(uint8_t bytes[SECRET], const char *password, mica_error *err)
{
    uint8_t stream[HIDDEN];
    uint64_t ops = mica_load_le64(bytes + AT_OPS), memory = mica_load_le64(bytes + AT_MEMORY);
    if (memory > MOST_MEMORY)
        return mica_fail(err, MICA_UNSUPPORTED, "the secret key asks for %llu MiB of memory; at most %llu are given",
                         (unsigned long long)(memory >> 20), (unsigned long long)(MOST_MEMORY >> 20));
    if (crypto_pwhash_scryptsalsa208sha256(stream, sizeof stream, password, strlen(password), bytes + AT_SALT, ops,
                                           (size_t)memory) != 0)
        return mica_fail_nomem(err, (size_t)memory, "a password");
    for (size_t i = 0; i < HIDDEN; i++)
        bytes[AT_HIDDEN + i] ^= stream[i];
    sodium_memzero(stream, sizeof stream);
    return MICA_OK;
}

static void check_of(const uint8_t bytes[SECRET], uint8_t out[32])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, 32);
    crypto_generichash_update(&state, bytes, 2);
    crypto_generichash_update(&state, bytes + AT_HIDDEN, 8 + 64);
    crypto_generichash_final(&state, out, 32);
}

/* minisign leaves the check of keys without a password empty; there the two halves of the key must belong together. */
static bool is_whole(const uint8_t bytes[SECRET], bool locked)
{
    uint8_t check[32], key[64], public_key[32];
    const uint8_t *hidden = bytes + AT_HIDDEN;
    check_of(bytes, check);
    if (sodium_memcmp(check, hidden + 72, 32) == 0)
        return true;
    if (locked || !sodium_is_zero(hidden + 72, 32))
        return false;
    crypto_sign_seed_keypair(public_key, key, hidden + 8);
    bool same = sodium_memcmp(key, hidden + 8, 64) == 0;
    sodium_memzero(key, sizeof key);
    return same;
}

mica_status mica_secret_key_read(const char *path, const char *password, mica_secret_key *out, mica_error *err)
{
    uint8_t bytes[SECRET];
    bool locked;
    mica_status status = sodium_is_ready(err);
    if (!status)
        status = read_secret(path, bytes, &locked, err);
    if (status)
        return status;
    if (locked && !password)
        status = mica_fail(err, MICA_INVALID_ARGUMENT, "the secret key %s needs its password", mica_path_tail(path));
    if (!status && locked)
        status = turn(bytes, password, err);
    if (!status && !is_whole(bytes, locked))
        status = mica_fail(err, MICA_INVALID_ARGUMENT,
                           locked ? "the password is not that of the secret key %s" : "the secret key %s is damaged",
                           mica_path_tail(path));
    if (!status) {
        memcpy(out->id, bytes + AT_HIDDEN, sizeof out->id);
        memcpy(out->key, bytes + AT_HIDDEN + 8, sizeof out->key);
    }
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

void mica_secret_key_wipe(mica_secret_key *key)
{
    sodium_memzero(key, sizeof *key);
}

/* ---- A new pair ---- */

static mica_status write_secret(const char *path, const mica_secret_key *key, const char *password, mica_error *err)
{
    char text[600] = "untrusted comment: mica encrypted secret key\n";
    uint8_t bytes[SECRET] = "Ed";
    mica_status status = MICA_OK;
    memcpy(bytes + AT_CHECK_NAME, "B2", 2);
    memcpy(bytes + AT_HIDDEN, key->id, 8);
    memcpy(bytes + AT_HIDDEN + 8, key->key, 64);
    check_of(bytes, bytes + AT_HIDDEN + 72);
    if (password) {
        memcpy(bytes + AT_KDF, "Sc", 2);
        randombytes_buf(bytes + AT_SALT, SALT);
        mica_store_le64(bytes + AT_OPS, OPS);
        mica_store_le64(bytes + AT_MEMORY, MEMORY);
        status = turn(bytes, password, err);
    } else {
        snprintf(text, sizeof text, "untrusted comment: mica secret key without a password\n");
    }
    mica_sign_encode(bytes, SECRET, text, sizeof text);
    if (!status)
        status = mica_sign_write(path, text, true, true, err);
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(text, sizeof text);
    return status;
}

static mica_status write_public(const char *path, const uint8_t id[8], const uint8_t key[32], mica_error *err)
{
    char text[200], name[17];
    uint8_t bytes[PUBLIC] = "Ed";
    mica_key_id(id, name);
    snprintf(text, sizeof text, "untrusted comment: minisign public key %s\n", name);
    memcpy(bytes + 2, id, 8);
    memcpy(bytes + 10, key, 32);
    mica_sign_encode(bytes, PUBLIC, text, sizeof text);
    return mica_sign_write(path, text, false, true, err);
}

mica_status mica_keys_make(const char *secret_path, const char *public_path, const char *password, char id[17],
                           mica_error *err)
{
    mica_secret_key key;
    uint8_t public_key[32];
    mica_status status = sodium_is_ready(err);
    if (status)
        return status;
    if (access(public_path, F_OK) == 0 || access(secret_path, F_OK) == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%s is there already: a key is not replaced",
                         mica_path_tail(access(public_path, F_OK) == 0 ? public_path : secret_path));
    randombytes_buf(key.id, sizeof key.id);
    crypto_sign_keypair(public_key, key.key);
    status = write_secret(secret_path, &key, password, err);
    if (!status)
        status = write_public(public_path, key.id, public_key, err);
    if (status) { /* there are both, or none */
        unlink(secret_path);
        unlink(public_path);
    }
    mica_key_id(key.id, id);
    mica_secret_key_wipe(&key);
    return status;
}
