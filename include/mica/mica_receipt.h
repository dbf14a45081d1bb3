/* mica_receipt.h - what really ran: a receipt of a reply, and conditions without which it must not run.
 *
 *     const char *conditions[] = {"kernels=avx2", "no_drop", "max_temp=80"};
 *     mica_receipt_options o = mica_receipt_options_default();
 *     o.require = conditions;  o.n_require = 3;
 *     mica_receipt_new(model, &o, &receipt, &err);
 *     mica_session_set_receipt(session, receipt);
 *     ... mica_session_sync(), mica_session_generate() ...     // MICA_REFUSED: a condition does not hold
 *     mica_receipt_json(receipt, &text, &err);
 *     mica_session_set_receipt(session, NULL);  mica_receipt_free(receipt);
 *
 * docs/receipt.md has the JSON and the conditions. The program and the server give the same object. */
#ifndef MICA_MICA_RECEIPT_H
#define MICA_MICA_RECEIPT_H
#include "mica/mica_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Of one reply at a time. Belongs to one thread at a time, like the session that it is set on. */
typedef struct mica_receipt mica_receipt;

typedef struct mica_receipt_options {
    size_t struct_size;
    /** Conditions, which are checked before anything is computed and again between tokens; one that cannot be found out does
     * not hold. Copied. */
    const char *const *require;
    size_t n_require;
    /** The monitor to ask; borrowed. NULL: one is opened, of the machine at `sysroot` (NULL: the real one). An app that reports
     * what only it can read gives its own. */
    mica_device *device;
    const char *sysroot;
    /** The receipt names the model by SHA-256. The first receipt of a model reads the whole file, unless `hash_cache`, a file
     * that is made if it is not there, knows the hash of that path, size and time; NULL: none. */
    bool hashes;
    const char *hash_cache;
} mica_receipt_options;

/** hashes: true. */
MICA_API mica_receipt_options mica_receipt_options_default(void);

/** MICA_INVALID_ARGUMENT: no such condition; the message lists them. Takes a reference on the model. */
MICA_API mica_status mica_receipt_new(mica_model *model, const mica_receipt_options *options, mica_receipt **out,
                                      mica_error *err);
/** NULL is fine. */
MICA_API void mica_receipt_free(mica_receipt *receipt);

/** From the session's next request on, each request begins the receipt anew, and a reply that would break a condition is not
 * made: mica_session_sync() (mica_batch_submit()) returns MICA_REFUSED, or the reply ends with it. Borrowed until another one
 * is set, or NULL. Not while a batch's session has a request. */
MICA_API mica_status mica_session_set_receipt(mica_session *session, mica_receipt *receipt, mica_error *err);

/** The receipt of the last reply, one line of JSON. MICA_INVALID_ARGUMENT: there was none. *text is yours. */
MICA_API mica_status mica_receipt_json(const mica_receipt *receipt, char **text, mica_error *err);

/** The same in numbers, as far as events and metrics want it. */
typedef struct mica_receipt_figures {
    int throttled;             /* MICA_YES, MICA_NO, MICA_UNKNOWN */
    unsigned throttle;         /* MICA_THROTTLE_* that were seen */
    double joules;             /* of the whole machine during the reply; NAN: nothing counts them */
    const char *energy_source; /* static; "" */
    int32_t temp_max_mc;       /* at the end; MICA_UNKNOWN_MC */
    double total_ms;           /* from the request's acceptance to the reply's end */
    int64_t started_unix_ms;
} mica_receipt_figures;

/** False: there was no reply yet. */
MICA_API bool mica_receipt_get_figures(const mica_receipt *receipt, mica_receipt_figures *figures);

#ifdef __cplusplus
}
#endif
#endif
