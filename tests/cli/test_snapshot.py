"""mica run --save-session and --load-session on the scripted model."""
import json
import os
import tempfile

from climica import DATA, TestCase, main, run


class Snapshots(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "state")

    def final(self, *args):
        done = self.ok(run("--no-chat", "--json", "-n", "4", *args))
        return json.loads(done.text.splitlines()[-1])

    def test_prefix_is_not_computed_again(self):
        first = self.final("-p", "abcdefgS", "--save-session", self.path)
        self.assertEqual((first["text"], first["cached_n"], first["prompt_n"]), ("alpha beta gamma", 0, 8))
        self.assertEqual(os.listdir(self.folder), ["state"])
        again = self.final("-p", "abcdefgE", "--load-session", self.path)
        self.assertEqual((again["cached_n"], again["prompt_n"]), (7, 8))
        self.assertEqual(again["text"], self.final("-p", "abcdefgE")["text"])
        longer = self.final("-p", "abcdefgSE", "--load-session", self.path, "--save-session", self.path)
        self.assertEqual((longer["cached_n"], longer["prompt_n"]), (8, 9))

    def test_failures(self):
        missing = os.path.join(self.folder, "none", "state")
        self.assertIn("no such file", self.fails(run("-p", "E", "--load-session", self.path)).message)
        unsaved = run("-p", "E", "--save-session", missing)  # the reply is there, and so is its line of metrics
        self.assertEqual((unsaved.code, unsaved.text), (1, "Hi 🙂!"), unsaved)
        self.assertIn("cannot create", unsaved.message)
        self.final("-p", "abcS", "--save-session", self.path)
        other = run("-p", "E", "--load-session", self.path, model=os.path.join(DATA, "tiny", "llama.gguf"))
        self.assertIn("another model", self.fails(other).message)
        os.truncate(self.path, os.path.getsize(self.path) - 1)
        self.assertIn("truncated", self.fails(run("-p", "E", "--load-session", self.path)).message)


if __name__ == "__main__":
    main()
