/* vocab_impl.h - the inside of mica_vocab, for the files of the tokenizer only (vocab*, bpe, spm, tokenize, detok).
 *
 * Invariants:
 *  1. Nothing here changes after mica_vocab_load(); any number of threads may read it.
 *  2. Strings stay in the GGUF mapping. A mica_strings holds where each one starts, relative to the array's first byte.
 *  3. Hash tables use open addressing with linear probing and are at most 2/3 full. A slot keeps the upper half of the 64-bit
 *     hash, so that the strings themselves are read (and compared in full) only where that half agrees.
 *  4. Merges and SentencePiece never lead to a control, unknown or byte token: text that a user types cannot become one.
 */
#ifndef MICA_TEXT_VOCAB_IMPL_H
#define MICA_TEXT_VOCAB_IMPL_H
#include "text/merge.h"
#include "text/pretok.h"
#include "text/vocab.h"

#include <string.h>

#define MICA_VOCAB_MAX_TOKENS (1 << 24)
#define MICA_VOCAB_MAX_PIECE 4096 /* bytes; the longest known are some 500 */
#define MICA_TEXT_MAX 0x40000000  /* bytes of text that one call takes: offsets are 32 bits wide, U+2581 triples spaces */

#define MICA_SPM_SPACE "\xE2\x96\x81" /* U+2581, which stands for a space in SentencePiece pieces */
#define MICA_SPM_SPACE_BYTES 3

typedef enum mica_vocab_kind {
    MICA_VOCAB_BYTE_BPE, /* tokenizer.ggml.model "gpt2": bytes in the byte-level alphabet, merges */
    MICA_VOCAB_CHAR_BPE, /* "gemma4": characters with U+2581 for the space, merges, byte fallback */
    MICA_VOCAB_SPM,      /* "llama": SentencePiece scores, byte fallback */
} mica_vocab_kind;

typedef struct mica_strings {
    const uint8_t *base; /* first byte of the array */
    uint32_t *at;        /* offset of each string's 8-byte length */
    uint32_t count;
} mica_strings;

typedef struct mica_slot {
    uint32_t mark;  /* upper half of the hash */
    uint32_t value; /* index + 1; 0: empty */
} mica_slot;

typedef struct mica_table {
    mica_slot *slots;
    uint32_t mask;   /* slots - 1; a power of two less one */
    uint64_t budget; /* probes that inserting may still take: bounds a file whose strings were chosen to collide */
} mica_table;

typedef struct mica_added { /* a token that is matched in raw text */
    uint64_t prefix;        /* first 8 bytes, big-endian, zero-padded: orders most pairs without reading the strings */
    mica_str piece;
    int32_t id;
    bool user; /* matched without MICA_TOKENIZE_PARSE_SPECIAL too */
} mica_added;

struct mica_vocab {
    mica_vocab_kind kind;
    int32_t n;
    mica_strings pieces;
    uint8_t *types;
    uint64_t *hashes;   /* of each piece */
    uint32_t max_piece; /* bytes of the longest */
    mica_table ids;   /* piece -> lowest id */
    const uint8_t *scores; /* 32-bit floats, unaligned; NULL: the file has none */

    mica_strings merges; /* "left right" */
    int32_t *merged;     /* id of each merge's result; -1: the merge is ignored */
    mica_table pairs;    /* (left piece, right piece) -> merge */
    mica_pretok *pretok;

    int32_t byte_ids[256]; /* token of each byte; -1: none */
    mica_vocab_special special;
    mica_added *added; /* sorted bytewise, a prefix before what it is a prefix of */
    uint32_t n_added;
    uint32_t added_from[257];   /* first entry whose piece starts with byte c */
    bool added_user[256];       /* a user-defined token starts with byte c */
    uint8_t *ends_generation;   /* one flag a token */
};

static inline mica_str mica_strings_get(const mica_strings *s, uint32_t i)
{
    const uint8_t *p = s->base + s->at[i];
    uint64_t length;
    memcpy(&length, p, sizeof(length));
    return (mica_str){(const char *)p + sizeof(length), (size_t)length};
}

/* Multiply and fold the upper half into the lower. Each step is a bijection of `word`, so that distinct strings of one length
 * up to 8 bytes never collide; two steps after the last word spread it over all bits. */
static inline uint64_t mica_hash_step(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ h >> 32;
}

static inline uint64_t mica_hash_bytes(const char *data, size_t n)
{
    uint64_t h = mica_hash_step(UINT64_C(0x243F6A8885A308D3), n), word = 0;
    for (; n > 8; n -= 8, data += 8) {
        memcpy(&word, data, 8);
        h = mica_hash_step(h, word);
    }
    if (n >= 4) { /* two reads that may overlap cover 4 to 8 bytes */
        uint32_t low, high;
        memcpy(&low, data, 4);
        memcpy(&high, data + n - 4, 4);
        word = low | (uint64_t)high << 32;
    } else if (n) { /* first, middle and last cover 1 to 3 */
        word = (uint64_t)(unsigned char)data[0] | (uint64_t)(unsigned char)data[n / 2] << 8 |
               (uint64_t)(unsigned char)data[n - 1] << 16;
    } else {
        word = 0;
    }
    return mica_hash_step(mica_hash_step(h, word), 0);
}

static inline uint64_t mica_hash_pair(uint64_t left, uint64_t right)
{
    return mica_hash_step(mica_hash_step(left * 3, right), left);
}

static inline bool mica_str_equal(mica_str a, const char *data, size_t n)
{
    return a.length == n && !memcmp(a.data, data, n);
}

static inline float mica_vocab_score(const mica_vocab *v, int32_t id)
{
    float score;
    memcpy(&score, v->scores + (size_t)id * sizeof(score), sizeof(score));
    return score;
}

/** Whether merging may give this token (invariant 4). */
static inline bool mica_vocab_mergeable(const mica_vocab *v, int32_t id)
{
    return v->types[id] == MICA_TOKEN_NORMAL || v->types[id] == MICA_TOKEN_USER;
}

/* vocab_table.c: loading of the tables. */
mica_status mica_vocab_index_pieces(mica_vocab *v, const mica_gguf *g, mica_error *err);
mica_status mica_vocab_index_merges(mica_vocab *v, const mica_gguf *g, mica_error *err);

/* vocab_special.c: special tokens. */
mica_status mica_vocab_load_special(mica_vocab *v, const mica_gguf *g, void (*on_warning)(void *user, const char *message),
                                    void *user, mica_error *err);
mica_status mica_vocab_index_added(mica_vocab *v, mica_error *err);
/** The longest user-defined (with `special`: or control or unknown) token that text[0..n) starts with, or -1. */
int32_t mica_vocab_match_added(const mica_vocab *v, const char *text, size_t n, bool special, size_t *length);

/** Merge of two tokens: its rank, or -1; *merged is the result. */
int64_t mica_vocab_find_merge(const mica_vocab *v, int32_t left, int32_t right, int32_t *merged);
/** The token of code point `code` in the byte-level alphabet: the byte it stands for, or -1. */
int mica_vocab_alphabet_byte(uint32_t code);

/* One call of mica_vocab_tokenize or mica_standins_tokenize. */
typedef struct mica_word { /* a word that was met before, and where its tokens are in the output */
    uint32_t text_at, length, tokens_at, n_tokens, epoch;
} mica_word;

#define MICA_WORD_CACHE 4096      /* entries, a power of two */
#define MICA_WORD_CACHE_BYTES 48  /* longest word that is kept */

typedef struct mica_tokenizing {
    const mica_vocab *v;
    const struct mica_standins *standins; /* of a rendered text; NULL: none */
    int32_t *tokens;
    size_t n_tokens, room;
    mica_merger merger;
    mica_pretok_run pretok;
    mica_word *words; /* NULL for short texts */
    uint32_t epoch;   /* entries of another epoch are from another fragment's text */
    const char *text; /* the fragment being merged */
    mica_error *err;
} mica_tokenizing;

/** Appends a token; false when out of memory. */
bool mica_tokenizing_push(mica_tokenizing *t, int32_t id);
mica_status mica_tokenizing_nomem(mica_tokenizing *t);
/** Appends the tokens of the merged symbols; symbols without one give the tokens of their bytes in `text`. */
mica_status mica_tokenizing_push_symbols(mica_tokenizing *t, const char *text);

/** Each tokenises one fragment of raw text in which no added token occurs. `prefix`: with a space before it. */
mica_status mica_bpe_tokenize(mica_tokenizing *t, const char *text, size_t n);
mica_status mica_char_bpe_tokenize(mica_tokenizing *t, const char *text, size_t n);
mica_status mica_spm_tokenize(mica_tokenizing *t, const char *text, size_t n, bool prefix);

#endif
