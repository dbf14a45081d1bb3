/* mica_router.h - where a request goes: a policy that is data, the ladder of rungs it names, a decision, its record.
 *
 *     mica_router *router;  mica_route_policy *policy;  mica_route_decision decision;
 *     mica_router_new("policy.json", NULL, &router, &err);                 // reads policy, ladder, prices, classifier
 *     policy = mica_router_policy(router);                                 // the current one; stays as it is while held
 *     mica_route_decide(policy, &request, &state, &decision, &err);
 *     for (i = 0; i < decision.n_order; i++)                               // the first rung, then what to try if it fails
 *         mica_route_rung_get(policy, decision.order[i], &rung);
 *     mica_route_record(policy, &decision, &request, &state, NULL, &line, &length, &err);   // one JSON line for the log
 *     mica_route_policy_release(policy);
 *     mica_router_reload(router, &err);                                    // a bad file keeps the old policy
 *
 * A library of its own (mica_router), not a part of libmica. The rules of mica.h hold, and:
 *  - Nothing leaves the device by default: a remote rung is a candidate only if the policy says "allow_egress": true AND the
 *    request is not private.
 *  - A decision is a pure function of policy, request and state: no clock, no file, no random number.
 *  - What is not known is unknown, never 0: -1 in integers, NAN in doubles, MICA_UNKNOWN in answers. What protects the
 *    device (RAM threshold, egress) takes unknown for "no".
 * docs/router.md describes the files; share/mica/schemas has their JSON Schemas.
 */
#ifndef MICA_MICA_ROUTER_H
#define MICA_MICA_ROUTER_H
#include "mica/mica_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MICA_ROUTE_RUNGS_MAX 16 /* of one ladder */
#define MICA_ROUTE_NAME_MAX 48  /* bytes of a rung's, rule's or task's name, its end included */

/* ---- Policy ---------------------------------------------------------------------------------------------------------- */

/** A policy with its ladder, prices, patterns and classifier, checked and compiled. Immutable, counted, for any thread. */
typedef struct mica_route_policy mica_route_policy;

/** Reads a policy file and the files it names (relative to its folder, then to `share`, the folder of mica's data; may be
 * NULL). MICA_BAD_TEXT names file, JSON pointer and what is wrong. *out holds one reference. */
mica_status mica_route_policy_open(const char *path, const char *share, mica_route_policy **out, mica_error *err);
/** The same from a text; `name` is for messages, `folder` where relative names start (NULL: no other file is read). */
mica_status mica_route_policy_parse(const char *json, size_t length, const char *name, const char *folder, const char *share,
                                    mica_route_policy **out, mica_error *err);
void mica_route_policy_retain(mica_route_policy *policy);
/** NULL is fine. */
void mica_route_policy_release(mica_route_policy *policy);

/** Pointers are borrowed until the policy is released. */
typedef struct mica_route_policy_info {
    const char *name, *version, *ladder_name, *ladder_version;
    const char *hash; /* 16 hexadecimal digits of policy, ladder, prices and classifier: XXH64 of their texts */
    bool allow_egress;
    bool log_text; /* records keep the request's text */
    int32_t n_rungs, n_rules;
    const char *classifier_hash; /* "" where the policy has none */
} mica_route_policy_info;

void mica_route_policy_get_info(const mica_route_policy *policy, mica_route_policy_info *info);

/** One rung of the ladder. Pointers are borrowed until the policy is released. */
typedef struct mica_route_rung {
    const char *name;
    bool remote;
    const char *file; /* local: the model's file name or path; "" if remote */
    const char *chat_template; /* local: Jinja text in place of the model's own, for one that has none; "" its own */
    int64_t context;  /* tokens */
    int64_t weights_bytes, min_ram_bytes, kv_bytes_per_token, fixed_bytes; /* 0 if remote */
} mica_route_rung;

/** MICA_INVALID_ARGUMENT: there is no such rung. */
mica_status mica_route_rung_get(const mica_route_policy *policy, int32_t rung, mica_route_rung *out, mica_error *err);
/** Index of a rung by name; -1: none. */
int32_t mica_route_rung_find(const mica_route_policy *policy, const char *name);

/* ---- A router: the current policy of a file, replaced while it runs ---------------------------------------------------- */

typedef struct mica_router mica_router;

mica_status mica_router_new(const char *policy_path, const char *share, mica_router **out, mica_error *err);
/** Policies handed out stay valid. NULL is fine. */
void mica_router_free(mica_router *router);
/** The current policy, one reference of it: release it. From any thread. */
mica_route_policy *mica_router_policy(mica_router *router);
/** Reads the files again and puts the new policy in place of the old one in one step. On an error the old one stays, and the
 * message says so. From any thread. */
mica_status mica_router_reload(mica_router *router, mica_error *err);

/* ---- What a decision is made from ------------------------------------------------------------------------------------- */

typedef enum mica_route_class {
    MICA_CLASS_AUTO = -1, /* not said: rules, then the classifier */
    MICA_CLASS_UNKNOWN = 0,
    MICA_CLASS_NARROW = 1,
    MICA_CLASS_COMPLEX = 2,
} mica_route_class;

/** "unknown", "narrow", "complex"; static. */
const char *mica_route_class_name(mica_route_class value);

/** A request. Texts are borrowed for the call. */
typedef struct mica_route_request {
    size_t struct_size;
    const char *id;       /* in the record; NULL: "" */
    const char *task;     /* what the caller says it is: "classify", "summarise", ...; NULL: nothing */
    mica_route_class route_class; /* MICA_CLASS_AUTO */
    const char *text;     /* what rules and classifier look at: the last message of the user; NULL: nothing to look at */
    size_t length;
    int64_t prompt_tokens; /* of the whole prompt; -1: estimated from the next */
    int64_t prompt_bytes;  /* of the whole prompt; -1: the text is all of it */
    int64_t output_tokens; /* needed; -1: as the policy says for the class */
    bool has_schema, has_tools;
    bool is_private;      /* must not leave the device */
    int64_t deadline_ms;  /* for the whole answer; -1: none */
    double max_usd, max_joules; /* of this answer; NAN: none */
    const char *rung;     /* this rung and no other; NULL or "auto": the router chooses */
} mica_route_request;

mica_route_request mica_route_request_default(void);

/** What a decision looks at of the device: mica_route_device_of() takes it from a reading. Answers are MICA_YES, MICA_NO or
 * MICA_UNKNOWN of mica_device.h. */
typedef struct mica_route_device {
    int64_t ram_bytes;       /* physical, or the control group's limit if that is lower; -1: unknown, and no model is loaded */
    int64_t available_bytes; /* that this process may still take; -1: unknown */
    mica_thermal_status thermal;
    double battery;          /* 0..1; NAN: unknown, or none */
    int on_battery;          /* it runs on it now, no external power is connected */
    int power_save;
} mica_route_device;

void mica_route_device_of(const mica_device_state *reading, mica_route_device *out);

/** What is known of a rung now. */
typedef struct mica_route_rung_state {
    const char *name;
    int file;     /* local: its model file is there; unknown counts as no */
    int resident; /* local: the model is loaded */
    int healthy;  /* NO: its breaker is open, or its load died before */
    double prefill_tps, decode_tps; /* measured here; NAN: what the ladder says counts */
    double watts;               /* while it decodes, measured here; NAN: what the ladder says */
    double wait_ms;             /* until a new request would begin (queue); NAN: none */
    int hot;                    /* YES: the device is too hot for it: its governor refused a reply, or asked for a lower rung */
    int64_t memory_bytes;       /* local: the peak of the process with it, planned from its file; -1: the ladder's figures count */
    int64_t free_bytes;         /* of these, what must be free when it is loaded: cache and workspace; -1: all of it */
    const char *refusal;        /* local: why it exceeds the memory budget (mica_budget.message); NULL, "": nothing says so */
} mica_route_rung_state;

typedef struct mica_route_state {
    size_t struct_size;
    int64_t time_ms; /* Unix time, for the record only; -1: unknown */
    mica_route_device device;
    int network; /* NO: remote rungs cannot be reached. Unknown: they may be tried */
    int metered;
    const mica_route_rung_state *rungs; /* those that are not here are known from the ladder only; borrowed */
    size_t n_rungs;
} mica_route_state;

/** Everything unknown. */
mica_route_state mica_route_state_default(void);
mica_route_rung_state mica_route_rung_state_default(const char *name);

/* ---- The same as JSON ---- */

/** A request read from a text, with what it points to. */
typedef struct mica_route_request_file mica_route_request_file;

/** Reads a request: {"task", "class", "text", "prompt_tokens", "prompt_bytes", "output_tokens", "schema", "tools", "private",
 * "deadline_ms", "max_usd", "max_joules", "rung", "id"}, all of them optional; or the body of a chat request, where "route"
 * holds such an object and what it does not say comes from the body: text and tokens from "messages", output_tokens from
 * "max_completion_tokens" or "max_tokens", schema from "response_format", tools from "tools", rung from "model". MICA_BAD_TEXT
 * names the member. */
mica_status mica_route_request_parse(const char *json, size_t length, mica_route_request_file **out, mica_error *err);
/** Borrowed until it is freed. */
const mica_route_request *mica_route_request_of(const mica_route_request_file *file);
void mica_route_request_free(mica_route_request_file *file);

/** A state read from a text: {"time_ms", "device": {"ram_bytes", "available_bytes", "thermal", "battery", "on_battery",
 * "power_save"}, "network", "metered", "rungs": [{"name", "file", "resident", "healthy", "prefill_tps", "decode_tps", "watts",
 * "wait_ms", "hot", "memory_bytes", "free_bytes", "refusal"}]}; what is absent or null is unknown. */
typedef struct mica_route_state_file mica_route_state_file;

mica_status mica_route_state_parse(const char *json, size_t length, mica_route_state_file **out, mica_error *err);
const mica_route_state *mica_route_state_of(const mica_route_state_file *file);
void mica_route_state_free(mica_route_state_file *file);

/* ---- A decision -------------------------------------------------------------------------------------------------------- */

typedef enum mica_route_action {
    MICA_ROUTE_RUN = 0,    /* try the rungs of `order` */
    MICA_ROUTE_QUEUE = 1,  /* keep the request until the network is back */
    MICA_ROUTE_REFUSE = 2, /* no rung may run it; `message` has every reason */
} mica_route_action;

/** "run", "queue", "refuse"; static. */
const char *mica_route_action_name(mica_route_action action);

/** Why a rung is passed over. */
typedef enum mica_route_reason {
    MICA_ROUTE_FITS = 0,
    MICA_ROUTE_NOT_WANTED = 1,    /* the request names another rung */
    MICA_ROUTE_EGRESS_DENIED = 2, /* the policy does not allow egress */
    MICA_ROUTE_IS_PRIVATE = 3,    /* the request may not leave the device */
    MICA_ROUTE_NO_NETWORK = 4,
    MICA_ROUTE_NO_FILE = 5,
    MICA_ROUTE_LOW_RAM = 6,       /* the device is under the rung's RAM threshold */
    MICA_ROUTE_OVER_BUDGET = 7,   /* its peak exceeds the memory budget, or the policy's part of the RAM */
    MICA_ROUTE_NO_MEMORY_NOW = 8, /* what must be free exceeds what is */
    MICA_ROUTE_UNHEALTHY = 9,
    MICA_ROUTE_CONTEXT = 10,      /* prompt and reply do not fit its context */
    MICA_ROUTE_LOW_QUALITY = 11,
    MICA_ROUTE_TOO_SLOW = 12,     /* the deadline */
    MICA_ROUTE_TOO_DEAR = 13,
    MICA_ROUTE_TOO_MUCH_ENERGY = 14,
    MICA_ROUTE_NO_SCHEMA = 15,    /* it cannot be held to a schema */
    MICA_ROUTE_NO_TOOLS = 16,
    MICA_ROUTE_STATE_FORBIDS = 17, /* a "when" of the policy: hot, low battery, power save */
    MICA_ROUTE_HOPS = 18,          /* it fits, but comes after the policy's number of hops */
    MICA_ROUTE_HOT = 19,           /* the device is too hot for it, and a lower rung or a server fits */
} mica_route_reason;

/** "fits", "egress_denied", ...; static. */
const char *mica_route_reason_name(mica_route_reason reason);

typedef struct mica_route_candidate {
    char rung[MICA_ROUTE_NAME_MAX];
    bool remote;
    mica_route_reason reason; /* MICA_ROUTE_FITS: it is in the order */
    char why[488];            /* in words, with the numbers */
    int64_t memory_bytes;     /* at its peak; 0 if remote */
    double ttft_ms, total_ms, usd, joules, quality; /* predicted; NAN: cannot be told */
    double score;             /* what the order goes by; lower is better; NAN where it goes by the ladder */
} mica_route_candidate;

/** Plain memory: copy it freely. */
typedef struct mica_route_decision {
    char id[64];
    char policy_name[MICA_ROUTE_NAME_MAX], policy_version[32], policy_hash[17];
    mica_route_class route_class;
    char class_by[16];         /* "request", "rule", "classifier", "none" */
    char rule[MICA_ROUTE_NAME_MAX]; /* the rule or the classifier's threshold that decided; "" */
    double p_narrow;           /* of the classifier, whether it decided or not; NAN: it was not asked */
    char classifier_hash[17];  /* of the classifier that was asked; "" */
    bool is_private;           /* by the request or by a rule */
    char states[400];          /* names of the policy's "when" parts that hold, with blanks between */
    int64_t prompt_tokens, output_tokens; /* as counted with; the reply's limit after the policy's caps */
    mica_route_action action;
    int32_t n_order;
    int32_t order[MICA_ROUTE_RUNGS_MAX]; /* rungs by index in the ladder: the first, and what to try next */
    int32_t n_candidates;                /* one for each rung, in the ladder's order */
    mica_route_candidate candidates[MICA_ROUTE_RUNGS_MAX];
    bool degraded;        /* no network: run with the policy's degraded prompt */
    const char *degraded_prompt; /* what to put before the conversation; borrowed until the policy is released; "" */
    int64_t yield_tokens; /* a reply gives way after so many tokens; 0: never */
    char message[1600];   /* why this, in one sentence */
} mica_route_decision;

/** Decides. Fails only for what is no request (a negative number, text without UTF-8, an unknown rung): "nothing can run it" is
 * a decision, MICA_ROUTE_REFUSE. */
mica_status mica_route_decide(const mica_route_policy *policy, const mica_route_request *request, const mica_route_state *state,
                              mica_route_decision *out, mica_error *err);

/* ---- Records ----------------------------------------------------------------------------------------------------------- */

#define MICA_ROUTE_ATTEMPTS_MAX 16

/** One try on one rung. */
typedef struct mica_route_attempt {
    char rung[MICA_ROUTE_NAME_MAX];
    char result[24];    /* "ok", "timeout", "refused", "http_503", "invalid_output", "cancelled", ... */
    char error[160];    /* "" */
    double start_ms, end_ms, first_byte_ms; /* from the decision; NAN: it never came */
    int64_t output_tokens;                  /* -1: unknown */
    bool hedge;
} mica_route_attempt;

/** What came of a decision. */
typedef struct mica_route_outcome {
    bool ok;
    char rung[MICA_ROUTE_NAME_MAX]; /* that answered; "" */
    int64_t held;                   /* it waits in the queue under this number; 0: it does not */
    double ttft_ms, total_ms, usd, joules, quality; /* NAN: unknown. quality: graded by the caller, 0..1 */
    int64_t prompt_tokens, output_tokens;           /* -1: unknown */
    int32_t n_attempts;
    mica_route_attempt attempts[MICA_ROUTE_ATTEMPTS_MAX];
} mica_route_outcome;

mica_route_outcome mica_route_outcome_default(void);

/** One JSON object, no line end: policy, request (its text only if the policy says so), state, candidates, choice and, unless
 * NULL, the outcome. *line is yours, terminated. */
mica_status mica_route_record(const mica_route_policy *policy, const mica_route_decision *decision,
                              const mica_route_request *request, const mica_route_state *state,
                              const mica_route_outcome *outcome, char **line, size_t *length, mica_error *err);
/** The outcome of an earlier record, as a line of its own that names the decision's id. */
mica_status mica_route_outcome_line(const char *id, const mica_route_outcome *outcome, char **line, size_t *length,
                                    mica_error *err);
/** Appends a line and its end to a log in one write; makes the file (for its owner only). From any thread or process. */
mica_status mica_route_log_append(const char *path, const char *line, size_t length, mica_error *err);
/** An id that no other request has: 32 hexadecimal digits from the system's entropy. */
mica_status mica_route_new_id(char out[33], mica_error *err);

/** What another policy would have made of a log: JSON text with counts, and for cost, energy, latency and quality the sums of
 * both policies and their difference (docs/router.md says what is measured there and what is estimated). *report is yours. */
mica_status mica_route_replay(const char *log, size_t length, const mica_route_policy *policy, char **report,
                              size_t *report_length, mica_error *err);

/** A record in words for people. *text is yours. */
mica_status mica_route_explain(const char *record, size_t length, char **text, size_t *text_length, mica_error *err);

/* ---- The classifier ---------------------------------------------------------------------------------------------------- */

/** How it is trained. The same data, options and seed give the same file. */
typedef struct mica_route_train_options {
    size_t struct_size;
    int32_t buckets;   /* of the hashed n-grams: a power of two from 256 to 65536; 4096 */
    int32_t epochs;    /* 1..1000; 60 */
    double rate;       /* step of the gradient, (0, 10]; 0.5 */
    double l2;         /* weight of the squared weights, [0, 1]; 1e-4 */
    double held_out;   /* part of the examples that is only for the report, (0, 0.4]; 0.2; as much again sets the temperature */
    uint64_t seed;     /* 1 */
    const char *name;  /* in the model's file; "" */
} mica_route_train_options;

mica_route_train_options mica_route_train_options_default(void);

/** Trains on JSON lines {"text", "class": "narrow" or "complex"} with, optionally, "group", "split" ("train", "test") and
 * "source". Examples of split "test" are never trained on; of the others a part is held out, by chance of the hash of their
 * group (else of their text). *model (the file, JSON) and *report (JSON: accuracy, calibration) are yours; `report` may be
 * NULL. */
mica_status mica_route_train(const char *jsonl, size_t length, const mica_route_train_options *options, char **model,
                             size_t *model_length, char **report, size_t *report_length, mica_error *err);
/** Accuracy and calibration of a model on such lines, all of them. *report is yours. */
mica_status mica_route_evaluate(const char *model, size_t model_length, const char *jsonl, size_t length, char **report,
                                size_t *report_length, mica_error *err);

/* ---- Running ------------------------------------------------------------------------------------------------------------ */

/* A runner carries decisions out: local rungs with the engine, which stay loaded while the memory budget allows, remote ones over
 * HTTPS; on failure the next rung, after further attempts where these make sense; what must wait for the network goes to a queue
 * on the disk.
 *
 *     mica_runner_options o = mica_runner_options_default();  o.router = router;  o.get_env = ...;
 *     mica_runner_new(&o, &runner, &err);
 *     mica_run_request r = mica_run_request_default();  r.body = json;  r.length = n;  r.on_text = print;
 *     mica_runner_ask(runner, &r, &reply, &err);              // reply.outcome, reply.record say what happened, on an error too
 *     mica_run_reply_free(&reply);
 *
 * A text is never spliced: once a piece of one rung was handed to on_text, this rung's failure is the answer. With the policy's
 * "buffer", or a schema that a remote reply must be checked against, a reply is handed over when it is whole. */
typedef struct mica_runner mica_runner;

typedef struct mica_runner_options {
    size_t struct_size;
    mica_router *router;     /* borrowed until the runner is freed */
    const char *queue_path;  /* the file with what waits for the network; NULL: none, it is refused. Copied */
    const char *models_dir;  /* where the ladder's files are, unless their names begin with / ; NULL: the working folder. Copied */
    const char *redact_task; /* definition of a task of the kind redact (mica_tasks.h), whose rules are used; NULL: rungs with
                                "redact" are passed over. Copied */
    int64_t memory_budget;   /* for all loaded models together: bytes, or MICA_PERCENT() of what is usable; 0: 55 percent */
    int32_t n_threads;       /* of local rungs; 0: as planned */
    const char *sysroot;     /* as in mica_session_options. Copied */
    const char *figures;     /* the device's file of what was measured of models, for their rates; NULL: none. Copied */
    const char *governor;    /* a policy (mica_governor.h) that each local rung runs under: JSON; NULL: none. Copied */
    int64_t seed;            /* of the pauses' jitter; -1: a fresh one */
    /** The value of an environment variable, for a rung's "key_env"; NULL: there is none. Borrowed for the call. */
    const char *(*get_env)(void *user, const char *name);
    /** Each request's mica_run_reply.record, for a log; from the request's thread. May be NULL. */
    void (*on_record)(void *user, const char *line, size_t length);
    void *user;
    /** Gets an event of each request that came to a decision (mica_telemetry.h); NULL: none. Borrowed until the runner is freed. */
    struct mica_telemetry *telemetry;
} mica_runner_options;

mica_runner_options mica_runner_options_default(void);
mica_status mica_runner_new(const mica_runner_options *options, mica_runner **out, mica_error *err);
/** No request may run. NULL is fine. */
void mica_runner_free(mica_runner *runner);

typedef struct mica_run_request {
    size_t struct_size;
    const char *body; /* a request of OpenAI's chat completions, with "route", as mica_route_request_parse() reads it */
    size_t length;
    int network, metered; /* MICA_YES, MICA_NO, MICA_UNKNOWN */
    const char *idempotency_key; /* for servers and the queue: the same work is not done twice; NULL: a fresh one */
    bool no_queue;               /* fail instead of waiting for the network */
    /** The rung whose reply begins, once. May be NULL. */
    void (*on_rung)(void *user, const char *rung, const char *model);
    /** The reply's text as it comes: whole characters, in order, never two calls at a time, but perhaps on another thread (with
     * "hedge_ms"). Non-zero stops. May be NULL. */
    int (*on_text)(void *user, const char *text, size_t length);
    /** Asked often: true ends the request. From any thread. May be NULL. */
    bool (*is_cancelled)(void *user);
    void *user;
} mica_run_request;

mica_run_request mica_run_request_default(void);

typedef struct mica_run_reply {
    char *text; /* the whole reply; terminated */
    size_t length;
    char *tool_calls;  /* JSON array as a message has it; NULL: none */
    char finish[24];   /* "stop", "length", "tool_calls"; "" unless it ended well */
    char model[128];   /* that answered, by its own name */
    int64_t held;      /* the request waits in the queue under this number; 0: it does not */
    bool may_have_arrived; /* some server may have had the request, and done its work, whatever came back */
    bool unreached;    /* servers were tried, and none could be reached */
    mica_route_decision decision; /* without degraded_prompt, which belongs to the policy */
    mica_route_outcome outcome;
    char *record; /* mica_route_record() of all this; NULL if it came to no decision */
    size_t record_length;
} mica_run_reply;

/** Decides and carries it out. MICA_OK with reply->held: it waits. MICA_CANCELLED: by the caller. MICA_IO_ERROR: every rung that
 * might have answered failed, and the message has each one's reason. MICA_UNSUPPORTED: no rung may run it.
 * MICA_INVALID_ARGUMENT, MICA_BAD_TEXT: it is no request. Free the reply in every case. From any number of threads. */
mica_status mica_runner_ask(mica_runner *runner, const mica_run_request *request, mica_run_reply *reply, mica_error *err);
void mica_run_reply_free(mica_run_reply *reply);

/** What a rung has done so far. */
typedef struct mica_runner_rung {
    char name[MICA_ROUTE_NAME_MAX];
    uint64_t answered, failed; /* attempts */
    uint64_t output_tokens;    /* as far as known */
    bool open;                 /* its breaker: it is left alone for now */
    bool resident;             /* its model is loaded */
} mica_runner_rung;

/** Rung number `i` of all that the runner has met; false: there are no more. */
bool mica_runner_rung_at(mica_runner *runner, size_t i, mica_runner_rung *out);

/* ---- The queue on the disk ---------------------------------------------------------------------------------------------- */

/* What waits for the network, in a SQLite file that any number of processes may use. Each request has a key of its own: put twice,
 * it waits once; sent twice, because the first time its answer was lost, it goes with the same Idempotency-Key. A request is done in
 * the same transaction that stores its reply: whatever happens, it is stored once. */
typedef struct mica_held mica_held;

typedef enum mica_held_state {
    MICA_HELD_WAITING = 0,
    MICA_HELD_SENDING = 1, /* an attempt runs, or was ended by a crash: it may have arrived */
    MICA_HELD_DONE = 2,    /* its reply is there */
    MICA_HELD_FAILED = 3,  /* given up: `note` says why */
} mica_held_state;

const char *mica_held_state_name(mica_held_state state);

/** Texts are borrowed for the call of on_row. */
typedef struct mica_held_row {
    int64_t id, created_ms, attempts; /* Unix time */
    mica_held_state state;
    bool maybe_sent;    /* some attempt may have reached a server */
    const char *key;
    const char *body;   /* the request */
    size_t length;
    const char *reply;  /* JSON: {"text", "finish", "rung", "model", "tool_calls"}; NULL until it is done */
    const char *note;   /* of the last attempt; "" */
} mica_held_row;

mica_status mica_held_open(const char *path, mica_held **out, mica_error *err);
void mica_held_close(mica_held *held);
/** One more request; `limit`: the most that may wait. A key that is there already changes nothing and gives its id. */
mica_status mica_held_put(mica_held *held, const char *key, const char *body, size_t length, int64_t limit, int64_t *id,
                          mica_error *err);
/** All rows (id 0) or one, by age. Non-zero from on_row stops. */
mica_status mica_held_list(mica_held *held, int64_t id, int (*on_row)(void *user, const mica_held_row *row), void *user,
                           mica_error *err);
/** Forgets a request, waiting or done. MICA_INVALID_ARGUMENT: there is none, or it is being sent. */
mica_status mica_held_drop(mica_held *held, int64_t id, mica_error *err);

typedef enum mica_held_verdict {
    MICA_HELD_ANSWERED, /* *reply is its JSON, from malloc */
    MICA_HELD_AGAIN,    /* not now: it goes on waiting */
    MICA_HELD_STOP,     /* not now, and the others need not be tried: there is no network */
    MICA_HELD_NEVER,    /* given up */
} mica_held_verdict;

typedef struct mica_held_drain {
    /** Sends a request. `note` is for the row. Sets *maybe_sent as soon as it may have arrived. */
    mica_held_verdict (*send)(void *user, const mica_held_row *row, char **reply, bool *maybe_sent, char note[160]);
    /** Told after each step on the disk ("taken", "answered", "stored"). May be NULL. */
    void (*on_step)(void *user, const char *step, int64_t id);
    void *user;
    int64_t n_done, n_left; /* afterwards */
} mica_held_drain;

/** Sends what waits, oldest first. One process at a time: MICA_CANCELLED if another one is at it. */
mica_status mica_held_drain_all(mica_held *held, mica_held_drain *drain, mica_error *err);

/** Drains a runner's queue through its policy: what cannot be sent yet goes on waiting. */
mica_status mica_runner_drain(mica_runner *runner, int network, int64_t *n_done, int64_t *n_left, mica_error *err);

#ifdef __cplusplus
}
#endif
#endif
