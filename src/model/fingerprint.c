#include "model/fingerprint.h"

#include <string.h>

#include "base/endian.h"
#include "base/xxh64.h"

/* Norms and biases fit, and are hashed whole: any training of the whole model moves them. Of larger tensors a few samples are
 * enough, because training a matrix moves the scale of nearly every block in it. */
#define WHOLE_BYTES ((uint64_t)16 << 10)
#define SAMPLES 4
#define SAMPLE_BYTES ((uint64_t)256)

static void add_u64(mica_xxh64 *hash, uint64_t value)
{
    uint8_t bytes[8];
    mica_store_le64(bytes, value);
    mica_xxh64_add(hash, bytes, sizeof bytes);
}

/* Length first, so that no two lists of strings look alike. */
static void add_str(mica_xxh64 *hash, const char *data, size_t length)
{
    add_u64(hash, length);
    mica_xxh64_add(hash, data, length);
}

static bool begins_with(const mica_str *s, const char *prefix, size_t length)
{
    return s->length >= length && memcmp(s->data, prefix, length) == 0;
}

/* Whether a key says something about what tokens mean or how they are computed: NAME.* of the architecture, and the tokens. */
static bool matters(const mica_str *key, const mica_str *arch)
{
    static const char tokens[] = "tokenizer.ggml.tokens", architecture[] = "general.architecture";
    if (begins_with(key, arch->data, arch->length) && key->length > arch->length && key->data[arch->length] == '.')
        return true;
    return (key->length == sizeof tokens - 1 && begins_with(key, tokens, sizeof tokens - 1)) ||
           (key->length == sizeof architecture - 1 && begins_with(key, architecture, sizeof architecture - 1));
}

static void add_metadata(mica_xxh64 *hash, const mica_gguf *g)
{
    mica_str arch = {"", 0};
    (void)mica_gguf_get_str(g, "general.architecture", false, &arch, NULL); /* a model that opened has one */
    for (size_t i = 0; i < mica_gguf_value_count(g); i++) {
        const mica_gguf_value *v = mica_gguf_value_at(g, i);
        if (!matters(&v->key, &arch))
            continue;
        add_str(hash, v->key.data, v->key.length);
        add_u64(hash, (uint64_t)v->kind << 32 | (v->kind == MICA_GGUF_ARRAY ? (uint64_t)v->element : 0));
        add_u64(hash, v->count);
        mica_xxh64_add(hash, v->data, (size_t)mica_gguf_value_bytes(v));
    }
}

static void add_tensor(mica_xxh64 *hash, const mica_gguf_tensor *t)
{
    add_str(hash, t->name.data, t->name.length);
    add_u64(hash, (uint64_t)t->quant->type);
    for (int i = 0; i < 4; i++)
        add_u64(hash, (uint64_t)t->dims[i]);
    if (t->n_bytes <= WHOLE_BYTES) {
        mica_xxh64_add(hash, t->data, (size_t)t->n_bytes);
        return;
    }
    for (uint64_t i = 0; i < SAMPLES; i++) /* the first at the start, the last at the end */
        mica_xxh64_add(hash, t->data + (t->n_bytes - SAMPLE_BYTES) / (SAMPLES - 1) * i, (size_t)SAMPLE_BYTES);
}

uint64_t mica_model_fingerprint(const mica_gguf *g)
{
    mica_xxh64 hash;
    mica_xxh64_start(&hash, 0);
    add_metadata(&hash, g);
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++)
        add_tensor(&hash, mica_gguf_tensor_at(g, i));
    uint64_t value = mica_xxh64_value(&hash);
    return value ? value : 1;
}
