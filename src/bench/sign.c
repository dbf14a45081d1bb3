#include "bench/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "bench/sign_file.h"

enum { SIGNATURE = 2 + 8 + 64, HASH = 64, PIECE = 1 << 16 };
static const char trusted[] = "trusted comment: ";

/* What is signed: the hash of the file, or its bytes. */
typedef struct message {
    uint8_t hash[HASH];
    mica_map map;
    const uint8_t *data;
    size_t length;
} message;

static mica_status hash_file(const char *path, uint8_t out[HASH], mica_error *err)
{
    crypto_generichash_state state;
    uint8_t *piece = malloc(PIECE);
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (!piece || fd < 0) {
        free(piece);
        return piece ? mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path), strerror(errno))
                     : mica_fail_nomem(err, PIECE, "a file");
    }
    crypto_generichash_init(&state, NULL, 0, HASH);
    while (n != 0 && (n > 0 || errno == EINTR)) {
        n = read(fd, piece, PIECE);
        if (n > 0)
            crypto_generichash_update(&state, piece, (unsigned long long)n);
    }
    mica_status status =
        n == 0 ? MICA_OK : mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path), strerror(errno));
    crypto_generichash_final(&state, out, HASH);
    close(fd);
    free(piece);
    return status;
}

static mica_status message_open(const char *path, bool legacy, message *m, mica_error *err)
{
    *m = (message){.data = m->hash, .length = HASH};
    if (!legacy)
        return hash_file(path, m->hash, err);
    mica_status status = mica_map_open(path, &m->map, err);
    m->data = m->map.data;
    m->length = m->map.length;
    return status;
}

mica_status mica_signature_path(const char *path, char out[MICA_SIGN_PATH], mica_error *err)
{
    return snprintf(out, MICA_SIGN_PATH, "%s.minisig", path) < MICA_SIGN_PATH
               ? MICA_OK
               : mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the file to sign is too long");
}

/* ---- Sign ---- */

static mica_status make_comment(const char *given, const char *path, bool legacy, char out[MICA_SIGN_COMMENT], mica_error *err)
{
    const char *slash = strrchr(path, '/');
    int n = given ? snprintf(out, MICA_SIGN_COMMENT, "%s", given)
                  : snprintf(out, MICA_SIGN_COMMENT, "timestamp:%lld\tfile:%s%s", (long long)time(NULL),
                             slash ? slash + 1 : path, legacy ? "" : "\thashed");
    if (n < 0 || n >= MICA_SIGN_COMMENT)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the trusted comment is longer than %d bytes", MICA_SIGN_COMMENT - 1);
    for (const char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' && *c != '\t')
            return mica_fail(err, MICA_INVALID_ARGUMENT, "the trusted comment must be one line");
    return MICA_OK;
}

/* The second signature: of the first one and the comment. */
static size_t global_message(const uint8_t signature[64], const char *comment, uint8_t out[64 + MICA_SIGN_COMMENT])
{
    size_t n = strlen(comment);
    memcpy(out, signature, 64);
    memcpy(out + 64, comment, n);
    return 64 + n;
}

mica_status mica_file_sign(const char *path, const char *signature_path, const mica_secret_key *key, const char *comment,
                           bool legacy, mica_error *err)
{
    char line[MICA_SIGN_COMMENT], text[MICA_SIGN_COMMENT + 600] = "untrusted comment: signature from mica secret key\n";
    uint8_t bytes[SIGNATURE], global[64], both[64 + MICA_SIGN_COMMENT];
    message m;
    mica_status status = make_comment(comment, path, legacy, line, err);
    if (!status)
        status = message_open(path, legacy, &m, err);
    if (status)
        return status;
    memcpy(bytes, legacy ? "Ed" : "ED", 2);
    memcpy(bytes + 2, key->id, 8);
    crypto_sign_detached(bytes + 10, NULL, m.data, m.length, key->key);
    mica_map_close(&m.map);
    size_t n = global_message(bytes + 10, line, both);
    crypto_sign_detached(global, NULL, both, n, key->key);
    mica_sign_encode(bytes, sizeof bytes, text, sizeof text);
    n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s\n", trusted, line);
    mica_sign_encode(global, sizeof global, text, sizeof text);
    return mica_sign_write(signature_path, text, false, false, err);
}

/* ---- Check ---- */

static mica_status read_signature(const char *path, mica_sign_lines *lines, uint8_t bytes[SIGNATURE], uint8_t global[64],
                                  char comment[MICA_SIGN_COMMENT], mica_error *err)
{
    size_t skip = strlen(trusted);
    mica_status status = mica_sign_lines_read(path, "signature", MICA_SIGN_LINES, lines, err);
    if (status)
        return status;
    if (!mica_sign_decode(lines->line[1], bytes, SIGNATURE) || strncmp(lines->line[2], trusted, skip) != 0 ||
        strlen(lines->line[2]) - skip >= MICA_SIGN_COMMENT || !mica_sign_decode(lines->line[3], global, 64) ||
        (memcmp(bytes, "Ed", 2) != 0 && memcmp(bytes, "ED", 2) != 0))
        return mica_fail(err, MICA_BAD_FILE, "%s is no signature of minisign", mica_path_tail(path));
    snprintf(comment, MICA_SIGN_COMMENT, "%s", lines->line[2] + skip);
    return MICA_OK;
}

mica_status mica_file_check(const char *path, const char *signature_path, const mica_public_key *key,
                            char comment[MICA_SIGN_COMMENT], mica_error *err)
{
    mica_sign_lines lines;
    uint8_t bytes[SIGNATURE], global[64], both[64 + MICA_SIGN_COMMENT];
    char theirs[17], ours[17];
    message m;
    mica_status status = read_signature(signature_path, &lines, bytes, global, comment, err);
    if (status)
        return status;
    mica_key_id(bytes + 2, theirs);
    mica_key_id(key->id, ours);
    if (strcmp(theirs, ours) != 0)
        return mica_fail(err, MICA_BAD_FILE, "%s was made with the key %s, not with %s", mica_path_tail(signature_path),
                         theirs, ours);
    status = message_open(path, bytes[1] == 'd', &m, err);
    if (status)
        return status;
    bool good = crypto_sign_verify_detached(bytes + 10, m.data, m.length, key->key) == 0;
    mica_map_close(&m.map);
    if (!good)
        return mica_fail(err, MICA_BAD_FILE, "the signature is not that of %s: the file or the signature was changed",
                         mica_path_tail(path));
    size_t n = global_message(bytes + 10, comment, both);
    if (crypto_sign_verify_detached(global, both, n, key->key) != 0)
        return mica_fail(err, MICA_BAD_FILE, "the trusted comment of %s was changed", mica_path_tail(signature_path));
    return MICA_OK;
}
