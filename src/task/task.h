/* task.h - the inside of a mica_task, and what the files of this folder share.
 *
 *     definition.c  JSON text -> struct mica_task          prompt.c    task and input -> tokens
 *     task.c        new, free, run                         usage.c     counts of one run, and generation with them
 *     classify.c    classify and route                     spans.c     where texts are found; offsets in bytes and characters
 *     extract.c     summarise.c (split.c, parts.c)         redact.c (detect*.c)      complete.c
 *
 * Invariants: all strings of a task are borrowed from `definition`, which lives as long; `bias` is filled at the first run.
 */
#ifndef MICA_TASK_TASK_H
#define MICA_TASK_TASK_H
#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "mica/mica_tasks.h"

#define MICA_TASK_MAX_LABELS 256
#define MICA_TASK_MAX_TEXT   ((size_t)1 << 26) /* bytes of an input, and of a prompt */

typedef struct mica_task_label {
    const char *name, *text, *description; /* text: what is scored; description: "" if none */
} mica_task_label;

/* A prompt as the definition has it. */
typedef struct mica_task_prompt {
    const char *system;     /* "" if none */
    const char *text;       /* with {input} once, and {labels}, {descriptions}, {examples}, {schema} */
    const char *reply;      /* how the reply begins; "" if nothing is prescribed */
    const char *example;    /* form of one example, with {input} and {output} */
    const json_t *examples; /* [{"input", "output"}]; NULL if none */
    bool chat;              /* through the model's chat template where it has one */
} mica_task_prompt;

struct mica_task {
    mica_model *model; /* NULL: none is needed */
    json_t *definition;
    mica_task_kind kind;
    const char *name, *description;
    mica_task_prompt prompt;

    /* classify, route */
    mica_task_label *labels;
    size_t n_labels;
    const char *label_prefix, *none;
    bool normalise;          /* by the number of tokens */
    const json_t *calibrate; /* content-free inputs; NULL: no calibration */
    double *bias;            /* [n_labels] mean score over them; NULL until computed */
    double threshold;        /* route: lowest probability of the best label that counts */

    /* extract, redact with a model */
    mica_constraint *constraint;
    char *schema_text; /* owned */

    /* redact */
    int detectors;
    const json_t *types;     /* of the model part: {"NAME": "names", ...}: type and key; NULL: no model part */
    const char *replacement; /* with {type} */

    /* summarise */
    mica_task_prompt part_prompt, reduce_prompt;
    int32_t max_sentences, part_tokens;

    /* complete */
    bool fim, healing;

    const json_t *stop; /* complete, summarise: strings that end a reply */
    int32_t max_tokens;
};

/* definition.c: fills *t, whose definition is set; what it allocates mica_task_free() frees. */
mica_status mica_task_read(mica_task *t, mica_error *err);

/* ---- prompt.c ---- */

typedef struct mica_task_tokens {
    int32_t *id; /* malloc */
    size_t n;
} mica_task_tokens;

/** A prompt made for an input: fixed tokens, then the text of the last piece, so that a continuation is tokenised together with
 * it. */
typedef struct mica_task_filled {
    mica_task_tokens head;
    char *tail; /* malloc */
    size_t tail_length;
} mica_task_filled;

mica_status mica_task_fill(const mica_task *t, const mica_task_prompt *p, const char *input, size_t length,
                           mica_task_filled *out, mica_error *err);
void mica_task_filled_free(mica_task_filled *filled);
/** The tokens of the prompt and `more` behind it. out->id is yours: free(). */
mica_status mica_task_filled_tokens(const mica_task *t, const mica_task_filled *filled, const char *more, mica_task_tokens *out,
                                    mica_error *err);
/** Tokens of a text on its own; flags as in mica_model_tokenize(), but never an EOS. */
mica_status mica_task_tokenize(const mica_task *t, const char *text, size_t length, unsigned flags, mica_task_tokens *out,
                               mica_error *err);

/* ---- usage.c ---- */

/** One run under way. */
typedef struct mica_task_job {
    mica_task *task;
    mica_session *session;
    const mica_task_input *input;
    int64_t begin_ns;
    int64_t prompt_n, cached_n, computed_n, gen_n;
} mica_task_job;

/** Makes tokens the session's history and counts what that took. */
mica_status mica_task_sync(mica_task_job *job, const int32_t *tokens, size_t n, mica_error *err);
/** Greedy reply to tokens[0..n); `options` has what is special (NULL: nothing). The text is appended to `text`; *reason (may be
 * NULL) is why it ended. */
mica_status mica_task_generate(mica_task_job *job, const int32_t *tokens, size_t n, const mica_generate_options *options,
                               mica_buf *text, const char **reason, mica_error *err);
#define MICA_TASK_MAX_STOPS 16
/** Puts the definition's stop strings into `o`; `stops` must outlive it. */
void mica_task_stops(const mica_task *t, const char *stops[MICA_TASK_MAX_STOPS], mica_generate_options *o);
json_t *mica_task_usage(const mica_task_job *job);
/** How many tokens the session's context has. */
int32_t mica_task_context(const mica_task_job *job);

/* ---- spans.c ---- */

typedef enum mica_match { MICA_MATCH_NONE, MICA_MATCH_EXACT, MICA_MATCH_LOOSE } mica_match;

/** Where `needle` first occurs at or after `from` in `text`: exactly, else with letter case and runs of blanks taken as equal.
 * Whole words are preferred to parts of words. */
mica_match mica_text_find(const char *text, size_t length, size_t from, const char *needle, size_t n, size_t *start,
                          size_t *end);
/** The same for whole words only, with case and blanks taken as equal, at the first place: nothing earlier is missed. */
bool mica_text_find_words(const char *text, size_t length, size_t from, const char *needle, size_t n, size_t *start,
                          size_t *end);
/** Sets start, end, char_start, char_end of `object`. Calls must come with one counter and rising `start` to be linear; any
 * order is right. */
typedef struct mica_char_counter {
    size_t at, chars;
} mica_char_counter;
bool mica_set_span(json_t *object, const char *text, size_t start, size_t end, mica_char_counter *counter);

/* ---- split.c ---- */

/** The best place in (0, limit] to end the first part of `text` (all of it if it is no longer than the limit): behind a
 * paragraph, else a line, else a sentence, else a word, else a character; none of them in the first half of the limit, except
 * as the last resort. */
size_t mica_text_split(const char *text, size_t length, size_t limit);
/** The end of the sentence that begins at `from`: behind its closing marks; `length` if it does not end. *ended says whether it
 * does. */
size_t mica_sentence_end(const char *text, size_t length, size_t from, bool *ended);

/* ---- parts.c ---- */

/** How much of `text` fits the prompt `p` with room for a reply of `reserve` tokens, at least one character: *end is a place
 * where mica_text_split() would cut, or the whole length. */
mica_status mica_task_part_end(const mica_task_job *job, const mica_task_prompt *p, int32_t reserve, const char *text,
                               size_t length, size_t *end, mica_error *err);

/* ---- one for each kind: the result without "usage" ---- */

mica_status mica_task_classify(mica_task_job *job, json_t **result, mica_error *err);
mica_status mica_task_extract(mica_task_job *job, json_t **result, mica_error *err);
mica_status mica_task_summarise(mica_task_job *job, json_t **result, mica_error *err);
mica_status mica_task_redact(mica_task_job *job, json_t **result, mica_error *err);
mica_status mica_task_complete(mica_task_job *job, json_t **result, mica_error *err);

#endif
