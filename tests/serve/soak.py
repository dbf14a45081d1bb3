"""A server under mixed load for a long time: what its clients do, what is looked at, and how growth and drift are judged.

The load comes in windows. At the end of each all clients are done and the server is asked until nothing runs any more; only then are
memory, descriptors and threads read, so that two windows can be compared. Every reply is checked: a wrong one ends the run."""
import json
import os
import random
import statistics
import threading
import time

from serving import CASES, SCRIPTED, chunks, joined, post_bytes, wait_until

CLIENTS = 8
WARM_UP = 0.2  # the part of the windows in which caches fill
MALFORMED = os.path.join(CASES, "srv-12-malformed-bodies")
SCHEMAS = 40  # more than the server keeps compiled (MICA_SERVE_COMPILED), so that entries come and go


class Wrong(Exception):
    """A reply that is not the right one."""


def expect(good, what):
    if not good:
        raise Wrong(repr(what)[:2000])


# ---- What clients do: one function a kind of request ----

def user(text):
    return [{"role": "user", "content": text}]


def chat(server, _):
    expect(server.ask("E") == "Hi 🙂!", "chat")


def stream(server, rng):
    text = rng.choice((("S", "alpha beta gamma delta"), ("C", "zh你試#"), ("R", "red fox")))
    parts = chunks(server.chat({"messages": user(text[0]), "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}))
    expect(joined(parts) == text[1] and parts[-1]["usage"]["completion_tokens"] > 0, parts)


def many_choices(server, rng):
    body = {"messages": user("D"), "temperature": 1, "seed": rng.randrange(1 << 30), "n": 4, "max_tokens": 3, "logprobs": True}
    answer = server.chat(body)
    expect(answer.status == 200 and len(answer.json()["choices"]) == 4, answer)


def leave(server, rng):
    """Goes away in the middle of the request, or of the reply."""
    data = post_bytes("/v1/chat/completions", {"messages": user("X"), "temperature": 0, "max_tokens": 400, "stream": rng.random() < 0.7})
    whole = rng.random() < 0.8
    s = server.socket(data if whole else data[:rng.randrange(1, len(data))])
    if whole and rng.random() < 0.7:
        s.recv(rng.randrange(1, 2000))
    s.close()


def embed(server, rng):
    ids = [[5 + rng.randrange(300) for _ in range(rng.randrange(1, 60))] for _ in range(rng.randrange(1, 8))]
    answer = server.post("/v1/embeddings", {"model": "any", "input": ids})
    expect(answer.status == 200 and len(answer.json()["data"]) == len(ids), answer)


def constrained(server, rng):
    number = rng.randrange(SCHEMAS)
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False, "title": str(number)}
    if number:
        schema["properties"][f"b{number}"] = {"type": "string", "maxLength": number}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    expect(json.loads(server.ask("J", response_format=form)) == {"a": 1}, number)


def bad(server, rng):
    with open(os.path.join(MALFORMED, rng.choice(sorted(os.listdir(MALFORMED)))), "rb") as f:
        answer = server.post("/v1/chat/completions", f.read())
    expect(answer.status in (200, 400), answer)


def no_http(server, rng):
    s = server.socket(bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300))) + b"\r\n\r\n")
    s.settimeout(10)
    s.recv(100)
    s.close()


def session(server, rng):
    """A conversation that grows: each request begins with the one before."""
    messages = [{"role": "system", "content": "".join(rng.choice("abc ") for _ in range(40))}]
    for text, reply in (("R", "red fox"), ("E", "Hi 🙂!"), ("S", "alpha beta gamma delta")):
        messages += user(text)
        answer = server.chat({"messages": messages, "temperature": 0})
        expect(answer.status == 200 and answer.json()["choices"][0]["message"]["content"] == reply, answer)
        messages.append({"role": "assistant", "content": reply})


def responses(server, _):
    answer = server.post("/v1/responses", {"input": "E", "temperature": 0})
    expect(answer.json()["output"][0]["content"][0]["text"] == "Hi 🙂!", answer)


def echo(server, rng):
    text = "".join(rng.choice("abcdefghij") for _ in range(12)) + "R"
    answer = server.post("/v1/completions", {"prompt": text, "echo": True, "max_tokens": 8, "temperature": 0})
    expect(answer.json()["choices"][0]["text"] == text + "red fox", answer)


def look(server, rng):
    expect(server.get(rng.choice(("/health", "/metrics", "/v1/models", "/v1/mica/status", "/"))).status == 200, "look")


KINDS = {chat: 20, stream: 15, many_choices: 6, leave: 12, embed: 8, constrained: 12, bad: 10, no_http: 4, session: 5, responses: 6,
         echo: 10, look: 6}


class AnyModel:
    """The same for a model that says what it likes: only that a reply comes is checked."""

    @staticmethod
    def chat(server, rng):
        answer = server.chat({"messages": user(f"Say {rng.randrange(1000)}."), "max_tokens": 12})
        expect(answer.status == 200 and answer.json()["usage"]["completion_tokens"] > 0, answer)

    @staticmethod
    def stream(server, rng):
        body = {"messages": user(f"Count from {rng.randrange(1000)}."), "max_tokens": 16, "stream": True}
        expect(chunks(server.chat(body)), "stream")

    @staticmethod
    def constrained(server, rng):
        schema = {"type": "object", "properties": {f"n{rng.randrange(SCHEMAS)}": {"type": "integer", "minimum": 0, "maximum": 99}},
                  "additionalProperties": False, "minProperties": 1}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
        answer = server.chat({"messages": user("A number"), "response_format": form, "max_tokens": 30})
        value = json.loads(answer.json()["choices"][0]["message"]["content"])
        expect(list(value) == list(schema["properties"]) and 0 <= list(value.values())[0] <= 99, value)

    @staticmethod
    def session(server, rng):
        messages = []
        for _ in range(3):
            messages += user(f"And {rng.randrange(1000)}?")
            answer = server.chat({"messages": messages, "max_tokens": 10})
            expect(answer.status == 200, answer)
            messages.append(answer.json()["choices"][0]["message"])

    @staticmethod
    def leave(server, rng):
        leave(server, rng)

    @classmethod
    def kinds(cls):
        return {cls.chat: 20, cls.stream: 15, cls.leave: 12, cls.constrained: 10, cls.session: 4, bad: 10, no_http: 4, look: 6}


# ---- What is looked at ----

def at_rest(server):
    def quiet():
        m = server.metrics()
        return m["mica_running"] == 0 and m["mica_queue_length"] == 0 and m["mica_connections"] == 1
    expect(wait_until(quiet, 60), "the server does not come to rest")
    pid, fds = server.process.pid, []
    for _ in range(10):  # the connection that asked is closed a moment later
        fds.append(len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.01)
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(line.split(":", 1) for line in f)
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:13]
    return {"rss_kib": int(status["VmRSS"].split()[0]), "anon_kib": int(status["RssAnon"].split()[0]),
            "threads": int(status["Threads"]), "fds": min(fds), "cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")}


def percentile(values, percent):
    """Nearest rank."""
    values = sorted(values)
    return values[max(0, -(-len(values) * percent // 100) - 1)]


def window(server, seconds, seed, kinds):
    """One window of load: its figures."""
    end, times, failures = time.monotonic() + seconds, [[] for _ in range(CLIENTS)], []

    def work(i):
        rng = random.Random(f"{seed} {i}")
        while time.monotonic() < end and not failures:
            kind = rng.choices(list(kinds), list(kinds.values()))[0]
            start = time.monotonic()
            try:
                kind(server, rng)
            except Exception as e:  # pylint: disable=broad-except
                failures.append(f"{kind.__name__}: {e!r}")
            times[i].append((kind.__name__, time.monotonic() - start))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise Wrong(failures[0])
    done = [t for one in times for t in one]
    asked = [1000 * t for kind, t in done if kind in ("chat", "stream")]
    return {"requests": len(done), "p50_ms": percentile(asked, 50), "p99_ms": percentile(asked, 99), **at_rest(server)}


def run(server, seconds, windows, seed=1, kinds=None, tell=None):
    rows, begin = [], time.monotonic()
    for i in range(windows):
        before = rows[-1]["cpu_s"] if rows else at_rest(server)["cpu_s"]
        row = window(server, seconds / windows, f"{seed} {i}", kinds or KINDS)
        row["cpu_ms_per_request"] = 1000 * (row["cpu_s"] - before) / row["requests"]
        row["t_s"] = round(time.monotonic() - begin, 1)
        rows.append(row)
        if tell:
            tell(row)
    return rows


# ---- How it is judged ----

def rise(values):
    """How much a line through the values goes up from the first to the last, as a share of their median. The slope is the median of
    all slopes between two of them (Theil and Sen), which single odd windows do not move."""
    n = len(values)
    slopes = [(values[j] - values[i]) / (j - i) for i in range(n) for j in range(i + 1, n)]
    return statistics.median(slopes) * (n - 1) / statistics.median(values) if slopes else 0.0


def trend(values):
    """Mann and Kendall's statistic in standard deviations: above 2.33 the values go up, with one chance in a hundred that they do not."""
    n = len(values)
    s = sum((values[j] > values[i]) - (values[j] < values[i]) for i in range(n) for j in range(i + 1, n))
    sd = (n * (n - 1) * (2 * n + 5) / 18) ** 0.5
    return (s - (s > 0) + (s < 0)) / sd if sd else 0.0


def judge(rows, rss_limit, latency_limit):
    """(figures, what is wrong). Memory: the fitted line, and the last fifth against the first, after the warm-up."""
    rows = rows[int(len(rows) * WARM_UP):]
    fifth = max(1, len(rows) // 5)

    def of(name):
        return [r[name] for r in rows]
    rss, fds, threads = of("rss_kib"), of("fds"), of("threads")
    figures = {"windows": len(rows), "requests": sum(of("requests")), "rss_kib_first": statistics.median(rss[:fifth]),
               "rss_kib_last": statistics.median(rss[-fifth:]), "rss_rise": rise(rss),
               "rss_growth": statistics.median(rss[-fifth:]) / statistics.median(rss[:fifth]) - 1, "rss_kib_most": max(rss),
               "fds": [min(fds), max(fds)], "threads": [min(threads), max(threads)], "p99_ms_median": statistics.median(of("p99_ms")),
               "p99_rise": rise(of("p99_ms")), "p99_trend": trend(of("p99_ms")), "cpu_rise": rise(of("cpu_ms_per_request")),
               "cpu_trend": trend(of("cpu_ms_per_request"))}
    wrong = []
    if max(figures["rss_rise"], figures["rss_growth"]) > rss_limit:
        wrong.append(f"memory grows by {100 * max(figures['rss_rise'], figures['rss_growth']):.2f} %")
    if fds[-1] > fds[0]:
        wrong.append(f"descriptors grow from {fds[0]} to {fds[-1]}")
    if threads[-1] > threads[0]:
        wrong.append(f"threads grow from {threads[0]} to {threads[-1]}")
    for name in ("p99", "cpu"):
        if figures[name + "_rise"] > latency_limit and figures[name + "_trend"] > 2.33:
            wrong.append(f"{name} drifts up by {100 * figures[name + '_rise']:.1f} %")
    return figures, wrong


def curve(values, width=60, height=8):
    """Lines of text: the values from left to right, the scale at the left."""
    n = min(width, len(values))
    cells = [statistics.mean(values[i * len(values) // n:(i + 1) * len(values) // n]) for i in range(n)]
    low, high = min(cells), max(cells)
    rows = [int((c - low) / (high - low) * (height - 1) + 0.5) if high > low else 0 for c in cells]
    height = height if high > low else 1
    return [f"{low + (high - low) * y / (height - 1) if height > 1 else low:12.2f} |" + "".join("*" if r == y else " " for r in rows)
            for y in range(height - 1, -1, -1)]


def report(rows, figures, wrong):
    lines = []
    for name, title in (("rss_kib", "resident memory at rest, KiB"), ("p99_ms", "99 % of chats within, ms"), ("fds", "descriptors at rest"),
                        ("cpu_ms_per_request", "processor time of the server for a request, ms")):
        lines += [title, *curve([r[name] for r in rows]), ""]
    lines += [f"{k}: {v:.4f}" if isinstance(v, float) else f"{k}: {v}" for k, v in figures.items()]
    lines += [f"WRONG: {w}" for w in wrong] or ["nothing grows"]
    return "\n".join(lines)


def kinds_for(model):
    return KINDS if os.path.realpath(model) == os.path.realpath(SCRIPTED) else AnyModel.kinds()
