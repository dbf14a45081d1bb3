#include "tool/json_scan.h"

#include <string.h>

enum { /* what may come next */
    VALUE,
    FIRST_VALUE, /* or ] */
    FIRST_KEY,   /* or } */
    KEY,
    COLON,
    AFTER,       /* , or the container's end */
    STRING,
    ESCAPE,
    HEX,
    WORD,
    MINUS,
    ZERO,        /* states from here to EXPONENT: the number may end */
    DIGITS,
    FRACTION,
    EXPONENT,
    POINT,
    E,
    E_SIGN,
};

void mica_json_scan_init(mica_json_scan *s) { *s = (mica_json_scan){.state = VALUE, .word = ""}; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool in_object(const mica_json_scan *s)
{
    int i = s->depth - 1;
    return s->depth > 0 && (s->object[i / 32] >> (i % 32) & 1u);
}

/* A value is complete with this byte. */
static mica_json_step ended(mica_json_scan *s)
{
    s->state = AFTER;
    return s->depth == 0 ? MICA_JSON_END : MICA_JSON_MORE;
}

static mica_json_step go(mica_json_scan *s, int state)
{
    s->state = (uint8_t)state;
    return MICA_JSON_MORE;
}

static mica_json_step open_container(mica_json_scan *s, bool object)
{
    int i = s->depth;
    if (i == MICA_JSON_SCAN_DEPTH)
        return MICA_JSON_BAD;
    s->depth++;
    s->object[i / 32] = (s->object[i / 32] & ~(1u << (i % 32))) | (uint32_t)object << (i % 32);
    return go(s, object ? FIRST_KEY : FIRST_VALUE);
}

static mica_json_step close_container(mica_json_scan *s, char c)
{
    if (s->depth == 0 || (c == '}') != in_object(s))
        return MICA_JSON_BAD;
    s->depth--;
    return ended(s);
}

static mica_json_step begin_word(mica_json_scan *s, const char *rest)
{
    s->word = rest;
    return go(s, WORD);
}

static mica_json_step begin_value(mica_json_scan *s, char c)
{
    switch (c) {
    case '{':
        return open_container(s, true);
    case '[':
        return open_container(s, false);
    case '"':
        s->key = false;
        return go(s, STRING);
    case 't':
        return begin_word(s, "rue");
    case 'f':
        return begin_word(s, "alse");
    case 'n':
        return begin_word(s, "ull");
    case '-':
        return go(s, MINUS);
    case '0':
        return go(s, ZERO);
    }
    return is_digit(c) ? go(s, DIGITS) : MICA_JSON_BAD;
}

static mica_json_step between(mica_json_scan *s, char c)
{
    if (mica_json_blank(c))
        return MICA_JSON_MORE;
    switch (s->state) {
    case FIRST_VALUE:
        return c == ']' ? close_container(s, c) : begin_value(s, c);
    case FIRST_KEY:
        if (c == '}')
            return close_container(s, c);
        /* fall through */
    case KEY:
        s->key = true;
        return c == '"' ? go(s, STRING) : MICA_JSON_BAD;
    case COLON:
        return c == ':' ? go(s, VALUE) : MICA_JSON_BAD;
    case AFTER:
        if (c == ',' && s->depth > 0)
            return go(s, in_object(s) ? KEY : VALUE);
        return c == '}' || c == ']' ? close_container(s, c) : MICA_JSON_BAD;
    }
    return begin_value(s, c);
}

static mica_json_step in_string(mica_json_scan *s, char c)
{
    bool hex = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    switch (s->state) {
    case ESCAPE:
        s->digits = 4;
        if (c == 'u')
            return go(s, HEX);
        return c && strchr("\"\\/bfnrt", c) ? go(s, STRING) : MICA_JSON_BAD;
    case HEX:
        return !hex ? MICA_JSON_BAD : go(s, --s->digits ? HEX : STRING);
    }
    if (c == '\\')
        return go(s, ESCAPE);
    if (c == '"')
        return s->key ? go(s, COLON) : ended(s);
    return (unsigned char)c < 0x20 ? MICA_JSON_BAD : MICA_JSON_MORE;
}

static mica_json_step in_word(mica_json_scan *s, char c)
{
    if (c != *s->word)
        return MICA_JSON_BAD;
    s->word++;
    return *s->word ? MICA_JSON_MORE : ended(s);
}

/* The number may be over: then the byte belongs to what is around it. */
static mica_json_step after_number(mica_json_scan *s, char c)
{
    s->state = AFTER;
    return s->depth == 0 ? MICA_JSON_BEFORE : between(s, c);
}

static mica_json_step in_number(mica_json_scan *s, char c)
{
    bool exponent = c == 'e' || c == 'E';
    switch (s->state) {
    case MINUS:
        return c == '0' ? go(s, ZERO) : is_digit(c) ? go(s, DIGITS) : MICA_JSON_BAD;
    case DIGITS:
        if (is_digit(c))
            return MICA_JSON_MORE;
        /* fall through */
    case ZERO:
        return c == '.' ? go(s, POINT) : exponent ? go(s, E) : is_digit(c) ? MICA_JSON_BAD : after_number(s, c);
    case POINT:
        return is_digit(c) ? go(s, FRACTION) : MICA_JSON_BAD;
    case FRACTION:
        return is_digit(c) ? MICA_JSON_MORE : exponent ? go(s, E) : after_number(s, c);
    case E:
        return c == '+' || c == '-' ? go(s, E_SIGN) : is_digit(c) ? go(s, EXPONENT) : MICA_JSON_BAD;
    case E_SIGN:
        return is_digit(c) ? go(s, EXPONENT) : MICA_JSON_BAD;
    }
    return is_digit(c) ? MICA_JSON_MORE : after_number(s, c); /* EXPONENT */
}

mica_json_step mica_json_scan_push(mica_json_scan *s, char c)
{
    if (s->state < STRING)
        return between(s, c);
    if (s->state < WORD)
        return in_string(s, c);
    return s->state == WORD ? in_word(s, c) : in_number(s, c);
}

size_t mica_json_value_length(const char *text, size_t n)
{
    mica_json_scan s;
    mica_json_scan_init(&s);
    for (size_t i = 0; i < n; i++) {
        mica_json_step step = mica_json_scan_push(&s, text[i]);
        if (step == MICA_JSON_END)
            return i + 1;
        if (step != MICA_JSON_MORE)
            return step == MICA_JSON_BEFORE ? i : 0;
    }
    return s.depth == 0 && s.state >= ZERO && s.state <= EXPONENT ? n : 0;
}

static size_t skip_blanks(const char *text, size_t n, size_t i)
{
    while (i < n && mica_json_blank(text[i]))
        i++;
    return i;
}

bool mica_json_next(const char *text, size_t n, size_t *at, mica_json_member *member)
{
    size_t open = skip_blanks(text, n, 0), i = skip_blanks(text, n, *at ? *at : open + 1);
    if (i < n && text[i] == ',')
        i = skip_blanks(text, n, i + 1);
    if (i >= n || text[i] == '}' || text[i] == ']')
        return false;
    *member = (mica_json_member){.key = "", .value = ""};
    if (text[open] == '{') {
        size_t length = mica_json_value_length(text + i, n - i);
        if (length < 2)
            return false;
        member->key = text + i + 1;
        member->key_length = length - 2;
        i = skip_blanks(text, n, i + length);
        i = skip_blanks(text, n, i < n && text[i] == ':' ? i + 1 : i);
    }
    member->value = text + i;
    member->value_length = mica_json_value_length(text + i, n - i);
    *at = i + member->value_length;
    return member->value_length > 0;
}
