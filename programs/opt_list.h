/* Every option of every command, once: getopt_long, --help, the man page and the completion are made from this table.
 *
 * OPT(name, letter, kind, field, lowest, highest, commands, value, text)
 *   letter    0: none           field     of mica_opts; its value after mica_opts_init() is the default that the help shows
 *   lowest, highest             the range of numbers; for TEXT and LIST, `lowest` 1 refuses the empty text
 *   commands  ON_... bits       value     what the help calls it; for CHOICE the allowed words, separated by |
 */
OPT("help", 'h', FLAG, help, 0, 0, ON_ALL, NULL, "Show this help.")

/* ---- The model ---- */
OPT("model", 'm', TEXT, model, 1, 0, ON_MODEL, "FILE",
    "The model, a GGUF file; any part of a split one. Without it the model that scripts/fetch-models fetched is used.")
OPT("kernels", 0, TEXT, kernels, 1, 0, ON_ENGINE | ON_SERVE, "NAME",
    "Kernel set to force, before MICA_KERNELS of the environment; mica --version lists them. All give the same bits.")
OPT("chat-template", 0, TEXT, chat_template, 1, 0, ON_REPLY | ON_SERVE, "FILE",
    "Use this Jinja file instead of the model's chat template.")
OPT("explain-kernels", 0, FLAG, explain_kernels, 0, 0, ON_RUN, NULL,
    "First list, on standard error, which kernels run which weights.")

/* ---- The prompt ---- */
OPT("prompt", 'p', TEXT, prompt, 0, 0, ON_RUN | ON_TOKENIZE | ON_TASK | ON_EMBED, "TEXT",
    "The text. Without -p and -f it is read from standard input.")
OPT("file", 'f', TEXT, file, 1, 0, ON_RUN | ON_TOKENIZE | ON_PERPLEXITY | ON_TASK | ON_EMBED, "FILE",
    "Read the text from a file. mica run and mica embed drop one line end at its end, here and on standard input.")
OPT("stdin", 0, FLAG, from_stdin, 0, 0, ON_TOKENIZE | ON_DETOKENIZE | ON_TASK, NULL, "Read from standard input, all bytes as they are.")
OPT("token-ids", 0, TEXT, token_ids, 1, 0, ON_RUN, "IDS", "The prompt as token ids, like 1,2,3; nothing is added to them.")
OPT("system", 0, TEXT, system, 0, 0, ON_REPLY, "TEXT", "System message in front of the conversation.")
OPT("no-chat", 0, FLAG, no_chat, 0, 0, ON_RUN, NULL, "Continue the text as it is, without the model's chat template.")
OPT("parse-special", 0, FLAG, parse_special, 0, 0, ON_REPLY, NULL,
    "Let your text spell control tokens such as <|im_end|>. Otherwise it is only text.")
OPT("no-bos", 0, FLAG, no_bos, 0, 0, ON_RUN | ON_TOKENIZE | ON_EMBED, NULL, "Do not add the begin-of-text token that the model asks for.")
OPT("special", 0, FLAG, special, 0, 0, ON_TOKENIZE | ON_DETOKENIZE, NULL,
    "Text that spells a control token becomes it; with detokenize: show control tokens.")
OPT("ids", 0, TEXT, ids, 1, 0, ON_DETOKENIZE, "IDS", "The token ids, like '[1, 2]' or 1,2.")

/* ---- The reply ---- */
OPT("predict", 'n', INT, n_predict, -1, INT32_MAX, ON_REPLY, "N",
    "Most tokens to generate; -1: until the reply or the context ends.")
OPT("temp", 0, REAL, temperature, 0, FLT_MAX, ON_REPLY, "X", "Temperature; 0 always takes the most probable token.")
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
OPT("seed", 0, INT, seed, -1, INT64_MAX, ON_REPLY, "N", "Seed of the random choices; -1: a fresh one each time.")
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
OPT("memory-limit", 0, INT, memory_limit, 0, INT64_MAX, ON_REPLY | ON_PERPLEXITY | ON_NARROW | ON_SERVE | ON_EMBED, "BYTES",
    "Refuse to use more than this for KV cache and workspace; 0: what is available.")
OPT("type-k", 0, CHOICE, type_k, 0, 0, ON_ENGINE | ON_KV | ON_SERVE, "f16|q8_0|q4_0",
    "Format of the keys in the cache. The smaller ones change results a little.")
OPT("type-v", 0, CHOICE, type_v, 0, 0, ON_ENGINE | ON_KV | ON_SERVE, "f16|q8_0|q4_0", "Format of the values in the cache.")
OPT("layers", 0, INT, layers, 1, INT32_MAX, ON_KV, "N", "Without a model: its number of layers.")
OPT("kv-heads", 0, INT, kv_heads, 1, INT32_MAX, ON_KV, "N", "Without a model: its key-value heads in a layer.")
OPT("head-dim", 0, INT, head_dim, 1, INT32_MAX, ON_KV, "N", "Without a model: elements of a head.")
OPT("threads", 't', INT, threads, 0, MICA_MAX_THREADS, ON_ENGINE | ON_SERVE, "N", "Threads; 0: half of the cores this process may use.")
OPT("cpus", 0, TEXT, cpus, 1, 0, ON_ENGINE | ON_SERVE, "LIST", "CPUs to bind the threads to, one each, like 0-3,8.")
OPT("sysroot", 0, TEXT, sysroot, 1, 0, ON_ENGINE | ON_THREADS | ON_KV | ON_SERVE, "DIR",
    "Read /proc, /sys and control groups under DIR instead of /.")
OPT("root", 0, TEXT, sysroot, 1, 0, ON_THREADS, "DIR", "The same as --sysroot.")

/* ---- The server ---- */
OPT("host", 0, TEXT, host, 1, 0, ON_SERVE, "ADDRESS",
    "Listen at this address. One that other machines can reach needs an API key.")
OPT("port", 0, INT, port, 0, 65535, ON_SERVE, "N", "Listen at this port; 0: any free one.")
OPT("api-key-file", 0, TEXT, api_key_file, 1, 0, ON_SERVE, "FILE",
    "API keys, one a line; SIGHUP reads them again. Without the option the environment's MICA_API_KEY is one.")
OPT("parallel", 0, INT, parallel, 1, 256, ON_SERVE, "N", "Replies made at the same time. Each has a context of --ctx tokens.")
OPT("queue", 0, INT, queue, 0, 100000, ON_SERVE, "N", "Requests that may wait for one to end; more are refused (429).")
OPT("connections", 0, INT, connections, 1, 100000, ON_SERVE, "N", "Connections at the same time; more are refused (503).")
OPT("timeout", 0, INT, timeout, 1, 1000000, ON_SERVE, "SECONDS", "Time limit of a request, waiting included.")
OPT("cors-origin", 0, TEXT, cors_origin, 1, 0, ON_SERVE, "ORIGIN",
    "Let web pages of this origin, like http://host:port, use the server; * lets all.")
OPT("alias", 0, TEXT, alias, 1, 0, ON_SERVE, "NAME", "Name of the model for clients; default: the file's name.")
OPT("reasoning", 0, CHOICE, reasoning, 0, 0, ON_SERVE, "off|split",
    "split: what a reply says between <think> and </think> at its beginning goes to reasoning_content.")

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

/* ---- Measures and output ---- */
OPT("window", 0, INT, window, 8, 1 << 20, ON_PERPLEXITY, "N", "Tokens of a window; its second half is scored.")
OPT("chunks", 0, INT, chunks, 0, INT32_MAX, ON_PERPLEXITY, "N", "Score only the first N windows; 0: all.")
OPT("tensors", 0, FLAG, tensors, 0, 0, ON_INSPECT, NULL, "List every tensor.")
OPT("json", 0, FLAG, json, 0, 0,
    ON_RUN | ON_NARROW | ON_EMBED | ON_GRAMMAR | ON_INSPECT | ON_TOKENIZE | ON_PERPLEXITY | ON_THREADS | ON_KV, NULL, "Print JSON.")
OPT("man", 0, FLAG, man, 0, 0, ON_HELP, NULL, "Print the manual page, in roff.")
OPT("completion", 0, FLAG, completion, 0, 0, ON_HELP, NULL, "Print the completion for bash.")
