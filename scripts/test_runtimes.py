"""Sets up the runtimes that adapters/ knows, makes their models, and runs each through every verb of the protocol.

    test-runtimes [NAME ...] [--model MODEL.gguf] [--output FOLDER]      default: all of them, SmolLM2-135M, build/runtimes

Takes gigabytes and, for the converters, up to hours; what is there already is not made again. FOLDER gets runtimes.json and
runtimes.md: versions, sizes, times, and for a runtime that does not work the reason and its log. Status 1 if one did not work.
"""
import argparse
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "adapters", "common"))
import client  # noqa: E402
import installer  # noqa: E402
import models  # noqa: E402
import places  # noqa: E402

NAMES = ("llamacpp", "onnxruntime-genai", "litert-lm", "mlx", "executorch")
SLOW = ("mlx",)


def default_model():
    done = subprocess.run([os.path.join(ROOT, "scripts", "fetch-models"), "smollm2"], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def convert(name, model):
    """-> the recipe, and the seconds it took if it was made now"""
    start = time.monotonic()
    done = subprocess.run([os.path.join(ROOT, "adapters", name, "convert"), model], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise installer.SetupError(f"convert ended with status {done.returncode}; its message is above")
    made = done.stdout.decode().strip().splitlines()[-1]
    seconds = time.monotonic() - start
    return models.read_recipe(made), round(seconds, 1)


def test(name, model):
    """-> what is worth recording of one runtime"""
    facts = {"adapter": name, "environments": {}}
    try:
        for environment in places.manifest(name)["environments"]:
            facts["environments"][environment] = installer.set_up(name, environment)
        facts["recipe"], facts["convert_seconds"] = convert(name, model)
        long = 64 if name in SLOW else 512
        facts["long"] = long
        facts["check"] = client.check(name, model, long=long, reply=8 if name in SLOW else 64)
    except (installer.SetupError, client.Broken, client.Refused, OSError) as e:
        facts["error"] = str(e)
    return facts


def row(facts):
    name = facts["adapter"]
    if "error" in facts:
        return f"| {name} | {' '.join(facts['error'].split())[:300]} |" + " |" * 8
    run, found, recipe = facts["environments"].get("run", {}), facts["check"], facts["recipe"]
    return (f"| {name} | {found['hello']['runtime_version']} "
            f"| {run.get('bytes', 0) / 1e6:.0f} MB, {run.get('seconds', 0):.0f} s "
            f"| {recipe['recipe']} | {recipe['file_bytes'] / 1e6:.1f} MB | {recipe['bits_per_weight']} "
            f"| {found['ttft_ms']:.0f} ms at {facts['long']}, {found['ttft_32_ms']:.0f} at 32 | {found['decode_tps']} "
            f"| {found['peak_rss_mib']} MiB | {', '.join(found['hello']['labels'])} |")


HEAD = """| adapter | version | installed | recipe | file | bits a weight | first token | tokens/s | peak memory | labels |
|---|---|---|---|---|---|---|---|---|---|"""


def main():
    parser = argparse.ArgumentParser(prog="test-runtimes", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--model", help="a GGUF file")
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "runtimes"))
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        sys.exit(f"test-runtimes: unknown runtime \"{unknown.pop()}\"; there are {', '.join(NAMES)}")
    model = os.path.abspath(options.model or default_model())
    os.makedirs(options.output, exist_ok=True)
    results = [test(name, model) for name in options.names or NAMES]
    with open(os.path.join(options.output, "runtimes.json"), "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
    table = "\n".join([HEAD, *map(row, results)])
    with open(os.path.join(options.output, "runtimes.md"), "w", encoding="utf-8") as f:
        f.write(table + "\n")
    print(table)
    return 1 if any("error" in facts for facts in results) else 0


if __name__ == "__main__":
    sys.exit(main())
