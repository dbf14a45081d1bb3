/* state.c - the state of device, network and rungs as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "router/request.h"

typedef struct named_rung {
    mica_route_rung_state state;
    char name[MICA_ROUTE_NAME_MAX], refusal[488];
} named_rung;

enum { RUNGS_MAX = 64 };

struct mica_route_state_file {
    mica_route_state state;
    int32_t thermal;
    named_rung rung[RUNGS_MAX];
    mica_route_rung_state list[RUNGS_MAX]; /* what `state` points to */
};

const char *const mica_route_thermal_words[] = {"none", "light", "moderate", "severe", "critical", "emergency", "shutdown",
                                                NULL};

static const mica_field_row state_fields[] = {
    MICA_INT_FIELD(mica_route_state_file, state.time_ms, "time_ms", 0, 9e15, false),
    MICA_PART_FIELD("device", false),
    MICA_ANSWER_FIELD(mica_route_state_file, state.network, "network"),
    MICA_ANSWER_FIELD(mica_route_state_file, state.metered, "metered"),
    MICA_PART_FIELD("rungs", false),
};

static const mica_field_row device_fields[] = {
    MICA_INT_FIELD(mica_route_state_file, state.device.ram_bytes, "ram_bytes", 0, 9e15, false),
    MICA_INT_FIELD(mica_route_state_file, state.device.available_bytes, "available_bytes", 0, 9e15, false),
    MICA_CHOICE_FIELD(mica_route_state_file, thermal, "thermal", MICA_THERMAL_NONE, mica_route_thermal_words, false),
    MICA_REAL_FIELD(mica_route_state_file, state.device.battery, "battery", 0, 1, false),
    MICA_ANSWER_FIELD(mica_route_state_file, state.device.on_battery, "on_battery"),
    MICA_ANSWER_FIELD(mica_route_state_file, state.device.power_save, "power_save"),
};

static const mica_field_row rung_fields[] = {
    MICA_NAME_FIELD(named_rung, name, "name"),
    MICA_ANSWER_FIELD(named_rung, state.file, "file"),
    MICA_ANSWER_FIELD(named_rung, state.resident, "resident"),
    MICA_ANSWER_FIELD(named_rung, state.healthy, "healthy"),
    MICA_REAL_FIELD(named_rung, state.prefill_tps, "prefill_tps", 1e-6, 1e9, false),
    MICA_REAL_FIELD(named_rung, state.decode_tps, "decode_tps", 1e-6, 1e9, false),
    MICA_REAL_FIELD(named_rung, state.watts, "watts", 0, 1e6, false),
    MICA_REAL_FIELD(named_rung, state.wait_ms, "wait_ms", 0, 1e12, false),
    MICA_ANSWER_FIELD(named_rung, state.hot, "hot"),
    MICA_INT_FIELD(named_rung, state.memory_bytes, "memory_bytes", 0, 9e15, false),
    MICA_INT_FIELD(named_rung, state.free_bytes, "free_bytes", 0, 9e15, false),
    MICA_TEXT_FIELD(named_rung, refusal, "refusal", 0, false),
};

static const mica_field_table state_table = MICA_FIELD_TABLE("state", state_fields, true);
static const mica_field_table device_table = MICA_FIELD_TABLE("device", device_fields, true);
static const mica_field_table rung_table = MICA_FIELD_TABLE("rung's state", rung_fields, true);

static mica_status read_rungs(const json_t *list, const char *where, mica_route_state_file *file, mica_error *err)
{
    char here[192];
    mica_status status = MICA_OK;
    for (size_t i = 0; !status && i < json_array_size(list); i++) {
        named_rung *rung = &file->rung[i];
        snprintf(here, sizeof here, "%.130s/rungs/%zu", where, i);
        rung->state = mica_route_rung_state_default(rung->name);
        rung->state.refusal = rung->refusal;
        status = mica_fields_read(json_array_get(list, i), here, &rung_table, rung, err);
        file->list[i] = rung->state;
    }
    file->state.rungs = file->list;
    file->state.n_rungs = json_array_size(list);
    return status;
}

static mica_status read_state(const json_t *root, const char *where, mica_route_state_file *file, mica_error *err)
{
    char here[192];
    const json_t *device = json_object_get(root, "device"), *rungs = NULL;
    mica_status status = mica_fields_read(root, where, &state_table, file, err);
    snprintf(here, sizeof here, "%.140s/device", where);
    if (!status && device && !json_is_null(device))
        status = mica_fields_read(device, here, &device_table, file, err);
    file->state.device.thermal = (mica_thermal_status)file->thermal;
    if (!status)
        status = mica_field_part(root, where, "rungs", JSON_ARRAY, RUNGS_MAX, &rungs, err);
    return status ? status : read_rungs(rungs, where, file, err);
}

mica_status mica_route_state_from(json_t *root, const char *where, mica_route_state_file **out, mica_error *err)
{
    *out = NULL;
    mica_route_state_file *file = calloc(1, sizeof *file);
    if (!file)
        return mica_fail_nomem(err, sizeof *file, "the state");
    file->state = mica_route_state_default();
    file->thermal = MICA_THERMAL_UNKNOWN;
    mica_status status = read_state(root, where, file, err);
    if (status)
        mica_route_state_free(file);
    else
        *out = file;
    return status;
}

mica_status mica_route_state_parse(const char *json, size_t length, mica_route_state_file **out, mica_error *err)
{
    json_t *root;
    *out = NULL;
    mica_status status = mica_fields_load(json, length, "the state", &root, err);
    if (!status)
        status = mica_route_state_from(root, "the state: ", out, err);
    if (root)
        json_decref(root);
    return status;
}

const mica_route_state *mica_route_state_of(const mica_route_state_file *file) { return &file->state; }

void mica_route_state_free(mica_route_state_file *file) { free(file); }
