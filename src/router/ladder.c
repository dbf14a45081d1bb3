#include "router/ladder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds: a terabyte of weights and a million tokens of context are beyond what runs on a CPU; they keep sums far from
 * overflow (16 rungs, 2^40 bytes, 2^20 tokens * 2^24 bytes). */
#define BYTES_MAX   1099511627776.0
#define KV_MAX      16777216.0
#define CONTEXT_MAX 1048576.0
#define RATE_MAX    1e6
#define TIME_MAX    3.6e6

static const char *const kinds[] = {"local", "remote", NULL};

static const mica_field_row ladder_fields[] = {
    MICA_PART_FIELD("schema", true),
    MICA_NAME_FIELD(mica_ladder, name, "name"),
    MICA_NAME_FIELD(mica_ladder, version, "version"),
    MICA_TEXT_FIELD(mica_ladder, note, "note", 0, false),
    MICA_PART_FIELD("rungs", true),
};

static const mica_field_row rung_fields[] = {
    MICA_NAME_FIELD(mica_rung, name, "name"),
    MICA_CHOICE_FIELD(mica_rung, kind, "kind", 0, kinds, true),
    MICA_TEXT_FIELD(mica_rung, note, "note", 0, false),
    MICA_TEXT_FIELD(mica_rung, file, "file", 1, false),
    MICA_TEXT_FIELD(mica_rung, chat_template, "chat_template", 1, false),
    MICA_INT_FIELD(mica_rung, weights_bytes, "weights_bytes", 1, BYTES_MAX, false),
    MICA_INT_FIELD(mica_rung, min_ram_bytes, "min_ram_bytes", 0, BYTES_MAX, false),
    MICA_INT_FIELD(mica_rung, kv_bytes_per_token, "kv_bytes_per_token", 0, KV_MAX, false),
    MICA_INT_FIELD(mica_rung, fixed_bytes, "fixed_bytes", 0, BYTES_MAX, false),
    MICA_INT_FIELD(mica_rung, context, "context", 1, CONTEXT_MAX, true),
    MICA_REAL_FIELD(mica_rung, prefill_tps, "prefill_tps", 0.001, RATE_MAX, false),
    MICA_REAL_FIELD(mica_rung, decode_tps, "decode_tps", 0.001, RATE_MAX, false),
    MICA_REAL_FIELD(mica_rung, load_ms, "load_ms", 0, TIME_MAX, false),
    MICA_REAL_FIELD(mica_rung, ttft_ms, "ttft_ms", 0, TIME_MAX, false),
    MICA_REAL_FIELD(mica_rung, watts, "watts", 0, 10000, false),
    MICA_TEXT_FIELD(mica_rung, price, "price", 1, false),
    MICA_REAL_FIELD(mica_rung, usd_in, "usd_per_million_in", 0, 1e6, false),
    MICA_REAL_FIELD(mica_rung, usd_out, "usd_per_million_out", 0, 1e6, false),
    MICA_FLAG_FIELD(mica_rung, schema, "schema"),
    MICA_FLAG_FIELD(mica_rung, tools, "tools"),
    MICA_PART_FIELD("quality", false),
    MICA_PART_FIELD("endpoint", false),
};

static const mica_field_row quality_fields[] = {
    MICA_REAL_FIELD(mica_rung, quality[MICA_CLASS_UNKNOWN], "unknown", 0, 1, false),
    MICA_REAL_FIELD(mica_rung, quality[MICA_CLASS_NARROW], "narrow", 0, 1, false),
    MICA_REAL_FIELD(mica_rung, quality[MICA_CLASS_COMPLEX], "complex", 0, 1, false),
    MICA_TEXT_FIELD(mica_rung, quality_source, "source", 0, false),
    MICA_PART_FIELD("tasks", false),
};

static const mica_field_table tables[] = {
    MICA_FIELD_TABLE("ladder", ladder_fields, false),
    MICA_FIELD_TABLE("rung", rung_fields, false),
    MICA_FIELD_TABLE("quality", quality_fields, false),
};

const mica_field_table *mica_ladder_table(size_t i) { return i < sizeof tables / sizeof *tables ? &tables[i] : NULL; }

/* ---- Quality ---- */

static mica_status read_tasks(const json_t *tasks, const char *where, mica_rung *rung, mica_error *err)
{
    const char *key;
    json_t *value;
    if (json_object_size(tasks) > MICA_RUNG_TASKS_MAX)
        return mica_fail(err, MICA_BAD_TEXT, "%s/tasks has %zu members; %d are possible", where, json_object_size(tasks),
                         MICA_RUNG_TASKS_MAX);
    json_object_foreach((json_t *)tasks, key, value)
    {
        double number = json_is_number(value) ? json_number_value(value) : -1;
        mica_rung_task *task = &rung->tasks[rung->n_tasks];
        if (!*key || strlen(key) >= sizeof task->name || !(number >= 0 && number <= 1))
            return mica_fail(err, MICA_BAD_TEXT, "%s/tasks/%.48s must have a name of 1 to %d bytes and a number from 0 to 1",
                             where, key, MICA_ROUTE_NAME_MAX - 1);
        snprintf(task->name, sizeof task->name, "%s", key);
        task->quality = number;
        rung->n_tasks++;
    }
    return MICA_OK;
}

static mica_status read_quality(const json_t *object, const char *where, mica_rung *rung, mica_error *err)
{
    const json_t *tasks = NULL;
    char here[224];
    snprintf(here, sizeof here, "%s/quality", where);
    mica_status status = mica_fields_read(object, here, &tables[2], rung, err);
    if (!status)
        status = mica_field_part(object, here, "tasks", JSON_OBJECT, MICA_RUNG_TASKS_MAX, &tasks, err);
    return status || !tasks ? status : read_tasks(tasks, here, rung, err);
}

double mica_rung_quality(const mica_rung *rung, const char *task, mica_route_class value)
{
    for (int32_t i = 0; *task && i < rung->n_tasks; i++)
        if (strcmp(rung->tasks[i].name, task) == 0)
            return rung->tasks[i].quality;
    return rung->quality[value];
}

/* ---- Prices ---- */

static mica_status find_price(mica_rung *rung, const char *where, const mica_prices *prices, mica_error *err)
{
    if (!rung->price[0])
        return MICA_OK;
    for (size_t i = 0; prices && i < prices->n; i++) {
        const mica_price_row *row = &prices->rows[i];
        if (strcmp(row->name, rung->price) != 0)
            continue;
        rung->usd_in = isnan(rung->usd_in) ? row->in.v : rung->usd_in;
        rung->usd_out = isnan(rung->usd_out) ? row->out.v : rung->usd_out;
        return MICA_OK;
    }
    return mica_fail(err, MICA_BAD_TEXT, "%s/price: %s has no row \"%s\"", where,
                     prices ? "the price table" : "the policy names no price table, which", rung->price);
}

/* ---- Rungs ---- */

static mica_status check_kind(const json_t *object, const mica_rung *rung, const char *where, mica_error *err)
{
    static const char *const local[] = {"file", "weights_bytes", "min_ram_bytes", NULL};
    static const char *const remote[] = {"endpoint", NULL};
    static const char *const not_local[] = {"endpoint", "ttft_ms", NULL};
    static const char *const not_remote[] = {"file", "chat_template", "weights_bytes", "min_ram_bytes", "kv_bytes_per_token",
                                             "fixed_bytes", "load_ms", NULL};
    bool is_remote = rung->kind == MICA_RUNG_REMOTE;
    for (const char *const *key = is_remote ? remote : local; *key; key++)
        if (!json_object_get(object, *key))
            return mica_fail(err, MICA_BAD_TEXT, "%s/%s is missing: a %s rung has one", where, *key, kinds[rung->kind]);
    for (const char *const *key = is_remote ? not_remote : not_local; *key; key++)
        if (json_object_get(object, *key))
            return mica_fail(err, MICA_BAD_TEXT, "%s/%s: a %s rung has none", where, *key, kinds[rung->kind]);
    if (strcmp(rung->name, "auto") == 0)
        return mica_fail(err, MICA_BAD_TEXT, "%s/name: \"auto\" is what a request says to let the router choose", where);
    return MICA_OK;
}

static mica_status read_rung(const json_t *object, const char *where, const mica_prices *prices, mica_rung *rung,
                             mica_error *err)
{
    const json_t *quality = NULL, *endpoint = NULL;
    *rung = (mica_rung){.prefill_tps = NAN, .decode_tps = NAN, .load_ms = NAN, .ttft_ms = NAN, .watts = NAN, .usd_in = NAN,
                        .usd_out = NAN, .quality = {NAN, NAN, NAN}};
    mica_status status = mica_fields_read(object, where, &tables[1], rung, err);
    if (!status)
        status = check_kind(object, rung, where, err);
    if (!status)
        status = find_price(rung, where, prices, err);
    if (!status)
        status = mica_field_part(object, where, "quality", JSON_OBJECT, 8, &quality, err);
    if (!status && quality)
        status = read_quality(quality, where, rung, err);
    if (!status)
        status = mica_field_part(object, where, "endpoint", JSON_OBJECT, 64, &endpoint, err);
    if (!status && rung->kind == MICA_RUNG_REMOTE)
        status = mica_endpoint_read(endpoint, rung->name, &rung->endpoint, err);
    return status;
}

static mica_status read_rungs(const json_t *list, const char *name, const mica_prices *prices, mica_ladder *ladder,
                              mica_error *err)
{
    char where[192];
    mica_status status = MICA_OK;
    if (json_array_size(list) < 1)
        return mica_fail(err, MICA_BAD_TEXT, "%s/rungs must have 1 to %d rungs", name, MICA_ROUTE_RUNGS_MAX);
    for (size_t i = 0; !status && i < json_array_size(list); i++) {
        mica_rung *rung = &ladder->rungs[i];
        snprintf(where, sizeof where, "%.140s/rungs/%zu", name, i);
        status = read_rung(json_array_get(list, i), where, prices, rung, err);
        for (int32_t k = 0; !status && k < ladder->n; k++)
            if (strcmp(ladder->rungs[k].name, rung->name) == 0)
                status = mica_fail(err, MICA_BAD_TEXT, "%s/name: \"%s\" is the name of rung %d, too", where, rung->name, k);
        ladder->n++;
    }
    return status;
}

static mica_status read_ladder(const json_t *root, const char *name, const mica_prices *prices, mica_ladder *ladder,
                               mica_error *err)
{
    char where[192];
    const json_t *rungs = NULL;
    snprintf(where, sizeof where, "%.140s", name);
    mica_status status = mica_fields_read(root, where, &tables[0], ladder, err);
    if (!status && json_integer_value(json_object_get(root, "schema")) != 1)
        status = mica_fail(err, MICA_BAD_TEXT, "%s/schema must be 1: this build knows no other form of a ladder", where);
    if (!status)
        status = mica_field_part(root, where, "rungs", JSON_ARRAY, MICA_ROUTE_RUNGS_MAX, &rungs, err);
    return status ? status : read_rungs(rungs, name, prices, ladder, err);
}

mica_status mica_ladder_read(json_t *root, const char *name, const mica_prices *prices, mica_ladder **out, mica_error *err)
{
    mica_ladder *ladder = calloc(1, sizeof *ladder);
    if (!ladder)
        return mica_fail_nomem(err, sizeof *ladder, "the ladder");
    ladder->source = json_incref(root);
    mica_status status = read_ladder(root, name, prices, ladder, err);
    if (status)
        mica_ladder_free(ladder);
    else
        *out = ladder;
    return status;
}

void mica_ladder_free(mica_ladder *ladder)
{
    if (!ladder)
        return;
    json_decref(ladder->source);
    free(ladder);
}
