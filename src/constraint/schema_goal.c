/* schema_goal.c - memory, failure and the table of goals. */
#include "constraint/schema_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/utf8.h"

void *mica_schema_alloc(mica_schema_compiler *c, size_t count, size_t size)
{
    void *p = mica_tarena_array(&c->arena, count ? count : 1, size);
    if (!p && !c->status)
        c->status = c->arena.refused ? mica_fail_nomem(c->err, count * size, "a JSON schema")
                                     : mica_fail(c->err, MICA_INVALID_ARGUMENT,
                                                 "the JSON schema is too large: it needs more than %u MiB to compile",
                                                 MICA_SCHEMA_MAX_BYTES >> 20);
    return p;
}

/* ---- Failure ---- */

/* Formats into 320 bytes; ends in front of a character that was cut. */
__attribute__((format(printf, 2, 0))) static void format_message(char message[320], const char *format, va_list args)
{
    vsnprintf(message, 320, format, args);
    message[mica_utf8_check(message, strlen(message))] = '\0';
}

bool mica_schema_fail(mica_schema_compiler *c, mica_status code, const mica_jvalue *at, const char *keyword, const char *format,
                      ...)
{
    char place[160], message[320];
    va_list args;
    if (c->status)
        return false;
    va_start(args, format);
    format_message(message, format, args);
    va_end(args);
    mica_json_pointer(at, keyword, place, sizeof place);
    c->status = mica_fail(c->err, code, "%s: %s", place, message);
    return false;
}

bool mica_schema_unenforced(mica_schema_compiler *c, const mica_jvalue *at, const char *keyword, const char *format, ...)
{
    char place[160], message[320], line[512];
    va_list args;
    const mica_jvalue *about = keyword ? mica_json_get(at, keyword) : at;
    if (c->status)
        return false;
    va_start(args, format);
    format_message(message, format, args);
    va_end(args);
    if (!c->options.lenient)
        return mica_schema_fail(c, MICA_UNSUPPORTED, at, keyword, "%s", message);
    if (about && (c->checked[about->id] & MICA_S_WARNED))
        return true; /* met again on another way to it */
    if (about)
        c->checked[about->id] |= MICA_S_WARNED;
    mica_json_pointer(at, keyword, place, sizeof place);
    snprintf(line, sizeof line, "%s: %s", place, message);
    if (c->options.on_warning)
        c->options.on_warning(c->options.user, line);
    return true;
}

void mica_schema_note_empty(mica_schema_compiler *c, const mica_jvalue *at, const char *keyword, const char *why)
{
    char place[160];
    if (c->why_empty[0])
        return;
    mica_json_pointer(at, keyword, place, sizeof place);
    snprintf(c->why_empty, sizeof c->why_empty, "%s %s", place, why);
}

const mica_regular *mica_schema_own(mica_schema_compiler *c, mica_status status, mica_regular *r, const mica_error *err,
                                    const mica_jvalue *at, const char *keyword)
{
    if (status) {
        mica_schema_fail(c, status, at, keyword, "%s", err->message);
        return NULL;
    }
    if (c->n_owned == c->owned_capacity) {
        int32_t capacity = c->owned_capacity ? c->owned_capacity * 2 : 16;
        mica_regular **owned = realloc(c->owned, (size_t)capacity * sizeof(*owned));
        if (!owned) {
            mica_regular_free(r);
            c->status = c->status ? c->status : mica_fail_nomem(c->err, (size_t)capacity * sizeof(*owned), "a JSON schema");
            return NULL;
        }
        c->owned = owned;
        c->owned_capacity = capacity;
    }
    c->owned[c->n_owned++] = r;
    return r;
}

/* ---- Goals ---- */

static int by_id(const void *a, const void *b)
{
    const mica_jvalue *x, *y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x->id > y->id) - (x->id < y->id);
}

static size_t slot_of(const mica_schema_compiler *c, const mica_jvalue *const *schemas, int32_t n)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (int32_t i = 0; i < n; i++)
        hash = (hash ^ (uint64_t)schemas[i]->id) * 0x9E3779B97F4A7C15u;
    size_t mask = (size_t)c->n_goal_slots - 1, slot = (size_t)(hash >> 32) & mask;
    for (mica_sgoal *goal; (goal = c->goals[slot]); slot = (slot + 1) & mask)
        if (goal->n == n && memcmp(goal->schemas, schemas, (size_t)n * sizeof(*schemas)) == 0)
            break;
    return slot;
}

static bool grow_goals(mica_schema_compiler *c)
{
    if (c->n_goals * 2 < c->n_goal_slots)
        return true;
    int32_t n_old = c->n_goal_slots;
    mica_sgoal **old = c->goals;
    mica_sgoal **slots = mica_schema_alloc(c, n_old ? (size_t)n_old * 2 : 64, sizeof(*slots));
    if (!slots)
        return false;
    c->goals = slots;
    c->n_goal_slots = n_old ? n_old * 2 : 64;
    for (int32_t i = 0; i < n_old; i++)
        if (old[i])
            c->goals[slot_of(c, old[i]->schemas, old[i]->n)] = old[i];
    return true;
}

/* Follows references, so that all references to one schema are one goal. One that leads in a circle stays as it is: expanding
 * it is an error, with its place. */
static bool follow_references(mica_schema_compiler *c, const mica_jvalue **schema)
{
    const mica_jvalue *to = *schema, *next = NULL;
    int steps = 0;
    while (mica_schema_stands_for(c, to, &next) && next && steps++ < MICA_SCHEMA_MAX_DEPTH)
        to = next;
    if (!next)
        *schema = to;
    return !c->status;
}

mica_sgoal *mica_schema_goal(mica_schema_compiler *c, const mica_jvalue **schemas, int32_t n)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++)
        if (!follow_references(c, &schemas[i]))
            return NULL;
    if (!grow_goals(c))
        return NULL;
    if (n > 1)
        qsort(schemas, (size_t)n, sizeof(*schemas), by_id);
    for (int32_t i = 0; i < n; i++)
        if (schemas[i]->kind != MICA_J_TRUE && (kept == 0 || schemas[kept - 1] != schemas[i]))
            schemas[kept++] = schemas[i];
    size_t slot = slot_of(c, schemas, kept);
    if (c->goals[slot])
        return c->goals[slot];
    if (c->n_goals >= MICA_SCHEMA_MAX_GOALS) {
        mica_schema_fail(c, MICA_INVALID_ARGUMENT, n ? schemas[0] : c->values[0], NULL,
                         "the schema is too large: more than %d combinations of subschemas", MICA_SCHEMA_MAX_GOALS);
        return NULL;
    }
    mica_sgoal *goal = mica_schema_alloc(c, 1, sizeof *goal);
    const mica_jvalue **copy = mica_schema_alloc(c, (size_t)kept, sizeof(*copy));
    if (!goal || !copy)
        return NULL;
    if (kept)
        memcpy(copy, schemas, (size_t)kept * sizeof(*copy));
    *goal = (mica_sgoal){.schemas = copy, .n = kept, .rule = -1};
    c->goals[slot] = goal;
    c->n_goals++;
    return goal;
}
