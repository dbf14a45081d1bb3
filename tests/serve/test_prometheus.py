"""/metrics as Prometheus sees it: Debian's package scrapes a live server, its API is asked for the series, and promtool checks the
text. Skipped where prometheus is not installed."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

from serving import ServeTest, main, wait_until

CONFIG = """global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: mica
    static_configs: [{{targets: ["{target}"]}}]
"""


class Scraped(ServeTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.arguments = ("--ctx", 256, "--telemetry", os.path.join(cls.folder.name, "t.jsonl"), "--telemetry",
                         os.path.join(cls.folder.name, "t.db"))
        super().setUpClass()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            cls.port = s.getsockname()[1]
        config = os.path.join(cls.folder.name, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(target=f"{cls.server.address[0]}:{cls.server.address[1]}"))
        cls.prometheus = subprocess.Popen(["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{cls.port}",
                                           f"--storage.tsdb.path={os.path.join(cls.folder.name, 'data')}"], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.prometheus.terminate()
        cls.prometheus.wait()
        super().tearDownClass()
        cls.folder.cleanup()

    def query(self, expression):
        """The values by label set; {} while there is nothing, or no Prometheus yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})) as r:
                answer = json.load(r)
        except OSError:
            return {}
        self.assertEqual(answer["status"], "success", answer)
        return {tuple(sorted(x["metric"].items())): float(x["value"][1]) for x in answer["data"]["result"]}

    def wait_for(self, expression, value):
        self.assertTrue(wait_until(lambda: value in self.query(expression).values(), 30), (expression, value, self.query(expression)))

    def test_series(self):
        for _ in range(3):
            self.server.ask("E")
        written = 'mica_telemetry_events_total{sink="%d",kind="%s",outcome="written"}'
        self.assertTrue(wait_until(lambda: all(self.server.metrics()[written % kind] == self.server.metrics()["mica_ttft_seconds_count"]
                                               for kind in ((0, "jsonl"), (1, "sqlite")))))
        here = self.server.metrics()
        self.assertGreaterEqual(here["mica_ttft_seconds_count"], 3)
        self.wait_for("up", 1)
        for name in ("mica_generated_tokens_total", "mica_ttft_seconds_count", "mica_prompt_tokens_total", written % (0, "jsonl"),
                     written % (1, "sqlite"), 'mica_requests_total{route="/v1/chat/completions",status="200"}'):
            self.wait_for(name, here[name])
        self.assertIn(list(self.query("mica_throttled").values()), ([], [0], [1]))  # not there where nothing tells it
        self.assertGreater(list(self.query("mica_resident_bytes").values())[0], 1 << 20)
        quantile = list(self.query("histogram_quantile(0.95, mica_ttft_seconds_bucket)").values())[0]
        self.assertGreater(quantile, 0)
        self.assertLess(quantile, 60)

    def test_promtool(self):
        self.server.ask("E")
        text = self.server.get("/metrics").body
        done = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        problems = [line for line in done.stdout.decode().splitlines() if line.strip()]
        self.assertEqual(problems, [])
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("skipped: prometheus is not installed (Debian: apt install prometheus)", file=sys.stderr)
        sys.exit(77)
    main()
