/* governing.h - threads that nobody asked for: those that `mica tune` found for this model here, and the governor of
 * --governor. Called by mica run, chat, serve and route. */
#ifndef MICA_PROGRAMS_GOVERNING_H
#define MICA_PROGRAMS_GOVERNING_H
#include <jansson.h>

#include "mica/mica_governor.h"
#include "opts.h"

typedef struct mica_governing {
    mica_device *device;
    mica_governor *governor; /* NULL: --governor off */
    int32_t threads;         /* tuned; 0: none */
    int32_t n_cpus, cpus[MICA_MAX_THREADS];
} mica_governing;

/** Looks up what was tuned and makes the governor, if one is asked for. Returns an exit code; mica_governing_end() in any case.
 */
int mica_governing_begin(const mica_opts *o, const char *path, const mica_model *model, mica_governing *g);
/** After the session. */
void mica_governing_end(mica_governing *g);

/** Into the options of a session or batch: threads that were not asked for, and the governor. */
void mica_governing_apply(const mica_governing *g, int32_t *n_threads, const int32_t **cpus, mica_governor **governor);

/** "threads 2, as mica tune found" and the line of the governor, on standard error; nothing where neither has a say. */
void mica_governing_explain(const mica_governing *g);
void mica_governing_print(const mica_governing *g);
/** The members "tuned" and "governor" of a result. */
void mica_governing_json(const mica_governing *g, json_t *result);

/** The text of --governor's policy, terminated: free(). A name is one of share/mica/governor, a path is a file. Returns an exit
 * code. */
int mica_governing_policy(const char *name, char **text, size_t *length);

/** Where the figures of this device are kept. Returns an exit code. */
int mica_governing_figures(char path[4096]);

#endif
