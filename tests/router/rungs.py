"""What the tests of the router's rungs share: a server that misbehaves on demand, policies, and the program."""
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("MICA_BIN", "mica")
DATA = os.environ.get("MICA_TEST_DATA", os.path.join(os.path.dirname(HERE), "data"))
SCRIPTED = os.path.join(DATA, "cases", "_common", "scripted.gguf")
SHARE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "share", "mica")
TLS = os.path.join(DATA, "router", "tls")
SECRET = "sk-secret-key-of-this-test"
TIMEOUT = 60


# ---- A server ----

def event(content=None, finish=None, **more):
    delta = {} if content is None else {"content": content}
    body = {"id": "c", "object": "chat.completion.chunk", "model": "fake-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}\n\n'
DONE = b"data: [DONE]\n\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        fake = self.server.fake
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with fake.lock:
            fake.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
            behave = fake.script.pop(0) if len(fake.script) > 1 else fake.script[0]
        try:
            behave(self)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            fake.left.set()  # the client went away

    def head(self, status=200, type="text/event-stream", **headers):
        self.send_response(status)
        self.send_header("Content-Type", type)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()

    def say(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def wait(self, seconds):
        """Sleeps, but no longer than the test runs."""
        self.server.fake.ended.wait(seconds)


class Fake:
    """A server whose every request is answered by the next behaviour of its script; the last one goes on for ever."""

    def __init__(self, *script, port=0, certificate=None):
        self.script, self.requests, self.lock = list(script), [], threading.Lock()
        self.ended, self.left = threading.Event(), threading.Event()
        ThreadingHTTPServer.allow_reuse_address = True
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that refuses our certificate
        self.server.fake = self
        self.port = self.server.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(TLS, certificate + ".pem"), os.path.join(TLS, certificate + ".key"))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def stop(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def says(*pieces, finish="stop"):
    def behave(h):
        h.head()
        for piece in pieces:
            h.say(event(piece))
        h.say(event(finish=finish) + USAGE + DONE)
    return behave


def whole(text, finish="stop"):
    def behave(h):
        body = json.dumps({"model": "fake-model", "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                                                               "finish_reason": finish}],
                           "usage": {"prompt_tokens": 5, "completion_tokens": 3}}).encode()
        h.head(type="application/json", Content_Length=len(body))
        h.say(body)
    return behave


def status(code, message="no", **headers):
    def behave(h):
        body = json.dumps({"error": {"message": message, "type": "server_error"}}).encode()
        h.head(code, "application/json", Content_Length=len(body), **headers)
        h.say(body)
    return behave


def slow(seconds, then):
    def behave(h):
        h.wait(seconds)
        then(h)
    return behave


def stall(*pieces):
    def behave(h):
        h.head()
        for piece in pieces:
            h.say(event(piece))
        h.wait(TIMEOUT)
    return behave


def cut(*pieces):
    """Ends in the middle of the reply."""
    def behave(h):
        h.head()
        for piece in pieces:
            h.say(event(piece))
    return behave


def raw(data, type="text/event-stream"):
    def behave(h):
        h.head(type=type)
        h.say(data)
    return behave


# ---- Policies ----

def remote(name, url, **endpoint):
    return {"name": name, "kind": "remote", "context": 100000, "schema": True, "tools": True, "ttft_ms": 1, "decode_tps": 10000,
            "endpoint": {"url": url, "model": f"{name}-model", **endpoint}}


def local(name, file=SCRIPTED, context=512):
    return {"name": name, "kind": "local", "file": file, "weights_bytes": 1000, "min_ram_bytes": 1000, "context": context,
            "schema": True, "tools": True}


FAST = {"backoff_ms": 10, "backoff_max_ms": 20}


def policy(*rungs, egress=True, run=None, offline="run", degraded="", **more):
    a_class = {"order": "ladder", "output_tokens": 64, "offline": offline}
    made = {"schema": 1, "name": "test", "version": "1", "ladder": {"schema": 1, "name": "test", "version": "1", "rungs": list(rungs)},
            "allow_egress": egress, "bytes_per_token": 4, "memory": {"ram_fraction": 1},
            "classes": {"unknown": a_class, "narrow": a_class, "complex": a_class}, "run": {**FAST, **(run or {})}, **more}
    made["offline"] = {"degraded_prompt": degraded, "queue_when_nothing_fits": offline == "queue"}
    return made


# ---- The program ----

class Done:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return f"exit {self.code} after {self.seconds:.2f} s\nstdout: {self.out[:2000]}\nstderr: {self.err[:2000]}"


class RoutingTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.dir = self.folder.name
        self.addCleanup(self.folder.cleanup)
        self.log = os.path.join(self.dir, "log.jsonl")
        self.queue = os.path.join(self.dir, "queue.db")
        os.makedirs(os.path.join(self.dir, "data", "mica"))
        os.symlink(os.path.join(SHARE, "tasks"), os.path.join(self.dir, "data", "mica", "tasks"))

    def write(self, name, value):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def environment(self, **more):
        keep = {k: v for k, v in os.environ.items() if not k.startswith("MICA_") and not k.lower().endswith("_proxy")}
        return {**keep, "XDG_DATA_HOME": os.path.join(self.dir, "data"), "TEST_KEY": SECRET, **more}

    def command(self, word, *args, policy=None):
        made = [BIN, "route", *word.split(), *map(str, args), "--queue-file", self.queue]
        if policy is not None:
            made += ["--policy", self.write("policy.json", policy)]
        return made

    def run_route(self, word, *args, policy=None, stdin=b"", env=(), prefix=()):
        start = time.monotonic()
        p = subprocess.run([*prefix, *self.command(word, *args, policy=policy)], input=stdin, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=TIMEOUT, check=False, env=self.environment(**dict(env)))
        return Done(p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace"), time.monotonic() - start)

    def ask(self, policy, text, *args, network="up", **more):
        return self.run_route("ask", "-p", text, "--network", network, "--temp", 0, *args, policy=policy, **more)

    def ask_json(self, policy, text, *args, **more):
        done = self.ask(policy, text, "--json", *args, **more)
        self.assertTrue(done.out, done)
        return json.loads(done.out.splitlines()[-1]), done

    def ask_body(self, policy, body, *args, **more):
        done = self.run_route("ask", "--request", "-", "--json", "--network", "up", *args, policy=policy,
                              stdin=json.dumps(body).encode(), **more)
        self.assertTrue(done.out, done)
        return json.loads(done.out.splitlines()[-1]), done

    def results(self, reply):
        return [(a["rung"], a["result"]) for a in reply["attempts"]]

    def records(self):
        with open(self.log, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def rows(self):
        done = self.run_route("queue list", "--json")
        self.assertEqual(done.code, 0, done)
        return [json.loads(line) for line in done.out.splitlines()]


def unused_port():
    """One at which nothing listens."""
    with Fake(says("")) as fake:
        return fake.port


def main():
    if not os.path.exists(BIN):
        sys.exit(f"the program {BIN} is not there: set MICA_BIN")
    if not os.path.exists(SCRIPTED):
        print(f"skipped: {SCRIPTED} is not there", file=sys.stderr)
        sys.exit(77)
    unittest.main(warnings="ignore")
