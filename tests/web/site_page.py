"""The site behind a small web server, and Chromium to look at it."""
import functools
import http.server
import os
import sys
import threading
import unittest

from webtest import HERE, SITE, need_site

need_site()
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "serve"))
import chromium as browsers  # noqa: E402
from serving import wait_until  # noqa: E402


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site; models under /models/NAME, without their length under /unsaid/NAME."""
    models = {}
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind, _, name = self.path[1:].partition("/")
        if kind not in ("models", "unsaid") or name not in self.models:
            return super().do_GET()
        with open(self.models[name], "rb") as f:
            data = f.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        if kind == "models":
            self.send_header("Content-Length", str(len(data)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(data)
        return None

    def log_message(self, *_):
        pass


def serve(models):
    """A running server; models: {name: path}."""
    handler = type("Site", (Handler,), {"models": models})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


REPLY = """async ([request, options]) => {
    const { Mica } = await import("./mica.js");
    const mica = new Mica();
    const began = performance.now();
    try {
        const info = await mica.load({ url: options.model }, options);
        const loaded = performance.now() - began;
        let text = "", pieces = 0;
        for await (const piece of mica.generate(request)) { text += piece; pieces++; }
        return { info, text, pieces, tokens: mica.tokens, result: mica.result, loaded };
    } finally {
        mica.close();
    }
}"""


class SiteTest(unittest.TestCase):
    """A fresh page a test, which must raise no error, break no policy, and ask nobody but the server."""
    models = {}

    @classmethod
    def setUpClass(cls):
        browsers.launch("127.0.0.1")  # first: where it cannot start, the program ends here
        cls.server = serve(cls.models)
        cls.url = f"http://127.0.0.1:{cls.server.server_address[1]}/"

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def setUp(self):
        self.asked, self.errors = [], []
        self.context = browsers.launch("127.0.0.1").new_context(**browsers.DESKTOP)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120000)
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.context.add_init_script("""window.violations = [];
            document.addEventListener("securitypolicyviolation",
                (e) => window.violations.push(e.violatedDirective + " " + e.blockedURI));""")
        self.page.goto(self.url)

    def tearDown(self):
        violations = self.page.evaluate("window.violations")
        self.context.close()
        self.assertEqual([url for url in self.asked if not url.startswith((self.url, "data:", "blob:"))], [])
        self.assertEqual((self.errors, violations), ([], []))

    def wait_for(self, expression, seconds=120):
        """Playwright's wait_for_function() evaluates text in the page, which the policy forbids."""
        self.assertTrue(wait_until(lambda: self.page.evaluate(expression), seconds), expression + ": " + self.note())

    def note(self):
        return self.page.locator("#note").inner_text()

    def load(self, file=None, url=None):
        if file:
            self.page.set_input_files("#file", file)
        if url:
            self.page.fill("#url", url)
        self.page.click("#load")
        self.wait_for("!document.getElementById('load').disabled")

    def say(self, text):
        self.page.fill("#prompt", text)
        self.page.keyboard.press("Enter")

    def last_reply(self):
        return self.page.locator(".message.assistant").last.inner_text()

    def ask(self, text):
        self.say(text)
        self.wait_for("document.getElementById('stop').hidden")
        return self.last_reply()

    def reply(self, request, **options):
        """A reply through mica.js, without the page: what it was and how fast it came."""
        return self.page.evaluate(REPLY, [request, options])
