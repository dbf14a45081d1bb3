#include "session/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/newfile.h"
#include "device/sysfile.h"

#define PIECE ((uint64_t)1 << 20)         /* of a file, after which its pages are let go: hashing must not look like use */
#define CACHE_BYTES ((size_t)64 << 10)    /* some hundred models */
#define LINE_HEAD (MICA_SHA256_TEXT + 48) /* hash, size and time */

/* ---- Hashes ---- */

static void hash_files(const mica_gguf *g, char out[MICA_SHA256_TEXT])
{
    mica_sha256 hash;
    mica_sha256_start(&hash);
    for (size_t i = 0; i < mica_gguf_file_count(g); i++) {
        mica_gguf_file f = mica_gguf_file_at(g, i);
        for (uint64_t at = 0; at < f.length; at += PIECE) {
            size_t n = (size_t)(f.length - at < PIECE ? f.length - at : PIECE);
            mica_sha256_add(&hash, f.data + at, n);
            if (f.modified_ns) /* a mapped file */
                mica_map_forget(f.data + at, n);
        }
    }
    mica_sha256_text(&hash, out);
}

/* An entry in the file begins with the 8 bytes of its key's length. */
static void hash_tokenizer(const mica_gguf *g, char out[MICA_SHA256_TEXT])
{
    static const char prefix[] = "tokenizer.", template[] = "tokenizer.chat_template";
    mica_sha256 hash;
    mica_sha256_start(&hash);
    for (size_t i = 0; i < mica_gguf_value_count(g); i++) {
        const mica_gguf_value *v = mica_gguf_value_at(g, i);
        bool ours = v->key.length >= sizeof prefix - 1 && memcmp(v->key.data, prefix, sizeof prefix - 1) == 0;
        bool is_template = v->key.length >= sizeof template - 1 && memcmp(v->key.data, template, sizeof template - 1) == 0;
        const uint8_t *from = (const uint8_t *)v->key.data - 8;
        if (ours && !is_template)
            mica_sha256_add(&hash, from, (size_t)(v->data + mica_gguf_value_bytes(v) - from));
    }
    mica_sha256_text(&hash, out);
}

static void hash_text(const char *text, char out[MICA_SHA256_TEXT])
{
    mica_sha256 hash;
    mica_sha256_start(&hash);
    mica_sha256_add(&hash, text, strlen(text));
    mica_sha256_text(&hash, out);
}

/* ---- The file of hashes: a line "HASH BYTES TIME PATH" for each model, the last one first ---- */

/* What identifies the model's files without reading them; false: they have no path. */
static bool cache_key(const mica_gguf *g, char *hash, size_t size, char **path)
{
    int64_t newest = 0;
    for (size_t i = 0; i < mica_gguf_file_count(g); i++) {
        int64_t time = mica_gguf_file_at(g, i).modified_ns;
        newest = time > newest ? time : newest;
    }
    snprintf(hash, size, " %llu %lld ", (unsigned long long)mica_gguf_file_bytes(g), (long long)newest);
    *path = newest ? realpath(mica_gguf_path(g), NULL) : NULL;
    return *path && !strchr(*path, '\n');
}

/* The line of a path; NULL: there is none. */
static const char *find_line(const char *text, const char *path, size_t *length)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), tail = strlen(path);
        if (n > MICA_SHA256_TEXT + tail && memcmp(line + n - tail, path, tail) == 0 && line[n - tail - 1] == ' ') {
            *length = n;
            return line;
        }
        line += n + (line[n] == '\n');
    }
    return NULL;
}

static bool find_hash(const char *text, const char *key, const char *path, char out[MICA_SHA256_TEXT])
{
    size_t length, digits = MICA_SHA256_TEXT - 1;
    const char *line = find_line(text, path, &length);
    if (!line || strspn(line, "0123456789abcdef") != digits || length != digits + strlen(key) + strlen(path) ||
        memcmp(line + digits, key, strlen(key)) != 0)
        return false;
    memcpy(out, line, digits);
    out[digits] = '\0';
    return true;
}

/* Puts the model's line first, and keeps of the others what there is room for. Without a cache it is only slower. */
static void keep_hash(const char *cache, const char *text, const char *hash, const char *key, const char *path)
{
    mica_buf out;
    size_t length = 0;
    mica_buf_init(&out, CACHE_BYTES - 1);
    mica_buf_printf(&out, "%s%s%s\n", hash, key, path);
    const char *old = find_line(text, path, &length);
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), more = n + (line[n] == '\n');
        if (line != old && line[n] == '\n' && out.length + more < CACHE_BYTES)
            mica_buf_append(&out, line, more);
        line += more;
    }
    if (!out.failed)
        (void)mica_newfile_put(cache, MICA_NEWFILE_PRIVATE, out.data, out.length, NULL);
    mica_buf_free(&out);
}

static void model_hash(const mica_gguf *g, const char *cache, mica_identity *identity)
{
    char key[LINE_HEAD], *path = NULL, *text = cache ? mica_new_array(CACHE_BYTES, 1) : NULL;
    bool usable = text && cache_key(g, key, sizeof key, &path);
    if (usable && !mica_sysfile_read(NULL, cache, text, CACHE_BYTES))
        *text = '\0';
    identity->from_cache = usable && find_hash(text, key, path, identity->model);
    if (!identity->from_cache) {
        hash_files(g, identity->model);
        if (usable)
            keep_hash(cache, text, identity->model, key, path);
    }
    free(path);
    free(text);
}

/* ---- Interface ---- */

mica_status mica_model_identify(mica_model *m, const char *cache, const mica_identity **out, mica_error *err)
{
    mica_identity *known = atomic_load(&m->identity), *made = NULL;
    if (!known) {
        made = mica_new_array(1, sizeof *made);
        if (!made)
            return mica_fail_nomem(err, sizeof *made, "the model's hashes");
        model_hash(m->gguf, cache, made);
        hash_tokenizer(m->gguf, made->tokenizer);
        if (*m->chat_template)
            hash_text(m->chat_template, made->chat_template);
        if (atomic_compare_exchange_strong(&m->identity, &known, made))
            known = made;
        else
            free(made); /* another thread was faster */
    }
    *out = known;
    return MICA_OK;
}

void mica_identity_free(mica_identity *identity) { free(identity); }
