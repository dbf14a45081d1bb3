"""scripts/pack_tarball.py, which packs what scripts/build-tarball built: here it packs the program of this build."""
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile

from climica import BIN, DATA, SCRIPTED, TestCase, environment, main, mica

ROOT = os.path.dirname(os.path.dirname(DATA))
EPOCH = 1_700_000_000


class Tarball(TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = made.name
        self.licences = os.path.join(self.folder, "licences")
        os.makedirs(self.licences)
        with open(os.path.join(self.licences, "some.txt"), "w", encoding="ascii") as f:
            f.write("a licence\n")

    def pack(self, out, umask=0o022, epoch=EPOCH):
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "scripts", "pack_tarball.py"), "--program", BIN, "--runs", BIN,
                               "--arch", "here", "--epoch", str(epoch), "--out", os.path.join(self.folder, out), "--licences", self.licences],
                              stdout=subprocess.PIPE, universal_newlines=True, check=True, preexec_fn=lambda: os.umask(umask))
        return done.stdout.strip()

    def bytes_of(self, path):
        with open(path, "rb") as f:
            return f.read()

    def test_same_files_same_bytes(self):
        first = self.bytes_of(self.pack("a"))
        os.utime(os.path.join(self.licences, "some.txt"), (1, 1))
        os.chmod(os.path.join(self.licences, "some.txt"), 0o600)
        self.assertEqual(first, self.bytes_of(self.pack("b", umask=0o077)))
        self.assertNotEqual(first, self.bytes_of(self.pack("c", epoch=EPOCH + 1)))

    def test_sums(self):
        path = self.pack("a")
        with open(os.path.join(self.folder, "a", "SHA256SUMS"), encoding="ascii") as f:
            self.assertEqual(f.read(), f"{hashlib.sha256(self.bytes_of(path)).hexdigest()}  {os.path.basename(path)}\n")

    def test_unpacked(self):
        """The program runs from a folder that has only what the archive has, and finds its data there."""
        path = self.pack("a")
        version = mica("--version").text.split()[1]
        self.assertEqual(os.path.basename(path), f"mica-{version}-linux-here.tar.gz")
        with tarfile.open(path) as tar:
            entries = tar.getmembers()
            tar.extractall(self.folder)
        self.assertEqual({(e.mtime, e.uid, e.gid, e.mode) for e in entries if "/bin/" not in e.name}, {(EPOCH, 0, 0, 0o644)})
        root = os.path.join(self.folder, os.path.basename(path)[:-len(".tar.gz")])
        env = {**environment(), "XDG_DATA_HOME": os.path.join(self.folder, "data")}
        program = os.path.join(root, "bin", "mica")
        said = subprocess.run([program, "run", "-m", SCRIPTED, "-p", "E", "--temp", "0"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=True).stdout
        self.assertEqual(said.decode().strip(), "Hi \U0001F642!")
        tasks = subprocess.run([program, "task"], env=env, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
        self.assertRegex(tasks, r"(?m)^\s*classify\b")
        for name, text in (("share/man/man1/mica.1", mica("help", "--man").out),
                           ("share/zsh/site-functions/_mica", mica("help", "--completion", "--shell", "zsh").out),
                           ("share/doc/mica/licences/some.txt", b"a licence\n")):
            self.assertEqual(self.bytes_of(os.path.join(root, name)), text, name)

    def test_links_of_the_documents(self):
        """The README in the archive leads to documents that are in it, or to the sources."""
        with tarfile.open(self.pack("a")) as tar:
            names = {e.name.split("/", 1)[1] for e in tar.getmembers()}
            note = tar.extractfile(next(e for e in tar.getmembers() if e.name.endswith("/README.txt"))).read().decode()
        for named in re.findall(r"share/\S+\.md", note):
            self.assertIn(named, names)


if __name__ == "__main__":
    main()
