/* Every option of every command, once: getopt_long, --help, the man page and the completion are made from this table.
 *
 * OPT(name, letter, kind, field, lowest, highest, commands, value, text)
 *   letter    0: none           field     of mica_opts; its value after mica_opts_init() is the default that the help shows
 *   lowest, highest             the range of numbers; for TEXT and LIST, `lowest` 1 refuses the empty text
 *   commands  ON_... bits       value     what the help calls it; for CHOICE the allowed words, separated by |
 */
OPT("help", 'h', FLAG, help, 0, 0, ON_ALL, NULL, "Show this help.")

/* ---- The model ---- */
OPT("model", 'm', TEXT, model, 1, 0, ON_MODEL | ON_IMATRIX, "FILE",
    "The model, a GGUF file; any part of a split one. Without it the model that scripts/fetch-models fetched is used.")
OPT("model", 'm', TEXT, model, 1, 0, ON_PROBE, "FILE", "Also measure this model, and the disk that it is on.")
OPT("kernels", 0, TEXT, kernels, 1, 0, ON_ENGINE | ON_IMATRIX | ON_COMPARE_QUANTS | ON_PROBE | ON_SERVE | ON_ROOFLINE | ON_MEASURE | ON_CAMPAIGN | ON_WORKER, "NAME",
    "Kernel set to force, before MICA_KERNELS of the environment; mica --version lists them. All give the same bits.")
OPT("chat-template", 0, TEXT, chat_template, 1, 0, ON_REPLY | ON_SERVE, "FILE",
    "Use this Jinja file instead of the model's chat template.")
OPT("explain-kernels", 0, FLAG, explain_kernels, 0, 0, ON_RUN, NULL,
    "First list, on standard error, which kernels run which weights.")

/* ---- The prompt ---- */
OPT("prompt", 'p', TEXT, prompt, 0, 0, ON_RUN | ON_TOKENIZE | ON_TASK | ON_EMBED | ON_ROUTE, "TEXT",
    "The text. Without -p and -f it is read from standard input.")
OPT("file", 'f', TEXT, file, 1, 0, ON_RUN | ON_TOKENIZE | ON_PERPLEXITY | ON_IMATRIX | ON_COMPARE_QUANTS | ON_TASK | ON_EMBED | ON_ROUTE, "FILE",
    "Read the text from a file. mica run and mica embed drop one line end at its end, here and on standard input.")
OPT("stdin", 0, FLAG, from_stdin, 0, 0, ON_TOKENIZE | ON_DETOKENIZE | ON_TASK, NULL, "Read from standard input, all bytes as they are.")
OPT("token-ids", 0, TEXT, token_ids, 1, 0, ON_RUN, "IDS", "The prompt as token ids, like 1,2,3; nothing is added to them.")
OPT("system", 0, TEXT, system, 0, 0, ON_REPLY | ON_ROUTE, "TEXT", "System message in front of the conversation.")
OPT("no-chat", 0, FLAG, no_chat, 0, 0, ON_RUN, NULL, "Continue the text as it is, without the model's chat template.")
OPT("parse-special", 0, FLAG, parse_special, 0, 0, ON_REPLY, NULL,
    "Let your text spell control tokens such as <|im_end|>. Otherwise it is only text.")
OPT("no-bos", 0, FLAG, no_bos, 0, 0, ON_RUN | ON_TOKENIZE | ON_EMBED, NULL, "Do not add the begin-of-text token that the model asks for.")
OPT("special", 0, FLAG, special, 0, 0, ON_TOKENIZE | ON_DETOKENIZE, NULL,
    "Text that spells a control token becomes it; with detokenize: show control tokens.")
OPT("ids", 0, TEXT, ids, 1, 0, ON_DETOKENIZE, "IDS", "The token ids, like '[1, 2]' or 1,2.")

/* ---- The reply ---- */
OPT("predict", 'n', INT, n_predict, -1, INT32_MAX, ON_REPLY | ON_ROUTE, "N",
    "Most tokens to generate; -1: until the reply or the context ends.")
OPT("temp", 0, REAL, temperature, 0, FLT_MAX, ON_REPLY | ON_ROUTE, "X", "Temperature; 0 always takes the most probable token.")
OPT("top-k", 0, INT, top_k, 0, INT32_MAX, ON_REPLY, "N", "Keep the N most probable tokens; 0: off.")
OPT("top-p", 0, REAL, top_p, 0, 1, ON_REPLY, "X", "Keep the most probable tokens that together reach X; 1: off.")
OPT("min-p", 0, REAL, min_p, 0, 1, ON_REPLY, "X", "Drop tokens below X times the best one's probability; 0: off.")
OPT("typical", 0, REAL_ABOVE, typical_p, 0, 1, ON_REPLY, "X", "Locally typical sampling; 1: off.")
OPT("repeat-penalty", 0, REAL_ABOVE, repeat_penalty, 0, FLT_MAX, ON_REPLY, "X",
    "Divides the logits of tokens seen before; 1: off.")
OPT("frequency-penalty", 0, REAL, frequency_penalty, -2, 2, ON_REPLY, "X", "Subtracted once for each time a token was seen.")
OPT("presence-penalty", 0, REAL, presence_penalty, -2, 2, ON_REPLY, "X", "Subtracted once from tokens seen before.")
OPT("penalty-last-n", 0, INT, penalty_last_n, -1, INT32_MAX, ON_REPLY, "N",
    "Tokens that the penalties look back; -1: all, 0: none.")
OPT("dry-multiplier", 0, REAL, dry_multiplier, 0, FLT_MAX, ON_REPLY, "X",
    "Strength of DRY, against repeated sequences; 0: off.")
OPT("dry-base", 0, REAL, dry_base, 1, FLT_MAX, ON_REPLY, "X", "Growth of the DRY penalty with each repeated token.")
OPT("dry-allowed-length", 0, INT, dry_allowed_length, 0, INT32_MAX, ON_REPLY, "N", "Longest repetition that DRY lets pass.")
OPT("dry-last-n", 0, INT, dry_last_n, -1, INT32_MAX, ON_REPLY, "N", "Tokens that DRY looks back; -1: all.")
OPT("logit-bias", 0, LIST, logit_bias, 1, 0, ON_REPLY, "ID=X",
    "Add X to the logit of token ID; -inf bans it. May be given many times.")
OPT("seed", 0, INT, seed, -1, INT64_MAX, ON_REPLY | ON_ROUTE, "N", "Seed of the random choices; -1: a fresh one each time.")
OPT("stop", 0, LIST, stop, 1, 0, ON_REPLY, "TEXT", "End the reply where it says TEXT, without it. May be given many times.")
OPT("ignore-eos", 0, FLAG, ignore_eos, 0, 0, ON_REPLY, NULL, "Go on after end-of-generation tokens.")
OPT("logprobs", 0, INT, logprobs, 0, 20, ON_RUN, "N", "With --json: the N most probable tokens of each step; 0: none.")

/* ---- What the reply may be ---- */
OPT("schema", 0, TEXT, schema, 1, 0, ON_CONSTRAINED, "FILE|JSON",
    "The reply is JSON that this JSON Schema allows: a file, or the schema itself, which begins with {.")
OPT("any-json", 0, FLAG, any_json, 0, 0, ON_CONSTRAINED, NULL, "The reply is JSON, any value.")
OPT("grammar", 0, TEXT, grammar, 1, 0, ON_CONSTRAINED, "FILE", "The reply is what this grammar (GBNF) allows.")
OPT("regex", 0, TEXT, regex, 1, 0, ON_CONSTRAINED, "PATTERN",
    "The reply is what this regular expression matches from start to end.")
OPT("choice", 0, LIST, choice, 1, 0, ON_CONSTRAINED, "TEXT", "The reply is one of these texts. May be given many times.")
OPT("schema-lenient", 0, FLAG, schema_lenient, 0, 0, ON_CONSTRAINED, NULL,
    "With --schema: keywords that cannot be enforced are warnings, not errors.")
OPT("schema-whitespace", 0, FLAG, schema_whitespace, 0, 0, ON_CONSTRAINED, NULL,
    "With --schema and --any-json: allow blanks and line ends between elements.")
OPT("tools", 0, TEXT, tools, 1, 0, ON_REPLY, "FILE",
    "Tools that the model may call: JSON, a list as in the OpenAI API. Calls come out as JSON lines; mica chat asks for their results.")
OPT("tool-choice", 0, TEXT, tool_choice, 1, 0, ON_REPLY, "auto|none|required|NAME",
    "With --tools: text or calls (auto), only text, a call, or a call of the tool NAME.")
OPT("close", 0, FLAG, close, 0, 0, ON_REPLY, NULL,
    "Keep as many of the -n tokens as it takes to complete the reply, so that it is valid even where it is cut.")
OPT("token-healing", 0, FLAG, token_healing, 0, 0, ON_REPLY, NULL,
    "Choose the prompt's last token again, so that it does not matter where the prompt ends in the middle of a word.")
OPT("text", 0, TEXT, text, 0, 0, ON_GRAMMAR, "TEXT", "The text to match.")
OPT("text-file", 0, TEXT, text_file, 1, 0, ON_GRAMMAR, "FILE",
    "Read the text to match from a file, all of it; - is standard input.")

/* ---- Speculation ---- */
OPT("speculate", 0, CHOICE, speculate, 0, 0, ON_REPLY, "off|lookup|model|both",
    "Guess tokens ahead from the text so far, with a smaller model, or both. Changes the speed only.")
OPT("draft-model", 0, TEXT, draft_model, 1, 0, ON_REPLY, "FILE", "The smaller model, with the same vocabulary.")
OPT("draft-max", 0, INT, draft_max, 1, 63, ON_REPLY, "N", "Most tokens that are guessed together.")

/* ---- Context, memory, threads ---- */
OPT("ctx", 'c', INT, ctx, 0, UINT32_MAX, ON_REPLY | ON_INSPECT | ON_KV | ON_NARROW | ON_SERVE | ON_EMBED, "N",
    "Context length in tokens; 0: the trained length, at most 4096.")
OPT("full", 0, CHOICE, full, 0, 0, ON_REPLY, "error|stop|shift",
    "When the context is full: fail, end the reply, or drop the oldest half and go on.")
OPT("keep", 0, INT, keep, 0, INT32_MAX, ON_REPLY, "N", "With --full shift: tokens at the start that are never dropped.")
OPT("load-session", 0, TEXT, load_session, 1, 0, ON_RUN, "FILE",
    "Start from a session that --save-session wrote: what it has of the prompt is not computed again.")
OPT("save-session", 0, TEXT, save_session, 1, 0, ON_RUN, "FILE",
    "After the reply, save the session: the conversation and its KV cache.")
OPT("chunk", 0, INT, chunk, 0, 4096, ON_ENGINE | ON_SERVE, "N", "Prompt tokens computed together; 0: 256. Changes speed and memory only.")
OPT("memory-budget", 0, TEXT, memory_budget, 1, 0, ON_REPLY | ON_ROUTE | ON_PERPLEXITY | ON_NARROW | ON_SERVE | ON_EMBED, "BYTES|P%",
    "The most memory that mica may take at its peak, weights included: what would take more is refused before it is loaded. Default: 55% of what "
    "is usable here; docs/memory.md.")
OPT("memory-limit", 0, TEXT, memory_limit, 1, 0, ON_REPLY | ON_PERPLEXITY | ON_NARROW | ON_SERVE | ON_EMBED, "BYTES|P%",
    "The most that --memory-budget may be. Default: 70%. In bytes, what other programs leave free is not looked at.")
OPT("force-load", 0, FLAG, force_load, 0, 0, ON_REPLY | ON_SERVE, NULL,
    "Load the model even if its last loads with this context were killed.")
OPT("mlock", 0, FLAG, mlock, 0, 0, ON_REPLY | ON_SERVE, NULL, "Read all of the model and keep it in memory, if the system allows that.")
OPT("type-k", 0, CHOICE, type_k, 0, 0, ON_ENGINE | ON_KV | ON_SERVE, "f16|q8_0|q4_0",
    "Format of the keys in the cache. The smaller ones change results a little.")
OPT("type-v", 0, CHOICE, type_v, 0, 0, ON_ENGINE | ON_KV | ON_SERVE, "f16|q8_0|q4_0", "Format of the values in the cache.")
OPT("layers", 0, INT, layers, 1, INT32_MAX, ON_KV, "N", "Without a model: its number of layers.")
OPT("kv-heads", 0, INT, kv_heads, 1, INT32_MAX, ON_KV, "N", "Without a model: its key-value heads in a layer.")
OPT("head-dim", 0, INT, head_dim, 1, INT32_MAX, ON_KV, "N", "Without a model: elements of a head.")
OPT("threads", 't', INT, threads, 0, MICA_MAX_THREADS, ON_ENGINE | ON_IMATRIX | ON_COMPARE_QUANTS | ON_ROUTE | ON_PROBE | ON_SERVE | ON_ROOFLINE | ON_MEASURE | ON_CAMPAIGN | ON_WORKER, "N", "Threads; 0: half of the cores this process may use.")
OPT("cpus", 0, TEXT, cpus, 1, 0, ON_ENGINE | ON_SERVE, "LIST", "CPUs to bind the threads to, one each, like 0-3,8.")
OPT("sysroot", 0, TEXT, sysroot, 1, 0, ON_ENGINE | ON_ROUTE | ON_PROBE | ON_THREADS | ON_KV | ON_SERVE | ON_MEASURE | ON_CAMPAIGN | ON_WORKER, "DIR",
    "Read /proc, /sys and control groups under DIR instead of /.")
OPT("root", 0, TEXT, sysroot, 1, 0, ON_THREADS, "DIR", "The same as --sysroot.")
OPT("governor", 0, TEXT, governor, 1, 0, ON_REPLY | ON_SERVE | ON_ROUTE, "sustained|efficient|burst|off|FILE",
    "Choose threads, cores and pauses while tokens come: for the most tokens over ten minutes, the fewest joules, latency, not at all, or by a "
    "policy of your own. Changes the speed only; docs/governor.md.")
OPT("no-tuned", 0, FLAG, no_tuned, 0, 0, ON_REPLY | ON_SERVE, NULL, "Do not use the threads that mica tune found.")

/* ---- Receipts and telemetry ---- */
OPT("receipt", 0, TEXT, receipt, 1, 0, ON_REPLY, "FILE",
    "Add a line of JSON to FILE that says what really ran: kernels, hashes, threads, heat, energy; - is standard output.")
OPT("require", 0, LIST, require, 1, 0, ON_REPLY | ON_SERVE, "CONDITION",
    "Make no reply under which this would not hold, like kernels=avx2, threads>=2, no_drop, max_temp=80; docs/receipt.md has all. May be given many times.")
#ifdef MICA_HAVE_ROUTER
OPT("telemetry", 0, LIST, telemetry, 1, 0, ON_REPLY | ON_SERVE | ON_ROUTE, "FILE|URL",
    "Note every reply, without its text: in a file of JSON lines, in a database (FILE.db), or at an OTLP/HTTP receiver. May be given many times.")
OPT("telemetry-size", 0, INT, telemetry_size, 65536, INT64_MAX, ON_REPLY | ON_SERVE | ON_ROUTE, "BYTES",
    "With --telemetry: a file or database that is larger goes to NAME.1, and begins anew. Default: 67108864.")
OPT("telemetry-text", 0, FLAG, telemetry_text, 0, 0, ON_REPLY | ON_SERVE, NULL, "With --telemetry: the texts of prompts and replies, too.")
#endif

/* ---- The server ---- */
OPT("host", 0, TEXT, host, 1, 0, ON_SERVE, "ADDRESS",
    "Listen at this address. One that other machines can reach needs an API key.")
OPT("port", 0, INT, port, 0, 65535, ON_SERVE, "N", "Listen at this port; 0: any free one.")
OPT("api-key-file", 0, TEXT, api_key_file, 1, 0, ON_SERVE, "FILE",
    "API keys, one a line; SIGHUP reads them again. Without the option the environment's MICA_API_KEY is one.")
OPT("parallel", 0, INT, parallel, 1, 256, ON_SERVE, "N", "Replies made at the same time. Each has a context of --ctx tokens.")
OPT("kv-tokens", 0, INT, kv_tokens, 0, INT32_MAX, ON_SERVE, "N",
    "Tokens of KV memory, which all replies and what is kept of earlier ones share; at least --ctx. Without: --parallel times --ctx.")
OPT("prefixes", 0, TEXT, prefixes, 0, 0, ON_SERVE, "FILE",
    "Read the beginnings of texts that were computed before from FILE, and save them to it at the end (SIGTERM).")
OPT("queue", 0, INT, queue, 0, 100000, ON_SERVE, "N", "Requests that may wait for one to end; more are refused (429).")
OPT("connections", 0, INT, connections, 1, 100000, ON_SERVE, "N", "Connections at the same time; more are refused (503).")
OPT("timeout", 0, INT, timeout, 1, 1000000, ON_SERVE, "SECONDS", "Time limit of a request, waiting included.")
OPT("cors-origin", 0, TEXT, cors_origin, 1, 0, ON_SERVE, "ORIGIN",
    "Let web pages of this origin, like http://host:port, use the server; * lets all.")
OPT("alias", 0, TEXT, alias, 1, 0, ON_SERVE, "NAME", "Name of the model for clients; default: the file's name.")
OPT("reasoning", 0, CHOICE, reasoning, 0, 0, ON_SERVE, "off|split",
    "split: what a reply says between <think> and </think> at its beginning goes to reasoning_content.")

/* ---- Routing ---- */
#ifdef MICA_HAVE_ROUTER
OPT("policy", 0, TEXT, policy, 1, 0, ON_ROUTE, "FILE|NAME", "The policy: a JSON file, or the name of one that comes with the program.")
OPT("request", 0, TEXT, request, 1, 0, ON_ROUTE, "FILE", "The request, JSON; - is standard input.")
OPT("state", 0, TEXT, route_state, 1, 0, ON_ROUTE, "FILE",
    "With decide: the state of device, network and rungs, JSON, as records have it; default: this machine's. - is standard input.")
OPT("private", 0, FLAG, private_request, 0, 0, ON_ROUTE, NULL, "The request must not leave this device.")
OPT("task", 0, TEXT, task_name, 1, 0, ON_ROUTE, "NAME", "What the request is: summarise, classify ...; the policy's rules may know it.")
OPT("rung", 0, TEXT, rung, 1, 0, ON_ROUTE, "NAME", "This rung and no other.")
OPT("deadline", 0, INT, deadline_ms, 0, INT64_MAX, ON_ROUTE, "MS", "The whole answer must be there by then.")
OPT("log", 0, TEXT, log, 1, 0, ON_ROUTE | ON_SERVE, "FILE", "Append the record of the decision, and what came of it, to FILE: a line of JSON.")
OPT("queue-file", 0, TEXT, queue_file, 1, 0, ON_ROUTE | ON_SERVE, "FILE",
    "What waits for the network is kept here; default: $XDG_DATA_HOME/mica/queue.db.")
OPT("network", 0, CHOICE, network, 0, 0, ON_ROUTE | ON_SERVE, "auto|up|down", "Whether servers can be reached; auto: what the routing table says, and what happens.")
OPT("metered", 0, FLAG, metered, 0, 0, ON_ROUTE | ON_SERVE, NULL, "The network is paid for by the byte.")
OPT("key", 0, TEXT, idempotency_key, 1, 0, ON_ROUTE, "TEXT", "Name of this request for servers and the queue: the same work is not done twice.")
OPT("route", 0, TEXT, route_policy, 1, 0, ON_SERVE, "FILE|NAME",
    "One endpoint for all rungs of this policy: the request's \"model\" is auto or a rung. The model served is the rung with its file.")
#endif

/* ---- Templates ---- */
OPT("template", 0, TEXT, template_file, 1, 0, ON_TEMPLATE, "FILE", "Render this Jinja file instead of a model's template.")
OPT("request", 0, TEXT, request, 1, 0, ON_TEMPLATE, "FILE",
    "The conversation: JSON with \"messages\" and more; - is standard input.")
OPT("now", 0, INT, now, -1, INT64_MAX, ON_TEMPLATE, "UNIX", "Time that strftime_now sees, in seconds; -1: the clock.")
OPT("bos", 0, TEXT, bos, 0, 0, ON_TEMPLATE, "TEXT", "With --template: the text of bos_token.")
OPT("eos", 0, TEXT, eos, 0, 0, ON_TEMPLATE, "TEXT", "With --template: the text of eos_token.")

/* ---- Tasks ---- */
OPT("tasks", 0, TEXT, tasks, 1, 0, ON_NARROW, "DIR", "Look for tasks in this folder only.")
OPT("label", 0, LIST, label, 1, 0, ON_NARROW, "TEXT", "A label to use instead of the task's own. May be given many times.")
OPT("threshold", 0, REAL, threshold, 0, 1, ON_NARROW, "X",
    "With tasks of the kind route: below this probability the answer is none; default: as the task says.")
OPT("schema", 0, TEXT, schema, 1, 0, ON_NARROW, "FILE|JSON",
    "With tasks of the kind extract: the JSON Schema of the answer, a file, or the schema itself, which begins with {.")
OPT("rules-only", 0, FLAG, rules_only, 0, 0, ON_NARROW, NULL, "With tasks of the kind redact: only what rules find, without a model.")
OPT("suffix", 0, TEXT, suffix, 0, 0, ON_TASK, "TEXT", "With tasks of the kind complete: the text behind the cursor.")
OPT("lines", 0, FLAG, lines, 0, 0, ON_TASK | ON_EMBED, NULL, "Every line of the text is an input of its own.")
OPT("data", 0, TEXT, data, 1, 0, ON_EVAL, "FILE", "The labelled set, one JSON object a line.")
OPT("items", 0, INT, items, 0, INT32_MAX, ON_EVAL, "N", "Use only the first N items of the set; 0: all.")

/* ---- Embeddings ---- */
OPT("pooling", 0, CHOICE, pooling, 0, 0, ON_EMBED, "mean|last",
    "What stands for the text: the mean of its tokens' states, or the last one's.")
OPT("no-normalise", 0, FLAG, no_normalise, 0, 0, ON_EMBED, NULL, "Leave the vectors as they are. Otherwise their length is 1.")

/* ---- Measuring ---- */
OPT("runtime", 0, TEXT, runtime, 1, 0, ON_MEASURE, "NAME[,NAME]...",
    "Runtimes to measure: mica, or an adapter's name or folder; NAME=FILE gives it a model of its own.")
OPT("adapters", 0, TEXT, adapters, 1, 0, ON_MEASURE | ON_CAMPAIGN | ON_WORKER, "DIR", "Look for adapters in this folder; default: share/mica/adapters.")
OPT("backend", 0, CHOICE, backend, 0, 0, ON_MEASURE, "default|cpu|gpu|npu",
    "What must compute. A runtime that does not confirm it fails.")
OPT("allow-fallback", 0, FLAG, allow_fallback, 0, 0, ON_MEASURE | ON_CAMPAIGN | ON_WORKER, NULL,
    "Measure a runtime that computes elsewhere than asked for, too; its name then says so.")
OPT("protocol", 0, TEXT, protocol, 1, 0, ON_BENCH, "NAME|FILE",
    "What is measured: sustained, quick, smoke, or a file of yours.")
OPT("condition", 0, LIST, condition, 1, 0, ON_BENCH, "NAME=TEXT",
    "What no sensor tells, kept with the run: ambient_c=22, airplane_mode=on. May be given many times.")
OPT("no-questions", 0, FLAG, no_questions, 0, 0, ON_BENCH, NULL,
    "At a terminal, do not ask for those. Otherwise a protocol that waits for a cool machine begins with questions.")
OPT("slo", 0, TEXT, slo, 1, 0, ON_BENCH | ON_CAMPAIGN, "FILE",
    "Limits that the figures must keep, JSON; one that is broken is named, and the exit code is 1.")
OPT("db", 0, TEXT, db, 1, 0, ON_BENCH | ON_CAMPAIGN, "FILE", "Database in which runs are kept; default: $XDG_DATA_HOME/mica/bench.db.")
OPT("format", 0, CHOICE, format, 0, 0, ON_BENCH | ON_CAMPAIGN, "table|json|csv|md",
    "How to print; json carries the raw samples, for mica verify.")
OPT("format", 0, CHOICE, report_format, 0, 0, ON_REPORT, "html|json|csv|md|openmetrics",
    "html: one page with charts that needs no network and holds the raw samples; the others hold the figures.")
OPT("out", 'o', TEXT, out, 1, 0, ON_REPORT | ON_ROUTE, "FILE", "Write to this file instead of standard output.")
OPT("run", 0, LIST, run_ids, 1, 0, ON_REPORT, "ID", "Only runs whose id begins so. May be given many times.")
OPT("limit-seconds", 0, REAL_ABOVE, limit_seconds, 0, 1e9, ON_CAMPAIGN, "X",
    "Begin no shard after so many seconds. Without it the campaign is carried to its end.")
OPT("rounds", 0, INT, rounds, 1, 1000, ON_COMPARE, "N", "Rounds, in each of which both runtimes answer the same prompts.")
OPT("margin", 0, REAL, margin, 0, 100, ON_COMPARE, "X",
    "Differences of less than X % are called noise, whatever their interval.")
OPT("fail-if-worse", 0, FLAG, fail_if_worse, 0, 0, ON_COMPARE, NULL, "Exit code 1 if a figure of B is worse than that of A.")

/* ---- Many machines ---- */
OPT("nats", 0, TEXT, nats, 1, 0, ON_CAMPAIGN | ON_WORKER, "URL",
    "A NATS server with JetStream, nats://HOST:4222 or tls://HOST:4222; several with commas. With mica campaign run: let workers compute.")
OPT("nats-creds", 0, TEXT, nats_creds, 1, 0, ON_CAMPAIGN | ON_WORKER, "FILE", "Log in with this credentials file (JWT and key).")
OPT("nats-user", 0, TEXT, nats_user, 1, 0, ON_CAMPAIGN | ON_WORKER, "NAME", "Log in as this user.")
OPT("nats-password-file", 0, TEXT, nats_password_file, 1, 0, ON_CAMPAIGN | ON_WORKER, "FILE", "The password, the first line of FILE.")
OPT("nats-token-file", 0, TEXT, nats_token_file, 1, 0, ON_CAMPAIGN | ON_WORKER, "FILE", "Log in with a token, the first line of FILE.")
OPT("nats-ca", 0, TEXT, nats_ca, 1, 0, ON_CAMPAIGN | ON_WORKER, "FILE",
    "PEM file of the authorities that the server's certificate must come from; with this nothing goes without TLS.")
OPT("nats-cert", 0, TEXT, nats_cert, 1, 0, ON_CAMPAIGN | ON_WORKER, "FILE", "PEM file of our own certificate, for servers that ask for one.")
OPT("nats-key", 0, TEXT, nats_key, 1, 0, ON_CAMPAIGN | ON_WORKER, "FILE", "PEM file of its key; default: the certificate's file.")
OPT("ahead", 0, INT, ahead, 1, 1000000, ON_CAMPAIGN, "N", "With --nats: shards in the queue and in work together, at most.")
OPT("ack-wait", 0, REAL_ABOVE, ack_wait, 0, 3600, ON_CAMPAIGN, "X", "With --nats: a worker that is silent for X seconds has lost its shard.")
OPT("postgres", 0, TEXT, postgres, 1, 0, ON_CAMPAIGN, "URL", "With --nats: copy the results into this PostgreSQL database as well, postgresql://USER@HOST/NAME.")
OPT("name", 0, TEXT, worker_name, 1, 0, ON_WORKER, "NAME", "Name of this worker in what is stored; default: eight random digits.")
OPT("models", 0, TEXT, worker_models, 1, 0, ON_WORKER, "DIR",
    "Folder of models: the file that a campaign names, or any other with its SHA-256; default: where scripts/fetch-models puts them.")
OPT("models", 0, TEXT, worker_models, 1, 0, ON_ROUTE | ON_SERVE, "DIR",
    "Folder of the ladder's model files; default: where scripts/fetch-models puts them.")
OPT("idle-exit", 0, REAL_ABOVE, idle_exit, 0, 1e9, ON_WORKER, "X", "End after X seconds without work. Otherwise it waits for ever.")

/* ---- Fetching models ---- */
#ifdef MICA_HAVE_PULL
OPT("sha256", 0, TEXT, sha256, 1, 0, ON_PULL, "HEX", "With an address: the SHA-256 that the file must have, 64 hexadecimal digits.")
OPT("name", 0, TEXT, pull_name, 1, 0, ON_PULL, "NAME", "With an address: what the model is called here; default: the address's last part.")
OPT("output", 'o', TEXT, out, 1, 0, ON_PULL, "FILE", "Put the model there instead of into the folder of models.")
OPT("token-file", 0, TEXT, pull_token_file, 1, 0, ON_PULL, "FILE",
    "Send the first line of FILE as a token, to the address's own host and over https only. Without the option MICA_PULL_TOKEN of the environment is one.")
OPT("retries", 0, INT, retries, 0, 1000, ON_PULL, "N", "Attempts in a row that bring nothing new before an address is given up.")
OPT("stall", 0, INT, stall, 1, 3600, ON_PULL, "SECONDS", "Give up a connection on which so long nothing comes.")
#endif

/* ---- Signatures ---- */
OPT("key", 0, TEXT, key, 1, 0, ON_SIGN, "FILE", "The secret key.")
OPT("pubkey", 0, TEXT, pubkey, 1, 0, ON_SIGN | ON_VERIFY, "FILE|KEY", "The public key: a file, or its 56 characters.")
OPT("generate", 0, FLAG, generate, 0, 0, ON_SIGN, NULL, "Make a new pair of keys: --key and --pubkey name the files.")
OPT("sign", 0, TEXT, sign, 1, 0, ON_REPORT, "KEY", "Sign the file of --out with this secret key: OUT.minisig.")
OPT("password-file", 0, TEXT, password_file, 1, 0, ON_SIGN | ON_REPORT, "FILE",
    "The secret key's password, the first line of FILE. Otherwise it is asked for at the terminal.")
OPT("no-password", 0, FLAG, no_password, 0, 0, ON_SIGN, NULL, "With --generate: a secret key that needs no password.")
OPT("comment", 0, TEXT, comment, 1, 0, ON_SIGN | ON_REPORT, "TEXT", "Trusted comment, signed too; default: the time and the file's name.")
OPT("legacy", 0, FLAG, legacy, 0, 0, ON_SIGN, NULL, "Sign the file itself instead of its hash, for minisign before 0.6.")
OPT("signature", 0, TEXT, signature, 1, 0, ON_SIGN | ON_VERIFY, "FILE", "The signature; default: the file's name and .minisig.")
OPT("signature-only", 0, FLAG, signature_only, 0, 0, ON_VERIFY, NULL,
    "With --pubkey: check the signature of any file, and compute no figures.")

/* ---- Cost ---- */
OPT("tok-s", 0, REAL_ABOVE, tok_s, 0, 1e9, ON_COST, "X", "Tokens a second that the device sustains.")
OPT("watts", 0, REAL, watts, 0, 1e6, ON_COST | ON_CAMPAIGN, "X", "Power in W while it generates.")
OPT("wh-per-million", 0, REAL, wh_per_million, 0, 1e9, ON_COST, "X",
    "Measured energy in Wh per million tokens, instead of --watts and --tok-s.")
OPT("usd-per-kwh", 0, REAL, usd_per_kwh, 0, 1e3, ON_COST | ON_REPORT | ON_CAMPAIGN, "X", "Price of electricity; default: the price table's.")
OPT("battery-wh", 0, REAL_ABOVE, battery_wh, 0, 1e9, ON_COST, "X", "Battery in Wh: how many charges it takes.")
OPT("device-usd", 0, REAL, device_usd, 0, 1e9, ON_COST | ON_CAMPAIGN, "X", "Price of a device that is bought for this; 0: it is there anyway.")
OPT("years", 0, REAL_ABOVE, years, 0, 100, ON_COST | ON_CAMPAIGN, "X", "With --device-usd: how long it lasts, in years of 365 days.")
OPT("duty", 0, REAL_ABOVE, duty, 0, 1, ON_COST | ON_CAMPAIGN, "X", "The part of the time in which it generates.")
OPT("idle-watts", 0, REAL, idle_watts, 0, 1e6, ON_COST | ON_CAMPAIGN, "X", "Power in W of a dedicated device while it does not generate.")
OPT("tokens", 0, INT, tokens, 0, INT64_MAX, ON_COST, "N", "Tokens of the whole workload.")
OPT("input-tokens", 0, INT, input_tokens, 0, INT64_MAX, ON_COST, "N", "Of these, input; with --output-tokens instead of --tokens and --blend.")
OPT("output-tokens", 0, INT, output_tokens, 0, INT64_MAX, ON_COST, "N", "Of these, output.")
OPT("blend", 0, TEXT, blend, 1, 0, ON_COST, "IN:OUT", "Input to output tokens for the cloud's prices; default: the price table's, 3:1.")
OPT("usd-in", 0, REAL, usd_in, 0, 1e6, ON_COST, "X", "A cloud price of your own: dollars per million input tokens, with --usd-out.")
OPT("usd-out", 0, REAL, usd_out, 0, 1e6, ON_COST, "X", "Dollars per million output tokens.")
OPT("usd-per-million", 0, REAL, usd_per_million, 0, 1e6, ON_COST, "X", "Or one price for all tokens.")
OPT("cloud", 0, TEXT, cloud, 1, 0, ON_COST, "NAME", "Compare with this row of the price table only.")
OPT("prices", 0, TEXT, prices, 1, 0, ON_COST | ON_REPORT | ON_CAMPAIGN, "FILE", "Price table to use instead of share/mica/prices.json.")
OPT("explain", 0, FLAG, explain, 0, 0, ON_COST, NULL, "Show each step of the arithmetic, with its units.")
OPT("break-even", 0, FLAG, break_even, 0, 0, ON_COST, NULL, "Show the total over duties and rates, and where it meets the cloud's prices.")

/* ---- Roofline, traces ---- */
OPT("decode-tps", 0, REAL_ABOVE, tps, 0, 1e9, ON_ROOFLINE, "X", "A measured decode rate, to be told as a part of what memory allows.")
OPT("depth", 0, INT, depth, 0, INT32_MAX, ON_ROOFLINE, "N", "Tokens in the context when it was measured.")
OPT("prompt-tokens", 0, INT, prompt_tokens, 1, INT32_MAX, ON_ROOFLINE, "N", "Length of the prompt whose ceiling is shown.")
OPT("keep-first", 0, FLAG, keep_first, 0, 0, ON_ANALYZE | ON_BENCH, NULL, "Count the first of several runs too, which is discarded otherwise.")
OPT("seconds", 0, REAL_ABOVE, seconds, 0, 600, ON_ROOFLINE, "X", "How long to measure the machine.")

/* ---- The machine ---- */
OPT("measure", 0, FLAG, measure, 0, 0, ON_PROBE, NULL, "Measure again, though what is kept is of this build, CPU and kernel set.")
OPT("no-measure", 0, FLAG, no_measure, 0, 0, ON_PROBE, NULL, "Measure nothing; show what is kept.")
OPT("seconds", 0, REAL_ABOVE, measure_seconds, 0, 3600, ON_PROBE, "X",
    "How long to decode with -m; the second half is the sustained rate. What throttles shows only after minutes.")

/* ---- Making files ---- */
OPT("imatrix", 0, TEXT, imatrix, 1, 0, ON_QUANTIZE, "FILE", "How much each weight matters: a file of mica imatrix or llama-imatrix (GGUF).")
OPT("tensor", 0, LIST, tensor_types, 1, 0, ON_QUANTIZE, "PATTERN=TYPE",
    "Give matrices whose names fit, or hold PATTERN, this format instead. * is any text. May be given many times; the first that fits counts.")
OPT("type", 0, TEXT, type, 1, 0, ON_CONVERT, "TYPE",
    "A format, like F16 or Q8_0, or a mix of some, like Q4_K_M. Without it the format that the embedding has in the folder.")
OPT("threads", 't', INT, threads, 0, MICA_MAX_THREADS, ON_QUANTIZE | ON_CONVERT, "N", "Threads; 0: all cores that this process may use.")
OPT("out", 'o', TEXT, out, 1, 0, ON_IMATRIX, "FILE", "The file to write.")
OPT("window", 0, INT, window, 8, 1 << 20, ON_IMATRIX, "N", "Tokens of a window, each read from nothing.")
OPT("chunks", 0, INT, chunks, 0, INT32_MAX, ON_IMATRIX, "N", "Read only the first N windows; 0: all.")

/* ---- Measures and output ---- */
OPT("window", 0, INT, window, 8, 1 << 20, ON_PERPLEXITY | ON_COMPARE_QUANTS, "N", "Tokens of a window; its second half is scored.")
OPT("chunks", 0, INT, chunks, 0, INT32_MAX, ON_PERPLEXITY | ON_COMPARE_QUANTS, "N", "Score only the first N windows; 0: all.")
OPT("tensors", 0, FLAG, tensors, 0, 0, ON_INSPECT, NULL, "List every tensor.")
OPT("json", 0, FLAG, json, 0, 0,
    ON_JSON | ON_QUANTIZE | ON_CONVERT | ON_COMPARE_QUANTS, NULL, "Print JSON.")
OPT("man", 0, FLAG, man, 0, 0, ON_HELP, NULL, "Print the manual page, in roff.")
OPT("completion", 0, FLAG, completion, 0, 0, ON_HELP, NULL, "Print the completion for a shell.")
OPT("shell", 0, CHOICE, shell, 0, 0, ON_HELP, "bash|zsh|fish", "With --completion: which shell.")
