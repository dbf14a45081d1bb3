"""The command line itself: help, exit codes, numbers out of range, errors of files and outputs."""
import os
import re
import signal
import subprocess
import tempfile
import time

from climica import BIN, DATA, SCRIPTED, TestCase, environment, main, mica, run, write_temporary

ROOT = os.path.dirname(os.path.dirname(DATA))
ALWAYS = {"run", "chat", "inspect", "tokenize", "detokenize", "template", "perplexity", "probe", "threads", "kv", "grammar", "task", "eval", "embed", "tune"}


def commands():
    """Those of the list that this program has: it can be built without the server, the router, and what measures."""
    text = mica("help").text
    with open(os.path.join(ROOT, "programs", "command_list.h"), encoding="utf-8") as f:
        listed = re.findall(r'^(?:EVERYDAY|OPS)\("([a-z-]+)"', f.read(), re.MULTILINE)
    there = [c for c in listed if re.search(rf"^  {c}  ", text, re.MULTILINE)]
    assert ALWAYS <= set(there), ALWAYS - set(there)
    return there + ["help"]


def table():
    """(name, commands) of each row of the option table."""
    path = os.path.join(ROOT, "programs", "opt_list.h")
    with open(path, encoding="utf-8") as f:
        return re.findall(r'^OPT\("([a-z-]+)", [^,]+, [A-Z_]+, \w+, [^"]*?(ON_\w+(?: \| ON_\w+)*), ', f.read(), re.MULTILINE)


class Help(TestCase):
    def test_overview_lists_all_commands(self):
        for args in (["help"], ["--help"], ["-h"]):
            done = self.ok(mica(*args))
            self.assertEqual(re.findall(r"^  ([a-z-]+)  ", done.text, re.MULTILINE), commands())
            self.assertEqual(done.err, b"")

    def test_each_command_describes_itself(self):
        for command in commands():
            done = self.ok(mica(command, "--help"))
            self.assertTrue(done.text.startswith(f"Usage: mica {command} "), done)
            self.assertEqual(done.out, mica("help", command).out)
            self.assertLessEqual(max(map(len, done.text.splitlines()[1:])), 100, command)

    def test_help_man_page_and_completion_know_every_option(self):
        rows = table()
        self.assertGreater(len(rows), 50)
        man = self.ok(mica("help", "--man")).text
        completion = self.ok(mica("help", "--completion")).text
        helps = "".join(mica("help", c).text for c in commands())
        whole = {"serve", "route", "bench"} <= set(commands())
        for name, where in rows:
            if not whole and not re.search(rf"--{name}\b", helps):  # of a command that this program was built without
                continue
            self.assertRegex(helps, rf"--{name}\b")
            self.assertIn("\\fB\\-\\-" + name.replace("-", "\\-") + "\\fR", man)
            self.assertRegex(completion, rf"--{name}\b")

    def test_options_belong_to_their_commands(self):
        text = mica("help", "run").text
        self.assertIn("--logprobs", text)
        self.assertNotIn("--logprobs", mica("help", "chat").text)
        self.fails(mica("chat", "--logprobs", "3"), "--logprobs", "mica chat", code=2)

    def test_defaults_are_the_engines(self):
        text = " ".join(mica("help", "run").text.split())
        for name, value in (("temp X", "0.8"), ("top-k N", "40"), ("top-p X", "0.95"), ("min-p X", "0.05"), ("seed N", "-1"),
                            ("full error|stop|shift", "stop")):
            self.assertRegex(text, rf"--{re.escape(name)} [^-].*? Default: {re.escape(value)}\.")

    def test_man_page_is_valid_roff(self):
        man = mica("help", "--man").text
        self.assertTrue(man.startswith(".TH MICA 1 "))
        for line in man.splitlines():
            if line.startswith("."):
                self.assertRegex(line, r"^\.(TH|SH|SS|TP|PP)\b")

    def test_completion_is_valid_bash(self):
        script = write_temporary(self, mica("help", "--completion").out)
        try:
            self.assertEqual(subprocess.run(["bash", "-n", script], check=False).returncode, 0)
        except FileNotFoundError:
            self.skipTest("no bash here")

    def test_version(self):
        lines = self.ok(mica("--version")).text.splitlines()
        self.assertRegex(lines[0], r"^mica \d+\.\d+\.\d+$")
        self.assertRegex(lines[1], r"^numerics \d+$")
        self.assertRegex(lines[2], r"^kernels portable")


class Usage(TestCase):
    def usage(self, args, *wanted):
        done = self.fails(mica(*args), *wanted, code=2)
        self.assertEqual(done.out, b"")

    def test_commands(self):
        self.usage([], "help")
        self.usage(["fly"], "fly")
        self.usage(["help", "fly"], "fly")
        self.usage(["run", "-m", SCRIPTED, "extra"], "extra")
        self.usage(["threads"], "plan")
        self.usage(["threads", "dance"], "dance")
        self.usage(["kv", "dance"], "dance")

    def test_unknown_options(self):
        self.usage(["run", "--fly"], "--fly", "mica run")
        self.usage(["run", "-z"], "-z")
        self.usage(["run", "--fly=high"], "--fly")
        self.usage(["run", "--json=1"], "--json")
        self.usage(["run", "--ctx"], "--ctx")
        self.usage(["run", "-m"], "--model")

    def test_numbers_are_strict(self):
        for text in ("-1", "1e3", "99999999999999999999", "2k", "", " 5", "+5", "0x10", "5 ", "4294967296"):
            self.usage(["run", "-m", SCRIPTED, "-p", "E", "--ctx", text], "--ctx", "0 to 4294967295")
        for option, text, low, high in (("--threads", "65", "0", "64"), ("--threads", "-1", "0", "64"),
                                        ("-n", "-2", "-1", "2147483647"),
                                        ("--top-k", "-3", "0", "2147483647"), ("--seed", "-2", "-1", "9223372036854775807"),
                                        ("--logprobs", "21", "0", "20"), ("--chunk", "4097", "0", "4096")):
            self.usage(["run", "-m", SCRIPTED, "-p", "E", option, text], f"from {low} to {high}")

    def test_reals_are_strict(self):
        for option, text, wanted in (("--temp", "-1", "at least 0"), ("--temp", "hot", "hot"), ("--temp", "3.5e+38", "--temp"),
                                     ("--temp", "nan", "--temp"), ("--temp", "inf", "--temp"), ("--temp", "", "--temp"),
                                     ("--temp", "0x1", "--temp"), ("--temp", "1,5", "--temp"),
                                     ("--top-p", "-0.1", "from 0 to 1"),
                                     ("--top-p", "1.5", "from 0 to 1"), ("--min-p", "2", "from 0 to 1"),
                                     ("--typical", "0", "above 0 up to 1"), ("--repeat-penalty", "0", "above 0"),
                                     ("--frequency-penalty", "20", "from -2 to 2"),
                                     ("--presence-penalty", "50", "from -2 to 2"),
                                     ("--dry-base", "0.5", "at least 1")):
            self.usage(["run", "-m", SCRIPTED, "-p", "E", option, text], option, wanted)

    def test_texts(self):
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--stop", ""], "--stop")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--full", "explode"], "--full", "error|stop|shift")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--full", ""], "--full")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--full", "stop|shift"], "--full")
        for text in ("5", "=1", "x=1", "-1=5", "1=x", "1=", "1=inf", "1=nan", "1=1e99", "99999999999=1", ""):
            self.usage(["run", "-m", SCRIPTED, "-p", "E", "--logit-bias", text], "--logit-bias")
        for text in ("x", "1-", "3-1", "1,,2", "1,", ",1", "0-64", "9000", "1 2", "-1"):
            self.usage(["run", "-m", SCRIPTED, "-p", "E", "--cpus", text], "--cpus")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--cpus", "0", "--threads", "2"], "--cpus", "--threads")

    def test_contradictions(self):
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "-f", "x"], "--prompt", "--file")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--token-ids", "1"], "--token-ids")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--system", "s", "--no-chat"], "--system")
        self.usage(["run", "-m", SCRIPTED, "-p", "E", "--logprobs", "2"], "--logprobs", "--json")
        self.usage(["inspect", "-m", SCRIPTED, SCRIPTED], "twice")
        self.usage(["detokenize", "-m", SCRIPTED], "--ids")
        self.usage(["detokenize", "-m", SCRIPTED, "--ids", "1", "--stdin"], "--ids")
        self.usage(["template", "-m", SCRIPTED], "--request")
        for ids in ("1,x", "1.5", "99999999999", "[1, two]"):
            self.usage(["run", "-m", SCRIPTED, "--token-ids", ids], "--token-ids")


class Files(TestCase):
    def model_fails(self, path, *wanted):
        self.fails(mica("run", "-m", path, "-p", "E", "-n", "1"), *wanted)

    def test_models(self):
        with open(SCRIPTED, "rb") as f:
            good = f.read()
        self.model_fails("/nowhere/x.gguf", "/nowhere/x.gguf")
        self.model_fails("/", "directory")
        self.model_fails(write_temporary(self, ""), "empty")
        self.model_fails(write_temporary(self, "<!DOCTYPE html><html>"), "HTML")
        self.model_fails(write_temporary(self, good[:-1]), "output.weight")
        self.model_fails(write_temporary(self, good[:5000]), "byte")
        length = (5).to_bytes(8, "little")
        self.model_fails(write_temporary(self, good.replace(length + b"llama", length + b"lamma", 1)), "lamma")

    def test_no_model(self):
        self.fails(mica("run", "-p", "E"), "-m FILE", "scripts/fetch-models")
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(SCRIPTED, os.path.join(folder, "smollm2-135m-instruct-q4_1.gguf"))
            done = mica("run", "-p", "E", "--temp", "0", env=dict(environment(), MICA_MODELS_DIR=folder))
            self.assertEqual(self.ok(done).text, "Hi 🙂!")
            os.mkdir(os.path.join(folder, "mica"))
            os.symlink(folder, os.path.join(folder, "mica", "models"))
            env = dict(environment(), XDG_CACHE_HOME=folder)
            del env["MICA_MODELS_DIR"]
            self.assertEqual(self.ok(mica("run", "-p", "E", "--temp", "0", env=env)).text, "Hi 🙂!")

    def test_prompt_files(self):
        self.fails(mica("run", "-m", SCRIPTED, "-f", "/nowhere"), "/nowhere")
        self.fails(mica("run", "-m", SCRIPTED, "-f", "/"), "directory")
        self.fails(mica("run", "-m", SCRIPTED, "-p", "E", "--chat-template", "/nowhere"), "/nowhere")
        self.fails(mica("run", "-m", SCRIPTED, "-p", "E", "--chat-template", write_temporary(self, "{% fly %}")), "fly")
        self.fails(mica("run", "-m", SCRIPTED, "-p", "E", "--chat-template", write_temporary(self, b"a\0b")), "NUL")

    def test_limits(self):
        self.fails(run("-p", "E", "--memory-limit", "1000"), "1000")
        self.fails(run("-p", "E", "--kernels", "magic"), "magic")
        self.fails(run("-p", "E", "--ctx", "4294967295"), "bytes", "4294967295")
        self.fails(run("-p", "E", "--ctx", "67108864", "--memory-limit", "1000000"), "bytes")
        self.fails(run("-p", "E", "--ctx", "1"), "1")
        self.fails(run("-p", "E", "--sysroot", "/nowhere"), "/nowhere")

    def test_invalid_text(self):
        for args in ((), ("--no-chat",)):
            self.fails(run(*args, stdin=b"ab\xff"), "UTF-8")
        self.fails(run("-p", "E", "--no-chat", "--token-ids", "1"), code=2)
        self.fails(run("--token-ids", "99999"), "99999")
        self.fails(run("--token-ids", "[]"), "no tokens")
        self.fails(run("-p", "", "--no-chat"), "no tokens")


class Outputs(TestCase):
    def test_full_disk(self):
        commands = [["run", "-m", SCRIPTED, "-p", "E"], ["run", "-m", SCRIPTED, "-p", "E", "--json"], ["help"], ["--version"],
                    ["inspect", SCRIPTED], ["inspect", SCRIPTED, "--json"], ["tokenize", "-m", SCRIPTED, "-p", "E"],
                    ["tokenize", "-m", SCRIPTED, "-p", "E", "--json"], ["detokenize", "-m", SCRIPTED, "--ids", "270"],
                    ["threads", "plan"], ["threads", "plan", "--json"], ["kv", "plan", "-m", SCRIPTED, "--json"]]
        for command in commands:
            with open("/dev/full", "wb") as full:
                p = subprocess.run([BIN, *command], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
                                   timeout=60, env=environment())
            self.assertEqual(p.returncode, 1, command)
            self.assertEqual(p.stderr, b"mica: cannot write to standard output: No space left on device\n", command)

    def test_closed_pipe(self):
        p = subprocess.Popen([BIN, "run", "-m", SCRIPTED, "-p", "X", "--temp", "0", "--full", "shift"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        self.assertEqual(p.stdout.read(1), b"x")
        p.stdout.close()
        self.assertEqual(p.wait(60), 1)
        self.assertIn(b"mica: cannot write to standard output: Broken pipe\n", p.stderr.read())
        p.stderr.close()

    def test_interrupt(self):
        """Ctrl-C ends the reply, not the program: metrics come, and 130."""
        for extra in ([], ["--json"]):
            p = subprocess.Popen([BIN, "run", "-m", SCRIPTED, "-p", "X", "--temp", "0", "--full", "shift", *extra],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
            self.assertTrue(p.stdout.read(1))
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, 130, err[-500:])
            self.assertTrue(err.decode().splitlines()[-1].endswith(";stop=cancelled"), err[-500:])
            self.assertNotIn(b"mica: a callback", err)
            if extra:
                self.assertIn(b'"stop_reason":"cancelled"', out.splitlines()[-1])

    def test_interrupt_while_waiting_for_the_prompt(self):
        p = subprocess.Popen([BIN, "run", "-m", SCRIPTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
        self.assertEqual(p.returncode, -signal.SIGINT)


if __name__ == "__main__":
    main()
