"""mica run and chat --telemetry: JSON lines, a database, a receiver that is not there; no text unless it is asked for; a sink that is
stuck costs no time. docs/telemetry.md. The receiver's side is tests/serve/test_otlp.py."""
import json
import os
import socket
import sqlite3
import tempfile
import time

from climica import SCRIPTED, TestCase, environment, main, mica, run

SECRET = "E xylophone-4711"


class Telemetry(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = dict(environment(), XDG_CACHE_HOME=os.path.join(self.folder, "cache"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def events(self, name="t.jsonl"):
        with open(self.path(name), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def rows(self, name="t.db"):
        db = sqlite3.connect(self.path(name))
        try:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute("SELECT * FROM replies ORDER BY id")]
        finally:
            db.close()

    def test_nothing_unless_asked(self):
        before = set(os.listdir(self.folder))
        self.ok(run("-p", "E", env=self.env, cwd=self.folder))
        self.assertEqual(set(os.listdir(self.folder)) - before - {"cache"}, set())

    def test_lines_and_rows_agree(self):
        self.ok(mica("chat", "-m", SCRIPTED, "--temp", 0, "--telemetry", self.path("t.jsonl"), "--telemetry", self.path("t.db"),
                     stdin="E\nS\n", env=self.env))
        events, rows = self.events(), self.rows()
        self.assertEqual((len(events), len(rows)), (2, 2))
        for event, row in zip(events, rows):
            for name in ("operation", "model", "stop_reason", "prompt_n", "cached_n", "gen_n", "ttft_ms", "tpot_p50_ms", "tpot_p95_ms",
                         "peak_rss_bytes"):
                if isinstance(event[name], float):
                    self.assertAlmostEqual(event[name], row[name], 6)
                else:
                    self.assertEqual(event[name], row[name])
        first = events[0]
        self.assertEqual((first["operation"], first["stop_reason"], first["gen_n"]), ("chat", "eos", 8))
        self.assertGreater(first["ttft_ms"], 0)
        self.assertGreaterEqual(first["tpot_p95_ms"], first["tpot_p50_ms"])
        self.assertGreater(first["peak_rss_bytes"], 1 << 20)
        self.assertIn("throttled_flag", first)
        self.assertIn("joules", first)
        self.assertIsNone(first["rung"])

    def test_files_are_the_owners(self):
        self.ok(run("-p", "E", "--telemetry", self.path("t.jsonl"), env=self.env))
        self.assertEqual(os.stat(self.path("t.jsonl")).st_mode & 0o777, 0o600)

    def test_events_are_added(self):
        for _ in range(2):
            self.ok(run("-p", "E", "--telemetry", self.path("t.jsonl"), "--telemetry", self.path("t.db"), env=self.env))
        self.assertEqual((len(self.events()), len(self.rows())), (2, 2))

    def every_byte(self):
        return b"".join(open(os.path.join(d, f), "rb").read() for d, _, files in os.walk(self.folder) for f in files)

    def test_no_text(self):
        """Neither the prompt nor the reply is anywhere in what telemetry and receipts wrote."""
        self.ok(run("-p", SECRET, "--no-chat", "-n", 8, "--telemetry", self.path("t.jsonl"), "--telemetry", self.path("t.db"),
                    "--receipt", self.path("r.jsonl"), env=self.env))
        self.assertEqual(len(self.events()), 1)
        data = self.every_byte()
        self.assertIn(b"prompt_n", data)
        self.assertNotIn(b"xylophone", data)
        self.assertNotIn(b"4711", data)

    def test_text_if_asked(self):
        self.ok(run("-p", SECRET, "--no-chat", "-n", 8, "--telemetry", self.path("t.jsonl"), "--telemetry", self.path("t.db"),
                    "--telemetry-text", env=self.env))
        self.assertIn("xylophone", self.events()[0]["prompt"])
        self.assertIn("xylophone", self.rows()[0]["prompt"])

    def test_receipt_inside(self):
        self.ok(run("-p", "E", "--telemetry", self.path("t.jsonl"), "--receipt", self.path("r.jsonl"), env=self.env))
        with open(self.path("r.jsonl"), encoding="utf-8") as f:
            self.assertEqual(self.events()[0]["receipt"], json.load(f))

    def test_failed_replies(self):
        done = run("-p", "X", "-n", "200", "--ctx", "64", "--full", "error", "--telemetry", self.path("t.jsonl"), env=self.env)
        self.assertEqual(done.code, 1)
        self.assertEqual(self.events()[0]["error"], "MICA_CONTEXT_FULL")

    def test_receiver_that_is_not_there(self):
        with socket.socket() as s:  # a port that nobody listens at, for as long as this socket has it
            s.bind(("127.0.0.1", 0))
            begun = time.monotonic()
            done = self.ok(run("-p", "E", "--telemetry", f"http://127.0.0.1:{s.getsockname()[1]}", "--telemetry", self.path("t.jsonl"),
                               env=self.env))
            self.assertLess(time.monotonic() - begun, 15)
        self.assertIn("mica: telemetry (otlp): 1 of 1 events are lost", done.message)
        self.assertEqual(len(self.events()), 1)  # the other sink does not suffer

    def test_pipe_that_is_not_read(self):
        """The reply is whole, the sink's failure is told, and the program ends."""
        fifo = self.path("pipe")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            done = self.ok(mica("chat", "-m", SCRIPTED, "--temp", 0, "--telemetry", fifo, "--telemetry-text", stdin="S\n" * 400, env=self.env))
        finally:
            os.close(reader)
        self.assertEqual(done.text.count("alpha beta gamma delta"), 400)
        self.assertRegex(done.message, r"telemetry \(jsonl\): \d+ of 400 events are lost")

    def test_size(self):
        """--telemetry-size: what is older goes to NAME.1."""
        for name in ("t.jsonl", "t.db"):
            for _ in range(3):
                self.ok(mica("chat", "-m", SCRIPTED, "--temp", 0, "--telemetry", self.path(name), "--telemetry-size", 65536,
                             stdin="E\n" * 300, env=self.env))
            self.assertLessEqual(os.path.getsize(self.path(name)), 2 * 65536)
            self.assertGreater(os.path.getsize(self.path(name + ".1")), 32768)
        self.fails(run("-p", "E", "--telemetry", self.path("x.jsonl"), "--telemetry-size", 10, env=self.env), "--telemetry-size", code=2)

    def test_bad_names(self):
        self.fails(run("-p", "E", "--telemetry", os.path.join(self.folder, "no", "folder.jsonl"), env=self.env), "cannot write telemetry")
        self.fails(run("-p", "E", "--telemetry", os.path.join(self.folder, "no", "folder.db"), env=self.env), "cannot write telemetry")
        self.fails(run("-p", "E", "--telemetry-text", env=self.env), "--telemetry-text needs --telemetry", code=2)
        with open(self.path("text.db"), "w", encoding="utf-8") as f:
            f.write("this is no database, but a text that is long enough to be looked at as one\n" * 20)
        self.fails(run("-p", "E", "--telemetry", self.path("text.db"), env=self.env), "cannot write telemetry", "not a database")

    def test_newer_database(self):
        db = sqlite3.connect(self.path("t.db"))
        db.execute("PRAGMA user_version = 7")
        db.close()
        self.fails(run("-p", "E", "--telemetry", self.path("t.db"), env=self.env), "version 7")


if __name__ == "__main__":
    main()
