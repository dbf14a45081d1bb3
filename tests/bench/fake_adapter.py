#!/usr/bin/env python3
"""An adapter without a runtime: it speaks docs/adapter-protocol.md correctly, or breaks one rule of it on purpose.

    fake_adapter.py [MODE]          what the modes do is said beside them below

Its "engine" takes PREFILL_NS a prompt token and DECODE_NS a token, really sleeping, so that its times are true.
"""
import json
import os
import subprocess
import sys
import time

PREFILL_NS = 50_000
DECODE_NS = 2_000_000
MODES = {
    "good": "keeps every rule",
    "text": "takes text prompts only",
    "chunk": "sends events that are not tokens: one for three",
    "late_hello": "never says hello",
    "late_token": "stops in the middle of a reply and stays silent",
    "late_load": "says that loading goes on, for ever",
    "lying_backend": "confirms another backend than the one asked for",
    "unknown_backend": "does not know what computes",
    "partition": "says that 3 of 24 layers fell back",
    "dying": "dies in the middle of a reply, with words on standard error",
    "dying_hello": "dies at once",
    "orphan": "dies and leaves a child behind that holds the pipes",
    "garbage": "writes a line that is not JSON in the middle of a reply",
    "wrong_id": "answers with another id",
    "wrong_type": "sends a time that is a text",
    "duplicate": "sends an object with a member twice",
    "early_token": "sends a token before started",
    "clock_back": "its clock goes backwards in the middle of a reply",
    "clock_future": "tells a time that is not there yet",
    "clock_past": "says that it began before it was asked",
    "long_line": "writes a line of 10 MB",
    "no_newline": "writes bytes for ever without a line end",
    "endless": "goes on after the last token that was asked for",
    "miscount": "says another number of tokens than it sent",
    "prompt_off": "computes a shorter prompt than was asked for",
    "cached": "takes the prompt from a cache, and says so",
    "flat_ttft": "takes as long for any prompt: the prompt was computed before",
    "refuses": "cannot load the model, and says why",
    "not_set_up": "is not installed",
    "no_context": "has room for 8 tokens",
    "deaf": "never reads its input",
    "noisy": "fills standard error, and is well",
    "slow_quit": "does not end when it is told to",
    "eos": "ends every reply before its second token",
}


class Adapter:
    def __init__(self, mode):
        self.mode, self.model, self.loaded = mode, None, False

    def send(self, **event):
        sys.stdout.write(json.dumps(event, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    # ---- verbs ----

    def hello(self, r):
        if self.mode == "dying_hello":
            sys.exit(3)
        if self.mode == "late_hello":
            time.sleep(3600)
        if self.mode == "not_set_up":
            self.send(event="error", id=r["id"], code="not_set_up", message="run adapters/fake/setup")
            return
        self.send(event="hello", id=r["id"], protocol=1, adapter="fake", runtime="fake runtime", runtime_version="1.0",
                  clock="monotonic", prompts=["text"] if self.mode == "text" else ["tokens", "text"],
                  token_events="chunk" if self.mode == "chunk" else "exact", cancel=True, seed=True, labels=["a fake"],
                  ignored={"members that are not known": "are passed over"})

    def load(self, r):
        start = time.monotonic_ns()
        if self.mode == "refuses":
            self.send(event="error", id=r["id"], code="model", message="this is no model of mine")
            return
        while self.mode == "late_load":
            self.send(event="progress", id=r["id"], done=0.5)
            time.sleep(0.05)
        self.send(event="progress", id=r["id"], done=0.5)
        self.ballast = bytearray(24 << 20)  # memory that the harness must see
        self.loaded = True
        asked = "cpu" if r["backend"] == "default" else r["backend"]
        backend = {"lying_backend": "cpu", "unknown_backend": "unknown"}.get(self.mode, asked)
        self.send(event="loaded", id=r["id"], backend=backend, device="imagination", file=r["model"], file_bytes=1000,
                  weight_bytes=900, bits_per_weight=4.5, kv_type="f16",
                  context_limit=8 if self.mode == "no_context" else r["n_ctx"], threads=1,
                  pid=os.getpid(), start_ns=start, end_ns=time.monotonic_ns())

    def partition(self, r):
        fallback = 3 if self.mode == "partition" else 0
        self.send(event="partition", id=r["id"], known=True, unit="layers", total=24, fallback=fallback,
                  parts=[{"backend": "npu", "n": 24 - fallback}, {"backend": "cpu", "n": fallback}], note="")

    def unload(self, r):
        self.loaded = False
        self.send(event="unloaded", id=r["id"])

    def quit(self, r):
        if self.mode == "slow_quit":
            time.sleep(3600)
        self.send(event="bye", id=r["id"])
        sys.exit(0)

    # ---- generate ----

    def prompt_length(self, prompt):
        if "tokens" in prompt:
            n = len(prompt["tokens"])
        else:
            n = prompt.get("n", len(prompt["text"].split()))
        return n // 2 if self.mode == "prompt_off" else n

    def misbehave(self, i, t):
        """Between two tokens; gives the time to tell."""
        if i != 5:
            return t
        if self.mode == "late_token":
            time.sleep(3600)
        elif self.mode == "dying":
            sys.stderr.write("a stack trace\nout of luck\n")
            sys.stderr.flush()
            os._exit(11)
        elif self.mode == "orphan":
            child = subprocess.Popen(["sleep", "1000"])
            sys.stderr.write(f"child {child.pid}\n")
            sys.stderr.flush()
            os._exit(12)
        elif self.mode == "garbage":
            sys.stdout.write("llama_print_timings: 17 ms\n")
        elif self.mode == "duplicate":
            sys.stdout.write('{"event":"token","event":"token","id":1,"token":1,"t_ns":1}\n')
        elif self.mode == "long_line":
            sys.stdout.write('{"event":"token","pad":"' + "x" * 10_000_000 + '"}\n')
        elif self.mode == "no_newline":
            while True:
                sys.stdout.write("x" * 65536)
        elif self.mode == "clock_back":
            return t - 3_600_000_000_000
        elif self.mode == "clock_future":
            return t + 3_600_000_000_000
        elif self.mode == "wrong_type":
            return str(t)
        return t

    def generate(self, r):
        n, id_ = r["n"], r["id"]
        prompt_n = self.prompt_length(r["prompt"])
        if self.mode == "early_token":
            self.send(event="first_token", id=id_, token=1, t_ns=time.monotonic_ns())
        started = time.monotonic_ns()
        self.send(event="started", id=id_, t_ns=started - (10**10 if self.mode == "clock_past" else 0))
        cached = prompt_n - 1 if self.mode == "cached" else 0
        time.sleep(PREFILL_NS * (200 if self.mode == "flat_ttft" else prompt_n - cached) / 1e9)
        made = 1 if self.mode == "eos" else n
        events = (made + 2) // 3 if self.mode == "chunk" else made + 1000 if self.mode == "endless" else made
        for i in range(events):
            if i:
                time.sleep(DECODE_NS * (3 if self.mode == "chunk" else 1) / 1e9)
            t = self.misbehave(i, time.monotonic_ns())
            self.send(event="token" if i else "first_token", id=id_ + (self.mode == "wrong_id"),
                      token=-1 if self.mode == "chunk" else 100 + i, t_ns=t)
        self.send(event="done", id=id_, t_ns=time.monotonic_ns(), reason="eos" if self.mode == "eos" else "length",
                  prompt_n=prompt_n, cached_n=cached, gen_n=made + (1 if self.mode == "miscount" else 0))

    def serve(self):
        if self.mode == "deaf":
            time.sleep(3600)
        if self.mode == "noisy":
            sys.stderr.write("noise\n" * 100_000)
        for line in sys.stdin:
            request = json.loads(line)
            getattr(self, request["op"])(request)


if __name__ == "__main__":
    mode = sys.argv[1] if len(sys.argv) > 1 else "good"
    if mode not in MODES:
        sys.exit(f"there is no mode {mode}")
    try:
        Adapter(mode).serve()
    except BrokenPipeError:
        os._exit(1)
