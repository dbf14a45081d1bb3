#include "session/require.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum value_kind { NOTHING, WORD, HASH, COUNT, NUMBER } value_kind;

static const struct row {
    const char *name;
    mica_require_kind kind;
    value_kind value;
    const char *unit; /* of NUMBER */
} rows[] = {
    {"kernels", MICA_REQUIRE_KERNELS, WORD, ""},
    {"kv", MICA_REQUIRE_KV, WORD, ""},
    {"model", MICA_REQUIRE_MODEL, HASH, ""},
    {"template", MICA_REQUIRE_TEMPLATE, HASH, ""},
    {"threads", MICA_REQUIRE_THREADS, COUNT, ""},
    {"ctx", MICA_REQUIRE_CTX, COUNT, ""},
    {"no_drop", MICA_REQUIRE_NO_DROP, NOTHING, ""},
    {"not_throttled", MICA_REQUIRE_NOT_THROTTLED, NOTHING, ""},
    {"max_temp", MICA_REQUIRE_MAX_TEMP, NUMBER, " C"},
    {"max_joules", MICA_REQUIRE_MAX_JOULES, NUMBER, " J"},
    {"min_battery", MICA_REQUIRE_MIN_BATTERY, NUMBER, " %"},
    {"on_mains", MICA_REQUIRE_ON_MAINS, NOTHING, ""},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static const char known[] =
    "kernels=NAME, kv=TYPE, model=SHA256, template=SHA256, threads>=N, ctx>=N (also = and <=), no_drop, "
    "not_throttled, max_temp=C, max_joules=J, min_battery=PERCENT, on_mains";

/* ---- Parsing ---- */

static mica_status refuse_text(const char *text, const char *why, mica_error *err)
{
    return mica_fail(err, MICA_INVALID_ARGUMENT, "the condition \"%.60s\" %s; there are %s", text, why, known);
}

static const struct row *row_of(const char *text, size_t length)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, text, length) == 0)
            return &rows[i];
    return NULL;
}

/* "=", "<=" or ">=" at *at, which goes behind it; '\0': none of them. */
static char take_relation(const char **at)
{
    char first = **at;
    if (first == '=') {
        (*at)++;
        return '=';
    }
    if ((first != '<' && first != '>') || (*at)[1] != '=')
        return '\0';
    *at += 2;
    return first;
}

static bool is_hash(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");
    return n >= 8 && n <= 64 && text[n] == '\0'; /* fewer digits would name many models */
}

/* A number that is written out: strtod alone would take blanks, names and hexadecimals. */
static bool read_number(const char *text, bool whole, double *out)
{
    char *end;
    if (!*text || strspn(text, whole ? "0123456789" : "0123456789.") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out) && *out <= 1e9;
}

mica_status mica_condition_parse(const char *text, mica_condition *out, mica_error *err)
{
    size_t name = strcspn(text, "=<>");
    if (strlen(text) >= sizeof out->text)
        return refuse_text(text, "is too long", err);
    const struct row *row = row_of(text, name);
    if (!row)
        return refuse_text(text, "is unknown", err);
    *out = (mica_condition){.kind = row->kind};
    snprintf(out->text, sizeof out->text, "%s", text);
    const char *at = out->text + name;
    if (row->value == NOTHING)
        return *at ? refuse_text(text, "takes no value", err) : MICA_OK;
    out->relation = take_relation(&at);
    out->value = at;
    if (out->relation != '=' && (row->value != COUNT || !out->relation))
        return refuse_text(text, "must have a value behind =", err);
    bool good = row->value == WORD   ? *at != '\0'
                : row->value == HASH ? is_hash(at)
                                     : read_number(at, row->value == COUNT, &out->number);
    return good ? MICA_OK : refuse_text(text, "has a value that cannot be", err);
}

bool mica_condition_watches(const mica_condition *c) { return c->kind >= MICA_REQUIRE_NOT_THROTTLED; }

/* ---- Checking ---- */

static mica_status refuse(const mica_condition *c, const char *is, mica_error *err)
{
    return mica_fail(err, MICA_REFUSED, "%s is required, but %s", c->text, is);
}

static mica_status refuse_word(const mica_condition *c, const char *what, const char *is, mica_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "%s %s", what, *is ? is : "not known");
    return refuse(c, text, err);
}

static mica_status check_word(const mica_condition *c, const char *what, const char *is, mica_error *err)
{
    return strcmp(c->value, is) == 0 ? MICA_OK : refuse_word(c, what, is, err);
}

static mica_status check_hash(const mica_condition *c, const char *what, const char *is, mica_error *err)
{
    return *is && strncmp(c->value, is, strlen(c->value)) == 0 ? MICA_OK : refuse_word(c, what, is, err);
}

static mica_status check_count(const mica_condition *c, const char *what, int32_t is, mica_error *err)
{
    char text[64];
    bool holds = c->relation == '=' ? is == c->number : c->relation == '<' ? is <= c->number : is >= c->number;
    snprintf(text, sizeof text, "there are %d %s", is, what);
    return holds ? MICA_OK : refuse(c, text, err);
}

/* `is` NAN: nothing tells it. `most`: the condition is an upper bound. */
static mica_status check_number(const mica_condition *c, const char *what, double is, bool most, mica_error *err)
{
    char text[120];
    const char *unit = "";
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].kind == c->kind)
            unit = rows[i].unit;
    if (isnan(is))
        snprintf(text, sizeof text, "nothing on this machine tells %s", what);
    else
        snprintf(text, sizeof text, "%s is %.1f%s", what, is, unit);
    return !isnan(is) && (most ? is <= c->number : is >= c->number) ? MICA_OK : refuse(c, text, err);
}

static mica_status check_throttled(const mica_condition *c, const mica_require_facts *f, mica_error *err)
{
    char evidence[96], text[160];
    if (f->throttled == MICA_NO)
        return MICA_OK;
    mica_throttle_text(f->throttle, evidence);
    if (f->throttled == MICA_UNKNOWN)
        snprintf(text, sizeof text, "nothing on this machine tells whether it is throttled");
    else
        snprintf(text, sizeof text, "the machine is throttled (%s)", evidence);
    return refuse(c, text, err);
}

mica_status mica_condition_check(const mica_condition *c, const mica_require_facts *f, mica_error *err)
{
    double celsius = f->temp_mc == MICA_UNKNOWN_MC ? NAN : f->temp_mc / 1000.0;
    switch (c->kind) {
    case MICA_REQUIRE_KERNELS:
        return check_word(c, "the kernel set is", f->kernels, err);
    case MICA_REQUIRE_KV: {
        mica_status status = check_word(c, "the keys are", f->kv_k, err);
        return status ? status : check_word(c, "the values are", f->kv_v, err);
    }
    case MICA_REQUIRE_MODEL:
        return check_hash(c, "the model's SHA-256 is", f->model, err);
    case MICA_REQUIRE_TEMPLATE:
        return check_hash(c, "the template's SHA-256 is", f->chat_template, err);
    case MICA_REQUIRE_THREADS:
        return check_count(c, "threads", f->n_threads, err);
    case MICA_REQUIRE_CTX:
        return check_count(c, "tokens of context", f->n_ctx, err);
    case MICA_REQUIRE_NO_DROP:
        return f->dropped_n == 0 ? MICA_OK : refuse(c, "the context is full and tokens would be dropped", err);
    case MICA_REQUIRE_NOT_THROTTLED:
        return check_throttled(c, f, err);
    case MICA_REQUIRE_MAX_TEMP:
        return check_number(c, "the temperature", celsius, true, err);
    case MICA_REQUIRE_MAX_JOULES:
        return check_number(c, "the energy of this reply", f->joules, true, err);
    case MICA_REQUIRE_MIN_BATTERY: /* without a battery there is nothing to spare */
        return f->battery == MICA_BATTERY_NONE ? MICA_OK
                                               : check_number(c, "the battery's level", f->battery_level * 100, false, err);
    case MICA_REQUIRE_ON_MAINS:
        return f->on_mains == MICA_YES || f->battery == MICA_BATTERY_NONE
                   ? MICA_OK
                   : refuse(c,
                            f->on_mains == MICA_NO ? "the machine runs on its battery"
                                                   : "nothing on this machine tells what it runs on",
                            err);
    }
    return refuse(c, "it is unknown", err);
}

void mica_throttle_text(unsigned throttle, char out[96])
{
    static const char *const names[] = {"cooling", "limit", "trip", "counter", "reported", "quota"};
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (throttle >> i & 1)
            n += (size_t)snprintf(out + n, 96 - n, "%s%s", n ? ", " : "", names[i]); /* 46 bytes all together */
}
