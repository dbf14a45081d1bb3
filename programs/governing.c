#include "governing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/figures.h"
#include "load.h"
#include "share.h"

int mica_governing_figures(char path[4096])
{
    return mica_share_own("device.json", path)
               ? CODE_OK
               : mica_term_error(
                     "there is no place for what is measured here: set XDG_DATA_HOME or HOME to a folder that can be written");
}

/* ---- what was tuned ---- */

/* Figures that are not there, cannot be read, or are of another build, CPU or kernel set are no reason not to run: the default
 * plan holds, as it does on a machine where nothing was tuned. */
static void look_up(const mica_opts *o, const char *path, const mica_model *model, mica_governing *g)
{
    char store[4096], key[MICA_FIGURES_KEY];
    mica_model_info info;
    mica_figures_context here;
    mica_figures f;
    mica_error err;
    if (!mica_share_place(0, "device.json", store) || mica_figures_key(path, key, NULL))
        return;
    if (mica_figures_load(store, key, &f, &err)) {
        mica_term_note("what mica tune found is not used: %s", err.message);
        return;
    }
    mica_model_get_info(model, &info);
    mica_figures_context_here(o->sysroot, info.kernels, &here);
    if (f.tuned_threads < 1 || f.tuned_threads > MICA_MAX_THREADS || !mica_figures_hold(&f.context, &here))
        return;
    g->threads = f.tuned_threads;
    g->n_cpus = f.n_tuned_cpus;
    for (int32_t i = 0; i < f.n_tuned_cpus && i < MICA_MAX_THREADS; i++)
        g->cpus[i] = f.tuned_cpus[i];
}

/* ---- the governor ---- */

int mica_governing_policy(const char *name, char **text, size_t *length)
{
    char below[300], path[4096];
    if (strchr(name, '/') || strchr(name, '.'))
        return mica_load_file(name, text, length);
    if (snprintf(below, sizeof below, "governor/%s.json", name) >= (int)sizeof below || !mica_share_find(below, path))
        return mica_term_error("there is no governor \"%s\": neither a policy of that name in share/mica/governor, nor a path",
                               name);
    return mica_load_file(path, text, length);
}

static int make_governor(const mica_opts *o, mica_governing *g)
{
    mica_device_options d = mica_device_options_default();
    mica_governor_options options = mica_governor_options_default();
    mica_error err;
    char *text = NULL;
    size_t length = 0;
    int code = mica_governing_policy(o->governor, &text, &length);
    if (code != CODE_OK)
        return code;
    d.sysroot = o->sysroot;
    options.sysroot = o->sysroot;
    options.policy = text;
    options.policy_length = length;
    options.n_threads = o->threads ? (int32_t)o->threads : g->threads;
    mica_status status = mica_device_open(&d, &g->device, &err);
    options.device = g->device;
    if (!status)
        status = mica_governor_new(&options, &g->governor, &err);
    free(text);
    return status ? mica_load_failed(&err) : CODE_OK;
}

int mica_governing_begin(const mica_opts *o, const char *path, const mica_model *model, mica_governing *g)
{
    *g = (mica_governing){.device = NULL};
    if (o->cpus && strcmp(o->governor, "off") != 0)
        return mica_term_usage("--governor chooses the CPUs itself: leave out --cpus");
    if (!o->threads && !o->cpus && !o->no_tuned)
        look_up(o, path, model, g);
    return strcmp(o->governor, "off") == 0 ? CODE_OK : make_governor(o, g);
}

void mica_governing_end(mica_governing *g)
{
    mica_governor_free(g->governor);
    mica_device_close(g->device);
    *g = (mica_governing){.device = NULL};
}

void mica_governing_apply(const mica_governing *g, int32_t *n_threads, const int32_t **cpus, mica_governor **governor)
{
    *governor = g->governor;
    if (*n_threads || !g->threads)
        return;
    *n_threads = g->threads;
    *cpus = g->n_cpus == g->threads ? g->cpus : NULL;
}

/* ---- telling ---- */

void mica_governing_explain(const mica_governing *g)
{
    if (g->threads > 0)
        mica_term_note("threads: %d, as mica tune found on this device (--no-tuned: the default)", g->threads);
}

void mica_governing_print(const mica_governing *g)
{
    mica_governor_info i;
    if (g->threads > 0)
        fprintf(stderr, "tuned=%d\n", g->threads);
    if (!g->governor)
        return;
    mica_governor_get_info(g->governor, &i);
    fprintf(stderr, "governor=%s;objective=%s;fast=%d;efficient=%d;pause_us=%d;changes=%lld;throttled=%d;reason=%s\n", i.policy,
            mica_objective_name(i.objective), i.output.n_fast, i.output.n_slow, i.output.pause_us, (long long)i.changes,
            i.throttled, i.reason);
}

void mica_governing_json(const mica_governing *g, json_t *result)
{
    mica_governor_info i;
    json_object_set_new(result, "tuned", json_boolean(g->threads > 0));
    if (!g->governor)
        return;
    mica_governor_get_info(g->governor, &i);
    json_object_set_new(result, "governor",
                        json_pack("{s:s, s:s, s:i, s:i, s:i, s:I, s:b, s:b, s:o, s:o, s:s}", "policy", i.policy, "objective",
                                  mica_objective_name(i.objective), "fast", i.output.n_fast, "efficient", i.output.n_slow,
                                  "pause_us", i.output.pause_us, "changes", (json_int_t)i.changes, "throttled", i.throttled,
                                  "lower_rung", i.output.lower_rung, "margin_c", mica_json_real(i.margin_c), "rate_tps",
                                  mica_json_real(i.rate_tps), "reason", i.reason));
}
