/* opts.h - the command line as values. One table, opt_list.h, says which options exist; this reads argv by it.
 *
 * Numbers are read strictly: the whole argument must be a decimal number within the option's range. Texts are borrowed from
 * argv. Called by mica.c; read by every command.
 */
#ifndef MICA_PROGRAMS_OPTS_H
#define MICA_PROGRAMS_OPTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Commands, as bits. */
#define ON_RUN (UINT64_C(1) << 0)
#define ON_CHAT (UINT64_C(1) << 1)
#define ON_INSPECT (UINT64_C(1) << 2)
#define ON_TOKENIZE (UINT64_C(1) << 3)
#define ON_DETOKENIZE (UINT64_C(1) << 4)
#define ON_TEMPLATE (UINT64_C(1) << 5)
#define ON_PERPLEXITY (UINT64_C(1) << 6)
#define ON_THREADS (UINT64_C(1) << 7)
#define ON_KV (UINT64_C(1) << 8)
#define ON_HELP (UINT64_C(1) << 9)
#define ON_GRAMMAR (UINT64_C(1) << 10)
#define ON_TASK (UINT64_C(1) << 11)
#define ON_EVAL (UINT64_C(1) << 12)
#define ON_SERVE (UINT64_C(1) << 13)
#define ON_EMBED (UINT64_C(1) << 14)
#define ON_BENCH (UINT64_C(1) << 15)
#define ON_COMPARE (UINT64_C(1) << 16)
#define ON_VERIFY (UINT64_C(1) << 17)
#define ON_COST (UINT64_C(1) << 18)
#define ON_ROOFLINE (UINT64_C(1) << 19)
#define ON_ANALYZE (UINT64_C(1) << 20)
#define ON_REPORT (UINT64_C(1) << 21)
#define ON_CAMPAIGN (UINT64_C(1) << 22)
#define ON_PROBE (UINT64_C(1) << 23)
#define ON_TUNE (UINT64_C(1) << 24)
#define ON_ROUTE (UINT64_C(1) << 25)
#define ON_WORKER (UINT64_C(1) << 26)
#define ON_SIGN (UINT64_C(1) << 27)
#define ON_PULL (UINT64_C(1) << 28)
#define ON_MODELS (UINT64_C(1) << 29)
#define ON_QUANTIZE (UINT64_C(1) << 32)
#define ON_IMATRIX (UINT64_C(1) << 33)
#define ON_COMPARE_QUANTS (UINT64_C(1) << 34)
#define ON_CONVERT (UINT64_C(1) << 35)
#define ON_ALL (~UINT64_C(0))
#define ON_MEASURE (ON_BENCH | ON_COMPARE)
#define ON_NARROW (ON_TASK | ON_EVAL)
#define ON_REPLY (ON_RUN | ON_CHAT)
#define ON_JSON (ON_RUN | ON_PROBE | ON_NARROW | ON_EMBED | ON_GRAMMAR | ON_INSPECT | ON_TOKENIZE | ON_PERPLEXITY | ON_THREADS |          \
    ON_KV | ON_COST | ON_ROOFLINE | ON_ANALYZE | ON_COMPARE | ON_BENCH | ON_TUNE | ON_ROUTE | ON_MODELS)
#define ON_CONSTRAINED (ON_REPLY | ON_GRAMMAR)
#define ON_ENGINE (ON_REPLY | ON_PERPLEXITY | ON_INSPECT | ON_NARROW | ON_EMBED)
#define ON_MODEL (ON_ENGINE | ON_SERVE | ON_TOKENIZE | ON_DETOKENIZE | ON_TEMPLATE | ON_KV | ON_GRAMMAR | ON_TUNE |                      \
    ON_ROOFLINE | ON_MEASURE | ON_CAMPAIGN | ON_WORKER)

typedef struct mica_opt_list {
    const char **item;
    size_t n;
} mica_opt_list;

typedef struct mica_opts {
    const char *model, *kernels, *chat_template, *prompt, *file, *token_ids, *system, *ids, *full, *cpus, *sysroot;
    const char *schema, *grammar, *regex, *text, *text_file, *speculate, *draft_model, *tools, *tool_choice;
    const char *tasks, *suffix, *data, *pooling;
    const char *host, *api_key_file, *cors_origin, *alias, *reasoning, *prefixes;
    int64_t port, parallel, kv_tokens, queue, connections, timeout;
    const char *template_file, *request, *bos, *eos, *type_k, *type_v, *load_session, *save_session;
    bool any_json, schema_lenient, schema_whitespace, close, token_healing;
    bool lines, rules_only, no_normalise;
    bool measure, no_measure;
    double measure_seconds;
    bool help, explain_kernels, from_stdin, no_chat, parse_special, no_bos, special, ignore_eos, tensors, json, man, completion;
    int64_t n_predict, top_k, penalty_last_n, dry_allowed_length, dry_last_n, seed, logprobs, ctx, keep, chunk;
    const char *memory_budget, *memory_limit; /* NULL: not given */
    bool force_load, mlock;
    const char *governor;
    bool no_tuned;
    int64_t draft_max, layers, kv_heads, head_dim, threads, now, window, chunks, items;
    double threshold; /* < 0: as the task says */
    double temperature, top_p, min_p, typical_p, repeat_penalty, frequency_penalty, presence_penalty, dry_multiplier, dry_base;
    double watts, idle_watts, tok_s, usd_per_kwh, battery_wh, device_usd, years, duty, wh_per_million, usd_in, usd_out; /* < 0: not given */
    double usd_per_million, tps, seconds, limit_seconds;
    const char *blend, *prices, *cloud;
    int64_t tokens, input_tokens, output_tokens, depth, prompt_tokens;
    bool explain, break_even, keep_first;
    const char *runtime, *protocol, *backend, *slo, *db, *format, *adapters, *report_format, *out;
    bool allow_fallback, fail_if_worse, no_questions;
    int64_t rounds;
    double margin;
    const char *postgres, *nats, *nats_creds, *nats_user, *nats_password_file, *nats_token_file, *nats_ca, *nats_cert, *nats_key;
    const char *worker_name, *worker_models;
    int64_t ahead;
    double ack_wait, idle_exit;
    const char *sign, *key, *pubkey, *signature, *comment, *password_file;
    bool generate, legacy, no_password, signature_only;
    const char *policy, *route_state, *task_name, *rung, *log, *queue_file, *network, *idempotency_key, *route_policy;
    bool private_request, metered;
    int64_t deadline_ms; /* -1: none */
    mica_opt_list stop, logit_bias, choice, label, condition, run_ids;
    const char *imatrix, *type;
    mica_opt_list tensor_types;
    const char *receipt, *shell;
    const char *sha256, *pull_name, *pull_token_file;
    int64_t retries, stall;
    bool telemetry_text;
    int64_t telemetry_size;
    mica_opt_list require, telemetry;
    char **args; /* what is no option */
    int n_args;
} mica_opts;

typedef enum mica_opt_kind { OPT_FLAG, OPT_INT, OPT_REAL, OPT_REAL_ABOVE, OPT_TEXT, OPT_LIST, OPT_CHOICE } mica_opt_kind;

typedef struct mica_opt {
    const char *name;
    char letter;
    mica_opt_kind kind;
    size_t offset; /* of the field in mica_opts */
    double lowest, highest; /* REAL */
    int64_t low, high;      /* INT, TEXT, LIST */
    uint64_t commands;
    const char *value, *text;
} mica_opt;

size_t mica_opt_count(void);
const mica_opt *mica_opt_at(size_t i);
/** The option's default as text, "" if there is nothing to tell. */
void mica_opt_default_text(const mica_opt *opt, char out[32]);

/** All defaults. */
void mica_opts_init(mica_opts *o);
/** Reads argv[1..argc) (argv[0] is the command's name) as options of `command`, a bit. On an error it has printed one line and
 * returns false. */
bool mica_opts_parse(mica_opts *o, uint64_t command, int argc, char **argv);
void mica_opts_free(mica_opts *o);

/** Strict readers, for values inside of texts ("ID=X", lists). False: not a number, or out of range. */
bool mica_opt_read_int(const char *text, int64_t low, int64_t high, int64_t *out);
bool mica_opt_read_real(const char *text, double *out);

#endif
