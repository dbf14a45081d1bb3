/* request.h - a request for replies, understood: prompts as tokens, options of the engine, and one choice for each reply that
 * it asks for.
 *
 * Made by the preparing thread (an api's parse), then the scheduler's alone. Owns all that the engine borrows: stop strings,
 * constraint, tools.
 *
 * The text of a reply goes: engine -> choice.c: reasoning apart (think.c), calls apart (mica_tools.h) -> the api, which says it
 * in its own form. */
#ifndef MICA_SERVE_REQUEST_H
#define MICA_SERVE_REQUEST_H
#include <jansson.h>

#include "mica/mica_receipt.h"
#include "mica/mica_tools.h"
#include "serve/cache.h"
#include "serve/job.h"
#include "serve/limits.h"
#include "serve/metrics.h"
#include "serve/think.h"

/** What all requests share; does not change while the server runs. */
typedef struct mica_serve_context {
    mica_model *model;
    mica_model_info info;
    const char *name; /* of the model, for clients */
    int32_t n_ctx;    /* of a slot */
    mica_kv_type kv_k, kv_v;
    int64_t peak_bytes; /* memory of the process, as predicted before the slots were made */
    bool think;       /* reasoning apart, unless a request says otherwise */
    int64_t created;  /* when the server began, Unix time */
    int64_t began_ns; /* the same, monotonic */
    mica_metrics *metrics;
    mica_cache *cache; /* of compiled constraints and tools; NULL: none */
    struct mica_telemetry *telemetry; /* of every reply; NULL: none */
    bool telemetry_text;              /* it wants the texts, too */
    const char *const *require;       /* conditions of all replies (mica_receipt.h) */
    size_t n_require;
    const char *hash_cache, *sysroot; /* for receipts; NULL: none, the real one */
    mica_device *device; /* of the whole server; NULL: none */
} mica_serve_context;

typedef struct mica_request mica_request;

/** A token and its log-probability, given those before it. */
typedef struct mica_score {
    int32_t token;
    float logprob;
} mica_score;

typedef struct mica_prompt {
    int32_t *tokens; /* mica_free() */
    size_t n;
    bool from_ids; /* the request has its tokens, and `text` is what they say */
    char *text;    /* for "echo", else NULL; UTF-8; free() */
    size_t length;
    mica_score *scores; /* [n][1 + n_top]: of the token itself, then of the best ones. NULL: none */
} mica_prompt;

/** The output items of a reply, where its form has such (api_responses.c). */
typedef struct mica_output {
    json_t *items; /* array; NULL: none yet. With `open` more comes of the last one */
    bool open;
    size_t from;        /* of the content: where an open message begins */
    size_t n_calls;     /* that were whole before an open call */
    mica_buf arguments; /* of the open call, as far as they are there */
} mica_output;

/** One reply. */
typedef struct mica_choice {
    mica_request *request;
    const mica_prompt *prompt;
    int32_t index;
    mica_think think;
    mica_tool_parser *parser;    /* NULL: no tools */
    mica_buf content, reasoning; /* all of it so far */
    json_t *calls;               /* array, as a message has them */
    json_t *logprobs;            /* array of entries that were not said yet; NULL: not asked for */
    size_t offset;               /* of the next log-probability in the text, where the form tells that */
    mica_output output;
    json_int_t sequence; /* of the next event, where the form numbers them */
    bool began;                  /* a piece was said */
    bool ended;
    const char *finish;     /* "stop", "length", "tool_calls" */
    struct mica_slot *slot; /* the scheduler's, while it runs */
    mica_receipt *receipt;  /* NULL: nobody wants one */
    mica_result result;
    int32_t reasoning_n;          /* tokens between <think> and </think>, the latter included */
    int64_t started_ns, first_ns; /* when it got its slot, and its first token */
    int32_t n_counted;            /* tokens that are in the metrics already */
} mica_choice;

typedef enum mica_delta_kind { MICA_DELTA_TEXT, MICA_DELTA_REASONING, MICA_DELTA_CALL, MICA_DELTA_ARGUMENTS } mica_delta_kind;

/** A piece of a reply. Pointers are borrowed for the call. */
typedef struct mica_delta {
    mica_delta_kind kind;
    const char *text;
    size_t length;
    int32_t call;          /* CALL, ARGUMENTS: which one */
    const char *id, *name; /* CALL */
} mica_delta;

/** A form of requests and replies. The functions of a stream send events with mica_request_event(). */
typedef struct mica_api {
    const char *id_prefix;
    bool follows; /* `say` and `end` are called for answers that are no stream, too */
    bool (*parse)(mica_request *r, mica_fault *fault);
    void (*open)(mica_request *r); /* the stream begins; may be NULL */
    void (*say)(mica_choice *c, const mica_delta *delta);
    void (*end)(mica_choice *c);       /* this reply is over: why, and what was not said */
    void (*close)(mica_request *r);    /* all are over */
    json_t *(*whole)(mica_request *r); /* the answer that is no stream */
} mica_api;

extern const mica_api mica_api_chat, mica_api_completions, mica_api_responses;

struct mica_request {
    const mica_serve_context *context;
    const mica_api *api;
    mica_job *job; /* one reference; NULL in tests */
    json_t *body;  /* owned: texts below are borrowed from it */
    char id[64];
    int64_t created; /* Unix time */
    bool stream, include_usage, echo, want_logprobs, think, think_inside, want_receipt;
    const char *require[MICA_SERVE_REQUIRE_MAX]; /* conditions */
    size_t n_require;
    int32_t n, n_top;              /* choices of a prompt; alternatives to show */
    int32_t priority;              /* among those that wait (queue.h) */
    uint64_t client;               /* whom it counts for there */
    mica_generate_options options; /* on_... and user are set for each choice */
    const char *stop[MICA_SERVE_STOP_MAX];
    mica_logit_bias *bias;
    mica_cache_entry *constraint_entry, *tools_entry; /* which own the next two */
    const mica_constraint *constraint;
    const mica_tools *tools;
    mica_prompt *prompts;
    size_t n_prompts;
    mica_choice *choices; /* n * n_prompts, those of a prompt together */
    int32_t n_choices, n_started, n_ended;
    bool failed;        /* an error was said: what is left is dropped */
    mica_fault fault;   /* memory for it */
    mica_request *next; /* in the scheduler's queue */
};

/** Parses job->body as `api` wants it. NULL: *fault says why. Takes a reference on the job (may be NULL in tests: then `body`
 * is parsed). */
mica_request *mica_request_new(const mica_serve_context *context, const mica_api *api, mica_job *job, const char *body,
                               size_t length, mica_fault *fault);
void mica_request_free(mica_request *r);

/** Whether the log-probabilities of its prompts are wanted: score.h is where it goes. */
bool mica_request_is_scored(const mica_request *r);

/** For the api's parse: after the prompts are there. */
bool mica_request_make_choices(mica_request *r, mica_fault *fault);
/** A prompt must have a token, and leave room for one. */
bool mica_request_check_prompt(const mica_request *r, const mica_prompt *p, const char *param, mica_fault *fault);

/** "event: NAME\ndata: JSON\n\n"; without a name only the data. Releases `event`. */
void mica_request_event(mica_request *r, const char *name, json_t *event);
/** "data: [DONE]\n\n" */
void mica_request_done_mark(mica_request *r);
/** Says the error (once) and drops the rest. */
void mica_request_fail(mica_request *r, const mica_fault *fault);
/** Whether the rest of its work is to be dropped. */
bool mica_request_is_dropped(const mica_request *r);

/** Usage in OpenAI's form, with the names that chat or responses use; over all choices. */
json_t *mica_request_usage(const mica_request *r, const char *in, const char *out);
/** The "mica" object: times and rates. */
json_t *mica_request_timings(const mica_request *r);

/* choice.c */
/** The options for the engine, callbacks included; `on_done` is the caller's, to call mica_choice_finish(). */
bool mica_choice_start(mica_choice *c, mica_generate_options *options, mica_fault *fault);
void mica_choice_finish(mica_choice *c, mica_status status, const mica_result *result, const mica_error *error);
/** Any bytes as a JSON string; what is not UTF-8 becomes U+FFFD. */
json_t *mica_json_lossy(const char *data, size_t length);

/* params.c */
/** Everything that chat and completions have in common but n, logprobs and response_format. */
bool mica_params_read(mica_request *r, mica_fault *fault);
/** "response_format" */
bool mica_params_format(mica_request *r, const json_t *format, const char *param, mica_fault *fault);

#endif
