/* cmd_probe.c - mica probe: what this machine is, has and does. */
#include <string.h>

#include "commands.h"
#include "device/sysfile.h"
#include "kern/kern.h"
#include "load.h"
#include "probe.h"
#include "share.h"

const char *mica_probe_kernels(const mica_opts *o)
{
    const char *name = mica_load_kernels(o);
    for (size_t i = mica_isa_count(); !name && i > 0; i--)
        if (mica_isa_at(i - 1)->supported())
            name = mica_isa_at(i - 1)->name;
    return name;
}

static void read_machine(const mica_opts *o, json_t *probe)
{
    json_object_set_new(probe, "cpu", mica_probe_cpu(o->sysroot, mica_probe_kernels(o)));
    json_object_set_new(probe, "memory", mica_probe_memory(o->sysroot));
    json_object_set_new(probe, "thermal", mica_probe_thermal(o->sysroot));
    json_object_set_new(probe, "power", mica_probe_power(o->sysroot));
    json_object_set_new(probe, "energy", mica_probe_energy(o->sysroot));
    json_object_set_new(probe, "resident", mica_probe_resident(o->sysroot));
}

/* Figures are of this machine, not of the one that a system root stands for. */
static int measure_machine(const mica_opts *o, json_t *probe)
{
    char store[4096], path[4096];
    json_t *bandwidth = json_null(), *storage = json_null(), *model = json_null();
    bool real = !o->sysroot || !*o->sysroot;
    const char *kept = mica_share_own("device.json", store) ? store : NULL;
    int code = CODE_OK;
    if (real && !kept)
        mica_term_warning(NULL,
                          "there is no folder for device.json: set XDG_DATA_HOME or HOME, or what is measured is not kept");
    if (real && o->model)
        code = mica_load_path(o, NULL, path);
    if (code == CODE_OK && real && o->model && !o->no_measure)
        code = mica_probe_storage(path, &storage);
    if (code == CODE_OK && real && o->model)
        code = mica_probe_model(o, kept, path, &model);
    if (code == CODE_OK && real) /* last: its buffer is not to be a part of the model's peak */
        code = mica_probe_bandwidth(o, kept, &bandwidth);
    json_object_set_new(probe, "bandwidth", bandwidth);
    json_object_set_new(probe, "storage", storage);
    json_object_set_new(probe, "model", model);
    json_object_set_new(probe, "models", real ? mica_probe_models(kept) : json_array());
    return code;
}

int mica_cmd_probe(const mica_opts *o)
{
    mica_error err;
    mica_kernels kern;
    if (o->measure && o->no_measure)
        return mica_term_usage("--measure and --no-measure exclude each other");
    if (mica_sysroot_check(o->sysroot, &err) || mica_kernels_choose(mica_load_kernels(o), &kern, &err))
        return mica_load_failed(&err);
    json_t *probe = json_pack("{s:i, s:s, s:s, s:o}", "version", 1, "mica", mica_version(), "build", mica_engine_id(), "sysroot",
                              o->sysroot ? mica_json_text(o->sysroot, strlen(o->sysroot)) : json_null());
    read_machine(o, probe);
    int code = measure_machine(o, probe);
    if (code == CODE_OK && o->json)
        return mica_json_line(probe) ? CODE_OK : CODE_FAILED;
    if (code == CODE_OK)
        mica_probe_print(probe);
    json_decref(probe);
    return code;
}
