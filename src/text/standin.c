#include "text/standin.h"

#include "text/tmpl_value.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

#include <string.h>

/* chat_template_kwargs are read one level deeper here than by the interpreter. */
#define MAX_NESTING (MICA_TMPL_MAX_NESTING + 1)

/* ---- Characters ---- */

/* Candidates: braille patterns and hexagrams, which are printable, as what they stand for (a template may write the repr of a
 * text), then the private-use area, so that no text of a reasonable kind has them all. Three bytes each. */
static const struct {
    uint32_t first, last;
} ranges[] = {{0x2801, 0x28FF}, {0x4DC0, 0x4DFF}, {0xE000, 0xF8FF}};

#define N_RANGES (sizeof ranges / sizeof *ranges)

static bool find_candidate(uint32_t code, uint32_t *index)
{
    uint32_t before = 0;
    for (size_t i = 0; i < N_RANGES; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            *index = before + (code - ranges[i].first);
            return true;
        }
        before += ranges[i].last - ranges[i].first + 1;
    }
    return false;
}

/* The candidate at an index below MICA_STANDIN_CANDIDATES. */
static uint32_t candidate_at(uint32_t index)
{
    size_t i = 0;
    for (; index > ranges[i].last - ranges[i].first; i++)
        index -= ranges[i].last - ranges[i].first + 1;
    return ranges[i].first + index;
}

/* The three-byte character at text[i], or 0. */
static uint32_t wide_at(const char *text, size_t n, size_t i)
{
    uint32_t code = 0;
    if ((unsigned char)text[i] >> 4 == 0xE && n - i >= 3)
        mica_utf8_read(text + i, &code);
    return code;
}

void mica_standins_avoid(mica_standins *s, const char *text, size_t n)
{
    uint32_t index;
    for (size_t i = 0; i < n; i++) {
        uint32_t code = wide_at(text, n, i);
        if (code && find_candidate(code, &index))
            s->occurs[index / 8] |= (uint8_t)(1u << index % 8);
    }
}

/* The stand-in of a character, a new one where it has none yet; 0: none is left. */
static uint32_t standin_of(mica_standins *s, uint32_t code)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->original[i] == code)
            return s->standin[i];
    uint32_t index = 0;
    while (index < MICA_STANDIN_CANDIDATES && s->occurs[index / 8] >> index % 8 & 1)
        index++;
    s->exhausted = s->exhausted || s->n == MICA_STANDIN_MAX || index == MICA_STANDIN_CANDIDATES;
    if (s->exhausted)
        return 0;
    s->occurs[index / 8] |= (uint8_t)(1u << index % 8);
    s->original[s->n] = code;
    return s->standin[s->n++] = candidate_at(index);
}

/* What the character at text[i] stands for; 0: it is no stand-in. */
static uint32_t original_at(const mica_standins *s, const char *text, size_t n, size_t i)
{
    uint32_t code = wide_at(text, n, i);
    for (size_t k = 0; code && k < s->n; k++)
        if (s->standin[k] == code)
            return s->original[k];
    return 0;
}

/* ---- Control tokens ---- */

/* Whether a token that user text must not become starts here; *length is its length. */
static bool starts_control(const mica_vocab *v, const char *text, size_t n, size_t *length, int32_t *id)
{
    *id = mica_vocab_match_added(v, text, n, true, length);
    return *id >= 0 && v->types[*id] != MICA_TOKEN_USER;
}

/* The telling character of a piece: the first one of this list that it has, whatever its place, so that few characters tell of
 * many tokens. '_' is missing because it stands in keys and names. */
static void note_telling(mica_standins *s, mica_str piece)
{
    for (const char *c = "<[|{(>]})#$@&*+=~^%!?;:,./\\'\"`-"; *c; c++) {
        if (memchr(piece.data, *c, piece.length)) {
            s->telling[(unsigned char)*c] = true;
            return;
        }
    }
}

void mica_standins_init(mica_standins *s, const mica_vocab *v)
{
    *s = (mica_standins){.vocab = v};
    for (uint32_t i = 0; i < v->n_added; i++) {
        mica_standins_avoid(s, v->added[i].piece.data, v->added[i].piece.length);
        if (!v->added[i].user)
            note_telling(s, v->added[i].piece);
    }
}

bool mica_standins_same_controls(const mica_vocab *v, const char *a, size_t n_a, const char *b, size_t n_b)
{
    const char *text[2] = {a, b};
    size_t n[2] = {n_a, n_b}, at[2] = {0, 0};
    for (;;) {
        int32_t found[2] = {-1, -1};
        for (int k = 0; k < 2; k++) {
            while (at[k] < n[k] && found[k] < 0) {
                size_t length = 1;
                int32_t id;
                if (starts_control(v, text[k] + at[k], n[k] - at[k], &length, &id))
                    found[k] = id;
                at[k] += id >= 0 ? length : 1;
            }
        }
        if (found[0] != found[1] || found[0] < 0)
            return found[0] == found[1];
    }
}

/* ---- Strings ---- */

static void look_at(mica_standins *s, const char *text, size_t n)
{
    mica_standins_avoid(s, text, n);
    for (size_t i = 0; i < n; i++) {
        size_t length;
        int32_t id;
        unsigned char c = (unsigned char)text[i];
        if (starts_control(s->vocab, text + i, n - i, &length, &id))
            s->spells = true;
        else if (c < 128 && s->telling[c])
            s->tells = true;
    }
}

/* Appends the text with stand-ins. Every place is looked at, also inside of a token that was found: that may be one, too. */
static bool replace_text(mica_standins *s, const char *text, size_t n, bool all, mica_buf *out)
{
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        size_t length;
        int32_t id;
        uint32_t code;
        char bytes[4];
        unsigned char c = (unsigned char)text[i];
        if (!(all && c < 128 && s->telling[c]) && !starts_control(s->vocab, text + i, n - i, &length, &id)) {
            i++;
            continue;
        }
        unsigned size = mica_utf8_read(text + i, &code);
        uint32_t standin = standin_of(s, code);
        if (!standin)
            return false;
        mica_buf_append(out, text + from, i - from);
        mica_buf_append(out, bytes, mica_utf8_write(standin, bytes));
        from = i += size;
    }
    return mica_buf_append(out, text + from, n - from);
}

bool mica_standins_any(const mica_standins *s, const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && !original_at(s, text, n, i))
        i++;
    return i < n;
}

bool mica_standins_restore(const mica_standins *s, const char *text, size_t n, mica_buf *out)
{
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        uint32_t original = original_at(s, text, n, i);
        char bytes[4];
        if (!original) {
            i++;
            continue;
        }
        mica_buf_append(out, text + from, i - from);
        mica_buf_append(out, bytes, mica_utf8_write(original, bytes));
        from = i += 3;
    }
    return mica_buf_append(out, text + from, n - from);
}

/* ---- Requests ---- */

static bool look_below(mica_standins *s, json_t *value, int depth)
{
    size_t i;
    json_t *item;
    const char *key;
    if (depth > MAX_NESTING)
        return false;
    if (json_is_string(value))
        look_at(s, json_string_value(value), json_string_length(value));
    json_array_foreach(value, i, item) {
        if (!look_below(s, item, depth + 1))
            return false;
    }
    json_object_foreach(value, key, item) {
        look_at(s, key, strlen(key));
        if (!look_below(s, item, depth + 1))
            return false;
    }
    return true;
}

bool mica_standins_look(mica_standins *s, json_t *request) { return look_below(s, request, 0); }

static json_t *copy_value(mica_standins *s, json_t *value, bool all);

static json_t *copy_string(mica_standins *s, const json_t *value, bool all)
{
    mica_buf buf;
    size_t n = json_string_length(value);
    mica_buf_init(&buf, 3 * n);
    bool done = replace_text(s, json_string_value(value), n, all, &buf);
    json_t *copy = done ? json_stringn_nocheck(buf.data, buf.length) : NULL;
    mica_buf_free(&buf);
    return copy;
}

static json_t *copy_array(mica_standins *s, json_t *value, bool all)
{
    json_t *copy = json_array();
    for (size_t i = 0; copy && i < json_array_size(value); i++) {
        if (json_array_append_new(copy, copy_value(s, json_array_get(value, i), all))) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

/* Two keys that differ stay different: no stand-in occurs in the request, and each stands for one character. */
static json_t *copy_object(mica_standins *s, json_t *value, bool all)
{
    json_t *copy = json_object();
    for (void *it = json_object_iter(value); copy && it; it = json_object_iter_next(value, it)) {
        mica_buf key;
        const char *name = json_object_iter_key(it);
        mica_buf_init(&key, 3 * strlen(name));
        bool done = replace_text(s, name, strlen(name), all, &key) &&
                    json_object_set_new_nocheck(copy, key.data, copy_value(s, json_object_iter_value(it), all)) == 0;
        mica_buf_free(&key);
        if (!done) {
            json_decref(copy);
            copy = NULL;
        }
    }
    return copy;
}

/* As deep as mica_standins_look() has seen that the request goes. */
static json_t *copy_value(mica_standins *s, json_t *value, bool all)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return copy_string(s, value, all);
    case JSON_ARRAY:
        return copy_array(s, value, all);
    case JSON_OBJECT:
        return copy_object(s, value, all);
    default:
        return json_incref(value);
    }
}

json_t *mica_standins_replace(mica_standins *s, json_t *request, bool all) { return copy_value(s, request, all); }
