"""mica template on the cases tpl-*: exact text, or a failure with the expected words."""
import calendar
import json
import os
import re
import time

from climica import CASES, SCRIPTED, TestCase, case, case_json, main, mica, write_temporary


def now_of(request):
    text = request.get("now")
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) if text else -1


class Cases(TestCase):
    def check(self, template, entry):
        done = mica("template", "--template", template, "--request", "-", "--now", now_of(entry["request"]),
                    stdin=json.dumps(entry["request"]))
        if "expect_error" in entry:
            wanted = entry["expect_error"]
            self.fails(done, "" if wanted == "*" else wanted)
            self.assertEqual(done.out, b"")
        else:
            self.assertEqual(self.ok(done).out, entry["expect"].encode())

    def test_cases(self):
        count = 0
        for name in sorted(os.listdir(CASES)):
            template = case(name, "template.jinja")
            if not name.startswith("tpl-") or not os.path.exists(template):
                continue
            for i, entry in enumerate(case_json(name, "cases.json")):
                with self.subTest(name=name, i=i):
                    self.check(template, entry)
                count += 1
        self.assertGreater(count, 30)

    def test_escape_attempts(self):
        """Case tpl-19."""
        for text in case_json("tpl-19-escape-attempts", "templates.json"):
            done = mica("template", "--template", write_temporary(self, text), "--request", "-",
                        stdin='{"messages": [{"role": "user", "content": "x"}]}')
            self.assertIn(done.code, (0, 1), text)
            for secret in ("class", "builtin", "root:"):
                self.assertNotIn(secret, done.text, text)
            if re.search(r"include|import|extends", text):
                self.fails(done)


class Template(TestCase):
    REQUEST = '{"messages": [{"role": "user", "content": "E"}]}'

    def test_model_and_file(self):
        request = write_temporary(self, self.REQUEST)
        self.assertEqual(self.ok(mica("template", "-m", SCRIPTED, "--request", request)).out, b"E")
        template = write_temporary(self, "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}\n")
        self.assertEqual(self.ok(mica("template", "--template", template, "--request", request)).out, b"<s>E</s>")
        done = mica("template", "--template", template, "--request", request, "--bos", "[", "--eos", "")
        self.assertEqual(self.ok(done).out, b"[E")
        done = mica("template", "--template", template, "-m", SCRIPTED, "--request", request)
        self.assertEqual(self.ok(done).out, b"<s>E</s>")

    def test_failures(self):
        request = write_temporary(self, self.REQUEST)
        self.fails(mica("template", "-m", SCRIPTED, "--request", "/nowhere"), "/nowhere")
        self.fails(mica("template", "--template", "/nowhere", "--request", request), "/nowhere")
        for bad in ("", "{", "[]", '{"messages": 1', "\xff"):
            self.fails(mica("template", "-m", SCRIPTED, "--request", "-", stdin=bad.encode("latin-1")))


if __name__ == "__main__":
    main()
