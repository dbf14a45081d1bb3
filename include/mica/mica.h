/* mica.h - run small language models on the device at hand.
 *
 *     mica_model *model;  mica_session *session;  mica_error err;
 *     if (mica_model_open("model.gguf", NULL, &model, &err)) die(err.message);
 *     if (mica_session_new(model, NULL, &session, &err)) die(err.message);
 *     mica_session_prompt(session, "The capital of France is", 24, 0, &err);
 *     mica_session_generate(session, &options, &result, &err);   // options.on_text streams
 *     mica_session_free(session);  mica_model_close(model);
 *
 * Rules that hold for every function here:
 *  - Every function that can fail returns a mica_status and, if `err` is not NULL, fills it with one sentence that a person
 *    can act on. On MICA_OK `err` is not touched.
 *  - Options structs are made by their _default() function and then changed. NULL means all defaults.
 *  - "Borrowed" pointers stay valid until the named event. "Yours" means: free it with mica_free() (or the named function).
 *  - The library never exits, aborts, prints or reads the environment, and has no global state.
 *  - A mica_model may be used from any number of threads. A mica_session belongs to one thread at a time; only
 *    mica_session_cancel() may be called from any thread.
 *  - Text is UTF-8 with an explicit length in bytes; it may contain NUL.
 */
#ifndef MICA_MICA_H
#define MICA_MICA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MICA_API
#else
#define MICA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions ------------------------------------------------------------------------------------------------------- */

/** "0.1.0". Static. */
MICA_API const char *mica_version(void);

/** Version of the arithmetic. For one numerics version, model file, KV type and prompt, every path through the engine gives
 * the same logits bit for bit. It changes only when results change, and the changelog says so. */
MICA_API int mica_numerics_version(void);

/* ---- Errors --------------------------------------------------------------------------------------------------------- */

typedef enum mica_status {
    MICA_OK = 0,
    MICA_INVALID_ARGUMENT = 1, /* an argument or option is out of its range; the message names it and the range */
    MICA_OUT_OF_MEMORY = 2,    /* the system refused memory */
    MICA_IO_ERROR = 3,         /* a file cannot be opened, read or mapped */
    MICA_BAD_FILE = 4,         /* not a GGUF file, or a damaged one; `position` is the byte offset */
    MICA_UNSUPPORTED = 5,      /* valid, but this build cannot run it (architecture, weight type, ...) */
    MICA_CONTEXT_FULL = 6,     /* the tokens do not fit the context; the message says how many were needed */
    MICA_CANCELLED = 7,        /* mica_session_cancel() or a callback stopped the work; the session stays usable */
    MICA_NON_FINITE = 8,       /* the model produced NaN or only infinite logits */
    MICA_BAD_TEMPLATE = 9,     /* the chat template cannot be compiled, failed, or refused the conversation */
    MICA_BAD_TEXT = 10,        /* text is not valid UTF-8 (or JSON where JSON is expected); `position` is the byte offset */
    MICA_OVER_BUDGET = 11,     /* the memory plan exceeds the limit given; the message has both numbers */
    MICA_BAD_KERNELS = 12,     /* a kernel set is unknown, cannot run on this CPU, or failed its self-check */
    MICA_REFUSED = 13,         /* a condition that the caller requires does not hold; the message has both (mica_receipt.h) */
    MICA_TOO_HOT = 14,         /* the governor's policy refuses a reply of this length while the device is so hot */
} mica_status;

typedef struct mica_error {
    mica_status code;
    int64_t position;  /* byte offset in the input where that makes sense, else -1 */
    char message[488]; /* one sentence, UTF-8, always terminated */
} mica_error;

/** Name of a status code, for example "MICA_BAD_FILE". Static, never NULL. */
MICA_API const char *mica_status_name(mica_status status);

/** Frees what a function of this header handed over as "yours". NULL is fine. */
MICA_API void mica_free(void *pointer);

/* ---- Model: immutable, shared, reference counted --------------------------------------------------------------------- */

typedef struct mica_model mica_model;

typedef struct mica_model_options {
    size_t struct_size;
    /** Kernel set to force ("portable", "avx2", ...); NULL chooses the best that this CPU runs. */
    const char *kernels;
    /** Replaces the model's chat template (Jinja text, terminated); NULL uses the file's own. Copied. */
    const char *chat_template;
    /** Called while the file is opened with done in [0, 1]. Non-zero return cancels. May be NULL. */
    int (*on_progress)(void *user, double done);
    /** Receives one-line warnings about the file (an unused tensor, a special id outside the vocabulary). May be NULL. */
    void (*on_warning)(void *user, const char *message);
    void *user;
    /** Reads all of the file and keeps it in memory (mlock). Where the system does not allow that, a warning says why, and the
     * model works as without; mica_model_info.locked tells. */
    bool lock;
} mica_model_options;

MICA_API mica_model_options mica_model_options_default(void);

/** Maps a GGUF file read-only and shared; the weights are never copied to the heap. Of a split model
 * (NAME-00001-of-0000N.gguf) any part may be named. Takes time proportional to the metadata, not to the weights.
 * On success *out holds one reference, released by mica_model_close(). */
MICA_API mica_status mica_model_open(const char *path, const mica_model_options *options, mica_model **out, mica_error *err);

/** The same for a model that is a part of another file (an asset in an Android APK): `length` bytes from `offset` of `fd`;
 * length 0 means to the end of the file. The descriptor is not kept: the caller may close it afterwards. */
MICA_API mica_status mica_model_open_fd(int fd, uint64_t offset, uint64_t length, const mica_model_options *options,
                                        mica_model **out, mica_error *err);

/** Takes one more reference. */
MICA_API void mica_model_retain(mica_model *model);
/** Releases one reference; the last one unmaps the file. Sessions hold a reference of their own. NULL is fine. */
MICA_API void mica_model_close(mica_model *model);

/** What a model is. All pointers are borrowed until the model is closed. */
typedef struct mica_model_info {
    const char *architecture; /* "llama", "qwen2", ... */
    const char *name;         /* general.name, or "" */
    const char *kernels;      /* kernel set chosen: "portable", "avx2", ... */
    int64_t n_params;         /* number of weights */
    int64_t weight_bytes;     /* bytes of tensor data in the file(s) */
    int64_t file_bytes;       /* bytes mapped */
    int32_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab;
    int32_t n_ctx_train;    /* context length the model was trained for */
    int32_t sliding_window; /* width in tokens of windowed layers; 0 if there are none */
    int32_t bos_token, eos_token, eot_token, pad_token; /* -1 if absent */
    bool add_bos, has_chat_template;
    const char *chat_template; /* "" if none */
    double load_ms;            /* wall time of mica_model_open() */
    bool locked;               /* options.lock, and the system allowed it */
} mica_model_info;

MICA_API void mica_model_get_info(const mica_model *model, mica_model_info *info);

/** Number of metadata entries, and entry `i` as text (arrays are shortened). *key and *value are yours. */
MICA_API size_t mica_model_metadata_count(const mica_model *model);
MICA_API mica_status mica_model_metadata(const mica_model *model, size_t i, char **key, char **value, mica_error *err);

typedef struct mica_tensor_info {
    char name[72];
    const char *type; /* "Q4_K", static */
    int32_t n_dims;
    int64_t dims[4]; /* innermost first, as in the file */
    int64_t bytes;
} mica_tensor_info;

MICA_API size_t mica_model_tensor_count(const mica_model *model);
MICA_API void mica_model_tensor(const mica_model *model, size_t i, mica_tensor_info *info);

/** Which kernel set's functions run which part of this model, one line each: for groups of functions
 * ("attention: avx512 (qk, exp_sum, pv), avx2 (rope, softcap, max)"), and for the matrices
 * ("blk.*.ffn_down.weight Q6_K: GEMM avx512, GEMV avx2": many tokens, and one or two). Yours. */
MICA_API mica_status mica_model_explain_kernels(const mica_model *model, char **text, mica_error *err);

/* ---- Text ------------------------------------------------------------------------------------------------------------ */

enum {
    MICA_TOKENIZE_ADD_BOS = 1 << 0,       /* add the BOS/EOS tokens that the model's metadata asks for (never a second BOS) */
    MICA_TOKENIZE_PARSE_SPECIAL = 1 << 1, /* text that spells a control token becomes that token (templates, not users) */
};

/** Text to token ids. *tokens is yours, *n_tokens its length. Invalid UTF-8 is MICA_BAD_TEXT with the byte offset. */
MICA_API mica_status mica_model_tokenize(const mica_model *model, const char *text, size_t length, unsigned flags,
                                         int32_t **tokens, size_t *n_tokens, mica_error *err);

/** Token ids to bytes, exactly as the pieces say (a text may end inside a character). Control tokens give nothing unless
 * `show_special`. *text is yours, terminated; *length excludes the terminator. */
MICA_API mica_status mica_model_detokenize(const mica_model *model, const int32_t *tokens, size_t n_tokens, bool show_special,
                                           char **text, size_t *length, mica_error *err);

/** Renders a conversation with the chat template. `request_json` is an object with "messages" and, optionally, "tools",
 * "add_generation_prompt" (default true), "chat_template_kwargs" and any further variable of the template, in the form of
 * the OpenAI chat API. `now_unix` is the time that strftime_now sees; negative means the clock.
 * *text is yours. For the tokens of a conversation use mica_chat_tokenize() of mica_tools.h: in the text one cannot see any more
 * which control tokens are the template's, and which a user typed. */
MICA_API mica_status mica_model_chat_render(const mica_model *model, const char *request_json, size_t length, int64_t now_unix,
                                            char **text, size_t *text_length, mica_error *err);

/** The same with a template text of the caller's own and no model; bos and eos may be NULL. */
MICA_API mica_status mica_template_render(const char *template_text, size_t template_length, const char *request_json,
                                          size_t length, const char *bos, const char *eos, int64_t now_unix, char **text,
                                          size_t *text_length, mica_error *err);

/* ---- Device ---------------------------------------------------------------------------------------------------------- */

#define MICA_MAX_THREADS 64

/** Which threads to use, and why. */
typedef struct mica_thread_plan {
    int n_threads;
    int cpus[MICA_MAX_THREADS]; /* the CPU that each thread is pinned to; -1: not pinned */
    char reason[200];           /* what decided, for people: "cpu.max allows 4 of 8 CPUs" */
} mica_thread_plan;

/** Default plan: half of the cores this process may use, at least one; see docs/threads.md. `sysroot` prefixes every read
 * of /proc and /sys and of cgroup files (NULL or "" for the real ones). */
MICA_API mica_status mica_thread_plan_default(const char *sysroot, mica_thread_plan *plan, mica_error *err);
/** Every usable core once (one thread a physical core), faster ones first: the most threads that make sense. */
MICA_API mica_status mica_thread_plan_all(const char *sysroot, mica_thread_plan *plan, mica_error *err);

/* ---- Session: one conversation, fixed memory ------------------------------------------------------------------------- */

typedef struct mica_session mica_session;

typedef enum mica_full_policy {
    MICA_FULL_ERROR = 0,     /* nothing was chosen: the call fails with MICA_CONTEXT_FULL and says how much was needed */
    MICA_FULL_STOP = 1,      /* a reply that reaches the end of the context ends there: MICA_OK, stop_reason "context" */
    MICA_FULL_SHIFT = 2,     /* keep the first `keep_first` tokens, drop the oldest of the rest down to half, recompute, go on */
    MICA_FULL_SUMMARISE = 3, /* as SHIFT, with tokens from on_summarise in place of the dropped ones */
} mica_full_policy;

/** Format of the keys or values in the cache. The quantised ones need heads of a multiple of 32 elements. Each has its own
 * results. */
typedef enum mica_kv_type {
    MICA_KV_F16 = 0,  /* 2 bytes an element */
    MICA_KV_Q8_0 = 1, /* 34 bytes for 32 */
    MICA_KV_Q4_0 = 2, /* 18 bytes for 32 */
} mica_kv_type;

/** What a policy dropped. Reported through on_context_event and counted in the result. */
typedef struct mica_context_event {
    mica_full_policy policy;
    int32_t dropped_from, dropped_count; /* positions in the history before the event */
    int32_t inserted_count;              /* tokens of the summary put in their place */
} mica_context_event;

typedef struct mica_session_options {
    size_t struct_size;
    int32_t n_ctx;              /* tokens; 0: min(trained length, 4096). Never changes afterwards */
    int32_t n_threads;          /* 0: mica_thread_plan_default() */
    const int32_t *cpus;        /* CPUs to pin the threads to, n_threads of them; NULL: as planned */
    int32_t prefill_chunk;      /* tokens computed together in prefill; 0: 256 */
    int64_t workspace_limit;    /* bytes; 0: 256 MiB. The workspace must fit or the session is refused */
    int64_t memory_limit;       /* the most that memory_budget (below) may be; 0: 70 %. In bytes: what is free now is not asked */
    mica_full_policy full_policy;
    int32_t keep_first; /* MICA_FULL_SHIFT / SUMMARISE: tokens at the start that are never dropped */
    /** Writes at most `capacity` tokens that stand for tokens[0..n) to `summary`; returns how many, or -1 to give up. */
    int32_t (*on_summarise)(void *user, const int32_t *tokens, int32_t n, int32_t *summary, int32_t capacity);
    void (*on_context_event)(void *user, const mica_context_event *event);
    /** Called between prefill chunks; non-zero cancels. */
    int (*on_prefill)(void *user, int32_t done, int32_t total);
    void *user;
    const char *sysroot; /* prefix for /proc, /sys and cgroup reads; NULL for the real ones. Copied */
    /** Speculation (mica_generate_options.speculate): the longest draft, 0..63 tokens; 0, the default, makes it impossible and
     * saves the memory for the logits of draft_max more tokens. Drafts of 15 to 31 tokens are what pays at most. */
    int32_t draft_max;
    /** A smaller model with the same vocabulary that writes drafts; NULL: none. The session takes a reference and makes a KV
     * cache and a workspace for it, which the plan counts. */
    mica_model *draft_model;
    mica_kv_type kv_k, kv_v; /* of the keys and of the values; MICA_KV_F16 is the default */
    /** What this process may take at its peak, all of it (mica_memory_plan.peak_bytes); more is refused, with what would fit:
     * bytes, or MICA_PERCENT(1..100) of what is usable: the machine's memory, or what its control groups, the process's limits or
     * app_limit leave of it. 0: 55 percent. docs/memory.md */
    int64_t memory_budget;
    int64_t app_limit; /* bytes that the system lets this app have, where only the app is told (iOS, Android); 0: not said */
    bool constrained;  /* replies will have constraints: the plan counts what these keep */
    /** Chooses threads and pauses between steps (mica_governor.h), as mica_session_set_threads() would; NULL: none. Borrowed until the
     * session is freed. */
    struct mica_governor *governor;
} mica_session_options;

#define MICA_PERCENT(p) (-(int64_t)(p))

MICA_API mica_session_options mica_session_options_default(void);

/** Exact memory of a session, before it is made. */
typedef struct mica_memory_plan {
    int32_t n_ctx, prefill_chunk, n_threads;
    int32_t window_ctx;      /* positions that windowed layers keep (docs/memory.md); n_ctx where nothing is saved */
    int64_t weights_bytes;   /* mapped from the file, shared between processes */
    int64_t kv_bytes;        /* KV cache, reserved when the session is made */
    int64_t workspace_bytes; /* everything else the session owns */
    int64_t total_bytes;
    /* The peak of the process's resident memory (VmHWM), predicted: what is below, the KV cache, the workspace, and those of the
     * model's other sessions. Within 3 percent of what is measured once the context is full (docs/memory.md). */
    int64_t touched_bytes; /* of the weights: all but rows of an embedding matrix that no token of the text has */
    int64_t fixed_bytes;   /* the program as it was before the model was opened, the vocabulary, the file's tables */
    int64_t guide_bytes;   /* of constraints: the most that they keep. 0 unless the options say `constrained` */
    int64_t peak_bytes;
} mica_memory_plan;

MICA_API mica_status mica_session_plan(const mica_model *model, const mica_session_options *options, mica_memory_plan *plan,
                                       mica_error *err);

/** Reserves all memory the session will ever use and starts its threads. Takes a reference on the model. */
MICA_API mica_status mica_session_new(mica_model *model, const mica_session_options *options, mica_session **out,
                                      mica_error *err);
MICA_API void mica_session_free(mica_session *session);

/** Makes tokens[0..n) the session's history: keeps the longest common prefix with what is there, computes the rest.
 * n must be at least 1 and at most n_ctx - 1. Afterwards mica_session_logits() are those after the last token. */
MICA_API mica_status mica_session_sync(mica_session *session, const int32_t *tokens, size_t n, mica_error *err);

/** Tokenises text (flags as in mica_model_tokenize) and makes it the history: tokenize + sync. */
MICA_API mica_status mica_session_prompt(mica_session *session, const char *text, size_t length, unsigned flags,
                                         mica_error *err);

/** Logits after the last token, n_vocab floats, borrowed until the next call on this session; NULL before the first sync. */
MICA_API const float *mica_session_logits(const mica_session *session);

/** Computes tokens[0..n) as the history from nothing and hands the logits after every position in [first, n) to
 * `on_logits` in order; non-zero from it, as from on_prefill between two chunks, cancels. Takes the memory for the logits of
 * 32 positions while it runs. For perplexity, log-probabilities of a prompt, and tests. */
MICA_API mica_status mica_session_score(mica_session *session, const int32_t *tokens, size_t n, size_t first,
                                        int (*on_logits)(void *user, size_t position, const float *logits), void *user,
                                        mica_error *err);

/** What stands for a text in an embedding: states after the model's last norm. */
typedef enum mica_pooling {
    MICA_POOLING_MEAN = 0, /* the mean over all tokens */
    MICA_POOLING_LAST = 1, /* the last token's */
} mica_pooling;

/** The embedding of a text of 1 to n_ctx tokens: n_embd floats to `out`, which on an error is as it was; with `normalise` of
 * length 1 (but zeros stay zeros). Like logits it is the same bits on every path. The tokens become the history, with their
 * keys and values in the cache but no logits. Of what the text before had in common with this one at the beginning, nothing is
 * computed again; with MICA_POOLING_MEAN that begins with the third such text in a row. A session's first embedding allocates
 * 16 * n_embd + 4 * n_ctx bytes. */
MICA_API mica_status mica_session_embed(mica_session *session, const int32_t *tokens, size_t n, mica_pooling pooling,
                                        bool normalise, float *out, mica_error *err);

/** Makes the history empty. MICA_INVALID_ARGUMENT while a batch's session has a request; without one, it gives its KV memory back,
 * and what it has computed stays in the batch's prefixes. */
MICA_API mica_status mica_session_reset(mica_session *session, mica_error *err);

/** The history: borrowed until the next call on this session. */
MICA_API const int32_t *mica_session_tokens(const mica_session *session, size_t *n);

/** Changes the number of threads (1..MICA_MAX_THREADS; 0: mica_thread_plan_default()) and their CPUs (n_threads of them; NULL:
 * as planned) from the next step on: between calls, or in a callback of this session. Results stay the same, bit for bit.
 * Threads that are left over sleep until they are wanted again; only a number that the session never had before starts
 * threads, and each of them adds to the workspace what a plan with one thread more says. On an error nothing changes. */
MICA_API mica_status mica_session_set_threads(mica_session *session, int32_t n_threads, const int32_t *cpus, mica_error *err);

/** Stops the running call on this session before its next token or chunk. From any thread or a signal handler. */
MICA_API void mica_session_cancel(mica_session *session);

/* ---- Snapshots -------------------------------------------------------------------------------------------------------- */

/* A snapshot is a session's state: its history, the KV cache of the computed positions and the logits after the last token. A
 * restored session goes on bit for bit as the saved one would have; a prompt that begins with the saved history computes only
 * what follows it. Threads, prefill chunk, kernel set and n_ctx may differ (docs/snapshots.md has the exceptions).
 *
 * Nothing in a snapshot is trusted: one that is damaged, truncated or not made for this model leaves the session exactly as it
 * was. MICA_BAD_FILE: not a snapshot, or a damaged one. MICA_UNSUPPORTED: a good one of another model, KV type, numerics
 * version or format; the message says which. MICA_CONTEXT_FULL: it has more tokens than the session's context. A checksum finds
 * damage, not forgery: restore only what you saved yourself, because a forged cache makes the model say anything. */

/** Exact size of the snapshot that would be made now. */
MICA_API size_t mica_session_snapshot_bytes(const mica_session *session);

/** The snapshot in memory. *bytes is yours. */
MICA_API mica_status mica_session_snapshot(const mica_session *session, void **bytes, size_t *length, mica_error *err);
/** Makes the session's state what `bytes` says. They are not kept. */
MICA_API mica_status mica_session_restore_memory(mica_session *session, const void *bytes, size_t length, mica_error *err);

/** The same in a file, which is replaced in one step: if the process is killed or the disk is full, `path` still holds what it
 * held. Readable by its owner only; it contains the conversation. */
MICA_API mica_status mica_session_save(const mica_session *session, const char *path, mica_error *err);
MICA_API mica_status mica_session_restore(mica_session *session, const char *path, mica_error *err);

/* ---- Constraints: replies that are valid by construction ---------------------------------------------------------------- */

/* A constraint is a compiled JSON Schema, grammar, regular expression or list of choices. A reply under it consists of
 * tokens that keep the text valid; it ends when the text is complete. Immutable once made; may be used by any number of
 * sessions at the same time. */
typedef struct mica_constraint mica_constraint;

typedef enum mica_constraint_kind {
    MICA_CONSTRAINT_JSON_SCHEMA = 0, /* text: the schema. docs/structured.md has the keywords that are enforced */
    MICA_CONSTRAINT_JSON = 1,        /* any JSON value; no text */
    MICA_CONSTRAINT_GBNF = 2,        /* text: a grammar in llama.cpp's notation; its rule "root" */
    MICA_CONSTRAINT_REGEX = 3,       /* text: a pattern for the whole reply (ECMA-262, no back-references or look-around) */
    MICA_CONSTRAINT_CHOICES = 4,     /* text: a JSON array of strings, one of which the reply is */
} mica_constraint_kind;

typedef struct mica_constraint_options {
    size_t struct_size;
    mica_constraint_kind kind;
    const char *text;
    size_t length;
    bool lenient;    /* JSON Schema: a keyword that cannot be enforced is a warning; default: an error */
    bool whitespace; /* JSON: allows (bounded) blanks between elements; default: none */
    void (*on_warning)(void *user, const char *message);
    void *user;
} mica_constraint_options;

MICA_API mica_constraint_options mica_constraint_options_default(void);

/** Compiles a constraint for a model's vocabulary; takes a reference on the model. `model` may be NULL: then it serves only
 * for mica_constraint_match(). MICA_UNSUPPORTED: a construct that cannot be enforced; MICA_BAD_TEXT: malformed;
 * MICA_INVALID_ARGUMENT: too large, or one that nothing can satisfy. The message names the place: a JSON pointer, a rule,
 * or the byte offset in `position`. */
MICA_API mica_status mica_constraint_new(mica_model *model, const mica_constraint_options *options, mica_constraint **out,
                                         mica_error *err);
/** Sessions that still use it must have ended their replies. NULL is fine. */
MICA_API void mica_constraint_free(mica_constraint *constraint);

/** Whether a whole text is one that the constraint allows. *matches false: *valid_prefix (may be NULL) is how many of its
 * bytes some allowed text begins with. */
MICA_API mica_status mica_constraint_match(const mica_constraint *constraint, const char *text, size_t length, bool *matches,
                                           size_t *valid_prefix, mica_error *err);

/* ---- Generation ------------------------------------------------------------------------------------------------------ */

typedef struct mica_logit_bias {
    int32_t token;
    float bias; /* added to the logit; -INFINITY bans the token */
} mica_logit_bias;

typedef struct mica_sampling {
    float temperature;       /* >= 0; 0 is greedy (ties go to the lowest id). Default 0.8 */
    int32_t top_k;           /* >= 0; 0: off. Default 40 */
    float top_p;             /* [0, 1]; 1: off. Default 0.95 */
    float min_p;             /* [0, 1]; 0: off. Default 0.05 */
    float typical_p;         /* (0, 1]; 1: off (default) */
    float repeat_penalty;    /* > 0; 1: off (default) */
    float frequency_penalty; /* [-2, 2]; 0: off (default) */
    float presence_penalty;  /* [-2, 2]; 0: off (default) */
    int32_t penalty_last_n;  /* history length that the penalties see; -1: all; 0: off. Default 64 */
    float dry_multiplier;    /* >= 0; 0: off (default) */
    float dry_base;          /* >= 1. Default 1.75 */
    int32_t dry_allowed_length; /* >= 0. Default 2 */
    int32_t dry_last_n;         /* -1: all (default) */
    int64_t seed;               /* -1: a fresh one, reported in the result */
    const mica_logit_bias *logit_bias;
    size_t n_logit_bias;
} mica_sampling;

/** One token of the reply, handed to on_token as soon as it is chosen. */
typedef struct mica_token_event {
    int32_t token;
    int32_t index;         /* 0 for the first generated token */
    float logprob;         /* natural logarithm, of the unmodified distribution; 0 unless top_logprobs > 0 */
    int32_t n_top;         /* entries below, most probable first */
    const int32_t *top_tokens;
    const float *top_logprobs;
    int64_t time_ns;       /* monotonic clock */
} mica_token_event;

/** Where drafts come from: the session guesses tokens ahead and computes them in one step, which is faster where the guesses
 * are right. The reply is the same, token by token, with any sampling: what the sampler chooses decides, never the draft. */
typedef enum mica_speculation {
    MICA_SPECULATE_OFF = 0,
    MICA_SPECULATE_LOOKUP = 1, /* what followed earlier, where the history ended as it does now: rewriting, quoting, code */
    MICA_SPECULATE_MODEL = 2,  /* the session's draft_model */
    MICA_SPECULATE_BOTH = 3,   /* the model where the lookup finds nothing */
} mica_speculation;

struct mica_result;

typedef struct mica_generate_options {
    size_t struct_size;
    int32_t max_tokens; /* -1 (default): until the context is full; 0: none */
    mica_sampling sampling;
    const char *const *stop; /* stop strings; none may be empty. They may straddle tokens and are not part of the text */
    size_t n_stop;
    const int32_t *stop_tokens; /* further end-of-generation tokens besides the model's own */
    size_t n_stop_tokens;
    bool ignore_eos;
    int32_t top_logprobs; /* 0..20 */
    /** Whole characters only, in order, on the calling thread. Non-zero stops before the next token. */
    int (*on_text)(void *user, const char *text, size_t length);
    int (*on_token)(void *user, const mica_token_event *token);
    void *user;
    mica_speculation speculate; /* needs a session with draft_max > 0 */
    int32_t draft_n; /* 0: drafts as long as they pay, by what was right lately and what steps cost; else always this many */
    /** Batches only: the reply is over, with what mica_session_generate() would have returned. All pointers are borrowed
     * for the call. May submit further requests and free sessions of the batch, this one too. */
    void (*on_done)(void *user, mica_status status, const struct mica_result *result, const mica_error *error);
    /** The reply is a text that this constraint allows; NULL: any text. Made for the session's model; borrowed until the
     * reply is over. A complete text ends the reply ("stop"), even with ignore_eos; stop_tokens and the model's own end it
     * only where the text may end. Tokens that are the only possible text are not chosen but appended and computed together
     * with the next one; on_token tells them one after the other, and the times between them are next to nothing in
     * tpot_p50_ms as in on_token. With top_logprobs each is computed by itself. The text is the same in both cases. */
    const mica_constraint *constraint;
    /** With a constraint and max_tokens (or the context's end): as many of the last tokens are kept for the shortest
     * completion of the text as that needs, so that a reply that is cut is valid all the same; stop_reason is still
     * "length" ("context"), and the status MICA_OK even where the context's end would be an error. MICA_INVALID_ARGUMENT if
     * there is no room for the shortest text at all. */
    bool close;
    /** The prompt's last token is taken back and chosen again among tokens that begin with its bytes, so that the reply
     * does not depend on where the prompt ended. The text that the prompt had already is not told again. */
    bool token_healing;
    /** Batches only: the prompt is computed from its first token on, even if its beginning is in the batch's memory. For
     * measuring: the reply is the same. */
    bool from_nothing;
} mica_generate_options;

MICA_API mica_generate_options mica_generate_options_default(void);

typedef struct mica_result {
    const char *stop_reason; /* "eos", "stop", "length", "context", "cancelled", "error". Static */
    int32_t prompt_n;        /* tokens in the history when generation began */
    int32_t cached_n;        /* of those, taken from the session's cache and not computed */
    int32_t gen_n;           /* tokens generated, the ending one included */
    int32_t dropped_n;       /* tokens that the full-context policy dropped */
    int32_t needed_n;        /* with "context": context length that would have been needed for one more token */
    double load_ms, ttft_ms;
    double tpot_ms, tpot_p50_ms, tpot_p95_ms; /* time per output token, the first excluded; 0 with fewer than 2 tokens */
    double prefill_ms, prefill_tps, decode_tps;
    int64_t peak_rss_bytes; /* VmHWM; -1 if unknown */
    int64_t seed;           /* seed that was used */
    const char *kernels;    /* kernel set that ran; borrowed until the model is closed */
    int32_t n_threads;
    int32_t drafted_n, accepted_n; /* speculation: tokens guessed, and how many of them the reply has */
    int32_t forced_n; /* constraint: tokens of the reply that were the only possible text and were not chosen */
} mica_result;

/** Generates from the session's history. The reply's tokens are appended to the history. Returns MICA_OK when the reply
 * ended by itself, by a stop string, by max_tokens or (policy STOP) at the context's end: result->stop_reason says which.
 * MICA_CONTEXT_FULL when it reached the context's end and no policy was chosen (the text so far was delivered).
 * MICA_CANCELLED after a cancel; the session stays usable. `result` (may be NULL) is filled in every case. Allocates
 * nothing between the first and last token, but for a constraint's masks, which are kept in the constraint up to a limit,
 * and its text. */
MICA_API mica_status mica_session_generate(mica_session *session, const mica_generate_options *options, mica_result *result,
                                           mica_error *err);

/* ---- Batches: many sessions, one step --------------------------------------------------------------------------------- */

/* A batch has threads and a workspace that its sessions share, so that one pass over the weights serves all of them. Each step
 * computes the next token of every running reply and, with the rest of its tokens, pieces of the waiting prompts, first come,
 * first served: a stream never waits for more than one step, whatever prompts arrive.
 *
 *     mica_batch_new(model, NULL, &batch, &err);
 *     mica_batch_session_new(batch, NULL, &session, &err);               // one for each conversation
 *     mica_batch_submit(session, tokens, n, &options, &err);             // options.on_text streams, options.on_done ends
 *     while (mica_batch_step(batch) > 0) { }                             // submit more, cancel and free between steps
 *
 * Every reply is, bit for bit, the one that a session alone would give. A reply that fails or is cancelled ends with its own
 * status and leaves the others alone. A batch and its sessions belong to one thread at a time, but for mica_session_cancel().
 * A batch's session takes no mica_session_sync, _prompt, _score, _embed and _generate, gives no logits, and does not
 * speculate; it may be saved and restored while it has no request. */
typedef struct mica_batch mica_batch;

typedef struct mica_batch_options {
    size_t struct_size;
    int32_t max_sessions; /* at the same time, 1..256; 0: 8 */
    int32_t n_ctx;        /* the most tokens of a session; 0: min(trained length, 4096) */
    int32_t step_tokens;  /* the most tokens of a step, max_sessions..4096; 0: 256 or max_sessions. Fewer: steadier streams */
    int32_t n_threads;    /* these as in mica_session_options */
    const int32_t *cpus;
    int64_t workspace_limit; /* for the batch and all its sessions */
    int64_t memory_limit;
    const char *sysroot;
    mica_kv_type kv_k, kv_v;
    /* Tokens of the KV memory, n_ctx or more, which all sessions share; 0: max_sessions * n_ctx, which is always enough. With
     * less, a step in which it is full takes memory from replies that came last, which compute it again when others have ended:
     * they are late, and the same. */
    int32_t kv_tokens;
    int64_t memory_budget, app_limit; /* as in mica_session_options, for the batch and all its sessions */
    bool constrained;
    struct mica_governor *governor; /* as in mica_session_options */
} mica_batch_options;

MICA_API mica_batch_options mica_batch_options_default(void);

/** Exact memory of a batch with max_sessions sessions; prefill_chunk is step_tokens. */
MICA_API mica_status mica_batch_plan(const mica_model *model, const mica_batch_options *options, mica_memory_plan *plan,
                                     mica_error *err);

/** Starts the threads and reserves the workspace; refuses what with all its sessions would not fit. */
MICA_API mica_status mica_batch_new(mica_model *model, const mica_batch_options *options, mica_batch **out, mica_error *err);
/** Frees the batch and those of its sessions that were not freed. NULL is fine. */
MICA_API void mica_batch_free(mica_batch *batch);

/** As mica_session_set_threads(), for all sessions of the batch: between steps, or in a callback of one of its sessions. */
MICA_API mica_status mica_batch_set_threads(mica_batch *batch, int32_t n_threads, const int32_t *cpus, mica_error *err);

/** The KV memory of a batch, in tokens. It is there in blocks of 32 tokens, shared by the sessions whose texts begin with the same
 * ones: what one has computed, another does not compute again, though the first one has ended, as long as there is memory. */
typedef struct mica_batch_info {
    int64_t kv_tokens; /* all */
    int64_t kv_held;   /* of sessions */
    int64_t kv_cached; /* of no session: the beginnings of texts that were computed, given up when memory is needed */
    int64_t evictions; /* blocks given up so far */
    int64_t suspensions; /* replies that had to wait and be computed again for lack of memory, so far */
} mica_batch_info;

MICA_API void mica_batch_get_info(const mica_batch *batch, mica_batch_info *info);

/** The beginnings of texts that the batch has computed, in a file (replaced in one step, whatever happens), and back: a process
 * that starts again computes none of them again. Between steps. The file is of this model and kind of cache, else
 * MICA_UNSUPPORTED; MICA_BAD_FILE if it is damaged, and the batch is what it was. Restoring takes what there is free memory for,
 * what was used last first; *n_tokens is how much. */
MICA_API mica_status mica_batch_save_prefixes(mica_batch *batch, const char *path, mica_error *err);
MICA_API mica_status mica_batch_restore_prefixes(mica_batch *batch, const char *path, int64_t *n_tokens, mica_error *err);

/** A session of the batch, freed by mica_session_free(), which drops its request without a further callback. Of the options
 * n_ctx (0, or at most the batch's), the context policy and the callbacks count; the rest is the batch's. */
MICA_API mica_status mica_batch_session_new(mica_batch *batch, const mica_session_options *options, mica_session **out,
                                            mica_error *err);

/** Makes tokens[0..n) the history (what a session of the batch has computed of it is not computed again) and queues a reply to it. All of the
 * options is copied. One request a session at a time. */
MICA_API mica_status mica_batch_submit(mica_session *session, const int32_t *tokens, size_t n,
                                       const mica_generate_options *options, mica_error *err);

/** Computes one step; the callbacks are called in it, and may call nothing of this batch but mica_session_cancel() and
 * mica_batch_set_threads() (on_done: see there). Returns how many requests are left; 0: there is nothing to do. Allocates
 * nothing, but for constraints. */
MICA_API int32_t mica_batch_step(mica_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
