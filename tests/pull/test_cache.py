"""The folder of models: names, files called by their checksums, mica models, and a wrong byte that is found before loading."""
import hashlib
import json
import os
import shutil
import signal

from pulling import SCRIPTED, PullCase, flip, main, read, sum_of, write


class CacheCase(PullCase):
    def blob(self, digest=None):
        return os.path.join(self.models, "blobs", "sha256-" + (digest or self.sum))

    def named(self, name):
        return os.path.join(self.models, name)

    def models_json(self):
        return json.loads(self.ok(self.mica("models", "list", "--json")).text)["models"]

    def states(self):
        return {m["name"]: m["state"] for m in self.models_json()}

    def pull_as(self, server, name, mode="ok"):
        done = self.ok(self.pull(server.url(mode), "--sha256", self.sum, "--name", name))
        self.assertEqual(done.text, self.named(name + ".gguf") + "\n")
        return done


class Names(CacheCase):
    def test_a_name_is_a_link_to_the_checksum(self):
        server = self.serve()
        self.pull_as(server, "tiny")
        self.assertEqual(os.readlink(self.named("tiny.gguf")), "blobs/sha256-" + self.sum)
        self.assertEqual(read(self.named("tiny.gguf")), self.data)
        self.assertEqual(self.models_json(),
                         [{"name": "tiny.gguf", "bytes": len(self.data), "sha256": self.sum, "state": "good"}])
        row = self.ok(self.mica("models")).text.splitlines()[1].split()
        self.assertEqual(row, ["tiny.gguf", str(len(self.data)), self.sum[:12], "good"])

    def test_what_is_there_is_not_fetched_again_and_is_shared(self):
        server = self.serve()
        self.pull_as(server, "one")
        self.pull_as(server, "one")
        self.pull_as(server, "two")
        self.assertEqual(len(server.log()), 1)
        self.assertEqual(os.path.realpath(self.named("one.gguf")), os.path.realpath(self.named("two.gguf")))
        self.assertIn("0 bytes freed", self.ok(self.mica("models", "rm", "one")).text)
        self.assertEqual(read(self.named("two.gguf")), self.data)
        stamp = os.path.getsize(self.blob() + ".ok")
        self.assertEqual(self.ok(self.mica("models", "rm", "two.gguf")).text, f"{len(self.data) + stamp} bytes freed\n")
        self.assertEqual(os.listdir(os.path.join(self.models, "blobs")), [".lock"])

    def test_without_a_checksum_the_name_and_the_sum_are_found(self):
        server = self.serve()
        done = self.ok(self.pull(server.url("ok", "some-model.gguf?download=true")))
        self.assertIn(self.sum, done.message)
        self.assertEqual(done.text, self.named("some-model.gguf") + "\n")
        self.assertEqual(self.states(), {"some-model.gguf": "good"})

    def test_killed_and_continued(self):
        server = self.serve()
        process = self.start("pull", server.url("slow"), "--sha256", self.sum)
        part = self.blob() + ".part"
        self.wait_for_size(part, len(self.data) // 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(self.models_json(), [])
        size = os.path.getsize(part)
        self.ok(self.pull(server.url("slow"), "--sha256", self.sum))
        self.assertEqual(server.log()[-1]["range"], f"bytes={size}-")
        self.assertEqual(self.states(), {"name.gguf": "good"})
        self.assertEqual(sorted(os.listdir(os.path.join(self.models, "blobs"))),
                         [".lock", "sha256-" + self.sum, "sha256-" + self.sum + ".ok"])

    def test_several_at_once(self):
        server = self.serve()
        started = [self.start("pull", server.url("slow"), "--sha256", self.sum, "--name", name)
                   for name in ("one", "one", "two", "one")]
        self.assertEqual([p.wait() for p in started], [0] * 4)
        self.assertEqual(len(server.log()), 1)
        self.assertEqual(self.states(), {"one.gguf": "good", "two.gguf": "good"})
        self.assertEqual(read(self.named("two.gguf")), self.data)

    def test_a_file_of_that_name_that_was_not_pulled_stays(self):
        server = self.serve()
        os.makedirs(self.models)
        write(self.named("tiny.gguf"), b"mine")
        done = self.pull(server.url("ok"), "--sha256", self.sum, "--name", "tiny")
        self.assertEqual(done.code, 1, done)
        self.assertIn("was not pulled", done.message)
        self.assertEqual(read(self.named("tiny.gguf")), b"mine")
        self.fails(self.mica("models", "rm", "tiny"), "was not pulled")
        self.assertEqual(self.states(), {"tiny.gguf": "file"})
        write(self.named("tiny.gguf"), self.data)
        self.pull_as(server, "tiny")  # the same file: fine as it is

    def test_names_cannot_leave_the_folder(self):
        server = self.serve()
        for name in ("../x", "a/b", "", ".hidden", "-n", "x" * 128, "a b", "blobs/../../x"):
            self.assertNotEqual(self.pull(server.url("ok"), "--name", name).code, 0)
            self.assertNotEqual(self.mica("models", "rm", name).code, 0)
        self.fails(self.pull(f"http://127.0.0.1:{server.port}/ok/.."), "name")
        self.assertEqual(server.log(), [])

    def test_prune(self):
        server = self.serve()
        self.pull_as(server, "tiny")
        os.unlink(self.named("tiny.gguf"))
        write(os.path.join(self.models, "blobs", "sha256-" + "0" * 64 + ".part"), b"left")
        slow = self.start("pull", server.url("slow"), "--sha256", "1" * 64, "--name", "running")
        running = self.blob("1" * 64) + ".part"
        self.wait_for_size(running, 1)
        self.ok(self.mica("models", "prune"))
        self.assertTrue(os.path.exists(running))  # somebody is at it
        slow.kill()
        slow.wait()
        self.ok(self.mica("models", "prune"))
        self.assertEqual(os.listdir(os.path.join(self.models, "blobs")), [".lock"])

    def test_words(self):
        self.fails(self.mica("models", "fly"), "fly", code=2)
        self.fails(self.mica("models", "rm"), "rm NAME", code=2)
        self.fails(self.mica("models", "list", "x"), "mica models list", code=2)
        self.fails(self.mica("models", "rm", "nothing"), "nothing")
        self.fails(self.mica("models", "verify", "nothing"), "nothing")
        self.assertEqual(self.ok(self.mica("models")).text, "")


class Damage(CacheCase):
    """A byte that is wrong is found: by verify in any case, before loading if the file was touched."""

    def setUp(self):
        super().setUp()
        self.data = read(SCRIPTED)
        self.sum = sum_of(self.data)
        self.pull_as(self.serve(), "tiny")
        self.args = ("run", "-m", "tiny", "-p", "ping", "-n", "3", "--temp", "0")

    def test_a_pulled_name_runs(self):
        want = self.ok(self.mica("run", "-m", SCRIPTED, *self.args[3:]))
        self.assertEqual(self.ok(self.mica(*self.args)).out, want.out)
        self.assertEqual(self.ok(self.mica("run", "-m", "tiny.gguf", *self.args[3:])).out, want.out)
        self.ok(self.mica("inspect", "tiny"))

    def test_a_file_in_the_current_folder_goes_first(self):
        shutil.copy(SCRIPTED, self.path("tiny"))
        flip(self.blob(), len(self.data) - 1)
        self.ok(self.mica(*self.args, cwd=self.folder))

    def test_found_before_it_is_loaded(self):
        flip(self.blob(), len(self.data) - 1)
        self.assertEqual(self.states(), {"tiny.gguf": "unchecked"})
        done = self.mica(*self.args)
        self.assertEqual((done.code, done.out), (1, b""), done)
        self.assertIn("is damaged", done.message)
        self.assertIn("pull it again", done.message)
        self.assertEqual(self.mica("run", "-m", self.named("tiny.gguf"), *self.args[3:]).code, 1)

    def test_touched_but_right_is_checked_once(self):
        os.utime(self.blob())
        self.assertEqual(self.states(), {"tiny.gguf": "unchecked"})
        self.ok(self.mica(*self.args))
        self.assertEqual(self.states(), {"tiny.gguf": "good"})

    def test_verify_finds_what_left_no_trace(self):
        before = os.stat(self.blob())
        flip(self.blob(), 1000)
        os.utime(self.blob(), ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(self.states(), {"tiny.gguf": "good"})
        self.fails(self.mica("models", "verify"), "tiny.gguf is damaged")
        self.fails(self.mica("models", "verify", "tiny"), "tiny.gguf is damaged")

    def test_verify_and_pull_again(self):
        self.assertEqual(self.ok(self.mica("models", "verify")).text, "tiny.gguf: good\n")
        flip(self.blob(), 1000)
        server = self.serve()
        self.pull_as(server, "tiny")
        self.assertEqual(len(server.log()), 1)
        self.assertEqual(hashlib.sha256(read(self.named("tiny.gguf"))).hexdigest(), self.sum)
        os.unlink(self.blob())
        self.assertEqual(self.states(), {"tiny.gguf": "missing"})
        self.fails(self.mica("models", "verify", "tiny"), "missing")


if __name__ == "__main__":
    main()
