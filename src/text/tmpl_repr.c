#include "text/tmpl_exec.h"
#include "text/tmpl_num.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <stdio.h>

bool mica_text_ok(mica_run *run, const mica_buf *buf)
{
    if (buf->failed) {
        run->arena.refused = true;
        return mica_run_no_memory(run);
    }
    return buf->length <= MICA_TMPL_MAX_TEXT || mica_run_fail(run, "a text would be longer than %zu MiB",
                                                              MICA_TMPL_MAX_TEXT >> 20);
}

static bool write_value(mica_run *run, mica_buf *buf, const mica_val *v, bool repr, int depth);

/* One code point of a string literal. */
static void repr_char(mica_buf *buf, uint32_t c, const char *bytes, size_t n, char quote)
{
    if (c == (uint32_t)quote || c == '\\')
        mica_buf_printf(buf, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        mica_buf_puts(buf, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    else if (mica_ustr_is_printable(c))
        mica_buf_append(buf, bytes, n);
    else if (c < 0x100)
        mica_buf_printf(buf, "\\x%02x", c);
    else if (c < 0x10000)
        mica_buf_printf(buf, "\\u%04x", c);
    else
        mica_buf_printf(buf, "\\U%08x", c);
}

static void repr_text(mica_buf *buf, const mica_val *s)
{
    bool single = mica_ustr_find(s->s, s->len, "'", 1, 0) >= 0, twofold = mica_ustr_find(s->s, s->len, "\"", 1, 0) >= 0;
    char quote = single && !twofold ? '"' : '\'';
    if (s->flags & MICA_VF_MARKUP)
        mica_buf_puts(buf, "Markup(");
    mica_buf_putc(buf, quote);
    for (size_t i = 0, n; i < s->len; i += n) {
        uint32_t c = mica_ustr_decode(s->s + i, s->len - i, &n);
        repr_char(buf, c, s->s + i, n, quote);
    }
    mica_buf_putc(buf, quote);
    if (s->flags & MICA_VF_MARKUP)
        mica_buf_putc(buf, ')');
}

static bool write_items(mica_run *run, mica_buf *buf, const mica_val *v, int depth)
{
    bool tuple = v->type == MICA_V_TUPLE;
    mica_buf_putc(buf, tuple ? '(' : '[');
    for (size_t i = 0; i < v->seq->n; i++) {
        if (i)
            mica_buf_puts(buf, ", ");
        if (!write_value(run, buf, &v->seq->items[i], true, depth))
            return false;
    }
    if (tuple && v->seq->n == 1)
        mica_buf_putc(buf, ',');
    mica_buf_putc(buf, tuple ? ')' : ']');
    return true;
}

static bool write_pairs(mica_run *run, mica_buf *buf, const mica_dict *dict, int depth)
{
    mica_buf_putc(buf, '{');
    for (size_t i = 0; i < dict->n; i++) {
        if (i)
            mica_buf_puts(buf, ", ");
        if (!write_value(run, buf, &dict->pairs[i].key, true, depth))
            return false;
        mica_buf_puts(buf, ": ");
        if (!write_value(run, buf, &dict->pairs[i].value, true, depth))
            return false;
    }
    mica_buf_putc(buf, '}');
    return true;
}

static bool write_view(mica_run *run, mica_buf *buf, const mica_val *v, int depth)
{
    mica_buf_printf(buf, "%s([", mica_val_type_name(v));
    for (size_t i = 0; i < v->dict->n; i++) {
        const mica_pair *p = &v->dict->pairs[i];
        if (i)
            mica_buf_puts(buf, ", ");
        if (v->aux == MICA_VIEW_ITEMS)
            mica_buf_putc(buf, '(');
        if (v->aux != MICA_VIEW_VALUES && !write_value(run, buf, &p->key, true, depth))
            return false;
        if (v->aux == MICA_VIEW_ITEMS)
            mica_buf_puts(buf, ", ");
        if (v->aux != MICA_VIEW_KEYS && !write_value(run, buf, &p->value, true, depth))
            return false;
        if (v->aux == MICA_VIEW_ITEMS)
            mica_buf_putc(buf, ')');
    }
    mica_buf_puts(buf, "])");
    return true;
}

static void write_range(mica_buf *buf, const mica_range *r)
{
    long long start = r->start, stop = r->stop;
    if (r->step == 1)
        mica_buf_printf(buf, "range(%lld, %lld)", start, stop);
    else
        mica_buf_printf(buf, "range(%lld, %lld, %lld)", start, stop, (long long)r->step);
}

static void write_float(mica_buf *buf, double f)
{
    char text[MICA_NUM_TEXT];
    size_t n = mica_num_repr(f, text);
    mica_buf_append(buf, text, n);
}

static bool write_macro(mica_run *run, mica_buf *buf, const mica_macro *macro, int depth)
{
    bool named = macro->def->name.type == MICA_V_STR;
    mica_buf_puts(buf, named ? "<Macro " : "<Macro anonymous");
    bool ok = !named || write_value(run, buf, &macro->def->name, true, depth);
    mica_buf_putc(buf, '>');
    return ok;
}

static bool write_loop(mica_run *run, mica_buf *buf, const mica_val *loop)
{
    mica_val index = mica_val_literal("index"), length = mica_val_literal("length"), i, n;
    bool found;
    if (!mica_loop_attr(run, loop, &index, &i, &found) || !mica_loop_attr(run, loop, &length, &n, &found))
        return false;
    mica_buf_printf(buf, "<LoopContext %lld/%lld>", (long long)i.i, (long long)n.i);
    return true;
}

static bool write_value(mica_run *run, mica_buf *buf, const mica_val *v, bool repr, int depth)
{
    bool ok = true;
    if (depth > MICA_TMPL_MAX_NESTING)
        return mica_run_fail(run, "data is nested too deeply");
    if (!mica_run_charge(run, v->type == MICA_V_STR ? v->len : 0))
        return false;
    switch ((mica_vtype)v->type) {
    case MICA_V_MISSING: case MICA_V_UNDEFINED:
        mica_buf_puts(buf, repr ? "Undefined" : "");
        break;
    case MICA_V_NONE:
        mica_buf_puts(buf, "None");
        break;
    case MICA_V_BOOL:
        mica_buf_puts(buf, v->b ? "True" : "False");
        break;
    case MICA_V_INT:
        mica_buf_printf(buf, "%lld", (long long)v->i);
        break;
    case MICA_V_FLOAT:
        write_float(buf, v->f);
        break;
    case MICA_V_STR:
        if (repr)
            repr_text(buf, v);
        else
            mica_buf_append(buf, v->s, v->len);
        break;
    case MICA_V_LIST: case MICA_V_TUPLE:
        ok = write_items(run, buf, v, depth + 1);
        break;
    case MICA_V_DICT:
        ok = write_pairs(run, buf, v->dict, depth + 1);
        break;
    case MICA_V_NAMESPACE:
        mica_buf_puts(buf, "<Namespace ");
        ok = write_pairs(run, buf, v->dict, depth + 1);
        mica_buf_putc(buf, '>');
        break;
    case MICA_V_VIEW:
        ok = write_view(run, buf, v, depth + 1);
        break;
    case MICA_V_RANGE:
        write_range(buf, v->range);
        break;
    case MICA_V_SELF:
        mica_buf_puts(buf, "<TemplateReference None>");
        break;
    case MICA_V_MACRO:
        ok = write_macro(run, buf, v->macro, depth + 1);
        break;
    case MICA_V_LOOP:
        ok = write_loop(run, buf, v);
        break;
    case MICA_V_GEN: case MICA_V_FUNCTION: case MICA_V_METHOD: case MICA_V_CYCLER: case MICA_V_JOINER:
        /* Python prints an address, which no template can mean. */
        return mica_run_fail(run, "a value of type %s cannot be printed", mica_val_type_name(v));
    }
    return ok && mica_text_ok(run, buf);
}

bool mica_text_write(mica_run *run, mica_buf *buf, const mica_val *v) { return write_value(run, buf, v, false, 0); }

bool mica_text_repr(mica_run *run, mica_buf *buf, const mica_val *v) { return write_value(run, buf, v, true, 0); }

bool mica_text_soft(mica_run *run, const mica_val *v, mica_val *out)
{
    if (v->type == MICA_V_STR) {
        *out = *v;
        return true;
    }
    mica_buf buf;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!mica_text_write(run, &buf, v)) {
        mica_buf_free(&buf);
        return false;
    }
    return mica_val_from_buf(run, &buf, out);
}

bool mica_text_str(mica_run *run, const mica_val *v, mica_val *out)
{
    if (!mica_text_soft(run, v, out))
        return false;
    out->flags &= (uint8_t)~MICA_VF_MARKUP;
    return true;
}

static const char *entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '\'':
        return "&#39;";
    case '"':
        return "&#34;";
    default:
        return NULL;
    }
}

bool mica_text_escape(mica_run *run, const mica_val *v, mica_val *out)
{
    mica_val s;
    if (!mica_text_soft(run, v, &s))
        return false;
    if (s.flags & MICA_VF_MARKUP) {
        *out = s;
        return true;
    }
    mica_buf buf;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    for (size_t i = 0; i < s.len; i++) {
        char c = s.s[i];
        const char *entity = entity_of(c);
        if (entity)
            mica_buf_puts(&buf, entity);
        else
            mica_buf_putc(&buf, c);
    }
    if (!mica_val_from_buf(run, &buf, out))
        return false;
    out->flags |= MICA_VF_MARKUP;
    return true;
}
