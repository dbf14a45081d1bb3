/* json.h - JSON where memory is short. It is built so that what could not be made is noticed: an object or array for one of
 * whose members there was no memory becomes NULL, and so does everything that it is put into. Whoever turns the whole into text
 * sees it there, once. */
#ifndef MICA_BASE_JSON_H
#define MICA_BASE_JSON_H
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline void mica_json_set(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new(*object, key, value) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

static inline void mica_json_add(json_t **array, json_t *value)
{
    if (json_array_append_new(*array, value) != 0) {
        json_decref(*array);
        *array = NULL;
    }
}

/** json_loadb() that fails without memory, and says so: jansson 2.14 drops a character of the text when its buffer cannot grow,
 * and calls other texts malformed. So a text is read twice, which is cheap beside whatever it is read for, and an error is one
 * only if it comes again. mica_json_no_memory() tells lack of memory from text that is no JSON. `why` may be NULL. */
static inline json_t *mica_json_loadb(const char *text, size_t length, size_t flags, json_error_t *why)
{
    json_error_t ours, again;
    why = why ? why : &ours;
    errno = 0;
    json_t *value = json_loadb(text, length, flags, why);
    bool lost = errno == ENOMEM; /* jansson forgets it when it reads a number */
    json_t *same = lost ? NULL : json_loadb(text, length, flags, &again);
    lost = lost || errno == ENOMEM || (value ? !json_equal(value, same) : same != NULL);
    json_decref(same);
    if (!lost)
        return value;
    json_decref(value);
    memset(why->text, 0, sizeof why->text);
    memcpy(why->text, "out of memory", sizeof "out of memory"); /* whoever does not ask says that */
    why->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory; /* where jansson keeps the code */
    return NULL;
}

/** json_dumps() that fails without memory: jansson 2.14 may leave a piece out instead. NULL for NULL. */
static inline char *mica_json_dumps(const json_t *value, size_t flags)
{
    errno = 0;
    char *text = value ? json_dumps(value, flags) : NULL;
    if (errno != ENOMEM)
        return text;
    free(text);
    return NULL;
}

static inline json_t *mica_json_loads(const char *text, size_t flags, json_error_t *why)
{
    return mica_json_loadb(text, strlen(text), flags, why);
}

static inline bool mica_json_no_memory(const json_error_t *why) { return json_error_code(why) == json_error_out_of_memory; }

#endif
