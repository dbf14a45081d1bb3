"""The page's files, without a browser: where they come from, how they are sent, what they refer to."""
import gzip
import hashlib
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from serving import SCRIPTED, ServeTest, Server, main  # noqa: E402

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "src", "serve", "page")
FILES = {"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/licenses.txt": "text/plain"}


def policy_of(answer):
    """{directive: its values}"""
    parts = [part.split() for part in answer.headers["content-security-policy"].split(";")]
    return {part[0]: part[1:] for part in parts}


def get(server, path, **headers):
    """The answer with its body as it was before compression."""
    import http.client
    c = http.client.HTTPConnection(*server.address, timeout=20)
    try:
        c.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        body = r.read()
        r.headers = {k.lower(): v for k, v in r.getheaders()}
        r.size = len(body)
        r.data = gzip.decompress(body) if r.headers.get("content-encoding") == "gzip" else body
        return r
    finally:
        c.close()


class Files(ServeTest):
    def test_types_and_policy(self):
        for path, kind in FILES.items():
            with self.subTest(path):
                answer = get(self.server, path)
                self.assertEqual(answer.status, 200)
                self.assertEqual(answer.headers["content-type"], f"{kind}; charset=utf-8")
                self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
                self.assertEqual(answer.headers["referrer-policy"], "no-referrer")
                policy = policy_of(answer)
                self.assertEqual(policy["default-src"], ["'none'"])
                for directive in ("script-src", "style-src", "connect-src"):
                    self.assertEqual(policy[directive], ["'self'"])
                for directive in ("base-uri", "form-action", "frame-ancestors"):
                    self.assertEqual(policy[directive], ["'none'"])
                self.assertEqual(policy["img-src"], ["data:"])
                self.assertEqual(policy["require-trusted-types-for"], ["'script'"])
                self.assertNotIn("unsafe", answer.headers["content-security-policy"])

    def test_size(self):
        total = sum(get(self.server, path).size for path in FILES)
        self.assertLess(total, 200 * 1024)
        self.assertGreater(total, 20 * 1024)

    def test_an_etag_saves_the_way(self):
        for path in FILES:
            with self.subTest(path):
                etag = get(self.server, path).headers["etag"]
                self.assertRegex(etag, r'^"[0-9a-f]{16}"$')
                for value in (etag, f"W/{etag}", f'"other", {etag}'):
                    again = get(self.server, path, If_None_Match=value)
                    self.assertEqual((again.status, again.data, again.headers["etag"]), (304, b"", etag))
                    self.assertNotIn("content-length", again.headers)
                for value in ('"other"', "", etag[:-2] + '"', "x" * 5000):
                    self.assertEqual(get(self.server, path, If_None_Match=value).status, 200)

    def test_a_kept_connection_survives_304_and_head(self):
        import http.client
        c = http.client.HTTPConnection(*self.server.address, timeout=20)
        etag = get(self.server, "/").headers["etag"]
        for method, headers, status in (("GET", {"If-None-Match": etag}, 304), ("HEAD", {}, 200), ("GET", {}, 200)):
            c.request(method, "/", headers=headers)
            r = c.getresponse()
            body = r.read()
            self.assertEqual((r.status, len(body) > 0), (status, method == "GET" and status == 200))
        c.close()

    def test_other_methods(self):
        answer = self.server.post("/", {})
        self.refused(answer, 405)
        self.assertEqual(answer.headers["allow"], "GET, HEAD, OPTIONS")

    def test_nothing_is_loaded_from_elsewhere(self):
        """No element, import or url() of the files names another host; no inline script or style."""
        html, css, js = (get(self.server, path).data.decode() for path in ("/", "/page.css", "/page.js"))
        for link in re.findall(r'(?:src|href|action)="([^"]*)"', html):
            self.assertTrue(link in ("page.js", "page.css", "licenses.txt") or link.startswith("data:image/svg+xml,"), link)
        self.assertEqual(re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", html), [])
        self.assertEqual(re.findall(r"@import|url\(", css), [])
        self.assertEqual(re.findall(r'import\s*\(|import\s*"|importScripts|new Function|\beval\(|document\.write', js), [])

    def test_licenses(self):
        text = get(self.server, "/licenses.txt").data.decode()
        for name in ("uplot/LICENSE", "marked/LICENSE", "dompurify/LICENSE"):
            self.assertIn(name, text)


class Built(unittest.TestCase):
    def test_the_embedded_files_are_of_these_sources(self):
        """As bundle.mjs counts them. Whether the bytes are right, test_build.py says."""
        names = sorted(n for n in os.listdir(SOURCES) if re.search(r"\.(js|mjs|css|html)$|^package(-lock)?\.json$", n))
        hashed = hashlib.sha256()
        for name in names:
            with open(os.path.join(SOURCES, name), "rb") as f:
                hashed.update(name.encode() + b"\0" + f.read() + b"\0")
        with open(os.path.join(SOURCES, "assets.h"), encoding="utf-8") as f:
            self.assertIn(f'"{hashed.hexdigest()}"', f.read(), "run src/serve/page/build")


class Keys(ServeTest):
    """With an API key the files are for everybody, the machine's figures are not."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(env={"MICA_API_KEY": "sesame"})

    def test_who_may(self):
        for path in FILES:
            self.assertEqual(get(self.server, path).status, 200)
        self.refused(self.server.get("/v1/mica/status"), 401)
        self.refused(self.server.get("/v1/mica/status", headers={"Authorization": "Bearer other"}), 401)
        self.assertEqual(self.server.get("/v1/mica/status", headers={"Authorization": "Bearer sesame"}).status, 200)


class Status(ServeTest):
    arguments = ("--parallel", 2, "--queue", 7)

    def status(self):
        return self.server.get("/v1/mica/status").json()

    def test_what_it_says(self):
        s = self.status()
        self.assertEqual((s["state"], s["n_ctx"], s["model"]["id"], s["model"]["n_ctx_train"]), ("ok", 512, "scripted", 512))
        self.assertEqual((s["load"]["slots"], s["load"]["queue"]), (2, 7))
        self.assertEqual(s["model"]["file_bytes"], os.path.getsize(SCRIPTED))
        plan = s["memory"]["plan"]
        self.assertEqual(plan["total_bytes"], plan["weights_bytes"] + plan["kv_bytes"] + plan["workspace_bytes"])
        self.assertGreater(s["memory"]["rss_bytes"], 1 << 20)
        self.assertEqual(s["kv"]["capacity"], 1024)

    def test_it_counts(self):
        before = self.status()
        self.assertEqual(self.server.ask("E"), "Hi 🙂!")
        after = self.status()
        self.assertEqual(after["tokens"]["generated"] - before["tokens"]["generated"], 8)
        self.assertEqual(after["ttft"]["count"] - before["ttft"]["count"], 1)
        self.assertGreater(after["ttft"]["sum_s"], before["ttft"]["sum_s"])
        self.assertGreater(after["clock_s"], before["clock_s"])
        metrics = self.server.metrics()
        self.assertEqual(metrics["mica_generated_tokens_total"], after["tokens"]["generated"])
        self.assertEqual(metrics["mica_ttft_seconds_count"], after["ttft"]["count"])


class Temperature(unittest.TestCase):
    def temperature(self, sensor):
        with tempfile.TemporaryDirectory() as root:
            files = {"proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n", **sensor}
            for name, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write(text)
            server = Server("--sysroot", root)
            status = server.get("/v1/mica/status").json()
            self.assertEqual(server.stop(), 0)
            self.assertEqual(status["memory"]["available_bytes"], 4000000 * 1024)
            return status["temperature"]

    def test_of_the_machine_or_null(self):
        zone = "sys/class/thermal/thermal_zone0/"
        self.assertEqual(self.temperature({zone + "type": "x86_pkg_temp\n", zone + "temp": "51500\n"}),
                         {"celsius": 51.5, "source": "x86_pkg_temp"})
        self.assertIsNone(self.temperature({}))


if __name__ == "__main__":
    main()
