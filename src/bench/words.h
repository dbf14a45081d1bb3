/* words.h - prompts of any length that no cache has seen: common English words in an order that the seed decides. Each word is
 * at least one token in any vocabulary, so that n tokens need at most n words. Called by measure.c. */
#ifndef MICA_BENCH_WORDS_H
#define MICA_BENCH_WORDS_H
#include "base/buf.h"
#include "base/error.h"

/** `n` words and full stops, appended. The same seed gives the same text on every machine; two seeds differ from the first
 * words on. */
mica_status mica_words_text(uint64_t seed, int32_t n, mica_buf *out, mica_error *err);

#endif
