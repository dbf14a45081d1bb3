#include "serve/old_logprobs.h"

#include <stdio.h>
#include <string.h>

#include "session/engine.h"

#define PIECE_MAX 512 /* bytes of a token; in real vocabularies up to 256, and longer ones are shown as empty */

json_t *mica_old_logprobs_new(void)
{
    return json_pack("{s:[], s:[], s:[], s:[]}", "tokens", "token_logprobs", "top_logprobs", "text_offset");
}

size_t mica_old_logprobs_characters(const char *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* ---- Tokens as texts ---- */

/* The token's text, or "bytes:\xNN..." where it is no text of its own, as OpenAI writes it. */
static json_t *name_of(const char *bytes, size_t n)
{
    char spelt[8 + 4 * PIECE_MAX];
    json_t *text = json_stringn(bytes, n);
    if (text)
        return text;
    size_t at = (size_t)snprintf(spelt, sizeof spelt, "bytes:");
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(spelt + at, sizeof spelt - at, "\\x%02x", (unsigned)(unsigned char)bytes[i]);
    return json_string(spelt);
}

static size_t bytes_of(const mica_model *model, int32_t token, char bytes[PIECE_MAX])
{
    size_t n = mica_vocab_bytes(model->vocab, token, true, bytes, PIECE_MAX);
    return n <= PIECE_MAX ? n : 0;
}

/* The bytes of an entry that choice.c made. */
static size_t entry_bytes(const json_t *entry, char bytes[PIECE_MAX])
{
    const json_t *list = json_object_get(entry, "bytes");
    size_t n = json_array_size(list) < PIECE_MAX ? json_array_size(list) : PIECE_MAX;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)json_integer_value(json_array_get(list, i));
    return n;
}

static json_t *number(float logprob)
{
    return json_real(logprob > -9999.0f ? (double)logprob : -9999.0); /* JSON has no infinity */
}

/* Of two tokens with one text the more probable one stays, which comes first. Takes both over. */
static void add_top(json_t *top, json_t *name, json_t *logprob)
{
    if (json_object_get(top, json_string_value(name)))
        json_decref(logprob);
    else
        json_object_set_new(top, json_string_value(name), logprob);
    json_decref(name);
}

static void add(json_t *lists, json_t *token, json_t *logprob, json_t *top, size_t offset)
{
    json_array_append_new(json_object_get(lists, "tokens"), token);
    json_array_append_new(json_object_get(lists, "token_logprobs"), logprob);
    json_array_append_new(json_object_get(lists, "top_logprobs"), top);
    json_array_append_new(json_object_get(lists, "text_offset"), json_integer((json_int_t)offset));
}

/* ---- Replies ---- */

/* The best ones, and the token's own even if it is none of them. */
static json_t *entry_top(const json_t *entry, const json_t *name)
{
    json_t *top = json_object(), *one;
    char bytes[PIECE_MAX];
    size_t i;
    json_array_foreach(json_object_get(entry, "top_logprobs"), i, one)
    {
        size_t n = entry_bytes(one, bytes);
        add_top(top, name_of(bytes, n), json_incref(json_object_get(one, "logprob")));
    }
    add_top(top, json_copy((json_t *)name), json_incref(json_object_get(entry, "logprob")));
    return top;
}

void mica_old_logprobs_reply(mica_choice *c, json_t *lists)
{
    char bytes[PIECE_MAX];
    json_t *entry;
    size_t i;
    json_array_foreach(c->logprobs, i, entry)
    {
        size_t n = entry_bytes(entry, bytes);
        json_t *name = name_of(bytes, n), *top = c->request->n_top > 0 ? entry_top(entry, name) : json_null();
        add(lists, name, json_incref(json_object_get(entry, "logprob")), top, c->offset);
        c->offset += mica_old_logprobs_characters(bytes, n);
    }
    json_array_clear(c->logprobs);
}

/* ---- Prompts ---- */

/* A walk through the prompt's text, token by token. */
typedef struct walk {
    const char *at, *end;
    size_t characters; /* before `at` */
} walk;

static void go(walk *w, size_t bytes)
{
    w->characters += mica_old_logprobs_characters(w->at, bytes);
    w->at += bytes;
}

static bool is_here(const walk *w, const char *piece, size_t n)
{
    return n <= (size_t)(w->end - w->at) && memcmp(w->at, piece, n) == 0;
}

/* Over a token's piece. Not in the text are a BOS, and a blank that the tokenizer put in front; where it has normalised the
 * text, as many characters as the piece has are its own. */
static void step(walk *w, const char *piece, size_t n, bool control)
{
    if (!is_here(w, piece, n) && n > 0 && *piece == ' ') {
        piece++;
        n--;
    }
    if (is_here(w, piece, n)) {
        go(w, n);
        return;
    }
    size_t left = control ? 0 : mica_old_logprobs_characters(piece, n), length = 0;
    while (w->at + length < w->end && (left > 0 || ((unsigned char)w->at[length] & 0xC0) == 0x80)) {
        left -= ((unsigned char)w->at[length] & 0xC0) != 0x80;
        length++;
    }
    go(w, control ? 0 : length);
}

/* Over a token whose text was made of the tokens. Returns the characters that have begun then. */
static size_t follow(mica_detok *d, size_t *told, const mica_model *model, int32_t token)
{
    char bytes[PIECE_MAX], out[MICA_DETOK_ROOM(PIECE_MAX)];
    size_t n = mica_vocab_bytes(model->vocab, token, false, bytes, PIECE_MAX);
    *told += mica_old_logprobs_characters(out, mica_detok_push(d, bytes, n <= PIECE_MAX ? n : 0, out));
    return *told + (d->n_pending > 0);
}

static json_t *prompt_top(const mica_model *model, const mica_score *row, int32_t n_top)
{
    json_t *top = json_object();
    char bytes[PIECE_MAX];
    for (int32_t i = 1; i <= n_top + 1; i++) {
        const mica_score *one = &row[i <= n_top ? i : 0]; /* the token's own last */
        if (one->token >= 0)
            add_top(top, name_of(bytes, bytes_of(model, one->token, bytes)), number(one->logprob));
    }
    return top;
}

void mica_old_logprobs_prompt(const mica_choice *c, json_t *lists)
{
    const mica_request *r = c->request;
    const mica_model *model = r->context->model;
    const mica_prompt *p = c->prompt;
    walk w = {.at = p->text, .end = p->text + p->length};
    mica_detok d = {.n_pending = 0};
    size_t offset = 0, told = 0;
    char bytes[PIECE_MAX];
    for (size_t i = 0; i < p->n; i++) {
        const mica_score *row = p->scores + i * (size_t)(1 + r->n_top);
        size_t n = bytes_of(model, p->tokens[i], bytes);
        bool control = mica_vocab_bytes(model->vocab, p->tokens[i], false, NULL, 0) == 0;
        json_t *top = i > 0 && r->n_top > 0 ? prompt_top(model, row, r->n_top) : json_null();
        add(lists, name_of(bytes, n), i > 0 ? number(row->logprob) : json_null(), top, offset);
        if (!p->from_ids)
            step(&w, bytes, n, control);
        offset = p->from_ids ? follow(&d, &told, model, p->tokens[i]) : w.characters;
    }
}
