/* reader.c - reads a tree that stands for a machine, at times that the caller says.
 *
 *     device_reader ROOT        each line on standard input is a time in seconds; the answer is the state as a line of JSON
 *
 * The tree may change between the lines: so a test sees hours of a machine in a moment. Called by test_profiles.py. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}
static json_t *bytes(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}
static json_t *celsius(int32_t mc)
{
    return mc == MICA_UNKNOWN_MC ? json_null() : json_real(mc / 1000.0);
}
static json_t *answer(int value)
{
    return value == MICA_UNKNOWN ? json_null() : json_boolean(value);
}

static json_t *state_json(const mica_device_state *s)
{
    json_t *j =
        json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:i}", "soc", celsius(s->temp_soc_mc), "skin",
                  celsius(s->temp_skin_mc), "battery_temp", celsius(s->temp_battery_mc), "max", celsius(s->temp_max_mc),
                  "thermal", mica_thermal_status_name(s->thermal), "headroom", real(s->headroom), "cooling", real(s->cooling),
                  "clock", real(s->clock), "clock_limit", real(s->clock_limit), "throttle", (int)s->throttle);
    json_object_update_new(j, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:i}", "battery",
                                        mica_battery_status_name(s->battery), "level", real(s->battery_level), "watts",
                                        real(s->battery_w), "on_mains", answer(s->on_mains), "energy_j", real(s->energy_j),
                                        "energy_error", real(s->energy_error), "energy_step_j", real(s->energy_step_j),
                                        "energy_source", s->energy_source, "energy_reason", s->energy_reason, "energy_epoch",
                                        (int)s->energy_epoch));
    json_object_update_new(j, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "total", bytes(s->memory_total), "available",
                                        bytes(s->memory_available), "limit", bytes(s->memory_limit), "psi_some",
                                        real(s->psi_memory_some10), "psi_full", real(s->psi_memory_full10), "psi_cpu",
                                        real(s->psi_cpu_some10), "quota", real(s->cpu_quota)));
    return j;
}

int main(int argc, char **argv)
{
    mica_device_options options = mica_device_options_default();
    mica_device *device;
    mica_error err;
    char line[64];
    if (argc != 2)
        return 2;
    options.sysroot = argv[1];
    if (mica_device_open(&options, &device, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        mica_device_state state;
        int64_t now_ns = (int64_t)((strtod(line, NULL) + 1.0) * 1e9); /* the clock is never 0 */
        if (mica_device_read_at(device, now_ns, &state, &err))
            return 1;
        json_t *j = state_json(&state);
        json_dumpf(j, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(j);
    }
    mica_device_close(device);
    return 0;
}
