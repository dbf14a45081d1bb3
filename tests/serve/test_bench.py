"""bench/serve and its load: what they make of the bytes of a stream and when they came, what they refuse, what they send."""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import unittest

import serving

BENCH = os.path.join(os.path.dirname(os.path.dirname(serving.HERE)), "bench")
LOAD = os.path.join(BENCH, "serve_load.py")
sys.dont_write_bytecode = True
sys.path.insert(0, BENCH)
import serve_load  # noqa: E402


def load_script(name):
    loader = importlib.machinery.SourceFileLoader(name + "_script", os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def event(**fields):
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def text_event(text, finish=None, chat=False):
    choice = {"delta": {"content": text}} if chat else {"text": text}
    return event(choices=[{**choice, "finish_reason": finish}])


def usage_event(tokens, prompt=5, cached=2):
    return event(choices=[], usage={"completion_tokens": tokens, "prompt_tokens": prompt,
                                    "prompt_tokens_details": {"cached_tokens": cached}})


DONE = b"data: [DONE]\n\n"


class Came:
    """An exchange as if it had been: pieces of the answer, and when they came."""

    def __init__(self, pieces, tokens, sent=0.0, chunked=True, status=b"200 OK", ended=None):
        head = b"HTTP/1.1 " + status + b"\r\n" + (b"Transfer-Encoding: chunked\r\n" if chunked else b"") + b"\r\n"
        self.request, self.sent, self.data, self.arrivals = {"tokens": tokens}, sent, [head], [sent]
        for came, piece in pieces:
            self.data.append(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            self.arrivals.append(came)
        if chunked:
            self.data[-1] += b"0\r\n\r\n"
        self.ended = self.arrivals[-1] if ended is None else ended


def even(sent, first, gap, tokens, **more):
    """A stream of so many tokens, the first one `first` after sending."""
    pieces = [(sent + first + gap * i, text_event(f"{i} ", "length" if i == tokens - 1 else None)) for i in range(tokens)]
    return Came(pieces + [(pieces[-1][0], usage_event(tokens) + DONE)], tokens, sent, **more)


def split(exchange, size):
    """The same bytes in reads of `size`: each piece of a read comes when that read came, its last one at the latest."""
    data, arrivals = [], []
    for piece, came in zip(exchange.data, exchange.arrivals):
        for at in range(0, len(piece), size):
            data.append(piece[at:at + size])
            arrivals.append(came)
    exchange.data, exchange.arrivals = data, arrivals
    return exchange


def result(exchanges, streams=1, steady=False, dry=None, requests=None):
    plan = {"streams": streams, "steady": steady, "requests": range(len(exchanges) if requests is None else requests)}
    return serve_load.result(plan, exchanges, dry, 0.0)


class Streams(unittest.TestCase):
    def check_even(self, exchange):
        reply, = result([exchange])["replies"]
        self.assertAlmostEqual(reply["ttft_s"], 2.0)
        self.assertAlmostEqual(reply["token_s"], 0.5)
        self.assertEqual((reply["prompt"], reply["cached"], reply["text"]), (5, 2, "0 1 2 3 "))

    def test_times_and_counts(self):
        self.check_even(even(10.0, 2.0, 0.5, 4))

    def test_not_chunked(self):
        self.check_even(even(10.0, 2.0, 0.5, 4, chunked=False))

    def test_reads_that_cut_anywhere(self):
        for size in (1, 2, 3, 7, 50):
            self.check_even(split(even(10.0, 2.0, 0.5, 4), size))

    def test_an_event_counts_when_its_last_byte_is_there(self):
        whole = text_event("a", "length") + usage_event(1) + DONE
        pieces = [(3.0, whole[:20]), (4.0, whole[20:])]
        self.assertAlmostEqual(result([Came(pieces, 1)])["replies"][0]["ttft_s"], 4.0)

    def test_chat(self):
        pieces = [(1.0, text_event("", chat=True)), (2.0, b": ping\n\n" + text_event("a", chat=True)),
                  (3.0, text_event("b", chat=True)), (3.0, text_event("", "length", chat=True) + usage_event(2) + DONE)]
        reply, = result([Came(pieces, 2)])["replies"]
        self.assertAlmostEqual(reply["ttft_s"], 2.0)
        self.assertAlmostEqual(reply["token_s"], 1.0)
        self.assertEqual(reply["text"], "ab")

    def test_tokens_without_text(self):
        """The end of a reply counts, not its last text."""
        pieces = [(1.0, text_event("a")), (4.0, text_event("", "length") + usage_event(4) + DONE)]
        self.assertAlmostEqual(result([Came(pieces, 4)])["replies"][0]["token_s"], 1.0)


class Refusals(unittest.TestCase):
    def check_refused(self, words, *pieces, tokens=1, **more):
        with self.assertRaisesRegex(serve_load.Wrong, words):
            result([Came([(1.0, p) for p in pieces], tokens, **more)])

    def test_right(self):
        self.assertEqual(result([Came([(1.0, text_event("a", "length") + usage_event(1) + DONE)], 1)])["tokens"], 1)

    def test_number_of_tokens(self):
        self.check_refused("2 tokens in 1 events .* 3 tokens", text_event("a", "length"), usage_event(2), DONE, tokens=3)

    def test_more_events_than_tokens(self):
        texts = [text_event("a") for _ in range(3)]
        self.check_refused("1 tokens in 3 events", *texts, text_event("", "length"), usage_event(1), DONE)

    def test_no_usage(self):
        self.check_refused("None tokens", text_event("a", "length"), DONE)

    def test_no_done(self):
        self.check_refused("not whole", text_event("a", "length"), usage_event(1))

    def test_no_text(self):
        self.check_refused("not whole", text_event("", "length"), usage_event(1), DONE)

    def test_ended_by_itself(self):
        self.check_refused("finish_reason stop", text_event("a", "stop"), usage_event(1), DONE)

    def test_error_in_the_stream(self):
        self.check_refused("no memory", text_event("a"), event(error={"message": "no memory"}))

    def test_status(self):
        self.check_refused("400 Bad Request", b"what is wrong", status=b"400 Bad Request")

    def test_cut(self):
        exchange = even(0.0, 1.0, 1.0, 3)
        for n in (1, 2, 3, 4):
            cut = Came([], 3)
            cut.data, cut.arrivals, cut.ended = exchange.data[:n], exchange.arrivals[:n], 9.0
            cut.data[-1] = cut.data[-1][:-1]
            with self.assertRaises(serve_load.Wrong):
                result([cut])

    def test_a_request_without_reply(self):
        with self.assertRaisesRegex(serve_load.Wrong, "1 replies to 2 requests"):
            result([even(0.0, 1.0, 1.0, 3)], requests=2)


class Time(unittest.TestCase):
    """Two streams of a token a second each; the second stream's first reply is shorter."""

    def exchanges(self):
        return [even(0.0, 1.0, 1.0, 10), even(0.0, 1.0, 1.0, 5), even(5.0, 1.0, 1.0, 20), even(10.0, 1.0, 1.0, 20)]

    def test_steady(self):
        got = result(self.exchanges(), streams=2, steady=True, dry=25.0)
        self.assertAlmostEqual(got["seconds"], 15.0)  # from the end of the first replies, at 10, to 25
        self.assertEqual(len(got["replies"]), 1)  # the one sent at 10
        # the third has its tokens from 6 to 25, all but 4 seconds of it in that time; the fourth from 11 to 30: 14 seconds
        self.assertAlmostEqual(got["tokens"], 20 * 15 / 19 + 20 * 14 / 19)

    def test_all(self):
        got = result(self.exchanges(), streams=2)
        self.assertAlmostEqual(got["seconds"], 30.0)
        self.assertAlmostEqual(got["tokens"], 55)
        self.assertEqual(len(got["replies"]), 4)

    def test_too_few_requests(self):
        with self.assertRaisesRegex(serve_load.Wrong, "more requests"):
            result(self.exchanges()[:2], streams=2, steady=True, dry=5.0)


class Requests(unittest.TestCase):
    """bench/serve itself."""

    @classmethod
    def setUpClass(cls):
        cls.bench = load_script("serve")

    def test_prompts(self):
        requests = self.bench.stream_requests(16, 5, "0 16")
        self.assertEqual(len(requests), 96)
        beginnings = {" ".join(r["body"]["prompt"].split()[:4]) for r in requests}
        self.assertEqual(len(beginnings), 96)  # none has more than a few tokens of another one in the cache
        self.assertTrue(all(64 <= r["tokens"] <= 128 for r in requests[16:]))
        self.assertTrue(all(r["tokens"] == r["body"]["max_tokens"] for r in requests))
        self.assertEqual(requests, self.bench.stream_requests(16, 5, "0 16"))  # both servers get the same
        self.assertNotEqual(requests, self.bench.stream_requests(16, 5, "1 16"))

    def test_percentile(self):
        self.assertEqual(self.bench.percentile(list(range(1, 101)), 95), 95)
        self.assertEqual(self.bench.percentile(list(range(1, 21)), 95), 19)
        self.assertEqual(self.bench.percentile([7], 95), 7)

    def test_cache_where_nothing_can_be(self):
        reply = {"ttft_s": 1.0, "token_s": 1.0, "prompt": 100, "cached": 6, "text": ""}
        load = {"seconds": 1.0, "tokens": 1, "replies": [reply], "client_cpu_s": 0.0, "load_s": 1.0}
        with self.assertRaisesRegex(SystemExit, "6 of 100 prompt tokens"):
            self.bench.figures_of(load, 0.05)
        self.assertEqual(self.bench.figures_of(load, 1)["cached"], 6)


class Running(unittest.TestCase):
    """The load as a program, against a server."""

    @classmethod
    def setUpClass(cls):
        cls.server = serving.Server("--parallel", 3, "--threads", 1)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def load(self, tokens, said, steady, patient=False):
        body = {"max_tokens": said, "temperature": 0, "ignore_eos": True, "stream": True,
                "stream_options": {"include_usage": True}}
        body["messages"] = [{"role": "user", "content": "X"}]  # the scripted model repeats it without end
        requests = [{"path": "/v1/chat/completions", "tokens": tokens, "body": body}] * 12
        plan = {"host": self.server.address[0], "port": self.server.address[1], "streams": 3, "steady": steady,
                "requests": requests, "patient": patient, "timeout_s": 60}
        return subprocess.run([sys.executable, LOAD], input=json.dumps(plan), capture_output=True, text=True)

    def test_load(self):
        done = self.load(20, 20, False)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        self.assertEqual(len(got["replies"]), 12)
        self.assertAlmostEqual(got["tokens"], 240)
        self.assertTrue(0 < got["client_cpu_s"] and 0 < got["seconds"] == got["load_s"])
        self.assertTrue(all(0 < r["ttft_s"] < got["load_s"] and r["token_s"] >= 0 for r in got["replies"]))

    def test_steady_load(self):
        done = self.load(20, 20, True)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        self.assertTrue(0 < got["seconds"] < got["load_s"] and 0 < got["tokens"] < 240)

    def test_patient_load(self):
        """The whole text and its end are there, although it is hardly read."""
        done, again = self.load(200, 200, False, patient=True), self.load(200, 200, False)
        self.assertEqual(done.returncode, 0, done.stderr)
        got, want = json.loads(done.stdout), json.loads(again.stdout)
        self.assertEqual([r["text"] for r in got["replies"]], [r["text"] for r in want["replies"]])
        self.assertLessEqual(got["reads"], 12 * 4)  # the head, the first text, the rest, the end

    def test_wrong_number(self):
        done = self.load(20, 19, False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("19 tokens in", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_nobody_there(self):
        plan = {"host": "127.0.0.1", "port": 1, "streams": 1, "steady": False, "patient": False, "timeout_s": 5,
                "requests": [{"path": "/", "tokens": 1, "body": {}}]}
        done = subprocess.run([sys.executable, LOAD], input=json.dumps(plan), capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ConnectionRefused", done.stderr)


if __name__ == "__main__":
    unittest.main()
