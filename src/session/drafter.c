#include "session/drafter.h"

#include <stdio.h>
#include <string.h>

#define QUOTE_BYTES 24 /* of a piece, in messages */

/* A piece for a message: printable ASCII, the rest as \xNN. */
static void quote(mica_str piece, char out[4 * QUOTE_BYTES + 4])
{
    size_t n = 0;
    for (size_t i = 0; i < piece.length && i < QUOTE_BYTES; i++) {
        unsigned char c = (unsigned char)piece.data[i];
        n += (size_t)snprintf(out + n, 5, c >= 32 && c < 127 ? "%c" : "\\x%02X", c);
    }
    snprintf(out + n, 4, "%s", piece.length > QUOTE_BYTES ? "..." : "");
}

/* A draft is a list of ids: they must mean the same to both. */
static mica_status compare_vocabularies(const mica_vocab *a, const mica_vocab *b, mica_error *err)
{
    char left[4 * QUOTE_BYTES + 4], right[4 * QUOTE_BYTES + 4];
    if (mica_vocab_size(a) != mica_vocab_size(b))
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the draft model has %d tokens, the model %d: it must have the same vocabulary", mica_vocab_size(b),
                         mica_vocab_size(a));
    for (int32_t i = 0; i < mica_vocab_size(a); i++) {
        mica_str x = mica_vocab_piece(a, i), y = mica_vocab_piece(b, i);
        if (x.length == y.length && (x.length == 0 || memcmp(x.data, y.data, x.length) == 0))
            continue;
        quote(x, left);
        quote(y, right);
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the draft model must have the model's vocabulary, but token %d is \"%s\" there and \"%s\" here", i,
                         right, left);
    }
    return MICA_OK;
}

mica_status mica_drafter_new(const mica_session *s, mica_session **out, mica_error *err)
{
    mica_model *model = s->options.draft_model;
    mica_session_options o = mica_session_options_default();
    mica_session_loan loan = {.pool = s->pool};
    *out = NULL;
    mica_status status = compare_vocabularies(s->model->vocab, model->vocab, err);
    if (status)
        return status;
    o.n_ctx = s->options.n_ctx;
    o.n_threads = s->options.n_threads;
    o.prefill_chunk = s->options.prefill_chunk;
    o.sysroot = s->options.sysroot;
    return mica_session_make(model, &o, &s->threads, &loan, out, err);
}

int32_t mica_drafter_run(mica_session *d, const mica_session *s, int32_t n, int32_t *out)
{
    mica_session_adopt(d, s->tokens, s->n_tokens);
    for (int32_t i = 0; i < n; i++) {
        /* its sampler was never started: greedy */
        if (mica_session_compute(d, NULL) ||
            mica_sampler_pick(d->sampler, d->exec.logits, d->tokens, (size_t)d->n_tokens, &out[i], NULL))
            return i;
        d->tokens[d->n_tokens++] = out[i];
        d->logits_valid = false;
    }
    return n;
}
