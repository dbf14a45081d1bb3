"""The commands that faults are tried on, each with what it finds in its folder and what it leaves there."""
import hashlib
import http.server
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from faults import BIN, DATA, SCRIPTED, TIMEOUT, Done, Subject, execute, json_lines

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
for folder in ("bench", "router"):
    sys.path.insert(0, os.path.join(TESTS, folder))
import records  # noqa: E402
from bench_case import PROTOCOL  # noqa: E402
from rungs import Fake, policy, remote, says  # noqa: E402

LLAMA = os.path.join(DATA, "tiny", "llama.gguf")
SCHEMA = '{"type":"object","properties":{"a":{"type":"integer","maximum":9},"b":{"type":"string","maxLength":4}},"required":["a","b"]}'
REQUEST = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "E"}]}


def rows(path, sql):
    """What a database answers; None: there is none. A damaged one is an answer, too."""
    if not os.path.exists(path):
        return None
    db = sqlite3.connect(path)
    try:
        if [r[0] for r in db.execute("PRAGMA integrity_check")] != ["ok"]:
            return "damaged"
        return db.execute(sql).fetchall()
    except sqlite3.OperationalError as e:
        return None if "no such table" in str(e) else f"{e}"
    except sqlite3.DatabaseError as e:
        return f"damaged: {e}"
    finally:
        db.close()


# ---- Text ----

class Tokenize(Subject):
    name = "tokenize"

    def command(self):
        return ["tokenize", "-m", LLAMA, "-p", "a text of some words"]


class Template(Subject):
    name = "template"

    def begin(self):
        self.put("request.json", json.dumps(REQUEST))

    def command(self):
        return ["template", "-m", SCRIPTED, "--request", "request.json", "--now", 0]


class Redact(Subject):
    name = "task redact"

    def begin(self):
        self.env["XDG_DATA_HOME"] = self.path("share")
        os.makedirs(self.path("share"))
        os.symlink(os.path.join(os.path.dirname(TESTS), "share", "mica"), self.path("share", "mica"))

    def command(self):
        return ["task", "redact", "--rules-only", "-p", "Write to ann@example.org or call +44 20 7946 0958."]


class Grammar(Subject):
    name = "grammar"

    def command(self):
        return ["grammar", "match", "--schema", SCHEMA, "--text", '{"a":3,"b":"xy"}']


class Embed(Subject):
    name = "embed"

    def command(self):
        return ["embed", "-m", LLAMA, "-p", "some words", "--threads", 1]


# ---- Replies ----

class Run(Subject):
    name = "run"

    def command(self):
        return ["run", "-m", SCRIPTED, "-p", "E", "--temp", 0, "-n", 8, "--threads", 1]


class RunSchema(Run):
    name = "run --schema"

    def command(self):
        return [*super().command(), "--schema", SCHEMA, "--close", "-n", 24, "--seed", 1]


class RunKept(Run):
    """Session, receipt, telemetry in both forms, the cache of hashes."""
    name = "run, all kept"
    optional = ("telemetry lines", "telemetry rows", "hashes")

    def begin(self):
        done = execute(self)
        assert done.code == 0, done

    def command(self):
        number = 1 if self.read("kept") is None else 2  # the second has another session to keep
        return ["run", "-m", SCRIPTED, "-p", "E" if number == 1 else "S", "--temp", 0, "-n", 8, "--threads", 1, "--save-session", "kept",
                "--receipt", "receipts.jsonl", "--telemetry", "t.jsonl", "--telemetry", "t.db"]

    def state(self):
        hashes = self.read(os.path.join("cache", "mica", "hashes"))
        return {"session": hashlib.sha256(self.read("kept") or b"").hexdigest()[:16], "receipts": json_lines(self.read("receipts.jsonl")),
                "telemetry lines": json_lines(self.read("t.jsonl")), "telemetry rows": rows(self.path("t.db"), "SELECT count(*) FROM replies"),
                "hashes": hashes and len(hashes.splitlines())}


class Chat(Subject):
    name = "chat /save"
    stdin = b"E\n/save kept.json\n"

    def begin(self):
        self.put("kept.json", '{"messages": []}')

    def command(self):
        return ["chat", "-m", SCRIPTED, "--temp", 0, "--threads", 1]

    def state(self):
        """A turn that failed is not in it."""
        try:
            return {"conversation": isinstance(json.loads(self.read("kept.json"))["messages"], list)}
        except ValueError:
            return {"conversation": self.read("kept.json")}


# ---- Files made of files ----

class Quantize(Subject):
    name = "quantize"

    def begin(self):
        self.put("out.gguf", b"an older file")

    def command(self):
        return ["quantize", LLAMA, "out.gguf", "Q8_0", "--threads", 1]

    def result(self, done):
        return re.sub(r" in [\d.]+ s.*", "", done.out)

    def state(self):
        return {"out": hashlib.sha256(self.read("out.gguf") or b"").hexdigest()[:16]}


class Report(Subject):
    name = "report"

    def begin(self):
        self.put("runs.jsonl", records.lines(records.run(seconds=4)))
        self.put("page.html", "an older page")

    def command(self):
        return ["report", "runs.jsonl", "--out", "page.html"]

    def state(self):
        page = self.read("page.html") or b""
        return {"page": "old" if page == b"an older page" else "whole" if page.rstrip().endswith(b"</html>") else f"{len(page)} bytes"}


class Keys(Subject):
    """A new pair: not there, or whole."""
    name = "sign --generate"

    def command(self):
        return ["sign", "--generate", "--key", "k.key", "--pubkey", "k.pub", "--no-password"]

    def run(self, fault=None):
        if not fault and self.read("k.key") and self.read("k.pub"):
            return Done(0, b"", b"")  # a key is not replaced
        return execute(self, fault)

    def result(self, done):
        return ""

    def state(self):
        return {n: self.read(n) and len(self.read(n).splitlines()) for n in ("k.key", "k.pub")}


class Signature(Subject):
    name = "sign"

    def begin(self):
        self.put("text", "x" * 100)
        self.put("text.minisig", "an older signature\n")

    def command(self):
        return ["sign", "text", "--key", os.path.join(DATA, "sign", "plain.key"), "--comment", "c"]

    def state(self):
        return {"signature": len((self.read("text.minisig") or b"").splitlines())}


# ---- Models over HTTP ----

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        data, found = self.server.data, re.match(r"bytes=(\d+)-$", self.headers.get("Range") or "")
        start = int(found.group(1)) if found else 0
        self.send_response(206 if found else 200)
        self.send_header("ETag", '"one"')
        self.send_header("Accept-Ranges", "bytes")
        if found:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        try:
            self.wfile.write(data[start:])
        except OSError:
            pass


class Pull(Subject):
    """By a registry file, into the folder of models: the blob, its stamp, its name. What has come is kept as .part."""
    name = "pull"
    server = None
    data = bytes(i * 7919 % 251 for i in range(70000))

    @classmethod
    def serve(cls):
        if not cls.server:
            Pull.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            Pull.server.daemon_threads = True
            Pull.server.data = cls.data
            threading.Thread(target=Pull.server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{Pull.server.server_address[1]}/tiny.gguf"

    def begin(self):
        self.env.pop("MICA_MODELS_DIR", None)
        self.put("tiny.json", json.dumps({"schema": 1, "name": "tiny", "urls": [self.serve()], "bytes": len(self.data),
                                          "sha256": hashlib.sha256(self.data).hexdigest()}))

    def command(self):
        return ["pull", "tiny.json"]

    def result(self, done):
        return os.path.basename(done.out.strip())

    def state(self):
        """A model of that name has all its bytes, or there is none."""
        data = self.read(os.path.join("cache", "mica", "models", "tiny.gguf"))
        return {"model": None if data is None else data == self.data}


# ---- Routes ----

class Decide(Subject):
    name = "route decide"

    def begin(self):
        self.put("policy.json", json.dumps(policy(remote("far", "http://127.0.0.1:9/v1"))))
        self.put("log.jsonl", '{"record": "outcome"}\n')

    def command(self):
        return ["route", "decide", "--policy", "policy.json", "-p", "hello", "--network", "up", "--log", "log.jsonl", "--json"]

    def result(self, done):
        """The form of the record: ids and measured numbers differ."""
        return re.sub(r'"id":"[0-9a-f]+"|[\d.e+-]+', "#", done.out)

    def state(self):
        return {"log": json_lines(self.read("log.jsonl"))}


class Hold(Subject):
    """Without a network a request waits on the disk."""
    name = "route ask, held"

    def begin(self):
        self.put("policy.json", json.dumps(policy(remote("far", "http://127.0.0.1:9/v1"), offline="queue")))
        done = execute(self)
        assert done.code == 0, done

    def command(self):
        return ["route", "ask", "--policy", "policy.json", "-p", "hello", "--network", "down", "--queue-file", "queue.db", "--json"]

    def result(self, done):
        """The next number differs after a run that was held though its end failed."""
        return [json.loads(line)["action"] for line in done.out.splitlines()[-1:]]

    def state(self):
        return {"rows": rows(self.path("queue.db"), "SELECT count(*), sum(state) FROM held")}


class Drain(Hold):
    """What waits is sent, and its answer kept."""
    name = "route queue drain"
    optional = ("rows",)  # what could not be sent waits on
    far = None

    def begin(self):
        if not Drain.far:
            Drain.far = Fake(says("alpha", " beta"))
        self.put("policy.json", json.dumps(policy(remote("far", Drain.far.url), offline="queue")))
        done = execute(HoldOne(self))
        assert done.code == 0, done

    def command(self):
        return ["route", "queue", "drain", "--policy", "policy.json", "--network", "up", "--queue-file", "queue.db"]

    def result(self, done):
        return ""

    def state(self):
        """One that a killed process was sending is sent again."""
        found = rows(self.path("queue.db"), "SELECT state, reply IS NOT NULL FROM held")
        return {"rows": "held" if found in ([(0, 0)], [(1, 0)]) else "answered" if found == [(2, 1)] else found}


class HoldOne:
    """The command of Hold in another subject's folder."""
    stdin = b""

    def __init__(self, other):
        self.folder, self.env = other.folder, other.env

    def command(self):
        return Hold.command(self)


# ---- Measuring ----

class Bench(Subject):
    name = "bench"

    def begin(self):
        phases = [{"kind": "load", "cache": "warm"}, {"kind": "ttft", "prompt": 16, "reply": 2, "repeat": 2},
                  {"kind": "decode", "prompt": 16, "reply": 8, "min_s": 0.01}]
        self.put("short.json", json.dumps({**PROTOCOL, "phases": phases}))

    def command(self):
        return ["bench", "-m", SCRIPTED, "--protocol", "short.json", "--db", "bench.db", "--runtime", "mica", "--no-questions", "--threads", 1]

    def result(self, done):
        return ""

    def state(self):
        """A run that was begun and not ended is there as that."""
        found = rows(self.path("bench.db"), "SELECT count(*) FROM run WHERE state = 'done'")
        return {"runs": 0 if not found else found[0][0] if isinstance(found, list) else found}


class Campaign(Subject):
    name = "campaign run"

    def begin(self):
        prompts = "".join(json.dumps({"text": f"This is text {i} of a few."}) + "\n" for i in range(5))
        self.put("prompts.jsonl", prompts)
        self.put("m.json", json.dumps({
            "version": 1, "name": "test", "model": {"file": SCRIPTED},
            "prompts": {"file": "prompts.jsonl", "sha256": hashlib.sha256(prompts.encode()).hexdigest()},
            "lengths": {"prompt": {"min": 5, "max": 20}, "reply": [{"tokens": 4}]}, "n_ctx": 64, "batch": 2, "seed": 3, "tokens": 300,
            "shards": {"tokens": 100}}))

    def command(self):
        return ["campaign", "run", "m.json", "--db", "c.db"]

    def result(self, done):
        return done.out.splitlines()[0] if done.out else ""

    def counted(self):
        return rows(self.path("c.db"), "SELECT count(*), sum(planned) FROM shard WHERE state = 'done'")

    def state(self):
        """Any number of whole shards; at the end all of them."""
        found = self.counted()
        return {"shards": "none" if found is None or isinstance(found, list) and found[0][0] < 3 else found}


# ---- The server ----

class Serve(Subject):
    """Started, asked three times, ended. One answer may be an error, for there is one fault."""
    name = "serve"
    optional = ("prefixes",)
    ASK = {"messages": [{"role": "user", "content": "E"}], "temperature": 0, "max_tokens": 8}

    def command(self):
        return ["serve", "-m", SCRIPTED, "--port", 0, "--parallel", 2, "--threads", 1, "--prefixes", "prefixes"]

    def post(self, address, body):
        r = urllib.request.Request(address + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(r, timeout=TIMEOUT) as f:
                return f.status, json.load(f)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)
        except OSError as e:
            return 0, str(e)

    def converse(self, process, address):
        answers = [self.post(address, self.ASK) for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        return answers

    def run(self, fault=None):
        env = fault.environment(self.env) if fault else self.env
        process = subprocess.Popen([BIN, *map(str, self.command())], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, cwd=self.folder)
        lines, answers = [], []
        for raw in process.stderr:
            lines.append(raw)
            found = re.search(rb" is served at (http://\S+)$", raw.rstrip())
            if found:
                answers = self.converse(process, found.group(1).decode())
        process.wait(TIMEOUT)
        process.stderr.close()
        return Done(process.returncode, json.dumps([[status, self.text(body)] for status, body in answers]).encode(), b"".join(lines))

    @staticmethod
    def text(body):
        try:
            return body["choices"][0]["message"]["content"]
        except (KeyError, TypeError, IndexError):
            return body

    def state(self):
        return {"prefixes": self.read("prefixes") is not None}


TEXTS = (Tokenize, Template, Redact, Grammar, Embed)
REPLIES = (Run, RunSchema, RunKept, Chat)
FILES = (Quantize, Report, Signature, Keys)
SLOW = (Bench, Campaign)
ROUTES = (Decide, Hold, Drain)
DURABLE = (RunKept, Chat, *FILES, Pull, *ROUTES)


def wait_until(check, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.01)
    return False
