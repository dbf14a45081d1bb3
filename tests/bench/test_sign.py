"""mica sign and mica verify --pubkey: keys and signatures that minisign made (tests/data/sign), and, where minisign is installed, both ways."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
import records  # noqa: E402
from climica import DATA, TestCase, main, mica  # noqa: E402

GOLD = os.path.join(DATA, "sign")
MINISIGN = shutil.which("minisign")


def gold(name):
    return os.path.join(GOLD, name)


class SignCase(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def get(self, path):
        with open(path, "rb") as f:
            return f.read()

    def check(self, file, key, *args):
        return mica("verify", file, "--pubkey", key, "--signature-only", *args)

    def keys(self, *args):
        args = args or ("--no-password",)
        self.ok(mica("sign", "--generate", "--key", self.path("k.key"), "--pubkey", self.path("k.pub"), *args))


class Gold(SignCase):
    def test_signatures_of_minisign(self):
        for name, key, comment in (("hashed", "plain", "hashed, by minisign"), ("legacy", "plain", "legacy, by minisign"),
                                   ("locked", "locked", "with a password")):
            done = self.ok(self.check(gold("text"), gold(key + ".pub"), "--signature", gold(name + ".minisig")))
            self.assertRegex(done.text, r"^good  signature of the key [0-9A-F]{16}; trusted comment: " + comment + "\n$")
        line = self.get(gold("plain.pub")).split()[-1].decode()
        self.ok(self.check(gold("text"), line, "--signature", gold("hashed.minisig")))

    def test_keys_of_minisign(self):
        text = self.put("t", self.get(gold("text")))
        self.put("password", "correct horse\n")
        self.put("wrong", "correct hoarse\n")
        self.ok(mica("sign", text, "--key", gold("plain.key")))
        self.ok(self.check(text, gold("plain.pub")))
        self.fails(self.check(text, gold("locked.pub")), "was made with the key 35A5950CBA67719D, not with 1D5D6B0F6A4B53F7")
        self.ok(mica("sign", text, "--key", gold("plain.key"), "--legacy", "--signature", self.path("legacy"), "--comment", "legacy, by minisign"))
        self.assertEqual(self.get(self.path("legacy")).split(b"\n")[1:], self.get(gold("legacy.minisig")).split(b"\n")[1:])  # Ed25519 has no chance in it
        self.fails(mica("sign", text, "--key", gold("locked.key"), "--password-file", self.path("wrong")), "the password is not that")
        self.ok(mica("sign", text, "--key", gold("locked.key"), "--password-file", self.path("password"), "--comment", "with a password"))
        self.assertEqual(self.get(text + ".minisig").split(b"\n")[1:], self.get(gold("locked.minisig")).split(b"\n")[1:])

    def test_every_changed_byte_is_found(self):
        """Of the signature's file, its first comment apart; and of the text."""
        whole = self.get(gold("hashed.minisig"))
        start = whole.index(b"\n") + 1
        tried = 0
        for i in list(range(start, len(whole) - 1, 5)):
            changed = bytearray(whole)
            changed[i] ^= 1
            done = self.check(gold("text"), gold("plain.pub"), "--signature", self.put("s", bytes(changed)))
            self.assertEqual(done.code, 1, (i, done))
            self.assertRegex(done.message, r"^mica: [^\n]+\n$")
            tried += 1
        self.assertGreater(tried, 40)
        for legacy in ("hashed", "legacy"):
            text = self.put("t", self.get(gold("text"))[:-1] + b"!")
            self.fails(self.check(text, gold("plain.pub"), "--signature", gold(legacy + ".minisig")), "the file or the signature was changed")

    def test_files_that_are_none(self):
        for data in (b"", b"x", b"a\nb\nc\nd\n", b"\0" * 99, os.urandom(300), b"untrusted comment: x\n" * 2000, b"c\n" + b"A" * 9000 + b"\nx\ny\n"):
            path = self.put("bad", data)
            self.fails(self.check(gold("text"), gold("plain.pub"), "--signature", path), "bad")
            self.fails(self.check(gold("text"), path, "--signature", gold("hashed.minisig")), "bad")
            self.fails(mica("sign", gold("text"), "--key", path, "--signature", self.path("out")), "bad")
        self.assertFalse(os.path.exists(self.path("out")))


class OurKeys(SignCase):
    def test_a_pair_without_a_password(self):
        self.keys()
        self.assertEqual(os.stat(self.path("k.key")).st_mode & 0o777, 0o600)
        text = self.put("t", b"x" * 200000)
        self.ok(mica("sign", text, "--key", self.path("k.key")))
        self.assertRegex(self.ok(self.check(text, self.path("k.pub"))).text, r"trusted comment: timestamp:\d+\tfile:t\thashed\n$")
        self.fails(mica("sign", "--generate", "--key", self.path("k.key"), "--pubkey", self.path("k2.pub"), "--no-password"), "a key is not replaced")
        self.fails(mica("sign", text, "--key", self.path("k.key"), "--comment", "two\nlines"), "one line")

    def test_a_pair_with_a_password(self):
        password = self.put("password", "öffne dich\n")
        self.keys("--password-file", password)
        text = self.put("t", b"")
        self.ok(mica("sign", text, "--key", self.path("k.key"), "--password-file", password))
        self.ok(self.check(text, self.path("k.pub")))
        self.put("wrong", "öffne dich nicht\n")
        self.fails(mica("sign", text, "--key", self.path("k.key"), "--password-file", self.path("wrong")), "the password is not that")
        done = mica("sign", text, "--key", self.path("k.key"), start_new_session=True)  # no terminal
        self.fails(done, "give --password-file")

    def test_command_line(self):
        self.fails(mica("sign", "x"), "--key FILE, the secret key, is missing", code=2)
        self.fails(mica("sign", "--key", "k"), "signs one FILE", code=2)
        self.fails(mica("sign", "--generate", "--key", "k"), "--pubkey FILE", code=2)
        self.fails(mica("sign", self.path("none"), "--key", gold("plain.key")), "none")
        self.fails(mica("verify", "x", "--signature-only"), "--pubkey", code=2)
        self.fails(self.check(gold("text"), gold("plain.pub")), "text.minisig")
        self.fails(mica("report", "x", "--sign", "k"), "--out", code=2)


class Reports(SignCase):
    def test_a_signed_report(self):
        self.keys()
        runs = self.put("runs.json", records.lines(records.run(seconds=60)))
        page = self.path("report.html")
        self.ok(mica("report", runs, "--out", page, "--sign", self.path("k.key"), "--comment", "60 s, by hand"))
        self.assertIn("trusted comment: 60 s, by hand", self.ok(self.check(page, self.path("k.pub"))).text)
        with open(page, "ab") as f:
            f.write(b" ")
        self.fails(self.check(page, self.path("k.pub")), "the file or the signature was changed")

    def test_signature_and_figures(self):
        """Signed runs are verified in both ways; a signature that is not good ends it before anything is read."""
        self.keys()
        runs = self.put("runs.json", records.lines(records.run(seconds=60)))
        self.ok(mica("sign", runs, "--key", self.path("k.key")))
        done = mica("verify", runs, "--pubkey", self.path("k.pub"))
        self.assertRegex(done.text, r"^good  signature of the key [0-9A-F]{16}; .*\n.* figures from \d+ replies", done)
        with open(runs, "ab") as f:
            f.write(b"\n")
        done = mica("verify", runs, "--pubkey", self.path("k.pub"))
        self.assertEqual((done.code, done.out), (1, b""))


class Minisign(SignCase):
    def setUp(self):
        if not MINISIGN:
            self.skipTest("minisign is not there")
        super().setUp()

    def minisign(self, *args, stdin=b""):
        return subprocess.run([MINISIGN, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)

    def test_it_checks_ours(self):
        self.keys()
        text = self.put("t", os.urandom(100000))
        for legacy in ((), ("--legacy",)):
            self.ok(mica("sign", text, "--key", self.path("k.key"), "--comment", "by mica", *legacy))
            done = self.minisign("-V", "-p", self.path("k.pub"), "-m", text)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn(b"Trusted comment: by mica", done.stdout)
        self.put("t", b"changed")
        self.assertNotEqual(self.minisign("-V", "-p", self.path("k.pub"), "-m", text).returncode, 0)

    def test_it_signs_with_our_keys(self):
        password = self.put("password", "correct horse\n")
        for args in (("--no-password",), ("--password-file", password)):
            for name in ("k.key", "k.pub"):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            self.keys(*args)
            text = self.put("t", b"some text")
            done = self.minisign("-S", "-s", self.path("k.key"), "-m", text, stdin=b"correct horse\n")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.ok(self.check(text, self.path("k.pub")))

    def test_ours_with_its_keys(self):
        done = self.minisign("-G", "-W", "-p", self.path("m.pub"), "-s", self.path("m.key"))
        self.assertEqual(done.returncode, 0, done.stdout)
        text = self.put("t", b"some text")
        self.ok(mica("sign", text, "--key", self.path("m.key")))
        self.assertEqual(self.minisign("-V", "-p", self.path("m.pub"), "-m", text).returncode, 0)


if __name__ == "__main__":
    main()
