/* pretok.h - pre-tokenizers: how a byte-level vocabulary cuts text into words before it merges inside them.
 *
 * A mica_pretok is immutable and shared between threads; a mica_pretok_run is one thread's scratch memory. Called by text/vocab
 * (load) and text/bpe (split).
 */
#ifndef MICA_TEXT_PRETOK_H
#define MICA_TEXT_PRETOK_H
#include "base/error.h"

#define MICA_PRETOK_STAGES 6

enum {
    MICA_PRETOK_NFC = 1 << 0,         /* text is brought to normalisation form C first */
    MICA_PRETOK_WHOLE_WORDS = 1 << 1, /* a word that is a piece of the vocabulary becomes that piece, whatever the merges say */
    MICA_PRETOK_BOS = 1 << 2,         /* add_bos_token defaults to true */
};

typedef struct mica_pretok mica_pretok;

/** Compiles the pre-tokenizer called `name` (a value of tokenizer.ggml.pre). An unknown name is MICA_UNSUPPORTED. `use_jit`
 * false keeps to PCRE2's interpreter; with true that happens where the system does not allow code to be made. */
mica_status mica_pretok_new(const char *name, size_t length, bool use_jit, mica_pretok **out, mica_error *err);
void mica_pretok_free(mica_pretok *p);
unsigned mica_pretok_flags(const mica_pretok *p);
/** Whether every pattern runs as machine code. */
bool mica_pretok_jitted(const mica_pretok *p);

typedef struct mica_pretok_run {
    void *match, *context;      /* PCRE2's match data and limits */
    uint32_t *ends, *next_ends; /* byte offsets where the pieces end */
    size_t room, next_room;
} mica_pretok_run;

/** `run` starts with all members zero. Cuts valid UTF-8 (n < 2^32) into words, which end at run->ends[0 .. *n_words); the first
 * begins at 0. Valid until the next call with this run. */
mica_status mica_pretok_split(const mica_pretok *p, mica_pretok_run *run, const char *text, size_t n, size_t *n_words,
                              mica_error *err);
void mica_pretok_run_free(mica_pretok_run *run);

#endif
