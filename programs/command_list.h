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
#ifdef MICA_HAVE_SERVER
EVERYDAY("serve", ON_SERVE, mica_cmd_serve, 0, 1, "[[-m] FILE] [OPTION]...", "Serve a model to OpenAI clients over HTTP.",
    "Listens at http://127.0.0.1:8080 and answers /v1/chat/completions, /v1/completions, /v1/responses, /v1/models and more; docs/server.md has "
    "the routes. Requests are computed together. Ctrl-C (or SIGTERM) lets running requests end, twice ends at once.")
#endif

/* ---- mica-ops: what measures, and carries workloads through ---- */
OPS("bench", ON_BENCH, mica_cmd_bench, 0, 0, "[-m FILE] [--runtime NAME,...] [--protocol NAME|FILE] [OPTION]...",
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
OPS("verify", ON_VERIFY, mica_cmd_verify, 1, 1, "FILE", "Compute the figures of stored runs again.",
    "Reads a database of mica bench, or what --format json printed, and compares every reported figure with one computed from the raw "
    "samples. Exit code 1 if any differs.")
OPS("report", ON_REPORT, mica_cmd_report, 1, 10000, "FILE... [--out FILE] [--format html|json|csv|md|openmetrics] [OPTION]...",
    "Show stored runs as a page, a table or metrics.",
    "Reads databases of mica bench, or what --format json printed, and computes every figure again from the raw samples. The page has tables, "
    "charts and the samples themselves in one file; docs/report.md describes it.")
OPS("roofline", ON_ROOFLINE, mica_cmd_roofline, 0, 1, "[[-m] FILE] [OPTION]...", "Show what memory and arithmetic allow a model here.",
    "Measures the machine for some seconds, counts the bytes and operations of a token from the file, and prints the ceilings of decode and prefill.")
OPS("analyze", ON_ANALYZE, mica_cmd_analyze, 1, 10000, "TRACE... [--keep-first] [--json]", "Compute figures from recorded token times.",
    "Reads traces in JSON lines (docs/cost.md names the form): time to first token, prefill, decode, cold and steady rates, gaps between "
    "tokens, and the step that a throttling device leaves. Of several runs the first is discarded.")
OPS("cost", ON_COST, mica_cmd_cost, 0, 0, "[--tok-s X --watts X] [--tokens N] [OPTION]...", "Compute what tokens cost, here and in the cloud.",
    "Energy, amortised hardware and list prices, per million tokens and for a whole workload; --explain shows the arithmetic. Nothing is "
    "measured: mica bench does that.")
