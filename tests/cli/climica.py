"""What the tests of the program share: running it, its data, and what counts as a clean failure."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("MICA_BIN", "mica")
DATA = os.environ.get("MICA_TEST_DATA", os.path.join(os.path.dirname(HERE), "data"))
CASES = os.path.join(DATA, "cases")
COMMON = os.path.join(CASES, "_common")
SCRIPTED = os.path.join(COMMON, "scripted.gguf")
TIMEOUT = 240


def has_address_sanitizer():
    """It has memory of its own, terabytes of address space, and makes mlock() do nothing."""
    with open(BIN, "rb") as f:
        return b"__asan_init" in f.read()


def models_dir():
    default = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mica", "models")
    return os.environ.get("MICA_MODELS_DIR") or default


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    env["MICA_MODELS_DIR"] = os.devnull  # no default model
    return env


class Done:
    """A run that has ended: exit code, bytes of both outputs."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.text, self.message = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.text[:2000]}\nstderr: {self.message[:2000]}"


def mica(*args, stdin=b"", **more):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    more.setdefault("env", environment())
    p = subprocess.run([BIN, *map(str, args)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT,
                       check=False, **more)
    return Done(p.returncode, p.stdout, p.stderr)


def run(*args, model=SCRIPTED, **more):
    """mica run with greedy sampling on the scripted model."""
    return mica("run", "-m", model, "--temp", "0", *args, **more)


def case(name, *parts):
    return os.path.join(CASES, name, *parts)


def case_json(name, file):
    with open(case(name, file), encoding="utf-8") as f:
        return json.load(f)


def case_lines(name, file="cases.jsonl"):
    with open(case(name, file), encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def scripted_module():
    spec = importlib.util.spec_from_file_location("scripted", os.path.join(COMMON, "scripted.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def generate(name, script, out):
    """Runs a case's own generator into the folder `out`."""
    subprocess.run([sys.executable, "-B", case(name, script), out], check=True, timeout=TIMEOUT)


def write_temporary(test, data, suffix=""):
    """A file with these bytes, gone after the test."""
    f = tempfile.NamedTemporaryFile(suffix=suffix, delete=False)
    test.addCleanup(os.unlink, f.name)
    with f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return f.name


class TestCase(unittest.TestCase):
    def ok(self, done):
        self.assertEqual(done.code, 0, done)
        return done

    def fails(self, done, *wanted, code=1):
        """One line of stderr that says "mica: ..." and names what is wanted; nothing died of a signal."""
        self.assertEqual(done.code, code, done)
        lines = [line for line in done.message.splitlines() if not line.startswith("mica: warning: ")]
        self.assertEqual(len(lines), 1, done)
        self.assertTrue(lines[0].startswith("mica: "), done)
        for text in wanted:
            self.assertIn(text, lines[0], done)
        return done


def main():
    if not os.path.exists(BIN):
        print(f"the program {BIN} is not there: set MICA_BIN", file=sys.stderr)
        sys.exit(1)
    if not os.path.exists(SCRIPTED):
        print(f"skipped: {SCRIPTED} is not there", file=sys.stderr)
        sys.exit(77)
    unittest.main(warnings="ignore")  # the cases' generators leave files to the garbage collector


def main_with_models(*names):
    """The same for tests of real models, which are skipped as a whole where one is missing."""
    missing = [n for n in names if not os.path.exists(os.path.join(models_dir(), n))]
    if missing:
        print(f"skipped: {', '.join(missing)} not in {models_dir()} (scripts/fetch-models all)", file=sys.stderr)
        sys.exit(77)
    main()
