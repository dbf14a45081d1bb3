#include "text/tmpl_num.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <string.h>

static bool write_json(mica_run *run, mica_buf *buf, const mica_val *v, const mica_json_style *style, int depth);

static void escape_unit(mica_buf *buf, unsigned unit) { mica_buf_printf(buf, "\\u%04x", unit); }

static void write_string(mica_buf *buf, const char *s, size_t n, bool ensure_ascii)
{
    size_t plain = 0; /* start of the bytes that go out unchanged */
    mica_buf_putc(buf, '"');
    for (size_t i = 0, step; i < n; i += step) {
        unsigned char byte = (unsigned char)s[i];
        step = 1;
        if (byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x80 || !ensure_ascii))
            continue;
        mica_buf_append(buf, s + plain, i - plain);
        uint32_t c = mica_ustr_decode(s + i, n - i, &step);
        plain = i + step;
        if (c == '"' || c == '\\')
            mica_buf_append(buf, (char[]){'\\', (char)c}, 2);
        else if (c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\b')
            mica_buf_puts(buf, c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\f' ? "\\f" : "\\b");
        else if (c < 0x10000)
            escape_unit(buf, c);
        else {
            escape_unit(buf, 0xD800 + ((c - 0x10000) >> 10));
            escape_unit(buf, 0xDC00 + ((c - 0x10000) & 0x3FF));
        }
    }
    mica_buf_append(buf, s + plain, n - plain);
    mica_buf_putc(buf, '"');
}

static void write_number(mica_buf *buf, double f)
{
    char text[MICA_NUM_TEXT];
    if (mica_num_is_nan(f)) {
        mica_buf_puts(buf, "NaN");
    } else if (mica_num_is_inf(f)) {
        mica_buf_puts(buf, f > 0 ? "Infinity" : "-Infinity");
    } else {
        size_t n = mica_num_repr(f, text);
        mica_buf_append(buf, text, n);
    }
}

static void line_break(mica_buf *buf, const mica_json_style *style, int depth)
{
    if (!style->pretty)
        return;
    mica_buf_putc(buf, '\n');
    for (int i = 0; i < depth; i++)
        mica_buf_append(buf, style->indent.s, style->indent.len);
}

static bool write_array(mica_run *run, mica_buf *buf, const mica_seq *seq, const mica_json_style *style, int depth)
{
    mica_buf_putc(buf, '[');
    for (size_t i = 0; i < seq->n; i++) {
        if (i)
            mica_buf_append(buf, style->item_separator.s, style->item_separator.len);
        line_break(buf, style, depth);
        if (!write_json(run, buf, &seq->items[i], style, depth))
            return false;
    }
    if (seq->n)
        line_break(buf, style, depth - 1);
    mica_buf_putc(buf, ']');
    return true;
}

static bool write_key(mica_run *run, mica_buf *buf, const mica_val *key, const mica_json_style *style)
{
    if (key->type == MICA_V_STR) {
        write_string(buf, key->s, key->len, style->ensure_ascii);
        return true;
    }
    if (key->type != MICA_V_NONE && !mica_val_is_number(key))
        return mica_run_fail(run, "keys must be str, int, float, bool or None, not %s", mica_val_type_name(key));
    mica_buf_putc(buf, '"');
    bool ok = write_json(run, buf, key, style, 0);
    mica_buf_putc(buf, '"');
    return ok;
}

/* The pairs of `dict` in the order of their keys. */
static bool sorted_pairs(mica_run *run, const mica_dict *dict, mica_val **keys, mica_val **values)
{
    *keys = mica_tarena_array(&run->arena, dict->n, sizeof **keys);
    *values = mica_tarena_array(&run->arena, dict->n, sizeof **values);
    if (!*keys || !*values)
        return mica_run_no_memory(run);
    for (size_t i = 0; i < dict->n; i++) {
        (*keys)[i] = dict->pairs[i].key;
        (*values)[i] = dict->pairs[i].value;
    }
    return mica_val_sort(run, *values, *keys, dict->n, false);
}

static bool write_object(mica_run *run, mica_buf *buf, const mica_dict *dict, const mica_json_style *style, int depth)
{
    mica_val *keys = NULL, *values = NULL;
    if (style->sort_keys && dict->n > 1 && !sorted_pairs(run, dict, &keys, &values))
        return false;
    mica_buf_putc(buf, '{');
    for (size_t i = 0; i < dict->n; i++) {
        if (i)
            mica_buf_append(buf, style->item_separator.s, style->item_separator.len);
        line_break(buf, style, depth);
        if (!write_key(run, buf, keys ? &keys[i] : &dict->pairs[i].key, style))
            return false;
        mica_buf_append(buf, style->key_separator.s, style->key_separator.len);
        if (!write_json(run, buf, values ? &values[i] : &dict->pairs[i].value, style, depth))
            return false;
    }
    if (dict->n)
        line_break(buf, style, depth - 1);
    mica_buf_putc(buf, '}');
    return true;
}

static bool write_json(mica_run *run, mica_buf *buf, const mica_val *v, const mica_json_style *style, int depth)
{
    if (depth > MICA_TMPL_MAX_NESTING)
        return mica_run_fail(run, "data is nested too deeply");
    if (!mica_run_charge(run, v->type == MICA_V_STR ? v->len : 0))
        return false;
    bool ok = true;
    switch (v->type) {
    case MICA_V_NONE:
        mica_buf_puts(buf, "null");
        break;
    case MICA_V_BOOL:
        mica_buf_puts(buf, v->b ? "true" : "false");
        break;
    case MICA_V_INT:
        mica_buf_printf(buf, "%lld", (long long)v->i);
        break;
    case MICA_V_FLOAT:
        write_number(buf, v->f);
        break;
    case MICA_V_STR:
        write_string(buf, v->s, v->len, style->ensure_ascii);
        break;
    case MICA_V_LIST: case MICA_V_TUPLE:
        ok = write_array(run, buf, v->seq, style, depth + 1);
        break;
    case MICA_V_DICT:
        ok = write_object(run, buf, v->dict, style, depth + 1);
        break;
    default:
        return mica_run_fail(run, "Object of type %s is not JSON serializable", mica_val_type_name(v));
    }
    return ok && mica_text_ok(run, buf);
}

bool mica_text_json(mica_run *run, const mica_val *v, const mica_json_style *style, mica_val *out)
{
    mica_buf buf;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!write_json(run, &buf, v, style, 0)) {
        mica_buf_free(&buf);
        return false;
    }
    return mica_val_from_buf(run, &buf, out);
}
