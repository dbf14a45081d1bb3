/* vocab.h - the vocabulary of a model, from GGUF metadata alone: pieces, types, scores, merges, special tokens.
 *
 * Immutable after loading. Pieces are borrowed from the GGUF mapping: the vocabulary must not outlive it. Loading allocates a
 * fixed number of arrays, never one per token. Called by text/tokenize, text/detok, session.
 */
#ifndef MICA_TEXT_VOCAB_H
#define MICA_TEXT_VOCAB_H
#include "base/error.h"
#include "model/gguf.h"

typedef enum mica_token_type { /* as in tokenizer.ggml.token_type */
    MICA_TOKEN_NORMAL = 1, MICA_TOKEN_UNKNOWN = 2, MICA_TOKEN_CONTROL = 3, MICA_TOKEN_USER = 4, MICA_TOKEN_UNUSED = 5,
    MICA_TOKEN_BYTE = 6,
} mica_token_type;

typedef struct mica_vocab mica_vocab;

/** Reads tokenizer.ggml.*. `on_warning` (may be NULL) hears of special ids outside the vocabulary, which become absent (-1). */
mica_status mica_vocab_load(const mica_gguf *g, void (*on_warning)(void *user, const char *message), void *user,
                            mica_vocab **out, mica_error *err);
void mica_vocab_free(mica_vocab *v);

/** Bytes of heap that the file's vocabulary takes once it is loaded, to a few KiB; nothing is read but the sizes of its arrays. */
size_t mica_vocab_heap_bytes(const mica_gguf *g);

int32_t mica_vocab_size(const mica_vocab *v);
/** The raw piece as the file has it (byte-level alphabet, U+2581, <0x0A>). Invalid id: empty. */
mica_str mica_vocab_piece(const mica_vocab *v, int32_t id);
mica_token_type mica_vocab_type(const mica_vocab *v, int32_t id);
/** Id of a raw piece, or -1. Hashed. */
int32_t mica_vocab_find(const mica_vocab *v, const char *piece, size_t length);

/** Special tokens; -1 if absent. */
typedef struct mica_vocab_special {
    int32_t bos, eos, eot, eom, unk, pad, sep;
    int32_t fim_prefix, fim_suffix, fim_middle;
    bool add_bos, add_eos, add_space_prefix;
} mica_vocab_special;
const mica_vocab_special *mica_vocab_special_tokens(const mica_vocab *v);

/** Whether generation ends at this token: eos, eot, eom, and control tokens known to end a turn by their text (<|im_end|>,
 * <|eot_id|>, <end_of_turn>, <|end|>, <|endoftext|>, </s> ...: the list is data in vocab.c). */
bool mica_vocab_ends_generation(const mica_vocab *v, int32_t id);

/** The bytes that token `id` stands for in text, at most `capacity`; returns how many it has (may exceed capacity: then
 * nothing is written). Byte tokens give their byte, U+2581 gives a space (SentencePiece), control tokens nothing unless
 * `show_special`. Out-of-range ids give 0. Does not strip the leading space that add_space_prefix put in. No allocation. */
size_t mica_vocab_bytes(const mica_vocab *v, int32_t id, bool show_special, char *out, size_t capacity);

/** Text to ids; flags are MICA_TOKENIZE_*. *tokens is malloc'ed. n log n in the length of the text. */
mica_status mica_vocab_tokenize(const mica_vocab *v, const char *text, size_t length, unsigned flags, int32_t **tokens,
                                size_t *n_tokens, mica_error *err);

/** Ids to bytes (malloc'ed, terminated). An id outside the vocabulary is MICA_INVALID_ARGUMENT and names it. The space that
 * add_space_prefix put before the first piece is removed again. */
mica_status mica_vocab_detokenize(const mica_vocab *v, const int32_t *tokens, size_t n, bool show_special, char **text,
                                  size_t *length, mica_error *err);

/* Streaming decoder: bytes are held back until a code point is whole; an invalid sequence comes out as U+FFFD exactly once
 * (maximal subpart rule of the Unicode Standard, section 3.9, as Python's errors="replace" does); nothing is lost at the end.
 * No allocation. */
typedef struct mica_detok {
    char pending[4]; /* start of an incomplete code point */
    uint8_t n_pending;
} mica_detok;

#define MICA_DETOK_ROOM(n_bytes) (3 * ((n_bytes) + 4))
/** Feeds raw bytes; writes whole code points to `out` (room for MICA_DETOK_ROOM(n)); returns bytes written. */
size_t mica_detok_push(mica_detok *d, const char *bytes, size_t n, char *out);
/** The end: an incomplete sequence that is still held back comes out as one U+FFFD. */
size_t mica_detok_finish(mica_detok *d, char *out);

#endif
