#include "text/tmpl_ast.h"
#include "text/tmpl_ustr.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of a compiled template: nodes take about 100 bytes for each token of the source. */
#define MAX_COMPILED ((size_t)192 << 20)

bool mica_compile_fail(mica_compiler *c, uint32_t offset, const char *format, ...)
{
    char text[300];
    if (c->failed)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t line = 1, start = 0;
    for (size_t i = 0; i < offset && i < c->n_source; i++) {
        if (c->source[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    size_t column = 1 + mica_ustr_count(c->source + start, (size_t)offset - start);
    c->failed = true;
    c->code = mica_fail_at(c->err, MICA_BAD_TEMPLATE, c->tmpl->exact_offsets ? (int64_t)offset : -1,
                           "chat template, line %zu, column %zu: %s", line, column, text);
    return false;
}

bool mica_compile_no_memory(mica_compiler *c)
{
    if (!c->failed)
        c->code = mica_fail(c->err, MICA_OUT_OF_MEMORY, "out of memory while compiling a chat template of %zu bytes",
                            c->n_source);
    c->failed = true;
    return false;
}

void *mica_compile_alloc(mica_compiler *c, size_t size)
{
    void *p = mica_tarena_array(&c->tmpl->arena, 1, size);
    if (!p)
        mica_compile_no_memory(c);
    return p;
}

/* ---- Names ---- */

static size_t symbol_slot(const mica_compiler *c, const mica_val *name)
{
    size_t slot = (size_t)mica_ustr_hash(name->s, name->len, (uint64_t)(uintptr_t)c->tokens) & (c->n_index - 1);
    while (c->symbol_index[slot] && !mica_val_same_text(&c->tmpl->symbols[c->symbol_index[slot] - 1], name))
        slot = (slot + 1) & (c->n_index - 1);
    return slot;
}

static bool grow_symbols(mica_compiler *c)
{
    struct mica_template *t = c->tmpl;
    size_t capacity = c->cap_symbols ? c->cap_symbols * 2 : 64;
    mica_val *symbols = mica_compile_alloc(c, capacity * sizeof *symbols);
    uint32_t *index = mica_compile_alloc(c, capacity * 2 * sizeof *index);
    if (!symbols || !index)
        return false;
    if (t->n_symbols)
        memcpy(symbols, t->symbols, t->n_symbols * sizeof *symbols);
    t->symbols = symbols;
    c->symbol_index = index;
    c->n_index = capacity * 2;
    c->cap_symbols = capacity;
    for (size_t i = 0; i < t->n_symbols; i++)
        c->symbol_index[symbol_slot(c, &t->symbols[i])] = (uint32_t)i + 1;
    return true;
}

bool mica_compile_symbol(mica_compiler *c, const mica_val *name, uint32_t *symbol)
{
    struct mica_template *t = c->tmpl;
    if (t->n_symbols == c->cap_symbols && !grow_symbols(c))
        return false;
    size_t slot = symbol_slot(c, name);
    if (!c->symbol_index[slot]) {
        t->symbols[t->n_symbols++] = *name;
        c->symbol_index[slot] = (uint32_t)t->n_symbols;
    }
    *symbol = c->symbol_index[slot] - 1;
    return true;
}

/* ---- The whole ---- */

/* Copies the text into the template with line feeds for CR LF and CR, and without one final line feed. */
static bool copy_source(mica_compiler *c, const char *text, size_t length)
{
    char *out = mica_tarena_bytes(&c->tmpl->arena, length ? length : 1);
    if (!out)
        return mica_compile_no_memory(c);
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\r') {
            c->tmpl->exact_offsets = false;
            out[n++] = '\n';
            i += i + 1 < length && text[i + 1] == '\n';
        } else {
            out[n++] = text[i];
        }
    }
    c->source = out;
    c->n_source = n - (n > 0 && out[n - 1] == '\n');
    return true;
}

mica_status mica_template_compile(const char *text, size_t length, mica_template **out, mica_error *err)
{
    *out = NULL;
    if (length > MICA_TMPL_MAX_SOURCE)
        return mica_fail(err, MICA_BAD_TEMPLATE, "the chat template has %zu bytes, more than the limit of %zu", length,
                         MICA_TMPL_MAX_SOURCE);
    size_t bad = mica_ustr_validate(text, length);
    if (bad < length)
        return mica_fail_at(err, MICA_BAD_TEXT, (int64_t)bad, "the chat template is not valid UTF-8 at byte %zu", bad);
    mica_template *t = calloc(1, sizeof *t);
    if (!t)
        return mica_fail_nomem(err, sizeof *t, "a chat template");
    mica_tarena_init(&t->arena, MAX_COMPILED);
    t->exact_offsets = true;
    mica_compiler c = {.tmpl = t, .err = err};
    bool ok = copy_source(&c, text, length) && mica_lex(&c) && mica_parse(&c) && mica_scope_analyse(&c);
    free(c.tokens);
    if (!ok) {
        mica_template_free(t);
        return c.code;
    }
    *out = t;
    return MICA_OK;
}

void mica_template_free(mica_template *t)
{
    if (!t)
        return;
    mica_tarena_free(&t->arena);
    free(t);
}
