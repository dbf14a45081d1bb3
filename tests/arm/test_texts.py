"""What mica says on emulated ARM cores, against this machine: the same tokens, with the kernels of that core.

    python3 tests/arm/test_texts.py --mica FILE --here FILE [--models DIR] [--tokens N] [--prompts N] [--core CORE]...

--mica is the program for 64-bit ARM, --here the one of this machine. Without --models the tiny models of tests/data answer; with it the
three real models, whose first prompts are those of the recorded texts (tests/data/gold).
"""
import argparse
import glob
import json
import os

from emulator import CORES, DATA, fail, qemu, run, skip

REAL = ("smollm2-135m-instruct-q4_1", "gemma-3-270m-q4_k_m", "qwen2.5-coder-0.5b-instruct-q4_k_m")


def prompts_of(model, count):
    with open(os.path.join(DATA, "gold", f"tokens-{model}.jsonl"), encoding="utf-8") as f:
        found = [json.loads(line)["prompt"] for line in f]
    return [p for p in found if 0 < len(p) < 60 and "\0" not in p][:count]  # a short prompt: emulated cores are slow


def questions(args):
    """(model file, prompt)"""
    if not args.models:
        return [(path, "hello") for path in sorted(glob.glob(os.path.join(DATA, "tiny", "*.gguf")))]
    found = [(os.path.join(args.models, model + ".gguf"), p) for model in REAL for p in prompts_of(model, args.prompts)]
    missing = {path for path, _ in found if not os.path.exists(path)}
    return skip(f"{sorted(missing)} are not there") if missing else found


def answer(command, path, prompt, tokens):
    """(token ids, what the last line says of the run)"""
    code, out, err = run([*command, "run", "-m", path, "--no-chat", "-p", prompt, "-n", str(tokens), "--temp", "0", "--ignore-eos",
                          "--json", "-t", "2"])
    lines = out.splitlines()
    if code or len(lines) != tokens + 1:
        fail(f"{' '.join(command)}: exit status {code}, {len(lines)} lines, not {tokens + 1}\n{out}{err}")
    return [json.loads(line)["token"] for line in lines[:-1]], lines[-1] + err


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mica", required=True)
    parser.add_argument("--here", required=True)
    parser.add_argument("--models")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=1)
    parser.add_argument("--core", action="append", choices=sorted(CORES))
    args = parser.parse_args()
    asked = questions(args)
    want = [answer([args.here], path, prompt, args.tokens)[0] for path, prompt in asked]
    if len(asked) < 3 or not any(len(set(ids)) > 1 for ids in want):
        fail(f"these replies show nothing: {want}")
    for core in args.core or CORES:
        for (path, prompt), ids in zip(asked, want):
            got, said = answer([qemu(), "-cpu", core, args.mica], path, prompt, args.tokens)
            if got != ids:
                fail(f"{os.path.basename(path)} on {core}: {got}, here {ids}")
            if CORES[core] not in said.replace('"', " ").replace(";", " ").replace("=", " ").split():
                fail(f"{os.path.basename(path)} on {core}: not with the kernels {CORES[core]}: {said}")
        print(f"passed: {CORES[core]} on {core}: {len(asked)} replies of {args.tokens} tokens, those of this machine", flush=True)


main()
