/* fuzz_tokenizer.c - any bytes as text for the small vocabulary of tests/data/cases/_common/scripted.gguf, which has all byte
 * tokens and no leading space: valid UTF-8 must come back byte for byte, anything else must be refused at the right offset, and
 * the streaming decoder must agree with the checker. The first byte of the input chooses the flags. */
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "text/vocab.h"

#ifndef MICA_FUZZ_VOCAB
#define MICA_FUZZ_VOCAB "tests/data/cases/_common/scripted.gguf"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Opened with the first input and kept. */
static const mica_vocab *vocabulary(void)
{
    static mica_gguf *gguf;
    static mica_vocab *vocab;
    mica_error err;
    if (!vocab && (mica_gguf_open(MICA_FUZZ_VOCAB, &gguf, &err) || mica_vocab_load(gguf, NULL, NULL, &vocab, &err))) {
        abort();
    }
    return vocab;
}

/* Ids are of the vocabulary, and typed text never makes a control token (the scripted vocabulary adds no BOS or EOS). */
static void check_ids(const mica_vocab *v, const int32_t *ids, size_t n, unsigned flags)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= mica_vocab_size(v)) {
            abort();
        }
        if (!(flags & MICA_TOKENIZE_PARSE_SPECIAL) && mica_vocab_type(v, ids[i]) == MICA_TOKEN_CONTROL) {
            abort();
        }
    }
}

/* U+2581 stands for a space in these vocabularies: text that has it comes back with spaces. */
static bool has_space_sign(const char *text, size_t n) { return memmem(text, n, "\xE2\x96\x81", 3) != NULL; }

static void check_round_trip(const mica_vocab *v, const int32_t *ids, size_t n_ids, const char *text, size_t n)
{
    char *back;
    size_t length;
    if (mica_vocab_detokenize(v, ids, n_ids, true, &back, &length, NULL)) {
        abort();
    }
    if (!has_space_sign(text, n) && (length != n || memcmp(back, text, n) != 0)) {
        abort();
    }
    free(back);
}

/* Decodes byte by byte and in one piece; both must agree and be valid. */
static void check_streaming(const char *text, size_t n, bool valid)
{
    mica_detok one = {0}, all = {0};
    char *a = malloc(MICA_DETOK_ROOM(n)), *b = malloc(MICA_DETOK_ROOM(n));
    size_t n_a = 0, n_b = 0;
    if (!a || !b) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        n_a += mica_detok_push(&one, text + i, 1, a + n_a);
    }
    n_a += mica_detok_finish(&one, a + n_a);
    n_b += mica_detok_push(&all, text, n, b);
    n_b += mica_detok_finish(&all, b + n_b);
    if (n_a != n_b || memcmp(a, b, n_a) != 0 || mica_utf8_check(a, n_a) != n_a) {
        abort();
    }
    if (valid && (n_a != n || memcmp(a, text, n) != 0)) {
        abort();
    }
    free(a);
    free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mica_vocab *v = vocabulary();
    unsigned flags = size ? data[0] & 3u : 0;
    size_t n = size ? size - 1 : 0, n_ids;
    char *text = malloc(n + 1); /* a copy that ends where the text ends */
    int32_t *ids;
    mica_error err;
    if (!text) {
        return 0;
    }
    if (n) {
        memcpy(text, data + 1, n);
    }
    size_t valid = mica_utf8_check(text, n);
    mica_status status = mica_vocab_tokenize(v, text, n, flags, &ids, &n_ids, &err);
    if (valid < n ? status != MICA_BAD_TEXT || err.position != (int64_t)valid : status != MICA_OK) {
        abort();
    }
    if (status == MICA_OK) {
        check_ids(v, ids, n_ids, flags);
        check_round_trip(v, ids, n_ids, text, n);
        free(ids);
    }
    check_streaming(text, n, valid == n);
    free(text);
    return 0;
}
