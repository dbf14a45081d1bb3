/* Every command, once, and which of the two programs does it: help, the manual page and the completion are made from this list.
 *
 * EVERYDAY(name, bit, function, min_args, max_args, usage, summary, text)    mica does it itself
 * OPS(...)                                                                    mica hands it over to mica-ops, which is as large again
 *   min_args, max_args   words that are no options
 */
EVERYDAY("run", ON_RUN, mica_cmd_run, 0, 0, "[-m FILE] [-p TEXT | -f FILE] [OPTION]...", "Generate a reply to a text.",
    "Prints the generated text on standard output as it comes, and one line of metrics on standard error. With a chat template "
    "in the model the text is the user's message; otherwise, and with --no-chat, the text is continued. Ctrl-C ends the reply.")
EVERYDAY("chat", ON_CHAT, mica_cmd_chat, 0, 0, "[-m FILE] [OPTION]...", "Hold a conversation.",
    "Reads one message a line. Ctrl-C stops a reply, twice leaves. Lines that begin with / are commands: /save FILE, "
    "/load FILE, /reset, /system TEXT, /stats, /help, /quit.")
EVERYDAY("inspect", ON_INSPECT, mica_cmd_inspect, 0, 1, "[-m] FILE [OPTION]...", "Show what a GGUF file holds and needs.",
    "Shows metadata, tensors by format and, if this build can run the model, the memory that a session takes.")
EVERYDAY("tokenize", ON_TOKENIZE, mica_cmd_tokenize, 0, 0, "[-m FILE] [-p TEXT | -f FILE | --stdin] [OPTION]...",
    "Turn text into token ids.", "Prints a list of ids.")
EVERYDAY("detokenize", ON_DETOKENIZE, mica_cmd_detokenize, 0, 0, "[-m FILE] --ids IDS | --stdin [--special]",
    "Turn token ids into text.", "Writes the exact bytes, without a line end of its own.")
EVERYDAY("template", ON_TEMPLATE, mica_cmd_template, 0, 0, "[-m FILE | --template FILE] --request FILE [--now UNIX]",
    "Render a chat template.", "Writes the prompt text of a conversation, byte for byte, without a line end of its own.")
EVERYDAY("perplexity", ON_PERPLEXITY, mica_cmd_perplexity, 0, 0, "[-m FILE] -f FILE [OPTION]...",
    "Measure how well a model predicts a text.",
    "The text is tokenised once and cut into windows; the first token of each becomes the begin-of-text token where the model "
    "adds one, and the second half of each is scored. Prints the mean negative log-likelihood and its exponential.")
EVERYDAY("probe", ON_PROBE, mica_cmd_probe, 0, 0, "[-m FILE] [--json] [--sysroot DIR] [--measure | --no-measure]",
    "Show what this machine is, has and does.",
    "CPUs, kernel set, memory and its limits, heat, clocks, battery, energy counters, models in memory; and what is measured once and kept in "
    "$XDG_DATA_HOME/mica/device.json: memory bandwidth, and with -m the model's disk and rates. What nobody tells is unknown.")
EVERYDAY("threads", ON_THREADS, mica_cmd_threads, 1, 1, "plan [--sysroot DIR] [--json]", "Show which CPUs would be used, and why.",
    "Shows the most threads that make sense on this machine, and the default.")
EVERYDAY("kv", ON_KV, mica_cmd_kv, 1, 1, "plan [-m FILE | --layers N --kv-heads N --head-dim N] [--ctx N] [--json]",
    "Show the size of the KV cache.", "Shows the bytes that the keys and values of a context take.")
EVERYDAY("grammar", ON_GRAMMAR, mica_cmd_grammar, 1, 1,
    "match|compile CONSTRAINT [--text TEXT | --text-file FILE] [-m FILE]",
    "Check a constraint, and texts against it.",
    "match: is this text one that the constraint allows? Exit code 0: it is; 1: it is not, and the part of it that is good is shown; 2: "
    "the constraint does not compile. compile: does it compile, how large is it and how long did that take, and with a model how many of its tokens may begin the text, or follow --text.")
EVERYDAY("task", ON_TASK, mica_cmd_task, 0, 1, "[NAME] [-m FILE] [-p TEXT | -f FILE] [OPTION]...",
    "Do a narrow task: classify, extract, summarise, route, redact, complete.",
    "Prints the answer: a label, JSON, or text. Without NAME the tasks that there are. A task is a JSON file in share/mica/tasks, in "
    "$XDG_DATA_HOME/mica/tasks, or one named by its path; docs/tasks.md says how to write one.")
EVERYDAY("eval", ON_EVAL, mica_cmd_eval, 1, 1, "NAME [-m FILE] [--data FILE] [OPTION]...", "Measure how well a task is done.",
    "Runs a task on a labelled set, one JSON object a line, and prints accuracy, precision and recall, and the time an item takes. "
    "Without --data the set NAME.jsonl in the folder eval beside the tasks.")
EVERYDAY("embed", ON_EMBED, mica_cmd_embed, 0, 0, "[-m FILE] [-p TEXT | -f FILE] [--lines] [OPTION]...", "Turn texts into vectors.",
    "Prints the embedding of the text, or of each of its lines, as a line of numbers: the states after the model's last norm, "
    "pooled. The text is taken as it is, without a chat template.")
EVERYDAY("tune", ON_TUNE, mica_cmd_tune, 0, 0, "[-m FILE] [--json]", "Find the threads that are fastest here.",
    "Decodes for up to 20 s with different numbers of threads, and where there are fast and efficient cores with different ones. What is fastest, "
    "or nearly so with less heat, is kept for this model and this device: mica run, chat and serve use it unless --threads, --cpus or --no-tuned is given.")
#ifdef MICA_HAVE_PULL
EVERYDAY("pull", ON_PULL, mica_cmd_pull, 1, 1, "NAME|URL|FILE.json [OPTION]...", "Fetch a model.",
    "A name of the registry (mica models known), an address, or a registry file of your own. Goes on where it was cut off, checks the SHA-256, "
    "and prints the path. The model can then be used as -m NAME. docs/models.md has the files.")
EVERYDAY("models", ON_MODELS, mica_cmd_models, 0, 2, "[list | known | verify [NAME] | rm NAME | prune] [--json]", "Show and check the models that were fetched.",
    "list: what is here. known: what mica pull can fetch by name. verify: reads the files again and compares their SHA-256; exit code 1 if one is "
    "wrong. rm: takes a model away. prune: takes away unfinished downloads and files without a name.")
#endif
#ifdef MICA_HAVE_ROUTER
EVERYDAY("route", ON_ROUTE, mica_cmd_route, 1, 3,
    "decide|ask --policy NAME [-p TEXT | --request FILE] | queue [list|drain|drop] | explain LOG [ID] | replay LOG --policy NAME | check POLICY | "
    "train EXAMPLES --out FILE | test CLASSIFIER EXAMPLES", "Send requests to where they belong.",
    "A policy, which is a file, chooses among local models and servers by what the request is, what the device is like and what an answer would "
    "take. Nothing leaves the device unless it says so. decide: what would be chosen, and why nothing else; exit code 1: nothing can take it. ask: carry "
    "it out. explain: records of a log in words. replay: what another policy would have made of a log. train, test: the classifier of "
    "requests. docs/router.md has the files.")
#endif
#ifdef MICA_HAVE_SERVER
EVERYDAY("serve", ON_SERVE, mica_cmd_serve, 0, 1, "[[-m] FILE] [OPTION]...", "Serve a model to OpenAI clients over HTTP.",
    "Listens at http://127.0.0.1:8080 and answers /v1/chat/completions, /v1/completions, /v1/responses, /v1/models and more; docs/server.md has "
    "the routes. Requests are computed together. Ctrl-C (or SIGTERM) lets running requests end, twice ends at once.")
#endif

/* ---- mica-ops: what measures, and carries workloads through ---- */
OPS("bench", ON_BENCH, mica_cmd_bench, 0, 10000, "[-m FILE] [--runtime NAME,...] [--protocol NAME|FILE] [OPTION]... | analyze TRACE...",
    "Measure runtimes under one protocol.",
    "Loads, times to first token at fixed prompts, decode until the device is warm, memory, energy, and the conditions of all of it. Other "
    "runtimes run in processes of their own (docs/adapter-protocol.md). Every run is kept; docs/bench.md says what each figure is.")
OPS("compare", ON_COMPARE, mica_cmd_compare, 0, 2, "--runtime A,B [-m FILE] [OPTION]... | OLD NEW", "Tell whether B is faster than A.",
    "Both answer the same prompts in turn, A B B A, and each ratio comes with its interval; or two files of stored runs, from mica bench "
    "--format json or its database.")
OPS("campaign", ON_CAMPAIGN, mica_cmd_campaign, 1, 2, "run MANIFEST | status [NAME] | export [NAME] [--db FILE] [OPTION]...",
    "Carry a workload of many tokens through.",
    "run: computes what the manifest describes, in shards of minutes that are stored one by one, and goes on where it stopped: after Ctrl-C, "
    "a crash or kill -9. status: how far campaigns are, their rate, energy and cost. export: the raw samples, JSON lines, or --format csv, a row a "
    "shard. docs/campaign.md has the manifest.")
OPS("worker", ON_WORKER, mica_cmd_worker, 0, 0, "--nats URL [-m FILE] [--models DIR] [OPTION]...", "Compute shards of campaigns for other machines.",
    "Takes shards from the queue of mica campaign run --nats, of those campaigns whose model, runtime and prompts it has and whose memory it can "
    "give, and sends the results back. It may be killed at any moment: another worker then gets its shard. docs/campaign.md has the set-up.")
OPS("sign", ON_SIGN, mica_cmd_sign, 0, 1, "FILE --key KEY [OPTION]... | --generate --key KEY --pubkey PUBKEY [--no-password]", "Sign a file, or make keys for that.",
    "Writes FILE.minisig, an Ed25519 signature that minisign, and mica verify --pubkey, check. Keys are those of minisign, too.")
OPS("verify", ON_VERIFY, mica_cmd_verify, 1, 1, "FILE [--pubkey KEY]", "Compute the figures of stored runs again.",
    "Reads a database of mica bench, or what --format json printed, and compares every reported figure with one computed from the raw "
    "samples. Exit code 1 if any differs. With --pubkey the file must have a good signature first.")
OPS("report", ON_REPORT, mica_cmd_report, 1, 10000, "FILE... [--out FILE] [--format html|json|csv|md|openmetrics] [OPTION]...",
    "Show stored runs as a page, a table or metrics.",
    "Reads databases of mica bench, or what --format json printed, and computes every figure again from the raw samples. The page has tables, "
    "charts and the samples themselves in one file; docs/report.md describes it.")
OPS("roofline", ON_ROOFLINE, mica_cmd_roofline, 0, 1, "[[-m] FILE] [OPTION]...", "Show what memory and arithmetic allow a model here.",
    "Measures the machine for some seconds, counts the bytes and operations of a token from the file, and prints the ceilings of decode and prefill.")
OPS("quantize", ON_QUANTIZE, mica_cmd_quantize, 3, 3, "IN OUT TYPE [--imatrix FILE] [--tensor PATTERN=TYPE]... [OPTION]...",
    "Write a model file in another format.",
    "TYPE is a format, like Q8_0 or F16, or a mix of some, like Q4_K_M. OUT appears when it is complete; memory stays small whatever the model's size. "
    "docs/models.md compares the types.")
OPS("convert", ON_CONVERT, mica_cmd_convert, 2, 2, "FOLDER OUT [--type TYPE] [OPTION]...", "Make a model file from a Hugging Face folder.",
    "FOLDER has config.json, tokenizer.json and the weights as safetensors, in one file or in parts. OUT is a GGUF file, which appears when it is "
    "complete; memory stays small whatever the model's size. What the engine would compute differently is refused. docs/models.md has the "
    "architectures.")
OPS("imatrix", ON_IMATRIX, mica_cmd_imatrix, 0, 0, "[-m FILE] -f TEXT --out FILE [OPTION]...", "Find out which weights matter, for mica quantize.",
    "Reads a text through the model and keeps the mean square of each input of its matrices. The text should be like what the model will read.")
OPS("compare-quants", ON_COMPARE_QUANTS, mica_cmd_compare_quants, 2, 16, "FILE FILE... -f TEXT [OPTION]...",
    "Show what each file of one model costs and loses.",
    "Size, speed, perplexity, and how far the predictions are from those of the file with the most bits a weight.")
OPS("analyze", ON_ANALYZE, mica_cmd_analyze, 1, 10000, "TRACE... [--keep-first] [--json]", "Compute figures from recorded token times.",
    "Reads traces in JSON lines (docs/cost.md names the form): time to first token, prefill, decode, cold and steady rates, gaps between "
    "tokens, and the step that a throttling device leaves. Of several runs the first is discarded.")
OPS("cost", ON_COST, mica_cmd_cost, 0, 0, "[--tok-s X --watts X] [--tokens N] [OPTION]...", "Compute what tokens cost, here and in the cloud.",
    "Energy, amortised hardware and list prices, per million tokens and for a whole workload; --explain shows the arithmetic. Nothing is "
    "measured: mica bench does that.")
