#include "bench/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json_file.h"

/* ---- Members ---- */

typedef struct reader {
    const json_t *object;
    const char *where; /* "phase 3", for messages */
    size_t n_read;     /* members of the object that were asked for and there */
    mica_error *err;
    mica_status status; /* of the first failure */
} reader;

static void refuse(reader *r, const char *member, const char *wanted)
{
    if (!r->status)
        r->status = mica_fail(r->err, MICA_BAD_TEXT, "the protocol's %s: \"%s\" must be %s", r->where, member, wanted);
}

/* The member; NULL if it is not there, which is an error unless it is optional. */
static const json_t *member_of(reader *r, const char *name, bool optional, const char *wanted)
{
    const json_t *value = json_object_get(r->object, name);
    if (value)
        r->n_read++;
    else if (!optional)
        refuse(r, name, wanted);
    return value;
}

/* A number in [low, high]; `otherwise` where it is not there and not NAN, which makes it required. */
static double get_real(reader *r, const char *name, double low, double high, double otherwise)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, "a number from %g to %g", low, high);
    const json_t *value = member_of(r, name, !isnan(otherwise), wanted);
    if (!value)
        return otherwise;
    if (json_is_number(value) && json_number_value(value) >= low && json_number_value(value) <= high)
        return json_number_value(value);
    refuse(r, name, wanted);
    return low;
}

static int64_t get_int(reader *r, const char *name, int64_t low, int64_t high, int64_t otherwise)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)low, (long long)high);
    const json_t *value = member_of(r, name, otherwise >= 0, wanted);
    if (!value)
        return otherwise;
    if (json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high)
        return json_integer_value(value);
    refuse(r, name, wanted);
    return low;
}

static void get_text(reader *r, const char *name, char *out, size_t size)
{
    const json_t *value = member_of(r, name, false, "a text");
    size_t length = json_string_length(value);
    if (value && (length == 0 || length >= size || strlen(json_string_value(value)) != length)) {
        refuse(r, name, "a text of the length allowed");
        return;
    }
    snprintf(out, size, "%s", value ? json_string_value(value) : "");
    for (char *c = out; *c; c++) /* goes to terminals */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
}

static void finish(reader *r)
{
    if (!r->status && json_object_size(r->object) != r->n_read)
        r->status = mica_fail(r->err, MICA_BAD_TEXT,
                              "the protocol's %s has a member that is not known (docs/bench.md lists them)", r->where);
}

/* ---- Phases ---- */

static void read_load(reader *r, mica_phase *phase)
{
    const char *cache = json_string_value(member_of(r, "cache", false, "cold or warm"));
    if (cache && strcmp(cache, "cold") != 0 && strcmp(cache, "warm") != 0)
        refuse(r, "cache", "cold or warm");
    phase->cold = cache && strcmp(cache, "cold") == 0;
    snprintf(phase->name, sizeof phase->name, "load_%s", phase->cold ? "cold" : "warm");
}

static void read_cooldown(reader *r, mica_phase *phase)
{
    phase->cooldown = (mica_cooldown_rules){.within_c = get_real(r, "within_c", 0.1, 50, NAN),
                                            .settle_s = get_real(r, "settle_s", 0, 3600, NAN),
                                            .max_s = get_real(r, "max_s", 0, 7200, NAN),
                                            .blind_s = get_real(r, "blind_s", 0, 7200, NAN),
                                            .poll_s = get_real(r, "poll_s", 0.01, 60, 2)};
    snprintf(phase->name, sizeof phase->name, "cooldown");
}

static void read_bandwidth(reader *r, mica_phase *phase)
{
    phase->repeat = (int32_t)get_int(r, "repeat", 1, 64, -1);
    snprintf(phase->name, sizeof phase->name, "bandwidth");
}

static void read_replies(reader *r, mica_phase *phase)
{
    phase->prompt = (int32_t)get_int(r, "prompt", 1, 1 << 20, -1);
    phase->reply = (int32_t)get_int(r, "reply", 1, 1 << 20, -1);
    if (phase->kind == MICA_PHASE_DECODE) {
        phase->min_s = get_real(r, "min_s", 0.01, 86400, NAN);
        phase->max_s = get_real(r, "max_s", 0.01, 864000, 8 * phase->min_s);
        snprintf(phase->name, sizeof phase->name, "decode");
        return;
    }
    phase->repeat = (int32_t)get_int(r, "repeat", 1, 1000, -1);
    if (phase->kind == MICA_PHASE_TTFT)
        snprintf(phase->name, sizeof phase->name, "ttft_%d", phase->prompt);
    else
        snprintf(phase->name, sizeof phase->name, "warmup");
}

#define KINDS "one of load, cooldown, warmup, ttft, decode, bandwidth"

static mica_status read_phase(const json_t *object, int32_t i, mica_phase *phase, mica_error *err)
{
    static const char *const kinds[] = {"load", "cooldown", "warmup", "ttft", "decode", "bandwidth"};
    char where[24];
    snprintf(where, sizeof where, "phase %d", i + 1);
    reader r = {.object = object, .where = where, .err = err};
    const char *kind = json_string_value(member_of(&r, "kind", false, KINDS));
    size_t k = 0, n = sizeof kinds / sizeof *kinds;
    while (kind && k < n && strcmp(kinds[k], kind) != 0)
        k++;
    if (!kind || k == n) {
        refuse(&r, "kind", KINDS);
        return r.status;
    }
    phase->kind = (mica_phase_kind)k;
    if (phase->kind == MICA_PHASE_LOAD)
        read_load(&r, phase);
    else if (phase->kind == MICA_PHASE_COOLDOWN)
        read_cooldown(&r, phase);
    else if (phase->kind == MICA_PHASE_BANDWIDTH)
        read_bandwidth(&r, phase);
    else
        read_replies(&r, phase);
    finish(&r);
    return r.status;
}

/* ---- The whole ---- */

static mica_status check_order(const mica_protocol *p, mica_error *err)
{
    bool loaded = false;
    int decodes = 0;
    for (int32_t i = 0; i < p->n_phases; i++) {
        const mica_phase *phase = &p->phase[i];
        bool replies = phase->kind >= MICA_PHASE_WARMUP && phase->kind <= MICA_PHASE_DECODE;
        loaded = phase->kind == MICA_PHASE_LOAD || (loaded && phase->kind != MICA_PHASE_BANDWIDTH);
        decodes += phase->kind == MICA_PHASE_DECODE;
        if (replies && !loaded)
            return mica_fail(err, MICA_BAD_TEXT, "the protocol's phase %d needs a model, but no phase before it loads one",
                             i + 1);
        if (replies && phase->prompt + phase->reply > p->n_ctx)
            return mica_fail(err, MICA_BAD_TEXT, "the protocol's phase %d has %d + %d tokens, more than n_ctx %d", i + 1,
                             phase->prompt, phase->reply, p->n_ctx);
        if (decodes > 1)
            return mica_fail(err, MICA_BAD_TEXT, "the protocol has two phases of the kind decode; one is possible");
    }
    return MICA_OK;
}

static mica_status read_root(const json_t *root, mica_protocol *out, mica_error *err)
{
    reader r = {.object = root, .where = "outermost object", .err = err};
    get_int(&r, "version", 1, 1, -1);
    get_text(&r, "name", out->name, sizeof out->name);
    get_text(&r, "description", out->description, sizeof out->description);
    out->n_ctx = (int32_t)get_int(&r, "n_ctx", 16, 1 << 20, -1);
    out->seed = (uint64_t)get_int(&r, "seed", 0, INT64_MAX, 1);
    out->cold_s = get_real(&r, "cold_s", 0.001, 86400, NAN);
    out->steady_s = get_real(&r, "steady_s", 0.001, 86400, NAN);
    out->ttft_ratio = get_real(&r, "ttft_ratio", 0, 1000, 0);
    out->sample_s = get_real(&r, "sample_s", 0.01, 60, 1);
    const json_t *phases = member_of(&r, "phases", false, "a list of phases");
    size_t n = json_array_size(phases);
    if (phases && (n < 1 || n > MICA_PHASES))
        refuse(&r, "phases", "a list of 1 to 32 phases");
    finish(&r);
    for (size_t i = 0; i < n && !r.status; i++) {
        const json_t *phase = json_array_get(phases, i);
        r.status = json_is_object(phase) ? read_phase(phase, (int32_t)i, &out->phase[i], err)
                                         : mica_fail(err, MICA_BAD_TEXT, "the protocol's phase %zu is no object", i + 1);
        out->n_phases++;
    }
    return r.status ? r.status : check_order(out, err);
}

/* Takes the object over. */
static mica_status take(json_t *root, mica_protocol *out, mica_error *err)
{
    mica_status status = read_root(root, out, err);
    out->source = root;
    if (status)
        mica_protocol_free(out);
    return status;
}

mica_status mica_protocol_read(const char *json, size_t length, mica_protocol *out, mica_error *err)
{
    json_t *root;
    memset(out, 0, sizeof *out);
    mica_status status = mica_json_read("the protocol", json, length, &root, err);
    return status ? status : take(root, out, err);
}

mica_status mica_protocol_open(const char *path, mica_protocol *out, mica_error *err)
{
    json_t *root;
    memset(out, 0, sizeof *out);
    mica_status status = mica_json_open("the protocol", path, &root, err);
    return status ? status : take(root, out, err);
}

void mica_protocol_free(mica_protocol *p)
{
    json_decref(p->source);
    p->source = NULL;
}

const mica_phase *mica_protocol_decode(const mica_protocol *p)
{
    for (int32_t i = 0; i < p->n_phases; i++)
        if (p->phase[i].kind == MICA_PHASE_DECODE)
            return &p->phase[i];
    return NULL;
}

bool mica_protocol_sustained(const mica_protocol *p, const char **why)
{
    const mica_phase *decode = mica_protocol_decode(p);
    int cooled = 0, warmed = 0, long_ttft = 0, short_ttft = 0;
    const char *missing = NULL;
    for (int32_t i = 0; i < p->n_phases; i++) {
        const mica_phase *phase = &p->phase[i];
        cooled += phase->kind == MICA_PHASE_COOLDOWN && phase->cooldown.within_c <= 2.0;
        warmed += phase->kind == MICA_PHASE_WARMUP && cooled;
        long_ttft += phase->kind == MICA_PHASE_TTFT && phase->prompt == 512 && warmed ? phase->repeat : 0;
        short_ttft += phase->kind == MICA_PHASE_TTFT && phase->prompt == 32 && warmed ? phase->repeat : 0;
    }
    if (!decode || decode->min_s < 480.0)
        missing = "it decodes for less than 8 minutes";
    else if (p->steady_s < 180.0)
        missing = "its steady rate is of less than 3 minutes";
    else if (!cooled || !warmed)
        missing = "it does not cool down to 2 C of idle and then discard a run";
    else if (long_ttft < 5 || short_ttft < 5)
        missing = "it has fewer than 5 times to first token at 512 or at 32 tokens";
    if (why)
        *why = missing;
    return !missing;
}
