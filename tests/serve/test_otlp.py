"""Telemetry at an OTLP/HTTP receiver. What comes is decoded by OpenTelemetry's own protobuf definitions (the Python package
opentelemetry-proto), strictly: an unknown field, a wrong type or a bad id is an error. Needs scripts/fetch-clients."""
import base64
import http.server
import json
import os
import re
import subprocess
import threading
import time
import unittest

from clients import need_modules

need_modules("opentelemetry.proto.collector.trace.v1.trace_service_pb2", "google.protobuf.json_format")
from google.protobuf import json_format  # noqa: E402
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2  # noqa: E402
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: E402

from serving import BIN, SCRIPTED, Server, main, wait_until  # noqa: E402

SECRET = "xylophone-4711"


def bytes_of_ids(value):
    """OTLP writes ids in hexadecimal, protobuf's JSON in base64: this is the one difference."""
    if isinstance(value, list):
        return [bytes_of_ids(v) for v in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, v in value.items():
        if key in ("traceId", "spanId", "parentSpanId"):
            if not re.fullmatch(r"[0-9a-f]{32}" if key == "traceId" else r"[0-9a-f]{16}", v) or not v.strip("0"):
                raise ValueError(f"{key} is {v!r}")
            v = base64.b64encode(bytes.fromhex(v)).decode()
        else:
            v = bytes_of_ids(v)
        out[key] = v
    return out


class Receiver:
    """Answers like a collector, after `refuse` requests that it turns away with `status`; `stall`: takes and never answers."""

    def __init__(self, refuse=0, status=503, stall=False, reject=0):
        self.traces, self.metrics, self.raw, self.paths, self.heads = [], [], [], [], []
        self.stop_stall = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.raw.append(body)
                receiver.paths.append(self.path)
                receiver.heads.append(dict(self.headers))
                if stall:
                    receiver.stop_stall.wait(60)
                    return
                if len(receiver.raw) <= refuse:
                    self.answer(status, b"", ("Retry-After", "1"))
                    return
                answer = {}
                if self.path == "/v1/traces":
                    receiver.traces.append(json_format.Parse(json.dumps(bytes_of_ids(json.loads(body))),
                                                             trace_service_pb2.ExportTraceServiceRequest()))
                    if reject:
                        answer = {"partialSuccess": {"rejectedSpans": str(reject), "errorMessage": "too old"}}
                else:
                    receiver.metrics.append(json_format.Parse(body, metrics_service_pb2.ExportMetricsServiceRequest()))
                self.answer(200, json.dumps(answer).encode())

            def answer(self, code, body, *headers):
                self.send_response(code)
                for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body))), *headers):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

        class HTTPServer(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                receiver.errors.append(client_address)
                super().handle_error(request, client_address)
        self.errors = []
        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.stop_stall.set()
        self.http.shutdown()
        self.http.server_close()

    def spans(self):
        return [s for t in self.traces for r in t.resource_spans for scope in r.scope_spans for s in scope.spans]

    def last_metrics(self):
        scopes = self.metrics[-1].resource_metrics[0].scope_metrics
        return {m.name: m for m in scopes[0].metrics}


def attributes(item):
    def value(v):
        kind = v.WhichOneof("value")
        return [value(x) for x in v.array_value.values] if kind == "array_value" else getattr(v, kind)
    return {a.key: value(a.value) for a in item.attributes}


def chat(server, text="E", **more):
    return server.chat({"messages": [{"role": "user", "content": text}], "temperature": 0, **more})


class Otlp(unittest.TestCase):
    def receiver(self, **how):
        receiver = Receiver(**how)
        self.addCleanup(receiver.close)
        return receiver

    def serve(self, *args, env=()):
        server = Server("--ctx", 256, "--alias", "small", *args, env=env)
        self.addCleanup(lambda: server.process.poll() is None and server.process.kill())
        return server

    def test_spans_and_metrics(self):
        receiver = self.receiver()
        server = self.serve("--telemetry", receiver.url + "/", env={"OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=me,x-more=yes",
                                                                  "OTEL_SERVICE_NAME": "kitchen"})
        before = time.time_ns()
        ids = [chat(server).json()["id"], chat(server, "S", stream=False, max_tokens=3).json()["id"]]
        self.assertTrue(wait_until(lambda: len(receiver.spans()) == 2))
        self.assertEqual(server.stop(), 0)
        self.assertFalse(receiver.errors)
        self.assertEqual(set(receiver.paths), {"/v1/traces", "/v1/metrics"})
        self.assertEqual((receiver.heads[0]["x-tenant"], receiver.heads[0]["x-more"]), ("me", "yes"))
        self.assertEqual(receiver.heads[0]["Content-Type"], "application/json")
        resource = attributes(receiver.traces[0].resource_spans[0].resource)
        self.assertEqual((resource["service.name"], resource["service.version"]), ("kitchen", "0.1.0"))
        first, second = receiver.spans()
        a, b = attributes(first), attributes(second)
        self.assertEqual([a["gen_ai.response.id"], b["gen_ai.response.id"]], ids)
        self.assertEqual(first.name, "chat small")
        self.assertEqual((a["gen_ai.operation.name"], a["gen_ai.provider.name"], a["gen_ai.request.model"]), ("chat", "mica", "small"))
        self.assertEqual((a["gen_ai.usage.input_tokens"], a["gen_ai.usage.output_tokens"]), (1, 8))
        self.assertEqual((a["gen_ai.response.finish_reasons"], b["gen_ai.response.finish_reasons"]), (["stop"], ["length"]))
        self.assertEqual(b["gen_ai.request.max_tokens"], 3)
        self.assertGreater(a["mica.ttft_ms"], 0)
        self.assertLess(before - 10**9, first.start_time_unix_nano)
        self.assertLess(first.start_time_unix_nano, first.end_time_unix_nano)
        self.assertLess(first.end_time_unix_nano, time.time_ns() + 10**9)
        self.assertNotEqual(first.trace_id, second.trace_id)
        self.check_metrics(receiver)

    def check_metrics(self, receiver):
        metrics = receiver.last_metrics()
        usage = {attributes(p)["gen_ai.token.type"]: p for p in metrics["gen_ai.client.token.usage"].histogram.data_points}
        self.assertEqual((usage["input"].count, usage["input"].sum), (2, 2))
        self.assertEqual((usage["output"].count, usage["output"].sum), (2, 11))
        for name in ("gen_ai.client.operation.duration", "gen_ai.server.time_to_first_token", "gen_ai.server.time_per_output_token"):
            point = metrics[name].histogram.data_points[0]
            self.assertEqual(metrics[name].unit, "s")
            self.assertEqual((point.count, sum(point.bucket_counts)), (2, 2))
            self.assertEqual(len(point.bucket_counts), len(point.explicit_bounds) + 1)
            self.assertGreater(point.sum, 0)
        self.assertEqual(metrics["mica.telemetry.lost"].sum.data_points[0].as_int, 0)
        self.assertGreater(metrics["mica.peak_rss"].gauge.data_points[0].as_int, 1 << 20)

    def test_program(self):
        receiver = self.receiver()
        done = subprocess.run([BIN, "run", "-m", SCRIPTED, "-p", "E", "--temp", "0", "--no-tuned", "--telemetry", receiver.url], capture_output=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len(receiver.spans()), 1)
        self.assertEqual(done.stderr.count(b"\n"), 1, done)

    def test_no_text(self):
        receiver = self.receiver()
        server = self.serve("--telemetry", receiver.url)
        for stream in (False, True):
            chat(server, SECRET, max_tokens=8, stream=stream)
            server.post("/v1/completions", {"prompt": SECRET, "max_tokens": 8, "stream": stream, "x_mica": {"receipt": True}})
        self.assertTrue(wait_until(lambda: len(receiver.spans()) == 4))
        metrics = server.get("/metrics").text
        self.assertEqual(server.stop(), 0)
        everything = b"".join(receiver.raw) + metrics.encode() + server.log().encode()
        self.assertIn(b"mica.receipt", everything)
        for word in (b"xylophone", b"4711"):
            self.assertNotIn(word, everything)

    def test_text_if_asked(self):
        receiver = self.receiver()
        server = self.serve("--telemetry", receiver.url, "--telemetry-text")
        chat(server, SECRET, max_tokens=8)
        self.assertTrue(wait_until(lambda: receiver.spans()))
        self.assertEqual(server.stop(), 0)
        messages = json.loads(attributes(receiver.spans()[0])["gen_ai.input.messages"])
        self.assertEqual(messages[0]["role"], "user")
        self.assertIn("xylophone", messages[0]["parts"][0]["content"])

    def test_errors(self):
        receiver = self.receiver()
        server = self.serve("--telemetry", receiver.url)
        chat(server, "E", max_tokens=2)
        chat(server, "E", x_mica={"require": ["max_temp=1"]})  # refused before it began: no reply, no event
        self.assertTrue(wait_until(lambda: receiver.spans()))
        self.assertEqual(server.stop(), 0)
        self.assertEqual(len(receiver.spans()), 1)

    def test_receiver_that_comes_back(self):
        receiver = self.receiver(refuse=2)
        server = self.serve("--telemetry", receiver.url)
        chat(server)
        self.assertTrue(wait_until(lambda: receiver.spans(), 20))
        self.assertTrue(wait_until(lambda: server.metrics()[self.outcome("written")] == 1))
        self.assertEqual(server.stop(), 0)

    def test_refusal_is_final(self):
        receiver = self.receiver(refuse=1000, status=400)
        server = self.serve("--telemetry", receiver.url)
        chat(server)
        self.assertTrue(wait_until(lambda: server.metrics()[self.outcome("lost")] == 1))
        self.assertEqual(len(receiver.raw), 1)
        self.assertEqual(server.stop(), 0)
        self.assertIn("answered 400", server.log())

    def test_partial_success(self):
        receiver = self.receiver(reject=1)
        server = self.serve("--telemetry", receiver.url)
        chat(server)
        self.assertTrue(wait_until(lambda: server.metrics()[self.outcome("lost")] == 1))
        self.assertEqual(server.stop(), 0)

    def test_receiver_that_stalls(self):
        """Replies are not held up, and the server ends all the same; what is lost is told."""
        receiver = self.receiver(stall=True)
        server = self.serve("--telemetry", receiver.url)
        begun = time.monotonic()
        for _ in range(100):
            self.assertEqual(chat(server).status, 200)
        self.assertLess(time.monotonic() - begun, 30)  # 100 waits for this receiver would be 1,000 s
        begun = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertRegex(server.log(), r"telemetry \(otlp\): 100 of 100 events are lost")

    @staticmethod
    def outcome(name):
        return f'mica_telemetry_events_total{{sink="0",kind="otlp",outcome="{name}"}}'


if __name__ == "__main__":
    main()
