#include "text/tmpl_value.h"

#include "text/tmpl_ops.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Failures and limits ---- */

/* The message may end inside a character where it was cut. */
static void cut_at_character(char *text, size_t size)
{
    size_t n = strlen(text);
    if (n + 1 < size)
        return;
    size_t start = n;
    while (start > 0 && n - start < 4 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start > 0 && ((unsigned char)text[start - 1] & 0x80) != 0)
        text[start - 1] = '\0';
}

void mica_run_record(mica_run *run, const char *format, ...)
{
    if (run->failed)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(run->message, sizeof run->message, format, args);
    va_end(args);
    cut_at_character(run->message, sizeof run->message);
    run->failed = true;
    run->code = MICA_BAD_TEMPLATE;
}

void mica_run_record_no_memory(mica_run *run)
{
    if (run->failed)
        return;
    if (run->arena.refused) {
        mica_run_record(run, "the system refused memory");
        run->code = MICA_OUT_OF_MEMORY;
    } else {
        mica_run_record(run, "the template needs more than %zu MiB of memory", MICA_TMPL_MAX_MEMORY >> 20);
    }
}

bool mica_run_charge(mica_run *run, size_t bytes)
{
    run->steps += 1 + (int64_t)(bytes >> 6);
    if (run->steps <= MICA_TMPL_MAX_STEPS)
        return true;
    return mica_run_fail(run, "the template takes more than %d steps", MICA_TMPL_MAX_STEPS);
}

const char *mica_val_type_name(const mica_val *v)
{
    static const char *const names[] = {
        [MICA_V_MISSING] = "missing", [MICA_V_UNDEFINED] = "Undefined", [MICA_V_NONE] = "NoneType",
        [MICA_V_BOOL] = "bool", [MICA_V_INT] = "int", [MICA_V_FLOAT] = "float", [MICA_V_STR] = "str",
        [MICA_V_LIST] = "list", [MICA_V_TUPLE] = "tuple", [MICA_V_DICT] = "dict",
        [MICA_V_NAMESPACE] = "Namespace", [MICA_V_RANGE] = "range", [MICA_V_GEN] = "generator",
        [MICA_V_FUNCTION] = "function", [MICA_V_METHOD] = "builtin_function_or_method", [MICA_V_MACRO] = "Macro",
        [MICA_V_LOOP] = "LoopContext", [MICA_V_CYCLER] = "Cycler", [MICA_V_JOINER] = "Joiner",
        [MICA_V_SELF] = "TemplateReference",
    };
    if (v->type == MICA_V_VIEW)
        return v->aux == MICA_VIEW_KEYS ? "dict_keys" : v->aux == MICA_VIEW_VALUES ? "dict_values" : "dict_items";
    if (v->type == MICA_V_STR && (v->flags & MICA_VF_MARKUP))
        return "Markup";
    return names[v->type];
}

/* ---- Strings ---- */

void mica_val_scan(mica_val *s)
{
    bool ascii = mica_ustr_is_ascii(s->s, s->len);
    s->flags = (uint8_t)((s->flags & ~MICA_VF_ASCII) | (ascii ? MICA_VF_ASCII : 0));
}

mica_val mica_val_text(const char *text, size_t length)
{
    mica_val v = {.type = MICA_V_STR, .len = (uint32_t)length, .s = text};
    mica_val_scan(&v);
    return v;
}

mica_val mica_val_literal(const char *text) { return mica_val_text(text, strlen(text)); }

bool mica_val_new_text(mica_run *run, size_t length, char **bytes, mica_val *out)
{
    if (length > MICA_TMPL_MAX_TEXT)
        return mica_run_fail(run, "a string would be longer than %zu MiB", MICA_TMPL_MAX_TEXT >> 20);
    if (!mica_run_charge(run, length))
        return false;
    char *p = mica_tarena_bytes(&run->arena, length);
    if (!p)
        return mica_run_no_memory(run);
    *bytes = p;
    *out = (mica_val){.type = MICA_V_STR, .len = (uint32_t)length, .s = p};
    return true;
}

bool mica_val_copy(mica_run *run, const char *text, size_t length, mica_val *out)
{
    char *bytes = NULL;
    if (!mica_val_new_text(run, length, &bytes, out))
        return false;
    if (length)
        memcpy(bytes, text, length);
    mica_val_scan(out);
    return true;
}

bool mica_val_from_buf(mica_run *run, mica_buf *buf, mica_val *out)
{
    bool ok = mica_text_ok(run, buf) && mica_val_copy(run, buf->data ? buf->data : "", buf->length, out);
    mica_buf_free(buf);
    return ok;
}

#define GROWS_FROM 256 /* bytes of a result that gets free room behind it */

static mica_tail *find_tail(mica_run *run, const mica_val *s, size_t more)
{
    for (size_t i = 0; i < MICA_N_TAILS; i++) {
        mica_tail *t = &run->tails[i];
        if (t->end && t->end == s->s + s->len && t->room >= more)
            return t;
    }
    return NULL;
}

/* A place for `n` bytes. If most of them are those of `first`, more is likely to be appended: it gets as much room again. */
static char *place_text(mica_run *run, const mica_val *first, size_t n)
{
    bool grows = n >= GROWS_FROM && first->len > n / 2;
    char *p = mica_tarena_bytes(&run->arena, grows ? 2 * n : n);
    if (!p) {
        mica_run_no_memory(run);
        return NULL;
    }
    if (grows) {
        run->tails[run->next_tail] = (mica_tail){.end = p + n, .room = n};
        run->next_tail = (run->next_tail + 1) % MICA_N_TAILS;
    }
    return p;
}

bool mica_val_join(mica_run *run, const mica_val *parts, size_t n, mica_val *out)
{
    size_t total = 0, at = 0, from = 0;
    uint8_t flags = MICA_VF_ASCII;
    for (size_t i = 0; i < n; i++) {
        total += parts[i].len;
        flags &= parts[i].flags;
        if (total > MICA_TMPL_MAX_TEXT)
            return mica_run_fail(run, "a string would be longer than %zu MiB", MICA_TMPL_MAX_TEXT >> 20);
    }
    const char *start = parts[0].s;
    mica_tail *tail = find_tail(run, &parts[0], total - parts[0].len);
    char *bytes = tail ? tail->end : place_text(run, &parts[0], total);
    if (!bytes)
        return false;
    if (tail) {
        from = 1;
        tail->end += total - parts[0].len;
        tail->room -= total - parts[0].len;
    } else {
        start = bytes;
    }
    for (size_t i = from; i < n; i++) {
        memcpy(bytes + at, parts[i].s, parts[i].len);
        at += parts[i].len;
    }
    *out = (mica_val){.type = MICA_V_STR, .flags = flags, .len = (uint32_t)total, .s = start};
    return mica_run_charge(run, at);
}

bool mica_val_concat(mica_run *run, const mica_val *a, const mica_val *b, mica_val *out)
{
    const mica_val parts[2] = {*a, *b};
    return mica_val_join(run, parts, 2, out);
}

bool mica_val_same_text(const mica_val *a, const mica_val *b)
{
    return a->len == b->len && (a->s == b->s || memcmp(a->s, b->s, a->len) == 0);
}

int mica_val_shown(const mica_val *s)
{
    size_t n = s->len;
    if (n > 80) {
        for (n = 80; n && ((unsigned char)s->s[n] & 0xC0) == 0x80;)
            n--;
    }
    return (int)n;
}

size_t mica_val_count(const mica_val *s)
{
    return s->flags & MICA_VF_ASCII ? s->len : mica_ustr_count(s->s, s->len);
}

mica_val mica_val_sub(const mica_val *s, size_t from, size_t to)
{
    mica_val v = *s;
    if (to < from)
        to = from;
    if (s->flags & MICA_VF_ASCII) {
        v.s = s->s + from;
        v.len = (uint32_t)(to - from);
        return v;
    }
    size_t a = mica_ustr_offset(s->s, s->len, from);
    size_t b = a + mica_ustr_offset(s->s + a, s->len - a, to - from);
    v.s = s->s + a;
    v.len = (uint32_t)(b - a);
    mica_val_scan(&v);
    return v;
}

/* ---- Undefined ---- */

mica_val mica_val_undefined_name(const mica_val *name)
{
    return (mica_val){.type = MICA_V_UNDEFINED, .aux = MICA_UNDEF_NAME, .len = name->len, .s = name->s};
}

mica_val mica_val_undefined_hint(const char *hint)
{
    return (mica_val){.type = MICA_V_UNDEFINED, .aux = MICA_UNDEF_HINT, .len = (uint32_t)strlen(hint), .s = hint};
}

/* The type of the object travels in `flags`; a name that is not a string becomes a whole message. */
bool mica_val_undefined_attr(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out)
{
    if (name->type == MICA_V_STR) {
        *out = (mica_val){.type = MICA_V_UNDEFINED, .flags = object->type, .aux = MICA_UNDEF_ATTR};
        out->len = name->len;
        out->s = name->s;
        return true;
    }
    char text[160];
    if (name->type == MICA_V_INT)
        snprintf(text, sizeof text, "%s object has no element %lld", mica_val_type_name(object), (long long)name->i);
    else
        snprintf(text, sizeof text, "%s object has no such element", mica_val_type_name(object));
    if (!mica_val_copy(run, text, strlen(text), out))
        return false;
    out->type = MICA_V_UNDEFINED;
    out->flags = 0;
    out->aux = MICA_UNDEF_HINT;
    return true;
}

void mica_run_record_undefined(mica_run *run, const mica_val *v)
{
    mica_val object = {.type = v->flags};
    if (v->aux == MICA_UNDEF_NAME)
        mica_run_record(run, "'%.*s' is undefined", MICA_SHOW(v));
    else if (v->aux == MICA_UNDEF_HINT) /* a message of this interpreter, so not long */
        mica_run_record(run, "%.*s", (int)v->len, v->s);
    else
        mica_run_record(run, "'%s object' has no attribute '%.*s'", mica_val_type_name(&object), MICA_SHOW(v));
}

/* ---- Lists ---- */

bool mica_seq_new(mica_run *run, mica_vtype type, size_t capacity, mica_val *out)
{
    mica_seq *seq = mica_tarena_alloc(&run->arena, sizeof *seq);
    mica_val *items = capacity ? mica_tarena_array(&run->arena, capacity, sizeof *items) : NULL;
    if (!seq || (capacity && !items))
        return mica_run_no_memory(run);
    *seq = (mica_seq){.capacity = capacity, .items = items};
    *out = (mica_val){.type = (uint8_t)type, .seq = seq};
    return true;
}

bool mica_seq_push(mica_run *run, mica_val *list, const mica_val *item)
{
    mica_seq *seq = list->seq;
    if (seq->n == seq->capacity) {
        size_t capacity = seq->capacity ? seq->capacity * 2 : 4;
        mica_val *items = mica_tarena_array(&run->arena, capacity, sizeof *items);
        if (!items)
            return mica_run_no_memory(run);
        if (seq->n)
            memcpy(items, seq->items, seq->n * sizeof *items);
        seq->items = items;
        seq->capacity = capacity;
    }
    seq->items[seq->n++] = *item;
    return true;
}

bool mica_tuple_new(mica_run *run, const mica_val *items, size_t n, mica_val *out)
{
    if (!mica_seq_new(run, MICA_V_TUPLE, n, out))
        return false;
    if (n)
        memcpy(out->seq->items, items, n * sizeof *items);
    out->seq->n = n;
    return true;
}

/* ---- Dicts ---- */

#define INDEXED_FROM 8 /* pairs that are searched in order */

bool mica_dict_new(mica_run *run, mica_vtype type, size_t capacity, mica_val *out)
{
    mica_dict *dict = mica_tarena_alloc(&run->arena, sizeof *dict);
    mica_pair *pairs = capacity ? mica_tarena_array(&run->arena, capacity, sizeof *pairs) : NULL;
    if (!dict || (capacity && !pairs))
        return mica_run_no_memory(run);
    *dict = (mica_dict){.capacity = capacity, .pairs = pairs};
    *out = (mica_val){.type = (uint8_t)type, .dict = dict};
    return true;
}

static void index_pair(mica_dict *dict, size_t i)
{
    size_t slot = (size_t)dict->pairs[i].hash & (dict->n_index - 1);
    while (dict->index[slot])
        slot = (slot + 1) & (dict->n_index - 1);
    dict->index[slot] = (uint32_t)i + 1;
}

/* Room for one more pair, in the array and in the index (at most half full). */
static bool dict_reserve(mica_run *run, mica_dict *dict)
{
    if (dict->n == dict->capacity) {
        size_t capacity = dict->capacity ? dict->capacity * 2 : 4;
        mica_pair *pairs = mica_tarena_array(&run->arena, capacity, sizeof *pairs);
        if (!pairs)
            return mica_run_no_memory(run);
        if (dict->n)
            memcpy(pairs, dict->pairs, dict->n * sizeof *pairs);
        dict->pairs = pairs;
        dict->capacity = capacity;
    }
    if (dict->n < INDEXED_FROM || (dict->n + 1) * 2 <= dict->n_index)
        return true;
    size_t n_index = dict->n_index ? dict->n_index * 2 : 4 * INDEXED_FROM;
    uint32_t *index = mica_tarena_array(&run->arena, n_index, sizeof *index);
    if (!index)
        return mica_run_no_memory(run);
    dict->index = index;
    dict->n_index = n_index;
    for (size_t i = 0; i < dict->n; i++)
        index_pair(dict, i);
    return true;
}

static bool same_key(mica_run *run, const mica_val *a, const mica_val *b, bool *same)
{
    if (a->type == MICA_V_STR && b->type == MICA_V_STR) {
        *same = mica_val_same_text(a, b);
        return true;
    }
    return mica_val_equal(run, a, b, same);
}

/* Number of the pair with this key, or dict->n. */
static bool dict_locate(mica_run *run, const mica_dict *dict, const mica_val *key, uint64_t hash, size_t *at)
{
    bool same = false;
    if (!dict->n_index) {
        for (size_t i = 0; i < dict->n; i++) {
            if (dict->pairs[i].hash == hash && !same_key(run, &dict->pairs[i].key, key, &same))
                return false;
            if (dict->pairs[i].hash == hash && same) {
                *at = i;
                return true;
            }
        }
        *at = dict->n;
        return true;
    }
    for (size_t slot = (size_t)hash & (dict->n_index - 1); dict->index[slot]; slot = (slot + 1) & (dict->n_index - 1)) {
        size_t i = dict->index[slot] - 1;
        if (dict->pairs[i].hash != hash)
            continue;
        if (!same_key(run, &dict->pairs[i].key, key, &same))
            return false;
        if (same) {
            *at = i;
            return true;
        }
    }
    *at = dict->n;
    return true;
}

bool mica_dict_set(mica_run *run, mica_dict *dict, const mica_val *key, const mica_val *value)
{
    uint64_t hash;
    size_t at;
    if (!mica_val_hash(run, key, &hash) || !dict_locate(run, dict, key, hash, &at))
        return false;
    if (at < dict->n) {
        dict->pairs[at].value = *value;
        return true;
    }
    if (!dict_reserve(run, dict))
        return false;
    dict->pairs[dict->n] = (mica_pair){.key = *key, .value = *value, .hash = hash};
    dict->n++;
    if (dict->n_index)
        index_pair(dict, dict->n - 1);
    return true;
}

bool mica_dict_find(mica_run *run, const mica_dict *dict, const mica_val *key, const mica_val **value)
{
    uint64_t hash;
    size_t at;
    if (!mica_val_hash(run, key, &hash) || !dict_locate(run, dict, key, hash, &at))
        return false;
    *value = at < dict->n ? &dict->pairs[at].value : NULL;
    return true;
}

const mica_val *mica_dict_get(const mica_run *run, const mica_dict *dict, const char *key, size_t length)
{
    if (!dict->n_index) {
        for (size_t i = 0; i < dict->n; i++) {
            const mica_val *k = &dict->pairs[i].key;
            if (k->type == MICA_V_STR && mica_val_is(k, key, length))
                return &dict->pairs[i].value;
        }
        return NULL;
    }
    uint64_t hash = mica_ustr_hash(key, length, run->hash_seed);
    for (size_t slot = (size_t)hash & (dict->n_index - 1); dict->index[slot]; slot = (slot + 1) & (dict->n_index - 1)) {
        const mica_pair *p = &dict->pairs[dict->index[slot] - 1];
        if (p->hash == hash && p->key.type == MICA_V_STR && mica_val_is(&p->key, key, length))
            return &p->value;
    }
    return NULL;
}
