"""The server behind the openai adapter: its configuration, starting it, HTTP, and which process holds the model.

    {"base_url": "http://127.0.0.1:8080/v1", "model": "NAME", "key_variable": "OPENAI_API_KEY", "api": "completions",
     "dialect": "mica", "command": ["mica", "serve", "-m", "{model}", "--port", "{port}", "--ctx", "{n_ctx}"]}

All but base_url (or command) may be left out. With `command` the server is started here, on a free port of this machine, and
ended by `unload`.
"""
import glob
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse

from adapter import Failure

TEXTS = ("base_url", "model", "key_variable", "api", "dialect")
START_S = 600          # for a server that is started here
ANSWER_S = 600         # for a reply's next bytes
LINE_LIMIT = 1 << 20   # bytes of one line of a stream
BODY_LIMIT = 16 << 20


def read_config(model):
    path = model if model.endswith(".json") else os.environ.get("MICA_OPENAI_SERVER")
    if not path:
        raise Failure("model", "the openai adapter needs a JSON file that names the server: as the model, or in the "
                               "environment variable MICA_OPENAI_SERVER")
    try:
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
    except (OSError, ValueError) as e:
        raise Failure("model", f"{path} cannot be read: {e}") from e
    if not isinstance(config, dict) or not ("base_url" in config or "command" in config):
        raise Failure("model", f"{path} must be an object with \"base_url\" or \"command\"")
    for key in TEXTS:
        if key in config and not isinstance(config[key], str):
            raise Failure("model", f"\"{key}\" in {path} must be a text")
    command = config.get("command", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise Failure("model", f"\"command\" in {path} must be a list of texts")
    if config.get("api", "completions") not in ("completions", "chat"):
        raise Failure("model", f"\"api\" in {path} must be \"completions\" or \"chat\"")
    return config


class Server:
    def __init__(self, config, model, n_ctx, threads):
        self.config, self.model_path, self.n_ctx, self.threads = config, model, n_ctx, threads
        self.chat = config.get("api") == "chat"
        self.dialect = config.get("dialect", "")
        self.process = None
        self.info = {}
        self._counts = {}
        url = config.get("base_url") or f"http://127.0.0.1:{free_port()}/v1"
        self.url = urllib.parse.urlsplit(url)
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise Failure("model", f"\"{url}\" is no http or https address")
        self.port = self.url.port or (443 if self.url.scheme == "https" else 80)
        self.local = self.url.hostname in ("127.0.0.1", "localhost", "::1")

    # -- life -----------------------------------------------------------------------------------------------------

    def open(self):
        if "command" in self.config:
            self._start()
        listed = self._wait()
        entries = listed.get("data") if isinstance(listed, dict) else None
        self.info = entries[0] if entries else {}
        self.name = self.config.get("model") or self.info.get("id") or "default"
        if not self.dialect:
            owner = self.info.get("owned_by")
            self.dialect = {"mica": "mica", "llamacpp": "llama-server"}.get(owner, "openai")

    def _start(self):
        values = {"model": self.model_path, "port": self.port, "n_ctx": self.n_ctx, "threads": self.threads or os.cpu_count()}
        command = [re.sub(r"\{(model|port|n_ctx|threads)\}", lambda m: str(values[m.group(1)]), word)
                   for word in self.config["command"]]
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=False)
        except OSError as e:
            raise Failure("not_set_up", f"{command[0]} cannot be started: {e.strerror}") from e

    def _wait(self):
        """The list of models, as soon as the server gives it. A server that was not started here gets one try."""
        limit = time.monotonic() + (START_S if self.process else 0)
        while True:
            try:
                return self.get("/models")
            except Failure as e:
                if self.process and self.process.poll() is not None:
                    raise Failure("model", f"the server ended with status {self.process.returncode} before it answered") from e
                if time.monotonic() >= limit:
                    raise
            time.sleep(0.02)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def facts(self):
        meta = self.info.get("meta") or {}
        kernels = meta.get("kernels")
        limit = meta.get("n_ctx") or self.n_ctx or 0
        device = f"{self.dialect} at {self.url.netloc}" + (f", {kernels}" if kernels else "")
        return {"backend": "cpu" if kernels else "unknown", "device": device, "file": None,
                "file_bytes": meta.get("file_bytes"), "weight_bytes": meta.get("size"),
                "bits_per_weight": None, "kv_type": None, "context_limit": limit, "threads": meta.get("threads"),
                "pid": self._pid()}

    def _pid(self):
        if self.process:
            return self.process.pid
        return listener(self.port) if self.local else None

    # -- HTTP -----------------------------------------------------------------------------------------------------

    def _connect(self):
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.port, timeout=ANSWER_S,
                                               context=ssl.create_default_context())
        return http.client.HTTPConnection(self.url.hostname, self.port, timeout=ANSWER_S)

    def _headers(self):
        headers = {"Content-Type": "application/json"}
        variable = self.config.get("key_variable")
        if variable:
            key = os.environ.get(variable)
            if not key:
                raise Failure("not_set_up", f"the environment variable {variable}, which holds the key, is not set")
            headers["Authorization"] = "Bearer " + key
        return headers

    def _send(self, method, path, body=None):
        connection = self._connect()
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers())
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            raise Failure("model", f"no answer from {self.url.netloc}: {e or type(e).__name__}") from e
        if answer.status != 200:
            text = answer.read(4096).decode("utf-8", "replace")
            connection.close()
            raise Failure(code_of(answer.status), f"{self.url.netloc} says {answer.status}: {message_of(text)}")
        return connection, answer

    def _whole(self, method, path, body=None):
        connection, answer = self._send(method, path, body)
        try:
            return json.loads(answer.read(BODY_LIMIT))
        except (ValueError, OSError, http.client.HTTPException) as e:
            raise Failure("internal", f"{self.url.netloc}{path} did not answer with JSON") from e
        finally:
            connection.close()

    def get(self, path):
        return self._whole("GET", self.url.path.rstrip("/") + path)

    def tokenize(self, text):
        """The ids that a completion of this text starts from."""
        body = {"content": text, "add_special": True, "parse_special": True}
        return self._whole("POST", "/tokenize", body)["tokens"]

    def _body(self, prompt, body):
        what = {"messages": [{"role": "user", "content": prompt}]} if self.chat else {"prompt": prompt}
        return {"model": self.name, **what, **body}

    def _route(self):
        return self.url.path.rstrip("/") + ("/chat/completions" if self.chat else "/completions")

    def count(self, text):
        """Tokens of a prompt by the server's own count: asks for one token of reply. A few requests a length; kept."""
        if text not in self._counts:
            answer = self._whole("POST", self._route(), self._body(text, {"max_tokens": 1, "temperature": 0}))
            self._counts[text] = answer["usage"]["prompt_tokens"]
        return self._counts[text]

    def stream(self, prompt, body):
        """The chunks of a reply as they come."""
        connection, answer = self._send("POST", self._route(), self._body(prompt, body))
        try:
            while True:
                line = answer.readline(LINE_LIMIT + 1)
                if not line or line.strip() == b"data: [DONE]":
                    return
                if len(line) > LINE_LIMIT:
                    raise Failure("internal", "the server sent a line without end")
                if line.startswith(b"data:"):
                    yield self._chunk(line[5:])
        except (OSError, http.client.HTTPException) as e:
            raise Failure("internal", f"the stream broke: {e or type(e).__name__}") from e
        finally:
            connection.close()

    @staticmethod
    def _chunk(data):
        try:
            chunk = json.loads(data)
        except ValueError as e:
            raise Failure("internal", "the server sent an event that is not JSON") from e
        if "error" in chunk:
            raise Failure("internal", f"the server says: {message_of(json.dumps(chunk))}")
        return chunk


def code_of(status):
    return {400: "bad_request", 404: "model", 413: "context", 501: "unsupported"}.get(status, "internal")


def message_of(text):
    try:
        error = json.loads(text)["error"]
        text = error if isinstance(error, str) else error["message"]
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(str(text).split())[:500]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listener(port):
    """The process that listens on a port of this machine, or None: its socket by /proc/net/tcp, its owner by /proc/PID/fd."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as f:
                rows = [line.split() for line in f.readlines()[1:]]
        except OSError:
            continue
        inodes |= {f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == port}
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) in inodes:
                return int(link.split("/")[2])
        except OSError:
            continue
    return None
