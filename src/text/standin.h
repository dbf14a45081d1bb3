/* standin.h - text that stays text in a prompt, whatever it spells.
 *
 * A chat template mixes its own text, which may spell control tokens, with texts of a request, which must not; in what it
 * writes one cannot be told from the other. So characters of the request are replaced before it is rendered, by stand-ins:
 * characters that occur neither in the request, nor in the template, nor in an added token. The tokenizer looks for added
 * tokens while the stand-ins are there and puts the characters back into what lies between. One character stands for one
 * character; it is no letter, no blank and has no case, so that templates trim, cut and count as before.
 *
 * Which characters:
 *  - the first one of each control token that a string spells. The template sees all other text as it is, but it may make a
 *    control token by joining two harmless strings, or by cutting something out of one.
 *  - with `all`, every telling character besides. Each control token has one (its punctuation: the '<' of "<|im_end|>"; tokens
 *    of nothing but letters, digits and '_' have none), so that every control token in the rendered text has its telling
 *    character from the template itself. But a template that looks for "</think>" in a message does not find it any more.
 *
 * tool/chat_tokens.c, which calls all this, renders the first way, and checks by the second that the template's control tokens
 * are all there are. Random placeholders would need a source of randomness, which the library does not have. */
#ifndef MICA_TEXT_STANDIN_H
#define MICA_TEXT_STANDIN_H
#include <jansson.h>

#include "base/buf.h"
#include "text/vocab.h"

#define MICA_STANDIN_MAX 64          /* characters replaced: the ASCII punctuation, and others where a vocabulary needs them */
#define MICA_STANDIN_CANDIDATES 6719 /* characters that may be stand-ins; standin.c lists them */

typedef struct mica_standins {
    const mica_vocab *vocab;
    bool telling[128];
    uint8_t occurs[MICA_STANDIN_CANDIDATES / 8 + 1]; /* a bit for each candidate that is no stand-in */
    size_t n;
    uint32_t original[MICA_STANDIN_MAX], standin[MICA_STANDIN_MAX]; /* pairs that are in use */
    bool exhausted; /* no pair was left */
    bool spells;    /* a string of the request spells a control token */
    bool tells;     /* a string of the request has a telling character elsewhere */
} mica_standins;

/** The vocabulary is borrowed. */
void mica_standins_init(mica_standins *s, const mica_vocab *v);

/** No stand-in may be a character of this text. Nor of the strings and keys of this request, in which it looks for spelt tokens
 * and telling characters; false: it is nested deeper than templates take. All before the first mica_standins_replace(). */
void mica_standins_avoid(mica_standins *s, const char *text, size_t n);
bool mica_standins_look(mica_standins *s, json_t *request);

/** A copy of a request that was looked at, with stand-ins in its strings and keys; json_decref(). NULL: no memory, or
 * s->exhausted. */
json_t *mica_standins_replace(mica_standins *s, json_t *request, bool all);

/** Appends the text with the characters that the stand-ins stand for; false: no memory. */
bool mica_standins_restore(const mica_standins *s, const char *text, size_t n, mica_buf *out);
/** Whether there is anything to restore. */
bool mica_standins_any(const mica_standins *s, const char *text, size_t n);

/** Whether two rendered texts have the same control tokens in the same order. */
bool mica_standins_same_controls(const mica_vocab *v, const char *a, size_t n_a, const char *b, size_t n_b);

/** mica_vocab_tokenize() with MICA_TOKENIZE_PARSE_SPECIAL of a rendered text: where it has no stand-ins the same tokens, and
 * where it has, those of the restored text, had the stand-ins' characters been no part of a control token. In tokenize.c. */
mica_status mica_standins_tokenize(const mica_standins *s, const char *text, size_t length, unsigned flags, int32_t **tokens,
                                   size_t *n_tokens, mica_error *err);

#endif
