#!/usr/bin/env python3
"""A closed-loop load on an OpenAI server: N streams, each sends its next request when its last reply has ended.

    bench/serve_load.py < PLAN.json > RESULT.json

Own code, of the standard library alone, because of what the known generators weigh beside a server that takes all cores of a
small machine. guidellm 0.8.1 needs torch. aiperf 0.13.0 does without, but installs 1.2 GB, gets its own tokenizer from the
network, and is nine processes or more that talk to one another about each reply; with the cores busy it says itself that its
event loops come late by tens to hundreds of milliseconds. Here one thread waits for all sockets and, while the load runs,
does nothing but note when which bytes came; they are understood after the last reply. What that costs is in the result, and
bench/serve prints it.

PLAN     host, port
         streams      how many at a time
         requests     [{"path", "body", "tokens"}], sent in this order; each reply must have so many tokens
         steady       true: what counts is the time between the end of the first replies of all streams and the moment when a
                      stream finds no request left, so neither the rush of the start nor the thin end. A token counts by when it
                      came; times of replies are those of requests sent in between
                      false: all of it, from the first request to the last byte
         patient      true: after the first text a stream is read again only when it ends, so this program costs nothing
         timeout_s    of the whole load

RESULT   seconds      the time that counts
         tokens       generated in it
         replies      [{"ttft_s", "token_s", "prompt", "cached", "text"}], those that count: from sending to the first text;
                      time of each further token; the server's counts of tokens; the whole text
         client_cpu_s, load_s    processor time while the load ran, and how long it ran
         reads        how often a socket was read

A reply is right if its status is 200, its stream ends with [DONE], there is no error in it, it finished by length, and the
server's own count of tokens is what was asked for and no less than the events with text that came. Anything else ends the
load with exit code 1 and a sentence.
"""
import bisect
import itertools
import json
import selectors
import socket
import sys
import time


class Wrong(Exception):
    """A reply is not what it must be."""


# ---- Sending and receiving ----


class Exchange:
    """One request and the bytes that came back, with the time of each read."""

    def __init__(self, address, request, patient):
        self.request, self.patient, self.data, self.arrivals = request, patient, [], []
        body = json.dumps(request["body"]).encode()
        head = (f"POST {request['path']} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode()
        self.sent = time.perf_counter()
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(head + body)
        self.socket.setblocking(False)

    def read(self):
        """False when the server has closed."""
        data = self.socket.recv(1 << 18)
        self.arrivals.append(time.perf_counter())
        self.data.append(data)
        if self.patient and b"data: " in data:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 20)  # wakes at that many bytes, or the end
            self.patient = False
        return bool(data)

    def end(self):
        self.ended = self.arrivals[-1]
        self.socket.close()


def send_all(plan):
    """Every exchange, in the order of sending; and when a stream found no request left."""
    address, waiting = (plan["host"], plan["port"]), iter(plan["requests"])
    deadline = time.perf_counter() + plan["timeout_s"]
    exchanges, dry = [], None
    with selectors.DefaultSelector() as selector:

        def send_next():
            nonlocal dry
            request = next(waiting, None)
            if request is None:
                dry = dry or time.perf_counter()
                return
            exchanges.append(Exchange(address, request, plan["patient"]))
            selector.register(exchanges[-1].socket, selectors.EVENT_READ, exchanges[-1])

        for _ in range(plan["streams"]):
            send_next()
        while selector.get_map():
            ready = selector.select(deadline - time.perf_counter())
            if time.perf_counter() > deadline:
                raise Wrong(f"the load was not done within {plan['timeout_s']} s")
            for exchange in [key.data for key, _ in ready]:
                if not exchange.read():
                    selector.unregister(exchange.socket)
                    exchange.end()
                    send_next()
    return exchanges, dry


# ---- Understanding what came ----


def unchunked(raw, at):
    """The body behind offset `at`, and for each of its chunks (end in the body, end in raw)."""
    body, ends = bytearray(), []
    while True:
        line = raw.find(b"\r\n", at)
        if line < 0:
            raise Wrong("the answer ends in the middle of a chunk")
        size, at = int(raw[at:line].split(b";")[0], 16), line + 2
        if size == 0:
            return bytes(body), ends
        if len(raw) < at + size + 2:
            raise Wrong("the answer ends in the middle of a chunk")
        body += raw[at:at + size]
        ends.append((len(body), at + size))
        at += size + 2


def body_of(raw, offsets):
    """The body, and what unchunked() says of it; `offsets` are the ends of the reads."""
    head_end = raw.find(b"\r\n\r\n") + 4
    if head_end < 4:
        raise Wrong(f"no answer but {raw[:200]!r}")
    head = raw[:head_end].decode("latin-1").lower()
    if head.split(" ")[1] != "200":
        raise Wrong(raw[:2000].decode("utf-8", "replace"))
    if "transfer-encoding: chunked" in head:
        return unchunked(raw, head_end)
    return raw[head_end:], [(end - head_end, end) for end in offsets if end > head_end]


def events_of(exchange):
    """(time when its last byte was there, data) of each event."""
    raw, offsets = b"".join(exchange.data), list(itertools.accumulate(map(len, exchange.data)))
    body, ends = body_of(raw, offsets)
    body_ends, at = [e[0] for e in ends], 0
    while (end := body.find(b"\n\n", at)) >= 0:
        raw_end = ends[bisect.bisect_left(body_ends, end + 2)][1]
        came = exchange.arrivals[bisect.bisect_left(offsets, raw_end)]
        for line in body[at:end].split(b"\n"):
            if line.startswith(b"data:"):
                yield came, line[5:].strip()
        at = end + 2


def text_of(choice):
    delta = choice.get("delta") or {}
    return (choice.get("text") or "") + (delta.get("reasoning_content") or "") + (delta.get("content") or "")


class Reply:
    def __init__(self, exchange):
        self.sent, self.ended = exchange.sent, exchange.ended
        self.first = self.last = None  # when the first text and the end of the reply came
        self.texts, self.usage, finish, done = [], None, None, False
        for came, data in events_of(exchange):
            if data == b"[DONE]":
                done = True
                continue
            event = json.loads(data)
            if "error" in event:
                raise Wrong(f"an error in the stream: {event['error']}")
            self.usage = event.get("usage") or self.usage
            for choice in event.get("choices", []):
                if text_of(choice):
                    self.texts.append(text_of(choice))
                    self.first = self.first or came
                if choice.get("finish_reason"):
                    finish, self.last = choice["finish_reason"], came
        self.check(exchange.request["tokens"], finish, done)

    def check(self, tokens, finish, done):
        self.tokens = (self.usage or {}).get("completion_tokens")
        if not done or finish != "length" or self.first is None:
            raise Wrong(f"a stream that is not whole: finish_reason {finish}, {len(self.texts)} texts, [DONE] {done}")
        if self.tokens != tokens or not 0 < len(self.texts) <= tokens + 1:  # one more: what was held back, with the end
            raise Wrong(f"{self.tokens} tokens in {len(self.texts)} events with text, where {tokens} tokens were asked for")
        self.prompt = self.usage["prompt_tokens"]
        self.cached = (self.usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)

    def tokens_between(self, start, end):
        """The first token came with the first text, the last one with the end, the others evenly in between."""
        if self.last == self.first:
            return self.tokens if start <= self.first <= end else 0
        shared = min(end, self.last) - max(start, self.first)
        return self.tokens * max(shared, 0) / (self.last - self.first)

    def figures(self):
        return {"ttft_s": self.first - self.sent, "token_s": (self.last - self.first) / max(self.tokens - 1, 1),
                "prompt": self.prompt, "cached": self.cached, "text": "".join(self.texts)}


def result(plan, exchanges, dry, cpu):
    replies = [Reply(e) for e in exchanges]
    if len(replies) != len(plan["requests"]):
        raise Wrong(f"{len(replies)} replies to {len(plan['requests'])} requests")
    load_end = max(r.ended for r in replies)
    start, end = replies[0].sent, load_end
    if plan["steady"]:
        start, end = max(r.ended for r in replies[:plan["streams"]]), dry
    counting = [r for r in replies if start <= r.sent <= end]
    if not counting:
        raise Wrong("no request was sent in the time that counts: the load needs more requests for each stream")
    return {"seconds": end - start, "tokens": sum(r.tokens_between(start, end) for r in replies),
            "replies": [r.figures() for r in counting], "client_cpu_s": cpu, "load_s": load_end - replies[0].sent,
            "reads": sum(len(e.data) for e in exchanges)}


def main():
    plan = json.load(sys.stdin)
    before = time.process_time()
    try:
        exchanges, dry = send_all(plan)
        cpu = time.process_time() - before
        json.dump(result(plan, exchanges, dry, cpu), sys.stdout)
    except (Wrong, OSError, ValueError, KeyError) as e:
        sys.exit(f"serve_load: {type(e).__name__}: {e}")


if __name__ == "__main__":
    main()
