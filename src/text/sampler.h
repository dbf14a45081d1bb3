/* sampler.h - from logits to one token. Owns its scratch memory, sized once for the vocabulary; sampling allocates nothing.
 *
 * Order of the stages: logit bias, repetition/frequency/presence penalties, DRY, then (temperature 0) the best token, or
 * top-k, typical, top-p, min-p, temperature, draw. Equal logits go to the lowest id. All arithmetic is in fixed order with
 * mica's own exp/log (kern/), so the same logits and seed give the same token on every machine.
 *
 * The temperature is last: filters see the distribution at temperature 1. Temperatures below 1e-6 are greedy. Each filter
 * leaves at least one token, and tokens more than 64 below the best logit (after temperature) have no chance. A bias of
 * -INFINITY bans a token; entries for the same token add up. DRY has no sequence breakers: this level knows no text.
 */
#ifndef MICA_TEXT_SAMPLER_H
#define MICA_TEXT_SAMPLER_H
#include "base/error.h"

typedef struct mica_sampler mica_sampler;

/** Bytes that a sampler for this vocabulary and context length takes; 0 if they are out of range. */
size_t mica_sampler_bytes(int32_t n_vocab, int32_t n_ctx);
mica_status mica_sampler_new(int32_t n_vocab, int32_t n_ctx, mica_sampler **out, mica_error *err);
void mica_sampler_free(mica_sampler *s);

/** Checks every option against its range (the error names the field and the range) and starts a reply. Copies logit_bias into
 * reserved memory (at most MICA_SAMPLER_MAX_BIAS entries). The seed that is used comes back in *seed (may be NULL). On an error
 * the sampler stays as it was. A new sampler is greedy until its first start. */
#define MICA_SAMPLER_MAX_BIAS 4096
mica_status mica_sampler_start(mica_sampler *s, const mica_sampling *options, int64_t *seed, mica_error *err);

/** Chooses the next token. `history` (n tokens: prompt and reply so far) is what the penalties see (of a history longer
 * than n_ctx, the end). `logits` is not changed, nor kept.
 * MICA_NON_FINITE if a logit is NaN or +inf or none is finite. */
mica_status mica_sampler_pick(mica_sampler *s, const float *logits, const int32_t *history, size_t n, int32_t *token,
                              mica_error *err);

/** The same among the tokens whose bit mask[t / 32] >> t % 32 & 1 is set: as if all others had a logit of -inf, so that
 * filters and the draw see the distribution of those alone. Takes time by their number. NULL: no mask. Bits beyond the
 * vocabulary are 0. MICA_INVALID_ARGUMENT if the mask is empty or logit_bias bans all that it allows; of NaN and +inf only
 * those of the mask are seen. */
mica_status mica_sampler_pick_masked(mica_sampler *s, const float *logits, const uint32_t *mask, const int32_t *history,
                                     size_t n, int32_t *token, mica_error *err);

/** The k most probable tokens and their natural log-probabilities in the unmodified distribution, best first; and the
 * log-probability of `token`. tokens/logprobs have room for k; where fewer tokens have a finite logit, the rest is -1 and
 * -INFINITY, as is everything if mica_sampler_pick() would refuse the logits. */
void mica_sampler_top_logprobs(mica_sampler *s, const float *logits, int32_t token, int32_t k, int32_t *tokens,
                               float *logprobs, float *token_logprob);

/* Stop strings that may straddle tokens. The matcher holds back the longest suffix of the text that could still become a
 * stop string. */
#define MICA_STOP_MAX 32          /* stop strings */
#define MICA_STOP_MAX_BYTES 1024  /* length of each */
typedef struct mica_stop mica_stop;
mica_status mica_stop_new(mica_stop **out, mica_error *err); /* all memory it will ever use */
void mica_stop_free(mica_stop *m);
mica_status mica_stop_start(mica_stop *m, const char *const *stop, size_t n_stop, mica_error *err);
/** Feeds text; returns how many bytes are now free to emit and sets *out to them (borrowed until the next call);
 * *hit becomes true when a stop string is complete: the bytes before it are returned, the rest is dropped, and so is all that
 * is pushed until the next start (*hit stays true). The string that is complete first wins; of those that end together, the
 * longest. `n` is at most MICA_STOP_MAX_BYTES: feed longer text in pieces. */
size_t mica_stop_push(mica_stop *m, const char *text, size_t n, const char **out, bool *hit);
/** The end of the reply: what was held back. */
size_t mica_stop_finish(mica_stop *m, const char **out);

#endif
