/* mica_memory.h - the memory contract: what a model will take before it is loaded, what would fit where it does not, what a
 * server or app gives back when the system runs short, and loads that died before.
 *
 *     mica_budget b;
 *     mica_session_options o = mica_session_options_default();
 *     o.n_ctx = 8192;
 *     mica_budget_check("model.gguf", &o, &b, &err);              // reads the file's tables, no weights
 *     if (!b.fits) puts(b.message);                               // or look at b.ctx_that_fits and b.type_that_fits
 *
 * docs/memory.md explains the budget and has measurements. */
#ifndef MICA_MICA_MEMORY_H
#define MICA_MICA_MEMORY_H
#include "mica/mica.h"
#include "mica/mica_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Before a load ------------------------------------------------------------------------------------------------------ */

/** Whether a session fits the budget of its options (memory_budget, memory_limit, app_limit), and if not, what would. */
typedef struct mica_budget {
    bool fits;
    mica_memory_plan plan;   /* as asked for; plan.peak_bytes is what counts */
    int64_t usable_bytes;    /* of which the budget is a part; -1: nothing says */
    int64_t budget_bytes;    /* INT64_MAX: none, as nothing says what is usable */
    int64_t limit_bytes;     /* the most that a budget may be, likewise */
    int64_t available_bytes; /* what is free now, for the KV cache and the workspace; -1: not asked, or nothing says */
    /** By the type of keys and values: the longest context that fits with a MiB to spare, at most the one asked for; 0: none
     * does. */
    int32_t ctx_that_fits[3];
    /** The largest format of weights, smaller than the file's, with which all else would fit as asked; NULL: none. Static. */
    const char *type_that_fits;
    int64_t type_bytes; /* of weights in it */
    char message[488];  /* the sentence of the refusal; "" if it fits */
} mica_budget;

/** Reads the tables of a model file, any part of a split one, and no weights. MICA_OK also if it does not fit: b->fits says. */
MICA_API mica_status mica_budget_check(const char *path, const mica_session_options *options, mica_budget *budget,
                                       mica_error *err);

/** The same for a model that is open. */
MICA_API mica_status mica_model_budget(const mica_model *model, const mica_session_options *options, mica_budget *budget,
                                       mica_error *err);

/* ---- While running ------------------------------------------------------------------------------------------------------- */

/** What is given back, step by step; each includes those before it. */
typedef enum mica_shed_level {
    MICA_SHED_NOTHING = 0,
    MICA_SHED_PREFIXES = 1, /* a batch's cached beginnings of texts that no session holds */
    MICA_SHED_IDLE = 2,     /* the caches of sessions without a request: computed again, or read from a file, when they go on */
    MICA_SHED_REFUSE = 3,   /* nothing new is begun: that is the caller's to do */
} mica_shed_level;

/** Gives memory of a batch back to the system, between steps. With a `path` what is cached is saved there first
 * (mica_batch_save_prefixes()); where that fails the memory is given back all the same, and the error says why. *n_tokens (may
 * be NULL) is how many cached tokens were given up. Replies that run are not touched. */
MICA_API mica_status mica_batch_shed(mica_batch *batch, mica_shed_level level, const char *path, int64_t *n_tokens,
                                     mica_error *err);

/** Gives the part of a session's KV cache back that its history does not fill: after mica_session_reset() all of it. Between
 * calls; not for a batch's sessions. */
MICA_API void mica_session_shed(mica_session *session);

/** Which step a machine's state calls for: pressure stalls, what the app was told (mica_device_report), and this process's own
 * size against its bounds. Goes up one step at a time, so that each can help before the next, and at once where it is urgent;
 * goes down one step for every MICA_CALM_S seconds in which everything is well below what it went up for. */
typedef struct mica_shedding {
    mica_shed_level level;
    int64_t changed_ns; /* when it went up or down last */
    int64_t calm_ns;    /* since when nothing has called for a step; 0: something does */
} mica_shedding;

#define MICA_CALM_S 10

/** All zeros is the beginning. `rss_bytes`, `budget_bytes` and `limit_bytes`: -1 or INT64_MAX where unknown. `reason` (may be
 * NULL) is filled where the level is above 0: "memory pressure: ...". */
MICA_API mica_shed_level mica_shedding_update(mica_shedding *shedding, const mica_device_state *state, int64_t rss_bytes,
                                              int64_t budget_bytes, int64_t limit_bytes, char reason[120]);

/** "nothing", "prefixes", "idle", "refuse". Static. */
MICA_API const char *mica_shed_level_name(mica_shed_level level);

/* ---- Loads that died -------------------------------------------------------------------------------------------------------
 */

/* A load that is killed (by the system, for lack of memory) leaves its note in a folder; after MICA_LOAD_DEATHS of them in a
 * row the same file with the same context is refused, so that a program that is started again and again does not take the
 * machine down with it. A load that went well takes the notes away. */
#define MICA_LOAD_DEATHS 2

typedef struct mica_load mica_load;

/** Before a model is opened. `folder` is made if it is missing; `force`: whatever happened before. MICA_OVER_BUDGET: it died
 * too often. MICA_IO_ERROR: the note cannot be kept, which is no reason not to load. *out is NULL on an error. */
MICA_API mica_status mica_load_begin(const char *folder, const char *model_path, int32_t n_ctx, bool force, mica_load **out,
                                     mica_error *err);
/** The path of the note, for a signal handler that must take it away; borrowed until the end. */
MICA_API const char *mica_load_note(const mica_load *load);
/** The load is over, and the process lives. `good`: the first tokens were computed, so that earlier deaths are forgotten; else
 * (an error, the user's interruption) they still count. NULL is fine. Frees it. */
MICA_API void mica_load_end(mica_load *load, bool good);

#ifdef __cplusplus
}
#endif
#endif
