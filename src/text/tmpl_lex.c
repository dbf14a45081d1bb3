#include "text/tmpl_ast.h"
#include "text/tmpl_num.h"
#include "text/tmpl_ustr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source is data with tags {{ }}, {% %}, {# #}. White space around tags goes by jinja2's trim_blocks and lstrip_blocks:
 * a block tag or comment takes the line feed behind it, and the blanks before it if it stands first on its line; - takes all
 * white space on its side, + none. */

typedef struct lexer {
    mica_compiler *c;
    const char *p, *end;
    uint32_t line;
    const char *counted; /* `line` is the line of this place; tokens are pushed in order */
    bool line_starting;  /* the last match ended with a line feed */
    char closers[MICA_TMPL_MAX_NODE_DEPTH + 1];
    size_t n_closers;
} lexer;

static uint32_t line_at(lexer *l, const char *p)
{
    for (; l->counted < p; l->counted++)
        l->line += *l->counted == '\n';
    return l->line;
}

static uint32_t offset_of(const lexer *l, const char *p) { return (uint32_t)(p - l->c->source); }

static bool fail_at(lexer *l, const char *p, const char *message)
{
    return mica_compile_fail(l->c, offset_of(l, p), "%s", message);
}

static bool push(lexer *l, mica_token_kind kind, const char *p, mica_val value)
{
    mica_compiler *c = l->c;
    if (c->n_tokens == c->cap_tokens) {
        size_t capacity = c->cap_tokens ? c->cap_tokens * 2 : 128;
        mica_tmpl_token *tokens = realloc(c->tokens, capacity * sizeof *tokens);
        if (!tokens)
            return mica_compile_no_memory(c);
        c->tokens = tokens;
        c->cap_tokens = capacity;
    }
    c->tokens[c->n_tokens++] = (mica_tmpl_token){.kind = kind, .line = line_at(l, p), .offset = offset_of(l, p),
                                                 .value = value};
    return true;
}

static const char *skip_space(const char *p, const char *end)
{
    size_t n;
    while (p < end && mica_ustr_is_space(mica_ustr_decode(p, (size_t)(end - p), &n)))
        p += n;
    return p;
}

static const char *strip_right(const char *start, const char *end)
{
    size_t n;
    while (end > start && mica_ustr_is_space(mica_ustr_decode_last(start, (size_t)(end - start), &n)))
        end -= n;
    return end;
}

static bool starts_with(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(end - p) >= n && memcmp(p, text, n) == 0;
}

/* ---- Data ---- */

/* Where the data before a tag ends. `sign` is the - or + behind the opening braces. */
static const char *trim_data(const lexer *l, const char *start, const char *tag, char sign, bool is_output)
{
    if (sign == '-')
        return strip_right(start, tag);
    if (sign == '+' || is_output)
        return tag;
    const char *line = tag;
    while (line > start && line[-1] != '\n')
        line--;
    if ((line > start || l->line_starting) && line < tag && skip_space(line, tag) == tag)
        return line;
    return tag;
}

static bool push_data(lexer *l, const char *start, const char *end)
{
    if (end == start)
        return true;
    return push(l, MICA_T_DATA, start, mica_val_text(start, (size_t)(end - start)));
}

/* Behind a closing tag at p: %} (length 2), -%}, +%}. Returns NULL if there is none. */
static const char *after_close(const char *p, const char *end, const char *close, bool trims)
{
    if (starts_with(p, end, close)) {
        p += 2;
        return trims && p < end && *p == '\n' ? p + 1 : p;
    }
    if (p < end && *p == '-' && starts_with(p + 1, end, close))
        return skip_space(p + 3, end);
    if (trims && p < end && *p == '+' && starts_with(p + 1, end, close))
        return p + 3;
    return NULL;
}

static bool lex_comment(lexer *l, const char *tag)
{
    for (const char *p = l->p; p < l->end; p++) {
        const char *after = after_close(p, l->end, "#}", true);
        if (after) {
            l->p = after;
            return true;
        }
    }
    return fail_at(l, tag, "this comment is not closed by #}");
}

/* {% raw %}: p behind the word, or NULL if the tag at `tag` (with `n_open` bytes of braces and sign) is not one. */
static const char *raw_begin(const char *tag, size_t n_open, const char *end)
{
    const char *p = skip_space(tag + n_open, end);
    if (!starts_with(p, end, "raw"))
        return NULL;
    p = skip_space(p + 3, end);
    if (starts_with(p, end, "-%}"))
        return skip_space(p + 3, end);
    return starts_with(p, end, "%}") ? p + 2 : NULL;
}

static bool lex_raw(lexer *l, const char *tag, const char *start)
{
    l->line_starting = start[-1] == '\n';
    for (const char *p = start; p < l->end; p++) {
        if (!starts_with(p, l->end, "{%"))
            continue;
        char sign = p + 2 < l->end && (p[2] == '-' || p[2] == '+') ? p[2] : 0;
        const char *q = skip_space(p + 2 + (sign != 0), l->end);
        if (!starts_with(q, l->end, "endraw"))
            continue;
        const char *after = after_close(skip_space(q + 6, l->end), l->end, "%}", true);
        if (!after)
            continue;
        if (!push_data(l, start, trim_data(l, start, p, sign, false)))
            return false;
        l->p = after;
        l->line_starting = after[-1] == '\n';
        return true;
    }
    return fail_at(l, tag, "the raw block has no {% endraw %}");
}

/* ---- Numbers, names, strings ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* (digit+_)*digit+ */
static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p)) {
        p++;
        if (p + 1 < end && *p == '_' && is_digit(p[1]))
            p++;
    }
    return p;
}

/* A float at p: returns its end, or NULL. */
static const char *float_end(const lexer *l, const char *p)
{
    if (p > l->c->source && p[-1] == '.')
        return NULL;
    const char *q = skip_digits(p, l->end);
    bool is_float = false;
    if (q == p)
        return NULL;
    if (q + 1 < l->end && *q == '.' && is_digit(q[1])) {
        q = skip_digits(q + 1, l->end);
        is_float = true;
    }
    if (q < l->end && (*q == 'e' || *q == 'E')) {
        const char *e = q + 1 < l->end && (q[1] == '+' || q[1] == '-') ? q + 2 : q + 1;
        if (e < l->end && is_digit(*e))
            return skip_digits(e, l->end);
    }
    return is_float ? q : NULL;
}

static bool digit_of_base(char c, int base)
{
    if (base <= 10)
        return c >= '0' && c < '0' + base;
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* An integer at p, which is a digit. A zero is followed by zeros only, or by a base. */
static const char *int_end(const lexer *l, const char *p)
{
    int base = 10;
    if (*p == '0' && p + 1 < l->end) {
        char x = (char)(p[1] | 32);
        base = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 10;
        if (base != 10) {
            const char *q = p + 2;
            if (q < l->end && *q == '_')
                q++;
            if (q < l->end && digit_of_base(*q, base))
                p = q;
            else
                base = 10;
        }
    }
    bool zeros = base == 10 && *p == '0';
    while (p < l->end && (zeros ? *p == '0' : digit_of_base(*p, base))) {
        p++;
        if (p + 1 < l->end && *p == '_' && (zeros ? p[1] == '0' : digit_of_base(p[1], base)))
            p++;
    }
    return p;
}

static bool lex_number(lexer *l)
{
    const char *start = l->p, *end = float_end(l, start);
    double f;
    int64_t i;
    if (end) {
        l->p = end;
        if (!mica_num_parse_float(start, (size_t)(end - start), &f))
            return fail_at(l, start, "this number cannot be read");
        return push(l, MICA_T_FLOAT, start, mica_val_float(f));
    }
    l->p = end = int_end(l, start);
    if (mica_num_parse_int(start, (size_t)(end - start), 0, &i) != MICA_NUM_OK)
        return fail_at(l, start, "this integer does not fit 64 bits");
    return push(l, MICA_T_INT, start, mica_val_int(i));
}

static bool lex_name(lexer *l)
{
    const char *start = l->p;
    size_t n;
    while (l->p < l->end && mica_ustr_is_name(mica_ustr_decode(l->p, (size_t)(l->end - l->p), &n)))
        l->p += n;
    return push(l, MICA_T_NAME, start, mica_val_text(start, (size_t)(l->p - start)));
}

static int hex_value(char c) { return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

/* \x, \u, \U with `n` digits at p. */
static bool hex_escape(lexer *l, const char *at, const char *p, const char *end, int n, char **out)
{
    uint32_t c = 0;
    for (int i = 0; i < n; i++, p++) {
        if (p >= end || hex_value(*p) < 0)
            return fail_at(l, at, "a \\x, \\u or \\U escape has too few digits");
        c = c << 4 | (uint32_t)hex_value(*p);
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return fail_at(l, at, "an escape stands for no character");
    *out += mica_ustr_encode(c, *out);
    return true;
}

static bool simple_escape(char c, char *out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char *p = c ? strchr(from, c) : NULL;
    if (p)
        *out = to[p - from];
    return p != NULL;
}

/* The escape at p (behind the backslash); *out grows. Python reads the text with its non-ASCII characters spelled as escapes,
 * so that a backslash before one of them shows that spelling. */
static const char *unescape(lexer *l, const char *p, const char *end, char **out)
{
    const char *at = p - 1;
    int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    if (simple_escape(*p, *out)) {
        ++*out;
        return p + 1;
    }
    if (*p == '\n')
        return p + 1;
    if (digits)
        return hex_escape(l, at, p + 1, end, digits, out) ? p + 1 + digits : NULL;
    if (*p >= '0' && *p <= '7') {
        uint32_t c = 0;
        for (int i = 0; i < 3 && p < end && *p >= '0' && *p <= '7'; i++)
            c = c * 8 + (uint32_t)(*p++ - '0');
        *out += mica_ustr_encode(c, *out);
        return p;
    }
    if (*p == 'N') {
        fail_at(l, at, "\\N{name} escapes are not supported");
        return NULL;
    }
    *(*out)++ = '\\';
    if ((unsigned char)*p < 0x80) {
        *(*out)++ = *p;
        return p + 1;
    }
    size_t n;
    uint32_t c = mica_ustr_decode(p, (size_t)(end - p), &n);
    *out += sprintf(*out, c < 0x100 ? "x%02x" : c < 0x10000 ? "u%04x" : "U%08x", c);
    return p + n;
}

static bool lex_string(lexer *l)
{
    const char *start = l->p, *p = start + 1;
    bool escapes = false;
    while (p < l->end && *p != *start) {
        if (*p == '\\') {
            escapes = true;
            p++;
        }
        p++;
    }
    if (p >= l->end)
        return fail_at(l, start, "this string is not closed");
    l->p = p + 1;
    const char *end = p;
    p = start + 1;
    if (!escapes)
        return push(l, MICA_T_STRING, start, mica_val_text(p, (size_t)(end - p)));
    /* The longest growth: a backslash and a character of 2 bytes or more become \UXXXXXXXX. */
    char *text = mica_compile_alloc(l->c, (size_t)(end - p) * 4 + 1), *out = text;
    if (!text)
        return false;
    while (p < end) {
        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        p = unescape(l, p + 1, end, &out);
        if (!p)
            return false;
    }
    return push(l, MICA_T_STRING, start, mica_val_text(text, (size_t)(out - text)));
}

/* ---- Operators ---- */

static mica_token_kind operator_at(const char *p, const char *end, size_t *n)
{
    static const struct {
        const char text[3];
        mica_token_kind kind;
    } table[] = {
        {"//", MICA_T_FLOORDIV}, {"**", MICA_T_POW}, {"==", MICA_T_EQ}, {"!=", MICA_T_NE}, {"<=", MICA_T_LE}, {">=", MICA_T_GE},
        {"+", MICA_T_ADD}, {"-", MICA_T_SUB}, {"*", MICA_T_MUL}, {"/", MICA_T_DIV}, {"%", MICA_T_MOD}, {"~", MICA_T_TILDE},
        {"<", MICA_T_LT}, {">", MICA_T_GT}, {"=", MICA_T_ASSIGN}, {".", MICA_T_DOT}, {":", MICA_T_COLON}, {"|", MICA_T_PIPE},
        {",", MICA_T_COMMA}, {";", MICA_T_SEMICOLON}, {"(", MICA_T_LPAREN}, {")", MICA_T_RPAREN}, {"[", MICA_T_LBRACKET},
        {"]", MICA_T_RBRACKET}, {"{", MICA_T_LBRACE}, {"}", MICA_T_RBRACE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (starts_with(p, end, table[i].text)) {
            *n = strlen(table[i].text);
            return table[i].kind;
        }
    }
    return MICA_T_END;
}

static bool lex_operator(lexer *l)
{
    const char *start = l->p;
    size_t n = 0;
    mica_token_kind kind = operator_at(start, l->end, &n);
    if (kind == MICA_T_END) {
        uint32_t c = mica_ustr_decode(start, (size_t)(l->end - start), &n);
        return mica_compile_fail(l->c, offset_of(l, start), "unexpected character '%.*s' (U+%04X)", (int)n, start, c);
    }
    if (kind == MICA_T_LPAREN || kind == MICA_T_LBRACKET || kind == MICA_T_LBRACE) {
        if (l->n_closers == sizeof l->closers)
            return fail_at(l, start, "brackets are nested too deeply");
        l->closers[l->n_closers++] = kind == MICA_T_LPAREN ? ')' : kind == MICA_T_LBRACKET ? ']' : '}';
    } else if (kind == MICA_T_RPAREN || kind == MICA_T_RBRACKET || kind == MICA_T_RBRACE) {
        if (!l->n_closers || l->closers[l->n_closers - 1] != *start)
            return mica_compile_fail(l->c, offset_of(l, start), "unexpected '%c'", *start);
        l->n_closers--;
    }
    l->p += n;
    return push(l, kind, start, MICA_NONE);
}

/* The inside of a tag up to and with its closing braces. */
static bool lex_tag(lexer *l, const char *tag, bool is_output)
{
    l->n_closers = 0;
    for (;;) {
        const char *after = l->n_closers ? NULL : after_close(l->p, l->end, is_output ? "}}" : "%}", !is_output);
        if (after) {
            if (!push(l, is_output ? MICA_T_OUTPUT_END : MICA_T_BLOCK_END, l->p, MICA_NONE))
                return false;
            l->p = after;
            return true;
        }
        if (l->p >= l->end)
            return fail_at(l, tag, is_output ? "this {{ is not closed by }}" : "this {% is not closed by %}");
        size_t n;
        uint32_t c = mica_ustr_decode(l->p, (size_t)(l->end - l->p), &n);
        bool ok = true;
        if (mica_ustr_is_space(c))
            l->p = skip_space(l->p, l->end);
        else if (is_digit(*l->p))
            ok = lex_number(l);
        else if (mica_ustr_is_name_start(c))
            ok = lex_name(l);
        else if (c == '\'' || c == '"')
            ok = lex_string(l);
        else
            ok = lex_operator(l);
        if (!ok)
            return false;
    }
}

/* The next {{, {% or {#, or NULL. */
static const char *find_tag(const char *p, const char *end)
{
    while (p + 1 < end) {
        p = memchr(p, '{', (size_t)(end - p - 1));
        if (!p)
            return NULL;
        if (p[1] == '{' || p[1] == '%' || p[1] == '#')
            return p;
        p++;
    }
    return NULL;
}

bool mica_lex(mica_compiler *c)
{
    lexer l = {.c = c, .p = c->source, .end = c->source + c->n_source, .line = 1, .counted = c->source, .line_starting = true};
    while (l.p < l.end) {
        const char *start = l.p, *tag = find_tag(start, l.end);
        if (!tag) {
            if (!push_data(&l, start, l.end))
                return false;
            break;
        }
        char kind = tag[1], sign = tag + 2 < l.end && (tag[2] == '-' || tag[2] == '+') ? tag[2] : 0;
        if (!push_data(&l, start, trim_data(&l, start, tag, sign, kind == '{')))
            return false;
        l.p = tag + 2 + (sign != 0);
        const char *raw = kind == '%' ? raw_begin(tag, 2 + (size_t)(sign != 0), l.end) : NULL;
        bool ok;
        if (raw)
            ok = lex_raw(&l, tag, raw);
        else if (kind == '#')
            ok = lex_comment(&l, tag);
        else
            ok = push(&l, kind == '{' ? MICA_T_OUTPUT_BEGIN : MICA_T_BLOCK_BEGIN, tag, MICA_NONE) &&
                lex_tag(&l, tag, kind == '{');
        if (!ok)
            return false;
        l.line_starting = l.p[-1] == '\n';
    }
    return push(&l, MICA_T_END, l.end, MICA_NONE);
}
