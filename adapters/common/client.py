"""The harness's side of docs/adapter-protocol.md in Python: for tests of adapters, and for people who write one.

    adapters/common/check NAME MODEL      goes through every verb and prints what it found

`mica bench` has its own client, in C; this one checks the same rules.
"""
import json
import os
import queue
import subprocess
import sys
import threading
import time

import places

LINE_LIMIT = 1 << 20
ENDS = {"hello": "hello", "load": "loaded", "partition": "partition", "generate": "done", "unload": "unloaded", "quit": "bye"}
MEANWHILE = {"load": ("progress",), "generate": ("started", "first_token", "token")}


class Broken(Exception):
    """The adapter broke a rule of the protocol."""


class Refused(Exception):
    """The adapter answered with an error event."""

    def __init__(self, event):
        super().__init__(f"{event['code']}: {event['message']}")
        self.code, self.message, self.fatal = event["code"], event["message"], event["fatal"]


class Adapter:
    """A running adapter. Use as a context manager."""

    def __init__(self, command, env=None, stderr=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env,
                                        start_new_session=True)
        self.lines = queue.Queue()
        self.last_id = 0
        self.last_ns = 0
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def _read(self):
        try:
            for line in iter(lambda: self.process.stdout.readline(LINE_LIMIT + 1), b""):
                self.lines.put((line, time.monotonic_ns()))
        except ValueError:
            pass  # closed
        self.lines.put((b"", time.monotonic_ns()))

    def send(self, op, **members):
        self.last_id += 1
        self.raw(json.dumps({"op": op, "id": self.last_id, **members}).encode() + b"\n")
        return self.last_id

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def event(self, timeout=600):
        line, read_ns = self.lines.get(timeout=timeout)
        if not line:
            raise Broken(f"the adapter ended with status {self.process.wait()}")
        if len(line) > LINE_LIMIT or not line.endswith(b"\n"):
            raise Broken("a line is too long or has no end")
        try:
            event = json.loads(line)
        except ValueError as e:
            raise Broken(f"not JSON: {line[:200]!r}") from e
        self._check_time(event, read_ns)
        return event

    def _check_time(self, event, read_ns):
        for key in ("start_ns", "end_ns", "t_ns"):
            if key in event:
                if not self.last_ns <= event[key] <= read_ns:
                    raise Broken(f"{key} {event[key]} is not between {self.last_ns} and {read_ns}")
                self.last_ns = event[key]

    def ask(self, op, **members):
        """-> the event that ends the request, and those before it"""
        self.last_ns = time.monotonic_ns()
        ident = self.send(op, **members)
        return self.answer(op, ident)

    def answer(self, op, ident):
        before = []
        while True:
            event = self.event()
            if event.get("id") != ident:
                raise Broken(f"an event of request {event.get('id')} while {ident} is the one: {event}")
            if event["event"] == "error":
                raise Refused(event)
            if event["event"] == ENDS[op]:
                return event, before
            if event["event"] not in MEANWHILE.get(op, ()):
                raise Broken(f"{event['event']} is no event of {op}")
            before.append(event)

    def hello(self):
        return self.ask("hello", protocol=1, harness="check")[0]

    def generate(self, prompt, n, exact, **more):
        more.setdefault("sampling", {"greedy": True})
        done, events = self.ask("generate", prompt=prompt, n=n, **more)
        return check_reply(done, events, n, exact)

    def quit(self):
        self.ask("quit")
        return self.process.wait(30)


def check_reply(done, events, n, exact):
    """-> done, the ids, the times in nanoseconds from the start"""
    names = [e["event"] for e in events]
    if names[:1] != ["started"] or names.count("started") != 1:
        raise Broken("a reply begins with one `started`")
    if names[1:2] not in ([], ["first_token"]) or names.count("first_token") > 1:
        raise Broken("the first token has the event first_token")
    tokens = [e["token"] for e in events[1:]]
    if exact and len(tokens) != done["gen_n"]:
        raise Broken(f"{len(tokens)} tokens were handed over, gen_n is {done['gen_n']}")
    if done["gen_n"] > n:
        raise Broken(f"{done['gen_n']} tokens where {n} were asked for")
    return done, tokens, [e["t_ns"] - events[0]["t_ns"] for e in events[1:]]


def command_of(name):
    folder = os.path.join(places.ROOT, name)
    words = places.manifest(name)["command"]
    return [os.path.join(folder, words[0][2:]) if words[0].startswith("./") else words[0], *words[1:]]


# 700 words of no meaning, so that no runtime has seen them and every prompt of a test is a piece of them.
WORDS = ("river stone morning letter garden window table silver bread mountain paper orange candle winter bridge music "
         "shadow forest kitchen number village summer coffee button yellow island market pencil doctor thunder").split()


def words(count, seed=1):
    state, out = seed, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        out.append(WORDS[(state >> 16) % len(WORDS)])
    return " ".join(out)


def peak_rss(pid):
    """VmHWM of a process in MiB, None if it is not on this machine."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) // 1024 for line in f if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return None


def check(name, model, threads=2, n_ctx=1024, long=256, reply=16, out=sys.stdout):
    """Every verb once or twice; raises Broken or Refused. -> figures"""
    with Adapter(command_of(name)) as a:
        hello = a.hello()
        exact = hello["token_events"] == "exact"
        loaded = a.ask("load", model=model, backend="default", n_ctx=n_ctx, threads=threads)[0]
        partition = a.ask("partition")[0]
        a.generate({"text": words(64, 7), "n": 16}, 4, exact, ignore_eos=True)  # with other tokens
        done, ids, times = a.generate({"text": words(long + 64), "n": long}, reply, exact, ignore_eos=True)
        again = a.generate({"text": words(long + 64), "n": long}, reply, exact, ignore_eos=True)
        shorts = [a.generate({"text": words(64, seed), "n": 32}, reply, exact, ignore_eos=True) for seed in (3, 4)]
        for got, wanted in ((done["prompt_n"], long), (shorts[0][0]["prompt_n"], 32)):
            if abs(got - wanted) > max(1, wanted // 100):
                raise Broken(f"a prompt of {wanted} tokens was counted as {got}")
        if exact and -1 not in ids and ids != again[1]:
            raise Broken("the same greedy reply came out differently")
        peak = peak_rss(loaded["pid"])
        a.ask("unload")
        status = a.quit()
    if status != 0:
        raise Broken(f"the adapter ended with status {status}")
    span = (times[-1] - times[0]) / 1e9
    return {"hello": hello, "loaded": loaded, "partition": partition, "ttft_ms": round(times[0] / 1e6, 1),
            "ttft_again_ms": round(again[2][0] / 1e6, 1), "ttft_32_ms": round(min(s[2][0] for s in shorts) / 1e6, 1),
            "cached_n": again[0]["cached_n"], "prompt_n": done["prompt_n"], "gen_n": done["gen_n"],
            "decode_tps": round((done["gen_n"] - 1) / span, 2) if span else None, "reason": done["reason"],
            "peak_rss_mib": peak}


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    try:
        print(json.dumps(check(arguments[0], os.path.abspath(arguments[1])), indent=1))
    except (Broken, Refused) as e:
        sys.exit(f"check: {arguments[0]}: {e}")


if __name__ == "__main__":
    main(sys.argv[1:])
