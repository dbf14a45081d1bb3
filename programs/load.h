/* load.h - from options to what the engine needs: files, token lists, the model and the session. Each function returns an exit
 * code and has printed one line when that is not CODE_OK. */
#ifndef MICA_PROGRAMS_LOAD_H
#define MICA_PROGRAMS_LOAD_H
#include "mica/mica.h"
#include "governing.h"
#include "opts.h"
#include "term.h"

/** A whole file ("-": standard input). *data is terminated and yours: free(). */
int mica_load_file(const char *path, char **data, size_t *length);

/** The text of -p, -f or standard input; at most one of the first two. *text is yours: free(). */
int mica_load_text(const mica_opts *o, char **text, size_t *length);

/** The first line of a file, which must have one; NULL for no path. *out is yours: free(). */
int mica_load_secret(const char *path, char **out);

/** Token ids like "[1, 2]" or "1,2"; `option` is for messages. *ids is yours: free(). */
int mica_load_ids(const char *text, const char *option, int32_t **ids, size_t *n);

/** "mica: <the error's sentence>"; returns CODE_FAILED, or CODE_INTERRUPTED for MICA_CANCELLED. */
int mica_load_failed(const mica_error *err);

/** The file of -m, `path` if it is not NULL, or the default model. Copies it to `out`. The name of a pulled model becomes its path, and
 * what mica pull brought is checked if it was touched since. */
int mica_load_path(const mica_opts *o, const char *path, char out[4096]);

/** Where scripts/fetch-models puts a file of that name; it need not be there. */
int mica_load_fetched(const char *name, char out[4096]);

/** The kernel set that --kernels, else MICA_KERNELS in the environment, asks for; NULL: the best. */
const char *mica_load_kernels(const mica_opts *o);

/** Opens a model at a path that mica_load_path() gave. */
int mica_load_model(const mica_opts *o, const char *path, mica_model **model);

/** "1000000" or "55%" as mica_session_options.memory_budget wants it; NULL: 0. */
int mica_load_part(const char *text, const char *option, int64_t *part);

/** The session options that the command line asks for. `cpus` has room for MICA_MAX_THREADS and must outlive *options. */
int mica_load_session_options(const mica_opts *o, int32_t *cpus, mica_session_options *options);

/** Refuses a --ctx beyond what the engine can have, with the bytes that it would take. */
int mica_load_check_context(const mica_opts *o, const mica_model *model);

/** Makes the session, with the threads and the governor of `governing` (NULL: none); says what to do about a context that cannot be. */
int mica_load_session(const mica_opts *o, mica_model *model, const mica_governing *governing, mica_session **session);

#endif
