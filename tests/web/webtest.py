"""What the tests of the WebAssembly build share: where it is, and Node. They are skipped without either; scripts/build-web makes it."""
import functools
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = os.environ.get("MICA_BIN", "mica")
DATA = os.environ.get("MICA_TEST_DATA", os.path.join(ROOT, "tests", "data"))
BUILD = os.environ.get("MICA_WEB_DIR") or os.path.join(ROOT, "build", "web")
SITE = os.path.join(BUILD, "site")
SETS = {"simd128": ("simd128",), "relaxed": ("simd128", "relaxed")}  # by module: the kernel sets in it, besides the portable one
REAL = ("smollm2-135m-instruct-q4_1", "gemma-3-270m-q4_k_m", "qwen2.5-coder-0.5b-instruct-q4_k_m")


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def need_site():
    if not os.path.exists(os.path.join(SITE, "mica-relaxed.wasm")):
        skip(f"there is no WebAssembly build in {BUILD} (scripts/build-web)")


def module(name):
    need_site()
    return os.path.join(BUILD, "mica", name + ".wasm")


# Until Node 21 they are an option, and the quick compiler gets their products of bytes wrong.
OLD_NODE = ("--experimental-wasm-relaxed-simd", "--no-liftoff")


@functools.lru_cache(maxsize=None)
def node_options():
    """What Node needs for relaxed vector instructions."""
    need_site()
    program = shutil.which("node") or skip("there is no node (Debian: nodejs)")
    ask_it = f"import('file://{SITE}/engine.js').then((m) => process.exit(m.hasRelaxed() ? 0 : 1))"
    for options in ((), OLD_NODE):
        if subprocess.run([program, *options, "-e", ask_it], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return options
    return skip("this node has no relaxed vector instructions (version 20 has them)")


def node(*options):
    """The command."""
    return ("node", "--no-warnings", *(options or node_options()))


def run_module(name, *args):
    """(exit status, lines) of a test program."""
    path = module(name)
    done = subprocess.run([*node(), os.path.join(HERE, "run_module.mjs"), path, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=600)
    return done.returncode, done.stdout.decode("utf-8", "replace").splitlines()


def ask(model, requests, variant="simd128", command=(), **more):
    """What the engine says: of the model, then of each request."""
    need_site()
    job = {"site": SITE, "variant": variant, "model": model, "requests": requests, **more}
    done = subprocess.run([*(command or node()), os.path.join(HERE, "run_engine.mjs")], input=json.dumps(job).encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=900)
    if done.returncode != 0:
        raise AssertionError(f"node ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')}")
    return [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]


def native(model, *args):
    """Token ids and text of a reply of the program on this machine."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    done = subprocess.run([BIN, "run", "-m", model, "--json", *map(str, args)], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=600)
    lines = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
    if done.returncode != 0:
        raise AssertionError(f"mica run: {done.stderr.decode('utf-8', 'replace')}")
    return [line["token"] for line in lines if "token" in line], lines[-1]["text"]


def gold_prompts(model, count):
    """Short prompts of the recorded texts."""
    with open(os.path.join(DATA, "gold", f"tokens-{model}.jsonl"), encoding="utf-8") as f:
        found = [json.loads(line)["prompt"] for line in f]
    return [p for p in found if 0 < len(p) < 60 and "\0" not in p][:count]
