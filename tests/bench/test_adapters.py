"""adapters/: the loop that all drivers share, the manifests and lock files, and the openai adapter with real servers."""
import http.server
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COMMON = os.path.join(ROOT, "adapters", "common")
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "cli"), COMMON]
from climica import BIN, SCRIPTED, TestCase, main  # noqa: E402
import adapter as shared  # noqa: E402
import client  # noqa: E402
import lock  # noqa: E402
import models  # noqa: E402
import places  # noqa: E402

NAMES = ("llamacpp", "onnxruntime-genai", "executorch", "mlx", "litert-lm", "openai", "mediapipe")
INSTALLED = NAMES[:5]   # those that setup installs
# A runtime without a model: token i of a reply is 100 + i. What a prompt says makes it misbehave.
TOY = """
import os, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, {common!r})
import adapter

class Toy(adapter.Runtime):
    adapter, runtime = "toy", "Toy"
    def version(self):
        print("a library that prints")
        os.write(1, b"and one in C\\n")
        return "1"
    def load(self, model, backend, n_ctx, threads, progress):
        start = time.monotonic_ns()
        adapter.backend_of(backend, ["cpu"])
        progress(0.5)
        if model == "/none":
            raise adapter.Failure("model", "no such model")
        return {{"backend": "cpu", "device": "toy", "file": model, "file_bytes": 1, "weight_bytes": None,
                "bits_per_weight": None, "kv_type": None, "context_limit": n_ctx or 64, "threads": threads,
                "start_ns": start, "end_ns": time.monotonic_ns()}}
    def generate(self, job):
        ids = job.ids(lambda text: [len(word) for word in text.split()])
        if job.text == "raise":
            raise RuntimeError("two\\nlines")
        if job.text == "memory":
            raise MemoryError
        reason = "length"
        for i in range(job.n):
            if job.text == "slowly":
                time.sleep(0.01)
            if not job.token(100 + i):
                reason = "cancelled"
                break
        return {{"reason": reason, "prompt_n": len(ids), "cached_n": 0, "gen_n": job.count}}
    def unload(self):
        pass

adapter.serve(Toy())
"""


class Loop(TestCase):
    """common/adapter.py"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.driver = os.path.join(folder.name, "driver.py")
        with open(self.driver, "w", encoding="utf-8") as f:
            f.write(TOY.format(common=COMMON))

    def start(self):
        a = client.Adapter([sys.executable, self.driver], stderr=subprocess.DEVNULL)
        self.addCleanup(a.__exit__)
        return a

    def loaded(self):
        a = self.start()
        a.hello()
        a.ask("load", model="/m", backend="cpu", n_ctx=64, threads=1)
        return a

    def refused(self, code, call, *args, **more):
        with self.assertRaises(client.Refused) as caught:
            call(*args, **more)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertNotIn("\n", caught.exception.message)
        return caught.exception

    def test_every_verb(self):
        a = self.start()
        hello = a.hello()
        self.assertEqual((hello["protocol"], hello["adapter"], hello["clock"]), (1, "toy", "monotonic"))
        loaded, before = a.ask("load", model="/m", backend="default", n_ctx=0, threads=2)
        self.assertEqual([e["done"] for e in before], [0.5])
        self.assertEqual((loaded["backend"], loaded["pid"], loaded["context_limit"]), ("cpu", a.process.pid, 64))
        self.assertFalse(a.ask("partition")[0]["known"])
        done, ids, times = a.generate({"tokens": [1, 2, 3]}, 5, True)
        self.assertEqual((ids, done["prompt_n"], done["gen_n"], done["reason"]), ([100, 101, 102, 103, 104], 3, 5, "length"))
        self.assertEqual(times, sorted(times))
        done, ids, _ = a.generate({"text": "aa b cccc dd e", "n": 3}, 1, True)
        self.assertEqual((done["prompt_n"], ids), (3, [100]))
        a.ask("unload")
        self.refused("bad_request", a.generate, {"tokens": [1]}, 1, True)
        a.ask("load", model="/m", backend="cpu", n_ctx=0, threads=2)
        self.assertEqual(a.quit(), 0)

    def test_what_runtimes_print_stays_off_the_protocol(self):
        a = client.Adapter([sys.executable, self.driver], stderr=subprocess.PIPE)
        self.addCleanup(a.__exit__)
        a.hello()
        self.assertEqual(a.quit(), 0)
        with a.process.stderr as f:
            printed = f.read()
        self.assertIn(b"and one in C", printed)
        self.assertIn(b"a library that prints", printed)

    def test_many_tokens_arrive_whole_and_in_order(self):
        a = self.loaded()
        done, ids, times = a.generate({"tokens": [1]}, 30000, True)
        self.assertEqual((done["gen_n"], ids), (30000, list(range(100, 30100))))
        self.assertEqual(times, sorted(times))

    def test_tokens_of_a_slow_engine_do_not_wait(self):
        a = self.loaded()
        a.send("generate", prompt={"text": "slowly"}, n=40, sampling={"greedy": True})
        late = []
        while True:
            event = a.event()
            late.append(time.monotonic_ns() - event["t_ns"])
            if event["event"] == "done":
                break
        self.assertLess(max(late), 1_000_000_000)

    def test_cancel(self):
        a = self.loaded()
        ident = a.send("generate", prompt={"text": "slowly"}, n=100000, sampling={"greedy": True})
        while a.event()["event"] != "token":
            pass
        a.raw(json.dumps({"op": "cancel", "id": ident + 1, "target": ident + 7}).encode() + b"\n")  # another: nothing happens
        a.raw(json.dumps({"op": "cancel", "id": ident + 2, "target": ident}).encode() + b"\n")
        done, events = a.answer("generate", ident)
        self.assertEqual(done["reason"], "cancelled")
        self.assertGreater(done["gen_n"], 1)
        self.assertLess(done["gen_n"], 100000)
        self.assertLess(len(events), done["gen_n"])
        a.last_id = ident + 2
        a.raw(json.dumps({"op": "cancel", "id": ident + 3, "target": ident}).encode() + b"\n")  # too late
        a.last_id += 1
        self.assertEqual(a.generate({"tokens": [1]}, 3, True)[0]["reason"], "length")

    def test_end_of_input_ends_the_adapter(self):
        for midway in (False, True):
            a = self.loaded()
            if midway:
                a.send("generate", prompt={"text": "slowly"}, n=100000, sampling={"greedy": True})
                while a.event()["event"] != "token":
                    pass
            a.process.stdin.close()
            self.assertEqual(a.process.wait(20), 0)
            a.process.stdin = open(os.devnull, "wb")

    def test_errors(self):
        a = self.start()
        self.refused("bad_request", a.ask, "load", model="/m")
        a.hello()
        self.refused("bad_request", a.ask, "load")
        self.refused("bad_request", a.ask, "load", model="/m", n_ctx=-1)
        self.refused("bad_request", a.ask, "load", model="/m", threads=True)
        self.refused("model", a.ask, "load", model="/none", backend="cpu")
        self.assertIn("cpu", self.refused("backend", a.ask, "load", model="/m", backend="gpu").message)
        a.ask("load", model="/m", backend="cpu")
        self.refused("bad_request", a.ask, "load", model="/m", backend="cpu")
        client.ENDS["dance"] = "danced"
        self.addCleanup(client.ENDS.pop, "dance")
        self.refused("bad_request", a.ask, "dance")
        self.assertEqual(self.refused("internal", a.generate, {"text": "raise"}, 1, True).message, "RuntimeError: two lines")
        self.refused("out_of_memory", a.generate, {"text": "memory"}, 1, True)
        self.assertEqual(a.generate({"tokens": [5]}, 1, True)[0]["gen_n"], 1)  # it goes on after all of these

    def test_bad_prompts(self):
        a = self.loaded()
        for prompt in (None, [], {}, {"tokens": []}, {"tokens": [1.5]}, {"tokens": [-1]}, {"tokens": [True]}, {"tokens": "1"},
                       {"text": 1}, {"text": "a", "tokens": [1]}, {"text": "a b", "n": 0}, {"text": "a b", "n": 3}):
            self.refused("bad_request", a.generate, prompt, 1, True)
        for n in (0, -1, 1.5, None, True, "1"):
            self.refused("bad_request", a.generate, {"tokens": [1]}, n, True)
        self.refused("bad_request", a.generate, {"tokens": [1]}, 1, True, sampling=7)

    def test_lines_that_are_no_requests_end_the_adapter(self):
        for line in (b"garbage\n", b"[1]\n", b"{\"op\":\"hello\"}\n", b"{\"op\":7,\"id\":1}\n", b"[" * 100000 + b"\n",
                     b"\xff\xfe\n", b"{\"op\":\"hello\",\"id\":1,\"x\":\"" + b"y" * (1 << 20) + b"\"}\n"):
            a = self.start()
            try:
                a.raw(line)
            except BrokenPipeError:
                pass  # it ended before it had read all
            event = a.event(20)
            self.assertEqual((event["event"], event["code"], event["fatal"]), ("error", "bad_request", True), line[:40])
            self.assertEqual(a.process.wait(20), 1)

    def test_other_protocols(self):
        a = self.start()
        error = self.refused("unsupported", a.ask, "hello", protocol=2, harness="x")
        self.assertTrue(error.fatal)
        self.assertEqual(a.process.wait(20), 1)


class CutText(TestCase):
    def test_counts_are_met(self):
        text = client.words(500)
        for n in (1, 2, 3, 32, 499, 500):
            cut = shared.cut_text(lambda t: len(t.split()), text, n)
            self.assertEqual(len(cut.split()), n)
            self.assertTrue(text.startswith(cut))

    def test_counts_that_jump(self):
        """Three tokens a word: 32 cannot be met, 33 or 30 is next to it."""
        cut = shared.cut_text(lambda t: 3 * len(t.split()), client.words(50), 32)
        self.assertEqual(3 * len(cut.split()), 33)

    def test_counts_that_fall(self):
        """A longer text with fewer tokens, as when characters join to one token."""
        def count(text):
            return len(text) - 2 * text.count("abc")
        cut = shared.cut_text(count, "abc" * 100, 50)
        self.assertEqual(count(cut), 50)

    def test_too_short(self):
        with self.assertRaises(shared.Failure):
            shared.cut_text(len, "abc", 4)


class Files(TestCase):
    def test_manifests(self):
        for name in NAMES:
            manifest = places.manifest(name)
            self.assertEqual((manifest["name"], manifest["protocol"], manifest["command"]), (name, 1, ["./driver"]))
            for key in ("runtime", "licence", "needs", "model"):
                self.assertTrue(manifest[key], (name, key))
            for program in ("setup", "convert", "driver"):
                mode = os.stat(os.path.join(ROOT, "adapters", name, program)).st_mode
                self.assertTrue(mode & stat.S_IXUSR, (name, program))

    def test_locks_pin_every_package_by_its_hash(self):
        for name in (*NAMES, "common"):
            for environment, entry in places.manifest(name)["environments"].items():
                for path in places.lock_files(name, environment):
                    with open(path, encoding="ascii") as f:
                        lines = [line for line in f.read().splitlines() if not line.startswith("#")]
                    self.assertTrue(lines, path)
                    for line in lines:
                        self.assertRegex(line, r"^[a-z0-9-]+==[^ ]+ --hash=sha256:[0-9a-f]{64}$", path)
                self.check_pins(path, lines, entry)

    def check_pins(self, path, lines, entry):
        """What the manifest names is in the lock file with that version, unless it is left out on purpose."""
        locked = {line.split()[0] for line in lines}
        for package in entry["packages"]:
            name = package.split("==")[0]
            if not any(re.fullmatch(pattern, name) for pattern in entry.get("without", [])):
                self.assertIn(package, locked, path)

    def test_what_is_not_set_up_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in INSTALLED:
                env = dict(os.environ, XDG_CACHE_HOME=folder)
                with client.Adapter(client.command_of(name), env=env, stderr=subprocess.DEVNULL) as a:
                    with self.assertRaises(client.Refused) as caught:
                        a.hello()
                    self.assertEqual(caught.exception.code, "not_set_up")
                    self.assertIn(f"adapters/{name}/setup", caught.exception.message)
                    self.assertEqual(a.process.wait(20), 1)

    def test_what_cannot_be_had_says_so(self):
        with client.Adapter(client.command_of("mediapipe"), stderr=subprocess.DEVNULL) as a:
            with self.assertRaises(client.Refused) as caught:
                a.hello()
            self.assertEqual((caught.exception.code, a.process.wait(20)), ("unsupported", 1))
        for program in ("setup", "convert"):
            done = subprocess.run([os.path.join(ROOT, "adapters", "mediapipe", program)], stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1))

    def test_setup_where(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([os.path.join(ROOT, "adapters", "mlx", "setup"), "--where"], stdout=subprocess.PIPE,
                                  check=False, env=dict(os.environ, XDG_CACHE_HOME=folder))
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout.decode().strip(), os.path.join(folder, "mica", "adapters", "mlx", "run"))

    def test_lock_lines(self):
        def item(name, digest="sha256=" + "0" * 64):
            return {"metadata": {"name": name, "version": "1"}, "download_info": {"archive_info": {"hash": digest}}}
        items = [item("Zeta_X"), item("nvidia-cudnn-cu13"), item("torch"), item("torchao"), item("A.b")]
        got = [line.split("==")[0] for line in lock.lines_of(items, ["nvidia-.*", "torch"])]
        self.assertEqual(got, ["a-b", "torchao", "zeta-x"])
        with self.assertRaises(Exception):
            list(lock.lines_of([item("x", "md5=0")], []))


class Recipes(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache, self.old = folder.name, os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder.name
        self.addCleanup(self.restore)
        self.gguf = os.path.join(folder.name, "small.gguf")
        with open(self.gguf, "wb") as f:
            f.write(b"GGUF" + bytes(96))

    def restore(self):
        os.environ.pop("XDG_CACHE_HOME")
        if self.old is not None:
            os.environ["XDG_CACHE_HOME"] = self.old

    def make(self):
        target = models.default_path("mlx", self.gguf)
        os.makedirs(target)
        with open(os.path.join(target, "weights"), "wb") as f:
            f.write(bytes(50))
        return target, models.write_recipe("mlx", self.gguf, target, {"weight_bytes": 50, "parameters": 80, "recipe": "x"})

    def test_what_it_says(self):
        target, recipe = self.make()
        self.assertEqual((recipe["bits_per_weight"], recipe["file_bytes"], recipe["source"]["bytes"]), (5.0, 50, 100))
        self.assertEqual(recipe["source"]["sha256"], places.sha256_of(self.gguf))
        self.assertEqual(models.read_recipe(target), recipe)

    def test_find(self):
        self.refused("run adapters/mlx/convert", self.gguf)
        target, _ = self.make()
        self.assertEqual(models.find("mlx", self.gguf), target)
        os.utime(self.gguf, ns=(1, 1))  # touched: the checksum decides
        self.assertEqual(models.find("mlx", self.gguf), target)
        self.assertEqual(models.find("mlx", target), target)
        with open(self.gguf, "r+b") as f:
            f.write(b"other")
        self.refused("another file", self.gguf)
        self.refused("not there", os.path.join(self.cache, "none.gguf"))

    def refused(self, text, path):
        with self.assertRaises(shared.Failure) as caught:
            models.find("mlx", path)
        self.assertEqual(caught.exception.code, "model")
        self.assertIn(text, str(caught.exception))


class CloudHandler(http.server.BaseHTTPRequestHandler):
    """A strict server that takes texts only: a word is a token, and every word costs one more (a BOS at the front)."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, {"object": "list", "data": [{"id": "cloudy", "owned_by": "someone"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, self.headers.get("Authorization"), body))
        if not isinstance(body["messages"][0]["content"], str):
            return self.answer(400, {"error": {"message": "texts only"}})
        if "fail" in body["messages"][0]["content"]:
            return self.answer(429, {"error": {"message": "slow\ndown"}})
        usage = {"prompt_tokens": len(body["messages"][0]["content"].split()) + 1, "completion_tokens": body["max_tokens"]}
        if not body.get("stream"):
            return self.answer(200, {"choices": [{"message": {"content": "x"}}], "usage": usage})
        self.send_response(200)
        self.end_headers()
        self.stream(body["max_tokens"], usage)

    def stream(self, n, usage):
        """Two tokens a chunk, as servers do that batch their writing."""
        self.event({"choices": [{"delta": {"role": "assistant"}, "finish_reason": None}]})
        self.wfile.write(b": a comment\n\n")
        for _ in range((n + 1) // 2):
            self.event({"choices": [{"delta": {"content": "ab "}, "finish_reason": None}]})
        self.event({"choices": [{"delta": {}, "finish_reason": "length"}]})
        if not self.server.silent:
            self.event({"choices": [], "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 2}}})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class OpenAiCloud(TestCase):
    """The openai adapter with a server that knows the standard only."""

    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), CloudHandler)
        self.server.requests, self.server.silent = [], False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, **config):
        path = os.path.join(self.folder.name, "server.json")
        port = self.server.server_address[1]
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"base_url": f"http://127.0.0.1:{port}/v1", "api": "chat", **config}, f)
        a = client.Adapter(client.command_of("openai"), env=dict(os.environ, TOY_KEY="secret"), stderr=subprocess.DEVNULL)
        self.addCleanup(a.__exit__)
        a.hello()
        return a, path

    def test_chat(self):
        a, path = self.start(key_variable="TOY_KEY")
        loaded = a.ask("load", model=path, backend="default", n_ctx=128, threads=0)[0]
        self.assertEqual((loaded["backend"], loaded["pid"], loaded["context_limit"]), ("unknown", os.getpid(), 128))
        done, ids, _ = a.generate({"text": client.words(100), "n": 33}, 7, False, ignore_eos=True)
        self.assertEqual((done["prompt_n"], done["gen_n"], done["cached_n"], done["reason"]), (33, 7, 2, "length"))
        self.assertEqual(ids, [-1] * 4)
        where, key, body = self.server.requests[-1]
        self.assertEqual((where, key, body["model"], body["temperature"]),
                         ("/v1/chat/completions", "Bearer secret", "cloudy", 0))
        self.assertFalse({"ignore_eos", "cache_prompt", "top_k"} & set(body))  # not of the standard
        a.generate({"text": "one two"}, 2, False, sampling={"temperature": 0.5, "top_p": 0.9, "seed": 7})
        body = self.server.requests[-1][2]
        self.assertEqual((body["temperature"], body["top_p"], body["seed"]), (0.5, 0.9, 7))
        self.assertEqual(a.quit(), 0)

    def test_errors(self):
        a, path = self.start(key_variable="NO_SUCH_KEY")
        with self.assertRaises(client.Refused) as caught:
            a.ask("load", model=path, backend="default")
        self.assertEqual(caught.exception.code, "not_set_up")
        a, path = self.start()
        a.ask("load", model=path, backend="default", n_ctx=64)
        for prompt, code in (({"tokens": [1]}, "unsupported"), ({"text": "fail"}, "internal")):
            with self.assertRaises(client.Refused) as caught:
                a.generate(prompt, 1, False)
            self.assertEqual(caught.exception.code, code)
        self.assertIn("429: slow down", caught.exception.message)
        self.server.silent = True
        with self.assertRaises(client.Refused) as caught:
            a.generate({"text": "one"}, 2, False)
        self.assertIn("stream_options.include_usage", caught.exception.message)

    def test_bad_configurations(self):
        for config in ("[]", "{}", "{", '{"base_url": 7}', '{"base_url": "ftp://x"}', '{"base_url": "http://x", "api": "y"}',
                       '{"command": "x"}', '{"command": ["/no/such/program"]}', '{"base_url": "http://127.0.0.1:1"}',
                       '{"command": ["false"]}'):
            a, path = self.start()
            with open(path, "w", encoding="ascii") as f:
                f.write(config)
            with self.assertRaises(client.Refused, msg=config) as caught:
                a.ask("load", model=path, backend="default")
            self.assertIn(caught.exception.code, ("model", "not_set_up"), config)


class OpenAiMica(TestCase):
    """The openai adapter with `mica serve`, which it starts itself."""

    def start(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "server.json")
        command = [BIN, "serve", "-m", "{model}", "--port", "{port}", "--ctx", "{n_ctx}", "--threads", "{threads}",
                   "--parallel", "1"]
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"command": command}, f)
        a = client.Adapter(client.command_of("openai"), env=dict(os.environ, MICA_OPENAI_SERVER=path),
                           stderr=subprocess.DEVNULL)
        self.addCleanup(a.__exit__)
        a.hello()
        return a

    def test_scripted_model(self):
        a = self.start()
        loaded = a.ask("load", model=SCRIPTED, backend="cpu", n_ctx=64, threads=1)[0]
        self.assertEqual(loaded["backend"], "cpu")
        self.assertEqual(loaded["file_bytes"], os.path.getsize(SCRIPTED))
        self.assertNotEqual(loaded["pid"], a.process.pid)
        with open(f"/proc/{loaded['pid']}/cmdline", encoding="utf-8") as f:
            self.assertIn("serve", f.read())
        done, _, _ = a.generate({"text": "abcdefghijklmnopqrstuvwxyz", "n": 5}, 8, False, ignore_eos=True)
        self.assertEqual((done["prompt_n"], done["gen_n"], done["reason"]), (5, 8, "length"))
        a.ask("unload")
        self.assertFalse(os.path.exists(f"/proc/{loaded['pid']}"))
        self.assertEqual(a.quit(), 0)


if __name__ == "__main__":
    main()
