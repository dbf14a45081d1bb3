"""mica embed: vectors of texts and of lines, in text and JSON; the same whatever threads, chunks and company; errors."""
import json
import math
import os
import subprocess

from climica import BIN, DATA, SCRIPTED, TestCase, environment, main, mica, write_temporary

TINY = os.path.join(DATA, "tiny", "llama.gguf")
WIDTH = 64


def embed(*args, model=TINY, **more):
    return mica("embed", "-m", model, *args, **more)


class Vectors(TestCase):
    def vector(self, *args, **more):
        done = self.ok(embed(*args, **more))
        lines = done.text.splitlines()
        self.assertEqual(len(lines), 1, done)
        return [float(x) for x in lines[0].split(" ")]

    def test_sources_of_the_text(self):
        want = self.vector("-p", "zebra crossing")
        self.assertEqual(len(want), WIDTH)
        self.assertAlmostEqual(math.fsum(x * x for x in want), 1.0, places=5)
        self.assertEqual(self.vector("-f", write_temporary(self, "zebra crossing\n")), want)
        self.assertEqual(self.vector(stdin="zebra crossing\r\n"), want)
        self.assertEqual(self.vector(stdin="zebra crossing"), want)
        self.assertNotEqual(self.vector("-p", "zebra crossing\n"), want)
        self.assertNotEqual(self.vector("-p", "zebra crossing", "--no-bos"), want)

    def test_pooling_and_length(self):
        mean, last = self.vector("-p", "a b c"), self.vector("-p", "a b c", "--pooling", "last")
        self.assertEqual(self.vector("-p", "a b c", "--pooling", "mean"), mean)
        self.assertNotEqual(mean, last)
        for vector, args in ((mean, []), (last, ["--pooling", "last"])):
            raw = self.vector("-p", "a b c", "--no-normalise", *args)
            length = math.sqrt(math.fsum(x * x for x in raw))
            self.assertGreater(abs(length - 1.0), 1e-3)
            for x, y in zip(raw, vector):
                self.assertAlmostEqual(x / length, y, places=6)

    def test_threads_and_chunks_change_nothing(self):
        text = write_temporary(self, "the quick brown fox jumps over the lazy dog " * 3)
        want = embed("-f", text, "--threads", "1").out
        for args in (("--threads", "2"), ("--threads", "3", "--chunk", "5"), ("--chunk", "1"), ("--kernels", "portable")):
            self.assertEqual(self.ok(embed("-f", text, *args)).out, want, args)


class Lines(TestCase):
    TEXTS = ["query: one", "query: two and more", "query: drei", "", "query: one", "else"]

    def test_each_line_as_if_alone(self):
        """Common prefixes are computed once, and that cannot be seen."""
        for args in ((), ("--pooling", "last"), ("--no-normalise",)):
            done = self.ok(embed("--lines", *args, stdin="\r\n".join(self.TEXTS)))
            want = b"".join(embed("-p", text, *args).out for text in self.TEXTS)
            self.assertEqual(done.out, want)
        text = "\n".join(self.TEXTS)
        self.assertEqual(embed("--lines", stdin=text + "\n").out, embed("--lines", stdin=text).out)
        self.assertEqual(self.ok(embed("--lines", stdin="")).out, b"")

    def test_json(self):
        done = self.ok(embed("--lines", "--json", stdin="a\nb b b\n"))
        rows = [json.loads(line) for line in done.text.splitlines()]
        self.assertEqual([r["index"] for r in rows], [0, 1])
        self.assertLess(rows[0]["n_tokens"], rows[1]["n_tokens"])
        for row, text in zip(rows, ("a", "b b b")):
            self.assertEqual(sorted(row), ["embedding", "index", "n_tokens"])
            self.assertEqual(row["embedding"], [float(x) for x in embed("-p", text).text.split()])
            self.assertEqual(row["n_tokens"], len(json.loads(mica("tokenize", "-m", TINY, "-p", text).text)))


class Errors(TestCase):
    def test_errors(self):
        self.fails(embed("-p", "a", "--pooling", "max"), "--pooling", "mean", code=2)
        self.fails(embed("-p", "a", "-f", "b"), "once", code=2)
        self.fails(embed("-p", "", "--no-bos"), "text 1 is empty")
        self.fails(embed("--lines", "--no-bos", stdin="a\n\nb\n"), "text 2 is empty")
        self.fails(embed("-p", "one two three four five six", "--ctx", "8"), "context of 8")
        self.fails(embed("-f", write_temporary(self, b"ab\xff")), "UTF-8")
        self.fails(embed("-p", "a", model="/nonexistent.gguf"), "/nonexistent.gguf")

    def test_lines_before_a_bad_one_are_printed(self):
        done = embed("--lines", "--no-bos", stdin="a\n\nb\n")
        self.assertEqual(len(done.text.splitlines()), 1)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([BIN, "embed", "-m", SCRIPTED, "-p", "E"], stdout=full, stderr=subprocess.PIPE, env=environment(),
                               check=False)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"mica: ", p.stderr)


if __name__ == "__main__":
    main()
