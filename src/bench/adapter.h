/* adapter.h - the same verbs for every runtime: hello, load, partition, generate, unload. docs/adapter-protocol.md has their
 * meaning.
 *
 *     mica_adapter_proc_open("adapters/llamacpp", &options, &a, &err);      // or mica_adapter_mica_open(&options, &a, &err)
 *     mica_adapter_load(a, &load, &err);  mica_adapter_confirm(a, "cpu", false, &err);
 *     mica_adapter_generate(a, &request, &reply, &err);                     // as often as needed; reply is reused
 *     mica_adapter_close(a);  mica_adapter_reply_free(&reply);
 *
 * An adapter is not trusted: it may be late, lie, die or never end. What it says is checked here, the same for all; a failure
 * leaves one word of MICA_FAULT_... in a->fault, and the adapter takes no more verbs but close. One thread at a time. Called by
 * measure.c and compare.c. */
#ifndef MICA_BENCH_ADAPTER_H
#define MICA_BENCH_ADAPTER_H
#include <jansson.h>

#include "base/error.h"

#define MICA_ADAPTER_PROTOCOL 1

/* What went wrong, as one word for records and tests. */
#define MICA_FAULT_LATE    "late"    /* a time limit of the protocol */
#define MICA_FAULT_DIED    "died"    /* ended, or closed its output, before it had answered */
#define MICA_FAULT_GARBAGE "garbage" /* a line that is not what the protocol says */
#define MICA_FAULT_LONG    "long"    /* a line beyond the limit */
#define MICA_FAULT_CLOCK   "clock"   /* times that cannot be */
#define MICA_FAULT_COUNT   "count"   /* its counts contradict each other or what was asked */
#define MICA_FAULT_ENDLESS "endless" /* more tokens than asked for */
#define MICA_FAULT_BACKEND "backend" /* another backend than the one asked for */
#define MICA_FAULT_REFUSED "refused" /* it answered with an error of its own */
#define MICA_FAULT_STOPPED "stopped" /* the user */

/** Time limits in seconds. */
typedef struct mica_adapter_limits {
    double hello_s, load_s, partition_s, start_s, first_token_s, token_s, unload_s, quit_s;
} mica_adapter_limits;

mica_adapter_limits mica_adapter_limits_default(void);

typedef struct mica_adapter_options {
    mica_adapter_limits limits;
    bool (*stop)(void *user); /* asked at least ten times a second while something is waited for; true ends it. May be NULL */
    void *user;
    const char *sysroot; /* for the in-process runtime */
    const char *kernels; /* the same */
} mica_adapter_options;

mica_adapter_options mica_adapter_options_default(void);

typedef struct mica_adapter_hello {
    char adapter[64], runtime[64], version[200];
    bool other_clock;              /* its times are of another machine */
    bool takes_tokens, takes_text; /* forms of a prompt */
    bool exact;                    /* every token event is one token */
    bool can_cancel, can_seed;
    char labels[256]; /* "; " between them */
} mica_adapter_hello;

typedef struct mica_adapter_load_request {
    const char *model, *backend; /* backend: "cpu", "gpu", "npu", "default" */
    int32_t n_ctx, threads;      /* threads 0: the runtime's choice */
} mica_adapter_load_request;

typedef struct mica_adapter_loaded {
    char backend[16], device[200], kv_type[16], file[1024];
    int64_t file_bytes, weight_bytes; /* -1: unknown */
    double bits_per_weight;           /* NAN: unknown */
    int32_t context_limit, threads;   /* threads 0: unknown */
    int64_t pid;                      /* process that holds the model; -1: not on this machine */
    int64_t start_ns, end_ns;         /* its own account of loading */
    int64_t asked_ns, usable_ns;      /* ours: the request was made, the answer was there */
} mica_adapter_loaded;

typedef struct mica_adapter_partition {
    bool known;
    int64_t total, fallback;
    json_t *parts; /* as the adapter wrote them, NULL: none */
    char unit[32], note[256];
} mica_adapter_partition;

typedef struct mica_adapter_request {
    const int32_t *tokens; /* NULL: text */
    const char *text;
    size_t text_length;
    int32_t prompt_n; /* tokens of `tokens`, or to take of `text` (0: all of it) */
    int32_t n;        /* tokens to generate */
    bool greedy, ignore_eos;
    double temperature, top_p;
    int32_t top_k;
    int64_t seed;
} mica_adapter_request;

/** What came back; arrays grow and are reused. Times in nanoseconds of the adapter's clock, but for sent_ns and read_ns. */
typedef struct mica_adapter_reply {
    int64_t sent_ns, started_ns, done_ns, read_ns; /* read_ns: ours, when the end was there */
    int64_t *token_ns;
    int32_t *tokens; /* -1: the engine does not tell */
    size_t n_events, capacity;
    char reason[16];
    int64_t prompt_n, cached_n, gen_n; /* cached_n -1: not counted */
} mica_adapter_reply;

void mica_adapter_reply_free(mica_adapter_reply *reply);
/** Adds an event. False without memory. */
bool mica_adapter_reply_add(mica_adapter_reply *reply, int32_t token, int64_t t_ns);

typedef struct mica_adapter mica_adapter;

/** What a kind of adapter does. The functions of this header check before and after. */
typedef struct mica_adapter_ops {
    mica_status (*load)(mica_adapter *a, const mica_adapter_load_request *request, mica_error *err); /* fills a->loaded */
    mica_status (*partition)(mica_adapter *a, mica_error *err);                                      /* fills a->partition */
    mica_status (*generate)(mica_adapter *a, const mica_adapter_request *request, mica_adapter_reply *reply, mica_error *err);
    mica_status (*unload)(mica_adapter *a, mica_error *err);
    void (*close)(mica_adapter *a); /* frees */
} mica_adapter_ops;

struct mica_adapter {
    const mica_adapter_ops *ops;
    mica_adapter_options options;
    mica_adapter_hello hello;
    mica_adapter_loaded loaded;
    mica_adapter_partition partition;
    bool is_loaded;
    char fault[16]; /* "": none */
};

/** Starts an adapter's process: `folder` has its manifest.json. The hello has been said when it returns. On a failure *fault
 * (may be NULL) has the word. */
mica_status mica_adapter_proc_open(const char *folder, const mica_adapter_options *options, mica_adapter **out, char fault[16],
                                   mica_error *err);
/** Our own engine, in this process. */
mica_status mica_adapter_mica_open(const mica_adapter_options *options, mica_adapter **out, mica_error *err);

mica_status mica_adapter_load(mica_adapter *a, const mica_adapter_load_request *request, mica_error *err);
mica_status mica_adapter_ask_partition(mica_adapter *a, mica_error *err);
mica_status mica_adapter_generate(mica_adapter *a, const mica_adapter_request *request, mica_adapter_reply *reply,
                                  mica_error *err);
mica_status mica_adapter_unload(mica_adapter *a, mica_error *err);
/** Ends it, politely if it is well, and frees. NULL is fine. */
void mica_adapter_close(mica_adapter *a);

/** Whether what runs is what was asked for, by the loaded event and the partition. `*label` becomes "cpu", or "gpu (fell back
 * to cpu)" where `allow_fallback`; without it MICA_UNSUPPORTED. "default" takes any backend but "unknown". */
mica_status mica_adapter_confirm(mica_adapter *a, const char *wanted, bool allow_fallback, char label[80], mica_error *err);

/** Sets the fault (the first one stays) and fills the error. */
mica_status mica_adapter_fail(mica_adapter *a, const char *fault, mica_error *err, mica_status code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/** Whether the user wants to stop. */
bool mica_adapter_stopped(const mica_adapter *a);

#endif
