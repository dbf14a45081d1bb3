"""Measures all runtimes under one protocol, in turn, and makes the table of docs/benchmarks.md.

    bench-table [--runtime NAME,...] [--model FILE.gguf] [--protocol NAME] [--rounds N] [--threads N] [--output FOLDER]
    bench-table --from FILE...                          only the table, of what mica bench --format json printed

By default: mica and the five runtimes of adapters/, SmolLM2-135M, the protocol "sustained" (10 minutes a runtime and round, and what
cooling takes), 2 rounds, all cores that the process may use. Each round measures every runtime once, every second one in the opposite
order, so that what changes slowly on the machine hits all alike; figures are medians of the rounds. "mica-http" is mica serve
behind adapters/openai. Other runtimes need `adapters/NAME/setup`; their models are converted here if they are not there yet.

Nothing else should run on the machine. FOLDER (build/bench-table) gets runs.jsonl, with all raw samples (mica verify, mica report), and
table.md; the table is printed too. It may be stopped and started again: runs that are there are not measured again. Status 1 if a
runtime could not be measured: it is then named below the table, with the reason.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMES = ("mica", "llamacpp", "onnxruntime-genai", "litert-lm", "mlx", "executorch")
# A column: its title, metrics of which the first known one counts, divided by, digits, and what stands in brackets behind it.
COLUMNS = (("load cold, ms", "load_cold_ms", 1, 0, None), ("warm, ms", "load_warm_ms", 1, 0, None),
           ("TTFT 512, ms (p95)", "ttft_512_ms", 1, 0, "ttft_512_p95_ms"), ("TTFT 32, ms (p95)", "ttft_32_ms", 1, 1, "ttft_32_p95_ms"),
           ("cold, tok/s", "cold_tps", 1, 1, None), ("steady, tok/s", "steady_tps", 1, 1, None),
           ("peak RSS, MiB", "peak_rss_bytes", 1 << 20, 0, None), ("file, MiB", "file_bytes", 1 << 20, 0, None),
           ("bits a weight", "bits_per_weight", 1, 2, None))


def say(text):
    print(f"bench-table: {text}", file=sys.stderr, flush=True)


# ---- Measuring ----

def command_of(options, name, folder):
    """The command that measures a runtime once, and its environment."""
    protocol = options.protocol
    if "/" not in protocol and not protocol.endswith(".json"):
        protocol = os.path.join(ROOT, "share", "mica", "protocols", protocol + ".json")
    env = dict(os.environ)
    if name == "mica-http":
        server = os.path.join(folder, "server.json")
        with open(server, "w", encoding="utf-8") as f:
            json.dump({"command": [options.mica, "serve", "-m", "{model}", "--port", "{port}", "--ctx", "{n_ctx}", "--threads", "{threads}",
                                   "--parallel", "1"]}, f)
        env["MICA_OPENAI_SERVER"] = server
    return [options.mica, "bench", "-m", options.model, "--adapters", options.adapters,
            "--runtime", "openai" if name == "mica-http" else name, "--protocol", protocol, "-t", str(options.threads),
            "--db", os.path.join(folder, "bench.db"), "--format", "json", "--no-questions"], env


def convert(options, name):
    """Makes the runtime's model, if that has to be done. -> why it cannot be, or None"""
    script = os.path.join(options.adapters, name, "convert")
    if not os.path.exists(script):
        return None
    done = subprocess.run([script, options.model], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    return None if done.returncode == 0 else last_line(done.stderr) or f"adapters/{name}/convert ended with status {done.returncode}"


def last_line(data):
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].split("mica: ", 1)[-1] if lines else ""


def measure(options, name, folder):
    """-> the archive of a run, or why there is none (what there was of it is in bench.db)"""
    command, env = command_of(options, name, folder)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        return None, last_line(done.stderr) or f"mica bench ended with status {done.returncode}"
    return done.stdout.decode().strip(), None


def measure_all(options):
    """Fills runs.jsonl. -> {name: why it was not measured}"""
    os.makedirs(options.output, exist_ok=True)
    runs, state = os.path.join(options.output, "runs.jsonl"), os.path.join(options.output, "done.json")
    what = {"model": options.model, "protocol": options.protocol, "threads": options.threads}
    before = read_json(state)
    done = before["done"] if before.get("what") == what else []
    if before and not done:
        say(f"{options.output} has runs of something else: they are kept as *.old")
        for path in (runs, state):
            if os.path.exists(path):
                os.replace(path, path + ".old")
    missing = {}
    for name in options.runtime:
        why = convert(options, name)
        if why:
            missing[name] = why
    for k in range(options.rounds):
        for name in options.runtime if k % 2 == 0 else list(reversed(options.runtime)):
            if name in missing or [k, name] in done:
                continue
            say(f"round {k + 1} of {options.rounds}: {name}")
            archive, why = measure(options, name, options.output)
            if why:
                missing[name] = why
                continue
            with open(runs, "a", encoding="utf-8") as f:
                f.write(archive + "\n")
            done.append([k, name])
            with open(state, "w", encoding="utf-8") as f:
                json.dump({"what": what, "done": done}, f)
    return missing


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


# ---- The table ----

def figures_of(mica, files):
    """All runs with their figures, computed again from the raw samples."""
    done = subprocess.run([mica, "report", *files, "--format", "json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["runs"]


def group(runs):
    """{(name, labels, version): its runs that are done}, in the order of the first of each; and [(name, why)] of the others"""
    groups, failed = {}, []
    for run in runs:
        head = run["head"]
        if head["state"] != "done" or run["complaints"]:
            failed.append((head["name"], head.get("reason") or "does not verify: " + "; ".join(run["complaints"])))
            continue
        runtime = head["runtime"]
        groups.setdefault((head["name"], runtime.get("labels") or "", runtime["version"]), []).append(run)
    return groups, failed


def median(runs, metric):
    values = [run["figures"][metric] for run in runs if isinstance(run["figures"].get(metric), (int, float))]
    return statistics.median(values) if values else None


def number(value, scale, digits):
    return "–" if value is None else f"{value / scale:.{digits}f}"


def roofline(runs):
    """Of the rate that reading what a token needs allows. Where only the runtime knows its file, every weight counts as read: the true
    part is that or less."""
    known = median(runs, "roofline_pct")
    if known is not None:
        return f"{known:.0f}"
    rate, weights, read = median(runs, "steady_tps"), median(runs, "weight_bytes"), median(runs, "read_bytes_per_s")
    return "–" if None in (rate, weights, read) else f"≤ {100 * rate * weights / read:.0f}"


def row(key, runs):
    name, labels, version = key
    cells = [f"**{name}**" + (f" ({labels})" if labels else ""), version]
    for _, metric, scale, digits, second in COLUMNS:
        cell = number(median(runs, metric), scale, digits)
        if second and median(runs, second) is not None:
            cell += f" ({number(median(runs, second), scale, digits)})"
        cells.append(cell)
    return [*cells, roofline(runs), str(len(runs))]


def notes(groups):
    """What has to be known about the figures, each text once with those whom it is about."""
    about = {}
    for (name, labels, _), runs in groups.items():
        for flag in (flag for run in runs for flag in run["figures"]["flags"]):
            if flag != labels:
                about.setdefault(flag, [])
                if name not in about[flag]:
                    about[flag].append(name)
    return [f"- {', '.join(names)}: {flag}" for flag, names in about.items()]


def table(runs, missing, command):
    groups, failed = group(runs)
    titles = ["runtime", "version", *(c[0] for c in COLUMNS), "% of roofline", "runs"]
    lines = []
    if groups:
        head = next(iter(groups.values()))[0]["head"]
        threads = sorted({run["head"]["loaded"]["threads"] for group_runs in groups.values() for run in group_runs})
        created = sorted(run["head"]["created"][:10] for group_runs in groups.values() for run in group_runs)
        lines += [f"CPU: {head['machine']['cpu']}, {head['machine']['cores']} cores; threads: {', '.join(map(str, threads))} (0: not told). Model: "
                  f"{os.path.basename(head['model']['path'])}. Protocol: {head['protocol']['name']}. {created[0]}"
                  f"{' to ' + created[-1] if created[-1] != created[0] else ''}, `{command}`.", ""]
    lines += ["| " + " | ".join(titles) + " |", "|---|---|" + "---:|" * (len(titles) - 2)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row(key, of)) + " |" for key, of in groups.items()]
    lines += ["", "Medians of the runs. \"≤\": the file's format is known to its runtime only, so every weight counts as read for each token.", ""]
    lines += notes(groups)
    lines += [f"- **{name}** is not in the table: {' '.join(why.split())}" for name, why in [*failed, *missing.items()]]
    return "\n".join(lines).rstrip() + "\n", bool(failed or missing)


def default_model():
    done = subprocess.run([os.path.join(ROOT, "scripts", "fetch-models"), "smollm2"], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench-table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", default=",".join(NAMES), help=", ".join((*NAMES, "mica-http")))
    parser.add_argument("--model", help="a GGUF file")
    parser.add_argument("--adapters", default=os.path.join(ROOT, "adapters"))
    parser.add_argument("--protocol", default="sustained")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "bench-table"))
    parser.add_argument("--mica", default=os.environ.get("MICA_BIN") or os.path.join(ROOT, "build", "release", "bin", "mica"))
    parser.add_argument("--from", dest="files", nargs="+", metavar="FILE")
    options = parser.parse_args(arguments)
    options.runtime = options.runtime.split(",")
    options.mica, options.adapters = os.path.abspath(options.mica), os.path.abspath(options.adapters)
    for name in options.runtime:
        if name not in ("mica", "mica-http") and not os.path.exists(os.path.join(options.adapters, name, "manifest.json")):
            parser.error(f"unknown runtime \"{name}\"; there are {', '.join((*NAMES, 'mica-http'))}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main(arguments):
    options = parse(arguments)
    files, missing = options.files, {}
    if not files:
        options.model = os.path.abspath(options.model or default_model())
        missing = measure_all(options)
        files = [os.path.join(options.output, "runs.jsonl")]
    runs = figures_of(options.mica, files) if any(os.path.exists(f) and os.path.getsize(f) for f in files) else []
    text, incomplete = table(runs, missing, " ".join(["scripts/bench-table", *arguments]))
    if not options.files:
        with open(os.path.join(options.output, "table.md"), "w", encoding="utf-8") as f:
            f.write(text)
    print(text, end="")
    return 1 if incomplete else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
