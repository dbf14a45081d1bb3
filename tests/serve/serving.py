"""What the tests of the server share: starting it, asking it over HTTP or raw sockets, reading event streams strictly."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("MICA_BIN", "mica")
DATA = os.environ.get("MICA_TEST_DATA", os.path.join(os.path.dirname(HERE), "data"))
CASES = os.path.join(DATA, "cases")
SCRIPTED = os.path.join(CASES, "_common", "scripted.gguf")
TIMEOUT = 120


def models_dir():
    default = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "mica", "models")
    return os.environ.get("MICA_MODELS_DIR") or default


def case_json(name, file="requests.json"):
    with open(os.path.join(CASES, name, file), encoding="utf-8") as f:
        return json.load(f)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, {k.lower(): v for k, v in headers}, body
        self.text = body.decode("utf-8")  # always valid

    def json(self):
        return json.loads(self.text)

    def __repr__(self):
        return f"{self.status} {self.headers}\n{self.text[:2000]}"


class Server:
    """A running `mica serve`, on a port of its own choice."""

    def __init__(self, *args, model=SCRIPTED, env=(), **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MICA_") or k == "MICA_KERNELS"}
        environment.update(env)
        self.process = subprocess.Popen([BIN, "serve", "-m", model, "--port", "0", *map(str, args)], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env=environment, **more)
        self.lines, self.address = [], None
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace").rstrip()
            self.lines.append(line)
            found = re.search(r" is served at http://(.*):(\d+)$", line)
            if found:
                self.address = (found.group(1).strip("[]"), int(found.group(2)))
                break
        if not self.address:
            self.process.wait()
            raise AssertionError(f"the server did not start: {self.lines}")
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for raw in self.process.stderr:
            self.lines.append(raw.decode("utf-8", "replace").rstrip())

    def log(self):
        return "\n".join(self.lines)

    def wait_log(self, text, seconds=20):
        return wait_until(lambda: text in self.log(), seconds)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Ends it as an operator would; returns the exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join(5)
        self.process.stderr.close()
        return self.process.returncode

    def request(self, method, path, body=None, headers=(), timeout=TIMEOUT):
        c = http.client.HTTPConnection(*self.address, timeout=timeout)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body).encode()
            c.request(method, path, body=body, headers=dict(headers))
            r = c.getresponse()
            return Answer(r.status, r.getheaders(), r.read())
        finally:
            c.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def chat(self, body, **more):
        return self.post("/v1/chat/completions", body, **more)

    def ask(self, text, **more):
        """The content of a greedy reply."""
        answer = self.chat({"messages": [{"role": "user", "content": text}], "temperature": 0, **more})
        if answer.status != 200:
            raise AssertionError(answer)
        return answer.json()["choices"][0]["message"]["content"]

    def socket(self, data=b""):
        s = socket.create_connection(self.address, timeout=TIMEOUT)
        s.sendall(data)
        return s

    def metrics(self):
        """{"name{labels}": value}"""
        text = self.get("/metrics").text
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def wait_until(check, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.02)
    return False


def read_all(s):
    """Everything until the server closes."""
    data = b""
    while True:
        try:
            block = s.recv(65536)
        except ConnectionResetError:
            return data
        if not block:
            return data
        data += block


def post_bytes(path, body, *headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def events(text):
    """The events of a stream, as [(name, JSON or "[DONE]")]; anything malformed is an error."""
    assert text.endswith("\n\n"), text[-200:]
    found = []
    for block in text[:-2].split("\n\n"):
        name = None
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        if not lines:
            continue
        if lines[0].startswith("event: "):
            name = lines.pop(0)[7:]
        assert len(lines) == 1 and lines[0].startswith("data: "), block
        data = lines[0][6:]
        found.append((name, data if data == "[DONE]" else json.loads(data)))
    return found


def chunks(answer):
    """The chunks of a chat or completions stream, which must end with [DONE]."""
    assert answer.status == 200, answer
    assert answer.headers["content-type"].startswith("text/event-stream"), answer
    all_events = [data for _, data in events(answer.text)]
    assert all_events[-1] == "[DONE]", all_events[-1]
    return all_events[:-1]


def joined(parts, index=0, field="content"):
    return "".join(c["delta"].get(field) or "" for part in parts for c in part["choices"] if c["index"] == index)


class ServeTest(unittest.TestCase):
    """Tests that share one server; `arguments` are its options."""
    arguments = ()
    model = SCRIPTED

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments, model=cls.model)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, (code, cls.server.log())

    def refused(self, answer, status, param=None, code=None, says=""):
        """An error in OpenAI's form."""
        self.assertEqual(answer.status, status, answer)
        self.assertLess(len(answer.body), 4096)
        error = answer.json()["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"}, answer)
        self.assertIn(says, error["message"])
        if status == 400:
            self.assertEqual(error["type"], "invalid_request_error")
        if param:
            self.assertEqual(error["param"], param, answer)
        if code:
            self.assertEqual(error["code"], code, answer)
        return error


def main():
    if not os.path.exists(BIN):
        sys.exit(f"the program {BIN} is not there: set MICA_BIN")
    if not os.path.exists(SCRIPTED):
        print(f"skipped: {SCRIPTED} is not there", file=sys.stderr)
        sys.exit(77)
    unittest.main(warnings="ignore")


def main_with_models(*names):
    missing = [n for n in names if not os.path.exists(os.path.join(models_dir(), n))]
    if missing:
        print(f"skipped: {', '.join(missing)} not in {models_dir()} (scripts/fetch-models all)", file=sys.stderr)
        sys.exit(77)
    main()
