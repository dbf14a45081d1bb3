"""What every driver shares: the loop of docs/adapter-protocol.md, exact clocks, and standard output kept clean.

A driver subclasses Runtime and calls serve(). Only Python's standard library, so that it works in any environment.

Invariants
 1. Standard output carries the protocol only: descriptor 1 is duplicated before a runtime is imported, and what the
    runtime prints goes to standard error.
 2. Times are taken in the thread that decodes, at the moment the engine hands a token over. Formatting and writing happen
    in another thread, at most FLUSH_S later, so that they do not disturb decoding.
 3. One request at a time. `cancel` and the end of standard input are seen by the reading thread and only set a flag.
"""
import errno
import json
import os
import queue
import sys
import threading
import time
import traceback

import places

PROTOCOL = 1
LINE_LIMIT = 1 << 20   # bytes, with the line end
FLUSH_S = 0.1          # the protocol allows a second


class Failure(Exception):
    """Becomes an `error` event. The message is one sentence that a person can act on."""

    def __init__(self, code, message, fatal=False):
        super().__init__(message)
        self.code, self.fatal = code, fatal


class Output:
    """Lines to the harness. Tokens wait for the writing thread; everything else is written at once, behind them."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._waiting = []
        threading.Thread(target=self._write_regularly, daemon=True).start()

    def later(self, event):
        self._waiting.append(event)  # atomic: the decoding thread never waits for a lock

    def now(self, event):
        self._waiting.append(event)
        self.flush()

    def flush(self):
        with self._lock:
            count = len(self._waiting)
            lines = [_line(event) for event in self._waiting[:count]]
            del self._waiting[:count]
            _write_all(self._descriptor, b"".join(lines))

    def _write_regularly(self):
        while True:
            time.sleep(FLUSH_S)
            if self._waiting:
                self.flush()


def _line(event):
    line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    if len(line) > LINE_LIMIT:
        raise Failure("internal", f"an event of {len(line)} bytes does not fit into a line of the protocol", True)
    return line


def _write_all(descriptor, data):
    try:
        while data:
            data = data[os.write(descriptor, data):]
    except OSError as e:
        if e.errno != errno.EPIPE:
            raise
        os._exit(1)  # the harness is gone; an engine's own threads must not keep the process


class Job:
    """One `generate`: what is wanted, and where the tokens go."""

    def __init__(self, request, output):
        prompt = request.get("prompt")
        if not isinstance(prompt, dict) or ("tokens" in prompt) == ("text" in prompt):
            raise Failure("bad_request", "\"prompt\" needs either \"tokens\" or \"text\"")
        self.id = request["id"]
        self.tokens = prompt.get("tokens")
        self.text = prompt.get("text")
        self.prompt_n = prompt.get("n")
        self.n = request.get("n")
        self.ignore_eos = bool(request.get("ignore_eos", False))
        self.sampling = request.get("sampling", {"greedy": True})
        self.cancelled = False
        self.count = 0
        self._output = output
        self._check()

    def _check(self):
        if not _is_count(self.n) or self.n < 1:
            raise Failure("bad_request", "\"n\" must be an integer above 0")
        if self.tokens is not None and (not isinstance(self.tokens, list) or not self.tokens
                                        or not all(_is_count(t) for t in self.tokens)):
            raise Failure("bad_request", "\"prompt.tokens\" must be a list of token ids that is not empty")
        if self.text is not None and not isinstance(self.text, str):
            raise Failure("bad_request", "\"prompt.text\" must be a text")
        if self.prompt_n is not None and (not _is_count(self.prompt_n) or self.prompt_n < 1):
            raise Failure("bad_request", "\"prompt.n\" must be an integer above 0")
        if not isinstance(self.sampling, dict):
            raise Failure("bad_request", "\"sampling\" must be an object")

    @property
    def greedy(self):
        return bool(self.sampling.get("greedy", False)) or self.sampling.get("temperature", 0.8) == 0

    def ids(self, encode):
        """The prompt as token ids. encode(text) -> ids, with whatever the engine puts in front of every text."""
        if self.tokens is not None:
            return self.tokens
        ids = list(encode(self.text))
        if self.prompt_n is None:
            return ids
        if len(ids) < self.prompt_n:
            raise Failure("bad_request", f"the text has {len(ids)} tokens, {self.prompt_n} are wanted")
        return ids[:self.prompt_n]

    def token(self, token=-1, t_ns=None):
        """Hands over one token; false when the reply shall end early."""
        t_ns = time.monotonic_ns() if t_ns is None else t_ns
        event = "token" if self.count else "first_token"
        self.count += 1
        self._output.later({"event": event, "id": self.id, "token": token, "t_ns": t_ns})
        return not self.cancelled


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class Runtime:
    """What a driver implements. Methods raise Failure; any other exception becomes an error with the code `internal`."""

    adapter = ""
    runtime = ""
    prompts = ("tokens", "text")
    clock = "monotonic"
    token_events = "exact"
    cancel = True
    seed = True
    labels = ()

    def version(self):
        """Imports the runtime and says its version. Called once, by `hello`, before anything else."""
        raise NotImplementedError

    def load(self, model, backend, n_ctx, threads, progress):
        """-> the members of `loaded` except pid, which is this process unless given."""
        raise NotImplementedError

    def partition(self):
        return {"known": False, "note": f"{self.runtime} does not tell"}

    def generate(self, job):
        """-> reason, prompt_n, cached_n, gen_n"""
        raise NotImplementedError

    def unload(self):
        raise NotImplementedError


class _Server:
    def __init__(self, runtime, descriptor):
        self.runtime = runtime
        self.output = Output(descriptor)
        self.requests = queue.Queue()
        self.job = None
        self.greeted = self.loaded = False
        self.last_id = 0

    # -- the reading thread ---------------------------------------------------------------------------------------

    def read(self, stream):
        while True:
            line = stream.readline(LINE_LIMIT + 1)
            if not line:
                self._cancel(None)
                self.requests.put(None)
                return
            request = self._parse(line)
            if isinstance(request, dict) and request.get("op") == "cancel":
                self._cancel(request.get("target"))
            else:
                self.requests.put(request)

    def _cancel(self, target):
        job = self.job
        if job and (target is None or target == job.id):
            job.cancelled = True

    @staticmethod
    def _parse(line):
        if len(line) > LINE_LIMIT or not line.endswith(b"\n"):
            return Failure("bad_request", f"a line is longer than {LINE_LIMIT} bytes or has no end", True)
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            return Failure("bad_request", "a line is not JSON", True)
        if not isinstance(request, dict) or not _is_count(request.get("id")) or not isinstance(request.get("op"), str):
            return Failure("bad_request", "a request is an object with \"op\" and an integer \"id\"", True)
        return request

    # -- the main thread ------------------------------------------------------------------------------------------

    def run(self):
        while True:
            request = self.requests.get()
            if request is None:
                return 0
            try:
                if isinstance(request, Failure):
                    raise request
                self.last_id = request["id"]
                if request["op"] == "quit":
                    self.output.now({"event": "bye", "id": request["id"]})
                    return 0
                self.output.now(self._answer(request))
            except Failure as e:
                self.output.now(self._error(e.code, str(e), e.fatal))
                if e.fatal:
                    return 1
            except MemoryError:
                self.output.now(self._error("out_of_memory", "the machine has not enough memory for this", False))
            except Exception as e:  # pylint: disable=broad-except; a runtime may raise anything
                traceback.print_exc()
                self.output.now(self._error("internal", f"{type(e).__name__}: {_one_line(e)}", False))
            finally:
                self.job = None

    def _error(self, code, message, fatal):
        return {"event": "error", "id": self.last_id, "code": code, "message": message, "fatal": fatal}

    def _answer(self, request):
        op = request["op"]
        if op not in ("hello", "load", "partition", "generate", "unload"):
            raise Failure("bad_request", f"there is no op \"{op}\" in protocol {PROTOCOL}")
        if op != "hello" and not self.greeted:
            raise Failure("bad_request", "the first request must be hello")
        if op in ("partition", "generate", "unload") and not self.loaded:
            raise Failure("bad_request", f"{op} needs a model: load one first")
        return getattr(self, "_" + op)(request)

    def _hello(self, request):
        if request.get("protocol") != PROTOCOL:
            raise Failure("unsupported", f"this adapter speaks protocol {PROTOCOL}", True)
        r = self.runtime
        event = {"event": "hello", "id": request["id"], "protocol": PROTOCOL, "adapter": r.adapter, "runtime": r.runtime,
                 "runtime_version": r.version(), "clock": r.clock, "prompts": list(r.prompts),
                 "token_events": r.token_events, "cancel": r.cancel, "seed": r.seed, "labels": list(r.labels)}
        self.greeted = True
        return event

    def _load(self, request):
        if self.loaded:
            raise Failure("bad_request", "a model is loaded already: unload it first")
        model, n_ctx, threads = request.get("model"), request.get("n_ctx", 0), request.get("threads", 0)
        if not isinstance(model, str) or not model or not _is_count(n_ctx) or not _is_count(threads):
            raise Failure("bad_request", "load needs \"model\", and \"n_ctx\" and \"threads\" as integers")

        def progress(done):
            self.output.now({"event": "progress", "id": request["id"], "done": done})

        facts = self.runtime.load(model, request.get("backend", "default"), n_ctx, threads, progress)
        self.loaded = True
        event = {"event": "loaded", "id": request["id"], "pid": os.getpid()}
        event.update(facts)
        return event

    def _partition(self, request):
        return {"event": "partition", "id": request["id"], **self.runtime.partition()}

    def _generate(self, request):
        job = Job(request, self.output)
        self.job = job
        self.output.now({"event": "started", "id": job.id, "t_ns": time.monotonic_ns()})
        facts = self.runtime.generate(job)
        return {"event": "done", "id": job.id, "t_ns": time.monotonic_ns(), **facts}

    def _unload(self, request):
        self.runtime.unload()
        self.loaded = False
        return {"event": "unloaded", "id": request["id"]}


def _one_line(error):
    return " ".join(str(error).split())[:2000]


def _claim_stdout():
    """-> a descriptor for the protocol; from here on descriptor 1 is standard error."""
    sys.stdout.flush()
    descriptor = os.dup(1)
    os.set_inheritable(descriptor, False)
    os.dup2(2, 1)
    return descriptor


def serve(runtime):
    """Runs the loop until `quit` or the end of standard input, and ends the process."""
    descriptor = _claim_stdout()
    server = _Server(runtime, descriptor)
    threading.Thread(target=server.read, args=(sys.stdin.buffer,), daemon=True).start()
    status = server.run()
    server.output.flush()
    sys.stderr.flush()
    os._exit(status)  # engines leave threads behind whose destructors may hang


class NotSetUp(Runtime):
    """Stands in for a runtime whose environment is not there: the first answer says how to make it."""

    def __init__(self, name):
        self.name = name

    def version(self):
        raise Failure("not_set_up", f"the adapter {self.name} is not set up: run adapters/{self.name}/setup", True)


def main(runtime, environment="run"):
    """What a driver calls: goes on in the adapter's environment, then serves."""
    if environment and not places.enter(runtime.adapter, environment):
        serve(NotSetUp(runtime.adapter))
    serve(runtime())


def cut_text(count, text, n):
    """The beginning of a text that has n tokens by count(text), or as close as can be: a bisection over its length, then the
    characters around the border, since the count need not grow with every character."""
    if count(text) < n:
        raise Failure("bad_request", f"the text has {count(text)} tokens, {n} are wanted")
    low, high = 0, len(text)  # count(text[:low]) < n <= count(text[:high])
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[:middle]) < n:
            low = middle
        else:
            high = middle
    near = range(max(1, high - 8), min(len(text), high + 24) + 1)
    return text[:min(near, key=lambda size: (abs(count(text[:size]) - n), size))]


def backend_of(asked, available):
    """The backend to use: `default` is the first one that there is; one that is not there is an error, never replaced."""
    if asked == "default":
        return available[0]
    if asked not in available:
        raise Failure("backend", f"this runtime has no backend \"{asked}\" on this machine; it has {', '.join(available)}")
    return asked
