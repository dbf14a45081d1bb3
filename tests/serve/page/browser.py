"""What the tests of the page share: Chromium, a page that records what it asks for, and a few actions of a person."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import chromium as browsers  # noqa: E402
from chromium import DESKTOP, PHONE  # noqa: E402, F401
from serving import SCRIPTED, Server, wait_until  # noqa: E402


def chromium():
    return browsers.launch("127.0.0.1")


class PageTest(unittest.TestCase):
    """One server a class, a fresh page a test. Whatever a test does, the page asks nobody but the server, breaks no policy and
    raises no error."""
    arguments, env, model, window = (), {}, SCRIPTED, DESKTOP
    may_violate = False

    @classmethod
    def setUpClass(cls):
        chromium()  # first: where it cannot start, the program ends here
        cls.server = Server(*cls.arguments, model=cls.model, env=cls.env)
        cls.url = "http://{}:{}/".format(*cls.server.address)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, (code, cls.server.log())

    def setUp(self):
        self.asked, self.errors = [], []
        self.context = chromium().new_context(**self.window)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60000)
        self.page.on("request", lambda r: self.asked.append((r.method, r.url)))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.context.add_init_script("""window.violations = [];
            document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective + " " + e.blockedURI));""")
        self.page.goto(self.url)

    def tearDown(self):
        violations = self.page.evaluate("window.violations")
        self.context.close()
        foreign = [url for _, url in self.asked if not url.startswith((self.url, "data:"))]
        self.assertEqual(foreign, [])
        self.assertEqual(self.errors, [])
        if not self.may_violate:
            self.assertEqual(violations, [])

    # ---- A person's actions ----

    def type(self, text):
        self.page.focus("#prompt")
        self.page.keyboard.insert_text(text)

    def say(self, text):
        self.type(text)
        self.page.keyboard.press("Enter")

    def wait_reply(self, n=1):
        """The text of reply `n`, once it has ended."""
        reply = self.page.locator(".message.assistant").nth(n - 1)
        reply.locator(".foot").wait_for()
        return reply.locator(".body").inner_text()

    def wait_for(self, expression, seconds=60):
        """Playwright's wait_for_function() evaluates text in the page, which the policy forbids."""
        self.assertTrue(wait_until(lambda: self.page.evaluate(expression), seconds), expression)

    def ask(self, text, n=1):
        self.say(text)
        return self.wait_reply(n)

    def posts(self):
        return [url for method, url in self.asked if method == "POST"]

    def focused(self):
        return self.page.evaluate("document.activeElement.id || document.activeElement.name || document.activeElement.textContent")

    def set_schema(self, text):
        self.page.evaluate("document.getElementById('schema-box').open = true")
        self.page.fill("#schema", text)
