/* figures.h - what models did on this device: a small JSON file of measured figures. Called by probe, tune, router and bench,
 * which give its path (the program's is $XDG_DATA_HOME/mica/device.json); the library itself never asks for it.
 *
 *     {"version": 1, "models": {"NAME@BYTES": {"build": "...", "cpu": "...", "kernels": "avx512", "threads": 2,
 *      "decode_tps": 31.5, ...}}, "machine": {...}}
 *
 * A model is known by its file's name and size: figures must be found without reading the file. They hold for the build, the
 * CPU and the kernel set that made them, which stand beside them; after a change of one of these they are stale, and to be
 * measured again.
 *
 * Writing is a read, a change and a replacement of the file in one step, under a lock (PATH.lock): two programs do not lose
 * each other's figures. What others wrote into the file beside them stays. */
#ifndef MICA_DEVICE_FIGURES_H
#define MICA_DEVICE_FIGURES_H
#include "base/error.h"

enum { MICA_FIGURES_KEY = 280, MICA_FIGURES_CPUS = 64 };

/** What figures depend on. */
typedef struct mica_figures_context {
    char build[80];   /* mica_engine_id() */
    char cpu[128];    /* mica_cpu_name(), and how many of them this process may use */
    char kernels[32]; /* kernel set */
} mica_figures_context;

/** Of one model. Unknown: NAN, 0 threads, -1. */
typedef struct mica_figures {
    mica_figures_context context;
    char source[24];       /* who measured: "probe", "tune", "bench" */
    int64_t measured_unix; /* when; 0: never */
    int32_t threads;       /* with which these were measured: */
    double prefill_tps;    /* tokens of a prompt a second */
    double decode_tps;     /* sustained: the steady end of measured_s seconds of decoding */
    double cold_tps;       /* the first seconds of it */
    double measured_s;
    double joules_per_token;
    int64_t peak_rss_bytes;
    /* What mica tune found: threads and CPUs that are used without being asked for. 0: nothing. */
    int32_t tuned_threads;
    int32_t n_tuned_cpus; /* 0: not pinned, else tuned_threads */
    int32_t tuned_cpus[MICA_FIGURES_CPUS];
    double tuned_cold_tps, tuned_sustained_tps;
} mica_figures;

/** Of the machine itself. */
typedef struct mica_machine_figures {
    mica_figures_context context; /* without kernels */
    int64_t measured_unix;
    int32_t threads;
    double read_bytes_per_s; /* from memory, median */
} mica_machine_figures;

/** Identifies the engine of this build: its sources, compiler and flags. Static. */
const char *mica_engine_id(void);

/** The context here and now; kernels "" in it if NULL. */
void mica_figures_context_here(const char *sysroot, const char *kernels, mica_figures_context *out);

/** The key of a model's file: "NAME@BYTES". MICA_IO_ERROR if it cannot be looked at. */
mica_status mica_figures_key(const char *model_path, char key[MICA_FIGURES_KEY], mica_error *err);

/** Nothing known. */
void mica_figures_clear(mica_figures *f);

/** Whether figures were made under the same build, CPU and kernel set. */
bool mica_figures_hold(const mica_figures_context *made, const mica_figures_context *here);

/** Reads the figures of a model; all unknown if the file is missing or has none of it. MICA_BAD_FILE: it is no file of figures.
 */
mica_status mica_figures_load(const char *path, const char *key, mica_figures *out, mica_error *err);
mica_status mica_figures_load_machine(const char *path, mica_machine_figures *out, mica_error *err);

/** Writes the figures of a model: those that are known replace what the file had, the others stay if it was made in the same
 * context, and go if it was not. The folder must be there. */
mica_status mica_figures_save(const char *path, const char *key, const mica_figures *figures, mica_error *err);
mica_status mica_figures_save_machine(const char *path, const mica_machine_figures *figures, mica_error *err);

/** Names of the models in the file, in a call each; `figures` as mica_figures_load() gives them. */
mica_status mica_figures_visit(const char *path, void (*visit)(void *user, const char *key, const mica_figures *figures),
                               void *user, mica_error *err);

#endif
