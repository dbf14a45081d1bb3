/* guide.h - what a reply may say next: the text of its constraint, the end of the prompt that healing took back, and the
 * reserve that a close needs. Lives in a session once a reply has asked for it; used by reply.c and speculate.c.
 *
 *     mica_guide_start(g, &request, err);
 *     for each token { mica_guide_force(g, room, err);                    // decided tokens are in the queue
 *                      token = queued, or chosen among mica_guide_mask();
 *                      mica_guide_accept(g, token, err); }
 *     mica_guide_end(g);
 *
 * Invariants:
 *  1. What a reply may say next depends on the constraint, the healed bytes and the tokens that were accepted, never on who
 *     asks or when: so a reply is the same alone, in a batch and with speculation.
 *  2. queue.ids[queue_at..queue.n) are tokens whose bytes follow what was accepted; nothing else is accepted until they are
 *     said.
 *  3. With a close, the shortest completion of what was accepted takes at most as many tokens as are left, at any time.
 * Forced runs are tokenised as text of their own; the last tokens of a run are left to choice where a longer token reaches from
 * them into what follows. Masks, matchers and forced runs may allocate.
 */
#ifndef MICA_SESSION_GUIDE_H
#define MICA_SESSION_GUIDE_H
#include "session/constraint.h"

#define MICA_GUIDE_RUN 512            /* bytes of a forced run that are looked at together */
#define MICA_GUIDE_PIECE 4096         /* bytes of the longest token */
#define MICA_GUIDE_CLOSE (1 << 24)    /* bytes of the longest completion */

typedef struct mica_guide mica_guide;
typedef struct mica_guide_list {
    int32_t *ids;
    int32_t n, room;
} mica_guide_list;

struct mica_guide {
    const mica_vocab *vocab;
    const mica_constraint *constraint; /* NULL: only healing */
    mica_matcher *matcher, *trial;     /* of the constraint; `trial` is for attempts */
    uint32_t *mask;
    size_t n_words;
    int32_t *ends; /* [n_ends] the model's tokens that end a reply */
    int32_t n_ends;
    const int32_t *stop_tokens; /* the caller's, borrowed */
    size_t n_stop_tokens;
    bool ignore_eos, may_close;
    int32_t byte_tokens[256]; /* the token that is this one byte; -1: none */
    bool has_bytes;           /* every byte has one */
    size_t longest;           /* bytes of the longest token */

    mica_guide_list queue, scratch;
    int32_t queue_at;
    bool closing;     /* the queue completes the text: nothing follows it */
    int32_t forced_n; /* tokens that were not chosen */
    size_t n_healing; /* bytes of the prompt's end that are still to be said again */
    char healing[MICA_GUIDE_PIECE];
    char piece[MICA_GUIDE_PIECE];
    char run[MICA_GUIDE_RUN];
};

typedef struct mica_guide_request {
    const mica_constraint *constraint; /* NULL: none */
    const int32_t *stop_tokens;        /* borrowed until the end */
    size_t n_stop_tokens;
    bool ignore_eos, may_close;
    int32_t healed; /* the token that was taken back; -1: none */
    int32_t room;   /* tokens that the reply may have */
} mica_guide_request;

mica_status mica_guide_new(const mica_vocab *vocab, mica_guide **out, mica_error *err);
void mica_guide_free(mica_guide *g); /* NULL is fine */

/** Before a reply. With a close mica_guide_check_room() is asked. */
mica_status mica_guide_start(mica_guide *g, const mica_guide_request *request, mica_error *err);
/** After a reply: the constraint is not looked at any more. NULL is fine. */
void mica_guide_end(mica_guide *g);

/** Whether tokens are restricted at all here. */
bool mica_guide_restricts(const mica_guide *g);
/** Nothing can follow: the text is complete, or closed. */
bool mica_guide_is_over(const mica_guide *g);
/** The text may end here. */
bool mica_guide_may_end(const mica_guide *g);
static inline bool mica_guide_queued(const mica_guide *g) { return g->queue_at < g->queue.n; }

/** The tokens that may be chosen here, those that end the reply among them; *mask is borrowed until the next call. */
mica_status mica_guide_mask(mica_guide *g, const uint32_t **mask, mica_error *err);
/** Goes on over a token's bytes. */
mica_status mica_guide_accept(mica_guide *g, int32_t token, mica_error *err);

/** Fills an empty queue with the tokens that are the only possible text, if there are any. `room` is the number of tokens
 * left. */
mica_status mica_guide_force(mica_guide *g, int32_t room, mica_error *err);
/** With a close, before the first token: MICA_INVALID_ARGUMENT if `room` tokens are not enough for the shortest text. */
mica_status mica_guide_check_room(mica_guide *g, int32_t room, mica_error *err);
/** With a close: after choosing `token`, would the rest of `room` tokens still be enough? If not, the queue becomes the
 * shortest completion from here (closing), and `token` is not said. Not for tokens that end the reply. */
mica_status mica_guide_reserve(mica_guide *g, int32_t token, int32_t room, mica_error *err);

/** How many of the n tokens of a draft the constraint lets follow one another from here. */
int32_t mica_guide_trim(mica_guide *g, const int32_t *tokens, int32_t n);

#endif
