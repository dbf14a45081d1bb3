/* require.h - conditions of a caller, as text and as what they are compared with: "kernels=avx2", "threads>=2", "no_drop". Owns
 * nothing; called by receipt.c. docs/receipt.md lists them. */
#ifndef MICA_SESSION_REQUIRE_H
#define MICA_SESSION_REQUIRE_H
#include "base/error.h"
#include "mica/mica_device.h"

#define MICA_REQUIRE_TEXT 96 /* bytes of a condition; the longest is model= and a hash */

typedef enum mica_require_kind {
    MICA_REQUIRE_KERNELS,
    MICA_REQUIRE_KV,
    MICA_REQUIRE_MODEL,
    MICA_REQUIRE_TEMPLATE,
    MICA_REQUIRE_THREADS,
    MICA_REQUIRE_CTX,
    MICA_REQUIRE_NO_DROP,
    MICA_REQUIRE_NOT_THROTTLED,
    MICA_REQUIRE_MAX_TEMP,
    MICA_REQUIRE_MAX_JOULES,
    MICA_REQUIRE_MIN_BATTERY,
    MICA_REQUIRE_ON_MAINS,
} mica_require_kind;

typedef struct mica_condition {
    mica_require_kind kind;
    char relation;                /* '=', '<' (at most), '>' (at least); '\0': a condition without a value */
    double number;                /* where the value is one */
    char text[MICA_REQUIRE_TEXT]; /* the condition as it was given */
    const char *value;            /* in `text`, behind the relation; for words */
} mica_condition;

/** What is the case. */
typedef struct mica_require_facts {
    const char *kernels, *kv_k, *kv_v;
    const char *model, *chat_template; /* SHA-256; "": not computed, or none */
    int32_t n_threads, n_ctx, dropped_n;
    int32_t temp_mc; /* MICA_UNKNOWN_MC */
    int throttled;   /* MICA_YES, ... */
    unsigned throttle;
    double joules; /* so far; NAN: nothing counts them */
    double battery_level;
    mica_battery_status battery;
    int on_mains;
} mica_require_facts;

/** *out points into itself: it must not be moved. */
mica_status mica_condition_parse(const char *text, mica_condition *out, mica_error *err);

/** MICA_REFUSED, with what is the case instead. */
mica_status mica_condition_check(const mica_condition *c, const mica_require_facts *f, mica_error *err);

/** Whether it is about the machine, which changes while a reply is made. */
bool mica_condition_watches(const mica_condition *c);

/** "cooling, quota" of MICA_THROTTLE_* bits, in `out`. */
void mica_throttle_text(unsigned throttle, char out[96]);

#endif
