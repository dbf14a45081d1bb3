#include "text/tmpl_strfn.h"

#include "text/tmpl_iter.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <string.h>

/* ---- Case ---- */

/* Maps the code point at byte `at` of s. `first`: no cased letter stands directly before it in its word. */
typedef size_t (*case_map)(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3]);

static size_t lower_at(const mica_val *s, size_t at, uint32_t c, uint32_t out[3])
{
    if (c == 0x3A3) { /* capital sigma */
        out[0] = mica_ustr_is_final_sigma(s->s, s->len, at) ? 0x3C2 : 0x3C3;
        return 1;
    }
    return mica_ustr_to_lower(c, out);
}

static size_t map_upper(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3])
{
    (void)s, (void)at, (void)first;
    return mica_ustr_to_upper(c, out);
}

static size_t map_lower(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3])
{
    (void)first;
    return lower_at(s, at, c, out);
}

static size_t map_capitalize(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3])
{
    (void)first;
    return at == 0 ? mica_ustr_to_title(c, out) : lower_at(s, at, c, out);
}

static size_t map_title(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3])
{
    return first ? mica_ustr_to_title(c, out) : lower_at(s, at, c, out);
}

static size_t map_swapcase(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3])
{
    (void)first;
    if (mica_ustr_is_upper(c))
        return lower_at(s, at, c, out);
    if (mica_ustr_is_lower(c))
        return mica_ustr_to_upper(c, out);
    out[0] = c;
    return 1;
}

static size_t map_casefold(const mica_val *s, size_t at, uint32_t c, bool first, uint32_t out[3])
{
    (void)s, (void)at, (void)first;
    return mica_ustr_casefold(c, out);
}

static bool map_case(mica_run *run, const mica_val *s, case_map map, mica_val *out)
{
    mica_buf buf;
    bool first = true;
    size_t n;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    uint8_t markup = s->flags & MICA_VF_MARKUP;
    for (size_t i = 0; i < s->len; i += n) {
        uint32_t mapped[3], c = mica_ustr_decode(s->s + i, s->len - i, &n);
        char bytes[12];
        size_t length = 0, count = map(s, i, c, first, mapped);
        for (size_t k = 0; k < count; k++)
            length += mica_ustr_encode(mapped[k], bytes + length);
        mica_buf_append(&buf, bytes, length);
        first = !(mica_ustr_is_lower(c) || mica_ustr_is_upper(c) || mica_ustr_is_title(c));
    }
    if (!mica_run_charge(run, s->len)) {
        mica_buf_free(&buf);
        return false;
    }
    if (!mica_val_from_buf(run, &buf, out))
        return false;
    out->flags |= markup;
    return true;
}

bool mica_strfn_upper(mica_run *run, const mica_val *s, mica_val *out) { return map_case(run, s, map_upper, out); }
bool mica_strfn_lower(mica_run *run, const mica_val *s, mica_val *out) { return map_case(run, s, map_lower, out); }
bool mica_strfn_capitalize(mica_run *run, const mica_val *s, mica_val *out) { return map_case(run, s, map_capitalize, out); }
bool mica_strfn_title(mica_run *run, const mica_val *s, mica_val *out) { return map_case(run, s, map_title, out); }
bool mica_strfn_swapcase(mica_run *run, const mica_val *s, mica_val *out) { return map_case(run, s, map_swapcase, out); }
bool mica_strfn_casefold(mica_run *run, const mica_val *s, mica_val *out) { return map_case(run, s, map_casefold, out); }

bool mica_strfn_is_cased(mica_run *run, const mica_val *s, bool upper, mica_val *out)
{
    bool cased = false;
    size_t n;
    *out = mica_val_bool(false);
    for (size_t i = 0; i < s->len; i += n) {
        uint32_t c = mica_ustr_decode(s->s + i, s->len - i, &n);
        bool is_upper = mica_ustr_is_upper(c), is_lower = mica_ustr_is_lower(c);
        if (mica_ustr_is_title(c) || (upper ? is_lower : is_upper))
            return true;
        cased |= is_upper || is_lower;
    }
    out->b = cased;
    return mica_run_charge(run, s->len);
}

/* ---- Stripping and padding ---- */

static bool in_set(uint32_t c, const char *bytes, size_t n, const mica_val *chars)
{
    (void)c;
    return mica_ustr_find(chars->s, chars->len, bytes, n, 0) >= 0; /* UTF-8: a match starts at a code point */
}

bool mica_strfn_strip(mica_run *run, const mica_val *s, const mica_val *chars, mica_side side, mica_val *out)
{
    size_t from = 0, to = s->len, n;
    *out = *s;
    while ((side & MICA_LEFT) && from < to) {
        uint32_t c = mica_ustr_decode(s->s + from, to - from, &n);
        if (!(chars ? in_set(c, s->s + from, n, chars) : mica_ustr_is_space(c)))
            break;
        from += n;
        if (chars && !mica_run_charge(run, chars->len))
            return false;
    }
    while ((side & MICA_RIGHT) && to > from) {
        uint32_t c = mica_ustr_decode_last(s->s + from, to - from, &n);
        if (!(chars ? in_set(c, s->s + to - n, n, chars) : mica_ustr_is_space(c)))
            break;
        to -= n;
        if (chars && !mica_run_charge(run, chars->len))
            return false;
    }
    out->s = s->s + from;
    out->len = (uint32_t)(to - from);
    if (!(s->flags & MICA_VF_ASCII))
        mica_val_scan(out);
    return mica_run_charge(run, s->len - out->len);
}

bool mica_strfn_pad(mica_run *run, const mica_val *s, int64_t width, const mica_val *fill, mica_side side, mica_val *out)
{
    int64_t missing = width - (int64_t)mica_val_count(s);
    char *bytes;
    if (missing <= 0) {
        *out = *s;
        return true;
    }
    if (missing > (int64_t)MICA_TMPL_MAX_TEXT)
        missing = (int64_t)MICA_TMPL_MAX_TEXT + 1; /* refused below, without overflow */
    /* str.center: the odd one goes left if the width is odd. */
    int64_t left = side == MICA_LEFT ? missing : side == MICA_RIGHT ? 0 : missing / 2 + (missing & width & 1);
    if (!mica_val_new_text(run, s->len + (size_t)missing * fill->len, &bytes, out))
        return false;
    for (int64_t i = 0; i < missing; i++) {
        if (i == left) {
            memcpy(bytes, s->s, s->len);
            bytes += s->len;
        }
        memcpy(bytes, fill->s, fill->len);
        bytes += fill->len;
    }
    if (left == missing)
        memcpy(bytes, s->s, s->len);
    out->flags = (uint8_t)((s->flags & fill->flags & MICA_VF_ASCII) | (s->flags & MICA_VF_MARKUP));
    return true;
}

/* ---- Splitting ---- */

static bool push_part(mica_run *run, mica_val *list, const mica_val *s, size_t from, size_t to)
{
    mica_val part = {.type = MICA_V_STR, .flags = s->flags, .len = (uint32_t)(to - from), .s = s->s + from};
    if (!(s->flags & MICA_VF_ASCII))
        mica_val_scan(&part);
    return mica_seq_push(run, list, &part);
}

static void reverse_items(mica_seq *seq)
{
    for (size_t i = 0; i < seq->n / 2; i++) {
        mica_val t = seq->items[i];
        seq->items[i] = seq->items[seq->n - 1 - i];
        seq->items[seq->n - 1 - i] = t;
    }
}

static bool split_by(mica_run *run, const mica_val *s, const mica_val *sep, int64_t most, bool from_right, mica_val *list)
{
    size_t from = 0, to = s->len;
    for (; most != 0; most -= most > 0) {
        int64_t at;
        if (!mica_strfn_find(run, s, sep, from, to, from_right, &at))
            return false;
        if (at < 0)
            break;
        size_t end = (size_t)at + sep->len;
        if (!push_part(run, list, s, from_right ? end : from, from_right ? to : (size_t)at))
            return false;
        if (from_right)
            to = (size_t)at;
        else
            from = end;
    }
    return push_part(run, list, s, from, to);
}

/* Words between runs of white space; what is left after `most` words goes out whole, stripped on the side it was cut from. */
static bool split_words(mica_run *run, const mica_val *s, int64_t most, mica_val *list)
{
    size_t at = 0, n = 0;
    for (;; most -= most > 0) {
        while (at < s->len && mica_ustr_is_space(mica_ustr_decode(s->s + at, s->len - at, &n)))
            at += n;
        if (at >= s->len)
            return true;
        if (most == 0)
            return push_part(run, list, s, at, s->len);
        size_t start = at;
        while (at < s->len && !mica_ustr_is_space(mica_ustr_decode(s->s + at, s->len - at, &n)))
            at += n;
        if (!push_part(run, list, s, start, at) || !mica_run_charge(run, at - start))
            return false;
    }
}

static bool split_words_right(mica_run *run, const mica_val *s, int64_t most, mica_val *list)
{
    size_t at = s->len, n = 0;
    for (;; most -= most > 0) {
        while (at > 0 && mica_ustr_is_space(mica_ustr_decode_last(s->s, at, &n)))
            at -= n;
        if (at == 0)
            return true;
        if (most == 0)
            return push_part(run, list, s, 0, at);
        size_t end = at;
        while (at > 0 && !mica_ustr_is_space(mica_ustr_decode_last(s->s, at, &n)))
            at -= n;
        if (!push_part(run, list, s, at, end) || !mica_run_charge(run, end - at))
            return false;
    }
}

bool mica_strfn_split(mica_run *run, const mica_val *s, const mica_val *sep, int64_t most, bool from_right, mica_val *out)
{
    mica_val list;
    if (sep && sep->len == 0)
        return mica_run_fail(run, "empty separator");
    if (!mica_seq_new(run, MICA_V_LIST, 4, &list))
        return false;
    bool ok = sep          ? split_by(run, s, sep, most, from_right, &list)
              : from_right ? split_words_right(run, s, most, &list)
                           : split_words(run, s, most, &list);
    if (!ok)
        return false;
    if (from_right)
        reverse_items(list.seq);
    *out = list;
    return true;
}

bool mica_strfn_splitlines(mica_run *run, const mica_val *s, bool keep_ends, mica_val *out)
{
    mica_val list;
    size_t start = 0, n;
    if (!mica_seq_new(run, MICA_V_LIST, 4, &list))
        return false;
    for (size_t i = 0; i < s->len; i += n) {
        uint32_t c = mica_ustr_decode(s->s + i, s->len - i, &n);
        if (!mica_ustr_is_line_end(c))
            continue;
        size_t end = i;
        if (c == '\r' && i + 1 < s->len && s->s[i + 1] == '\n')
            n = 2;
        if (!push_part(run, &list, s, start, keep_ends ? end + n : end))
            return false;
        start = i + n;
    }
    if (start < s->len && !push_part(run, &list, s, start, s->len))
        return false;
    *out = list;
    return mica_run_charge(run, s->len);
}

/* ---- Searching, replacing, joining ---- */

bool mica_strfn_find(mica_run *run, const mica_val *s, const mica_val *needle, size_t from, size_t to, bool from_right,
                     int64_t *at)
{
    if (!from_right) {
        *at = mica_ustr_find(s->s, to, needle->s, needle->len, from);
        size_t looked = *at < 0 ? to - from : (size_t)*at - from;
        return mica_run_charge(run, looked + needle->len);
    }
    int64_t budget = MICA_TMPL_MAX_STEPS - run->steps, before = budget;
    *at = mica_ustr_rfind(s->s + from, needle->s, needle->len, to - from, &budget);
    run->steps += before - budget;
    if (*at == -2)
        return mica_run_charge(run, SIZE_MAX >> 1);
    if (*at >= 0)
        *at += (int64_t)from;
    return mica_run_charge(run, 0);
}

/* An empty `old` stands before every code point and at the end. */
static bool replace_empty(mica_run *run, const mica_val *s, const mica_val *new_text, int64_t most, mica_buf *buf)
{
    size_t at = 0, n = 0;
    while (most != 0) {
        mica_buf_append(buf, new_text->s, new_text->len);
        most -= most > 0;
        if (!mica_text_ok(run, buf))
            return false;
        if (at >= s->len)
            break;
        mica_ustr_decode(s->s + at, s->len - at, &n);
        mica_buf_append(buf, s->s + at, n);
        at += n;
    }
    mica_buf_append(buf, s->s + at, s->len - at);
    return mica_run_charge(run, buf->length);
}

static bool replace_text(mica_run *run, const mica_val *s, const mica_val *old, const mica_val *new_text, int64_t most,
                         mica_buf *buf)
{
    size_t from = 0;
    for (; most != 0; most -= most > 0) {
        int64_t at;
        if (!mica_strfn_find(run, s, old, from, s->len, false, &at))
            return false;
        if (at < 0)
            break;
        mica_buf_append(buf, s->s + from, (size_t)at - from);
        mica_buf_append(buf, new_text->s, new_text->len);
        from = (size_t)at + old->len;
        if (!mica_text_ok(run, buf))
            return false;
    }
    mica_buf_append(buf, s->s + from, s->len - from);
    return true;
}

bool mica_strfn_replace(mica_run *run, const mica_val *s, const mica_val *old, const mica_val *new_text, int64_t most,
                        mica_val *out)
{
    mica_buf buf;
    uint8_t markup = s->flags & MICA_VF_MARKUP;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!(old->len ? replace_text(run, s, old, new_text, most, &buf) : replace_empty(run, s, new_text, most, &buf))) {
        mica_buf_free(&buf);
        return false;
    }
    if (!mica_val_from_buf(run, &buf, out))
        return false;
    out->flags |= markup;
    return true;
}

static bool join_item(mica_run *run, mica_buf *buf, const mica_val *item, bool strict, bool escape, size_t i)
{
    mica_val text = *item;
    if (strict && item->type != MICA_V_STR)
        return mica_run_fail(run, "sequence item %zu: expected str instance, %s found", i, mica_val_type_name(item));
    if (escape && !mica_text_escape(run, item, &text))
        return false;
    return mica_text_write(run, buf, &text);
}

static bool join_all(mica_run *run, mica_buf *buf, const mica_val *sep, const mica_val *items, bool strict)
{
    mica_iter it;
    mica_val item;
    bool done, escape = (sep->flags & MICA_VF_MARKUP) != 0;
    if (!mica_iter_open(run, items, &it))
        return false;
    for (size_t i = 0;; i++) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            return true;
        if (i)
            mica_buf_append(buf, sep->s, sep->len);
        if (!join_item(run, buf, &item, strict && !escape, escape, i) || !mica_run_charge(run, sep->len))
            return false;
        if (!mica_text_ok(run, buf))
            return false;
    }
}

bool mica_strfn_join(mica_run *run, const mica_val *sep, const mica_val *items, bool strict, mica_val *out)
{
    mica_buf buf;
    uint8_t markup = sep->flags & MICA_VF_MARKUP;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!join_all(run, &buf, sep, items, strict)) {
        mica_buf_free(&buf);
        return false;
    }
    if (!mica_val_from_buf(run, &buf, out))
        return false;
    out->flags |= markup;
    return true;
}
