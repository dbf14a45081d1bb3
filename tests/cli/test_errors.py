"""docs/errors.md: every status of mica.h has its chapter there, in order and with the right number, and says what to do; every example is run, and what it
prints is what stands there."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from climica import BIN, DATA, SCRIPTED, TIMEOUT, TestCase, case, environment, has_address_sanitizer, main, scripted_module

ROOT = os.path.dirname(os.path.dirname(DATA))
CHAPTER = re.compile(r"^## (\d+) `(MICA_\w+)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```\n\$ ([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as f:
        return f.read()


def statuses():
    """[(number, name)] of the enum."""
    return re.findall(r"^    (MICA_\w+) = (\d+),", re.search(r"typedef enum mica_status \{(.*?)\}", read("include", "mica", "mica.h"),
                                                             re.DOTALL).group(1), re.MULTILINE)


def chapters():
    return [(name, int(number), text) for number, name, text in CHAPTER.findall(read("docs", "errors.md"))]


class Chapters(TestCase):
    def test_all_statuses(self):
        self.assertGreater(len(statuses()), 10)
        self.assertEqual([(name, number) for name, number, _ in chapters()], [(name, int(number)) for name, number in statuses()])

    def test_each_says_what_to_do_and_has_an_example(self):
        for name, number, text in chapters():
            with self.subTest(name):
                self.assertEqual("**What to do:**" in text, number != 0)
                self.assertEqual(len(EXAMPLE.findall(text)), number != 0)

    def test_exit_codes(self):
        codes = dict(re.findall(r"(CODE_\w+) = (\d+)", read("programs", "commands.h") + read("programs", "term.h")))
        text = " ".join(read("docs", "errors.md").split())
        for name, words in (("CODE_FAILED", "1 the command failed"), ("CODE_USAGE", "2 the command line is wrong"),
                            ("CODE_INTERRUPTED", "130 interrupted")):
            self.assertEqual(codes[name], words.split()[0])
            self.assertIn(words, text)


class Examples(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        os.symlink(os.path.abspath(BIN), cls.path("mica"))
        shutil.copy(SCRIPTED, cls.path("model.gguf"))
        with open(SCRIPTED, "rb") as f:
            cls.write("cut.gguf", f.read(20000))
        shutil.copy(case("gguf-16-versions", "v99.gguf"), cls.path("future.gguf"))
        scripted_module().make(cls.path("nan.gguf"), nan=True)
        cls.write("latin1.txt", b"a\xffb")
        cls.write("3-megabytes.txt", b"E" * 3000000)
        cls.write("broken.jinja", b"{% for")
        cls.write("request.json", b'{"messages": []}')
        policy = {"version": 1, "objective": "sustained", "severe_refuse": 20, "severe_max_tokens": 5}
        cls.write("careful.json", json.dumps(policy).encode())
        zone = "hot/sys/class/thermal/thermal_zone0/"
        for name, text in (("hot/sys/devices/system/cpu/online", "0-1"), ("hot/proc/self/status", "Name:\tmica\nCpus_allowed_list:\t0-1"),
                           (zone + "type", "cpu-thermal"), (zone + "temp", "95000"), (zone + "trip_point_0_type", "hot"),
                           (zone + "trip_point_0_temp", "90000")):
            cls.write(name, text.encode() + b"\n")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def write(cls, name, data):
        os.makedirs(os.path.dirname(cls.path(name)), exist_ok=True)
        with open(cls.path(name), "wb") as f:
            f.write(data)

    def said(self, command):
        env = dict(environment(), PATH=self.folder + os.pathsep + os.environ["PATH"])
        env.update((name, self.path(name)) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"))
        return subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
                              cwd=self.folder, timeout=TIMEOUT, check=False).stdout.decode("utf-8", "replace")

    def test_examples(self):
        for name, _, text in chapters():
            for command, wanted in EXAMPLE.findall(text):
                if "ulimit" in command and has_address_sanitizer():
                    continue
                with self.subTest(name):
                    pattern = re.escape(wanted).replace(re.escape("..."), ".*")
                    said = self.said(command)
                    self.assertTrue(re.fullmatch(pattern, said), f"{command}\nsays {said!r}, not {wanted!r}")


if __name__ == "__main__":
    main()
