/* schema_ref.c - where $ref leads: JSON pointers, $anchor and $id inside the document. Nothing is ever fetched. */
#include "constraint/schema_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- URI references (RFC 3986, 5.2), as far as identities inside one document need them ---- */

typedef struct uri_parts {
    const char *scheme, *authority, *path, *query; /* NULL: absent (path never is) */
    size_t scheme_n, authority_n, path_n, query_n;
} uri_parts;

/* `uri` has no fragment. */
static uri_parts split_uri(const char *uri, size_t n)
{
    uri_parts p = {0};
    size_t i = strcspn(uri, ":/?");
    if (i < n && i > 0 && uri[i] == ':') {
        p.scheme = uri;
        p.scheme_n = i;
        uri += i + 1;
        n -= i + 1;
    }
    if (n >= 2 && uri[0] == '/' && uri[1] == '/') {
        p.authority = uri + 2;
        p.authority_n = strcspn(uri + 2, "/?");
        p.authority_n = p.authority_n < n - 2 ? p.authority_n : n - 2;
        uri += p.authority_n + 2;
        n -= p.authority_n + 2;
    }
    p.path = uri;
    p.path_n = strcspn(uri, "?");
    p.path_n = p.path_n < n ? p.path_n : n;
    if (p.path_n < n) {
        p.query = uri + p.path_n + 1;
        p.query_n = n - p.path_n - 1;
    }
    return p;
}

/* Removes "." and ".." from a path, in place; returns the new length. */
static size_t remove_dots(char *path, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && path[end] != '/')
            end++;
        size_t from = path[i] == '/' ? i + 1 : i, length = end - from;
        bool one = length == 1 && path[from] == '.', two = length == 2 && path[from] == '.' && path[from + 1] == '.';
        if (two)
            while (out > 0 && path[--out] != '/') {
            }
        if (one || two) {
            if (end >= n && path[i] == '/')
                path[out++] = '/';
        } else {
            memmove(path + out, path + i, end - i);
            out += end - i;
        }
        i = end;
    }
    return out;
}

/* The path of a reference, or merged with that of the base. */
static void put_path(mica_buf *out, const uri_parts *base, const uri_parts *ref, bool merged)
{
    size_t start = out->length, keep = 0;
    if (merged && ref->path_n && ref->path[0] != '/') {
        for (size_t i = 0; i < base->path_n; i++)
            if (base->path[i] == '/')
                keep = i + 1;
        if (base->authority && base->path_n == 0)
            mica_buf_putc(out, '/');
        mica_buf_append(out, base->path, keep);
    }
    mica_buf_append(out, ref->path, ref->path_n);
    if (!out->failed && out->length > start)
        out->length = start + remove_dots(out->data + start, out->length - start);
}

/* The absolute form of ref[0..n) (without fragment), in the arena. NULL: failed. */
static const char *resolve_uri(mica_schema_compiler *c, const char *base_uri, const char *ref, size_t n)
{
    uri_parts base = split_uri(base_uri, strlen(base_uri)), r = split_uri(ref, n);
    const uri_parts *scheme = r.scheme ? &r : &base, *authority = r.scheme || r.authority ? &r : &base;
    bool merged = !r.scheme && !r.authority, same = merged && r.path_n == 0;
    const uri_parts *query = same && !r.query ? &base : &r;
    mica_buf out;
    mica_buf_init(&out, 1 << 20);
    if (scheme->scheme) {
        mica_buf_append(&out, scheme->scheme, scheme->scheme_n);
        mica_buf_putc(&out, ':');
    }
    if (authority->authority) {
        mica_buf_puts(&out, "//");
        mica_buf_append(&out, authority->authority, authority->authority_n);
    }
    if (same)
        mica_buf_append(&out, base.path, base.path_n);
    else
        put_path(&out, &base, &r, merged);
    if (query->query) {
        mica_buf_putc(&out, '?');
        mica_buf_append(&out, query->query, query->query_n);
    }
    char *text = out.failed ? NULL : mica_schema_alloc(c, out.length + 1, 1);
    if (text && out.length)
        memcpy(text, out.data, out.length);
    if (!text && !c->status)
        c->status = mica_fail_nomem(c->err, n, "a reference of a JSON schema");
    mica_buf_free(&out);
    return text;
}

/* ---- Resources ---- */

static bool key_is_one_of(const mica_jvalue *v, const char *const *keys, size_t n)
{
    for (size_t i = 0; v && v->key && i < n; i++)
        if (strcmp(v->key, keys[i]) == 0)
            return true;
    return false;
}

/* Values in which "$id" means nothing: they are data, not schemas. (A property may be called "enum" as well.) */
static bool is_data(const mica_jvalue *v)
{
    static const char *const data[] = {"const", "enum", "default", "examples", "example"};
    static const char *const names[] = {"properties", "patternProperties", "$defs", "definitions"};
    return key_is_one_of(v, data, sizeof data / sizeof *data) && !key_is_one_of(v->parent, names, sizeof names / sizeof *names);
}

/* Whether a value lies in data; only then is its $id or $anchor not one. Depth is bounded by the parser. */
static bool inside_data(const mica_jvalue *v)
{
    for (; v; v = v->parent)
        if (is_data(v))
            return true;
    return false;
}

static const char *uri_of(const mica_schema_compiler *c, const mica_jvalue *v, const mica_jvalue **resource)
{
    for (; v; v = v->parent)
        for (int32_t i = c->n_resources - 1; i >= 0; i--)
            if (c->resources[i].schema == v) {
                *resource = v;
                return c->resources[i].uri;
            }
    *resource = c->values[0];
    return "";
}

bool mica_schema_find_resources(mica_schema_compiler *c)
{
    const mica_jvalue *resource;
    int32_t n = 1;
    for (int32_t i = 0; i < c->n_values; i++)
        n += mica_json_get(c->values[i], "$id") != NULL;
    c->resources = mica_schema_alloc(c, (size_t)n, sizeof *c->resources);
    if (!c->resources)
        return false;
    c->resources[c->n_resources++] = (mica_sresource){.schema = c->values[0], .uri = ""};
    for (int32_t i = 0; i < c->n_values; i++) { /* parents come before what is in them */
        const mica_jvalue *v = c->values[i], *id = mica_json_get(v, "$id");
        if (!id || id->kind != MICA_J_STRING || inside_data(v))
            continue;
        const char *uri = resolve_uri(c, uri_of(c, v, &resource), id->text, strcspn(id->text, "#"));
        if (!uri)
            return false;
        if (i == 0)
            c->resources[0].uri = uri;
        else if (uri[0])
            c->resources[c->n_resources++] = (mica_sresource){.schema = v, .uri = uri};
    }
    return true;
}

/* ---- Fragments ---- */

static int hex_digit(char ch)
{
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

/* %-escapes, in place; returns the new length. */
static size_t unescape(char *text, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '%' && i + 2 < n && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
            text[out++] = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            text[out++] = text[i];
        }
    }
    text[out] = '\0';
    return out;
}

/* One step of a pointer: ~0 and ~1 in place. */
static size_t unescape_step(char *text, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        bool escaped = text[i] == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1');
        text[out++] = escaped ? text[i + 1] == '0' ? '~' : '/' : text[i];
        i += escaped;
    }
    return out;
}

static const mica_jvalue *item_at(const mica_jvalue *array, const char *text, size_t n)
{
    int64_t index = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || index > INT32_MAX)
            return NULL;
        index = index * 10 + (text[i] - '0');
    }
    return n && index < array->n ? &array->items[index] : NULL;
}

/* "/a/b": a pointer from `v`. `pointer` is changed. */
static const mica_jvalue *follow_pointer(const mica_jvalue *v, char *pointer, size_t n)
{
    size_t i = 0;
    while (v && i < n) {
        size_t end = i + 1;
        while (end < n && pointer[end] != '/')
            end++;
        char *step = pointer + i + 1;
        size_t length = unescape_step(step, end - i - 1);
        v = v->kind == MICA_J_ARRAY ? item_at(v, step, length) : mica_json_get_n(v, step, length);
        i = end;
    }
    return v;
}

static const mica_jvalue *find_anchor(mica_schema_compiler *c, const mica_jvalue *resource, const char *name)
{
    const mica_jvalue *own;
    for (int32_t i = 0; i < c->n_values; i++) {
        const mica_jvalue *v = c->values[i];
        bool named = v->kind == MICA_J_OBJECT && (mica_json_is_text(mica_json_get(v, "$anchor"), name) ||
                                                  mica_json_is_text(mica_json_get(v, "$dynamicAnchor"), name));
        if (!named || inside_data(v))
            continue;
        uri_of(c, v, &own);
        if (own == resource)
            return v;
    }
    return NULL;
}

static const mica_jvalue *find_resource(const mica_schema_compiler *c, const char *uri)
{
    for (int32_t i = 0; i < c->n_resources; i++)
        if (strcmp(c->resources[i].uri, uri) == 0)
            return c->resources[i].schema;
    return NULL;
}

const mica_jvalue *mica_schema_resolve(mica_schema_compiler *c, const mica_jvalue *ref)
{
    const mica_jvalue *resource, *target;
    const char *base = uri_of(c, ref, &resource);
    size_t n = strcspn(ref->text, "#");
    if (n) {
        const char *uri = resolve_uri(c, base, ref->text, n);
        resource = uri ? find_resource(c, uri) : NULL;
        if (!resource) {
            mica_schema_fail(c, MICA_UNSUPPORTED, ref, NULL,
                             "\"%.100s\" is not a part of this schema, and references are never fetched: put it under $defs",
                             ref->text);
            return NULL;
        }
    }
    size_t length = ref->text[n] == '#' ? ref->length - n - 1 : 0;
    char *fragment = mica_schema_alloc(c, length + 1, 1);
    if (!fragment)
        return NULL;
    memcpy(fragment, ref->text + n + (length ? 1 : 0), length);
    length = unescape(fragment, length);
    if (length && fragment[0] != '/')
        target = find_anchor(c, resource, fragment);
    else
        target = follow_pointer(resource, fragment, length);
    if (!target)
        mica_schema_fail(c, MICA_BAD_TEXT, ref, NULL, "\"%.100s\" leads nowhere", ref->text);
    return target;
}
