/* probe.h - the parts of mica probe. Each gives a JSON value, the caller's: json_decref(). What is unknown is null. */
#ifndef MICA_PROGRAMS_PROBE_H
#define MICA_PROGRAMS_PROBE_H
#include <jansson.h>

#include "device/figures.h"
#include "opts.h"

/** The kernel set that a model gets: the one that is asked for, else the best. */
const char *mica_probe_kernels(const mica_opts *o);

/* probe_machine.c: what the files of /proc and /sys say. */
json_t *mica_probe_cpu(const char *sysroot, const char *kernels);
json_t *mica_probe_memory(const char *sysroot);
json_t *mica_probe_thermal(const char *sysroot);
json_t *mica_probe_power(const char *sysroot);
json_t *mica_probe_energy(const char *sysroot);

/* probe_resident.c: GGUF files that processes of this user have mapped. */
json_t *mica_probe_resident(const char *sysroot);

/* probe_measure.c: what is measured, and kept in `store` (NULL: nowhere). An exit code; on a failure one line was printed. */
int mica_probe_bandwidth(const mica_opts *o, const char *store, json_t **out);
int mica_probe_storage(const char *model_path, json_t **out);
int mica_probe_model(const mica_opts *o, const char *store, const char *model_path, json_t **out);
/** All models of the store, with whether their figures still hold. */
json_t *mica_probe_models(const char *store);

/* probe_text.c: the same for people. */
void mica_probe_print(const json_t *probe);

#endif
