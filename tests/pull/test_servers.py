"""Downloads: servers that are silent, limited, lying or hostile; mirrors, chunks, proxies, TLS, the disk."""
import json
import os
import shutil
import subprocess
import time

from hostile import Hostile
from pulling import PullCase, content, flip, main, read, sum_of, write

CHUNK = 65536


class Servers(PullCase):
    def hostile(self, **more):
        return Hostile(self, self.data, content(self.SIZE, seed=2), **more)

    def known(self, server, mode, *args, **more):
        return self.pull(server.url(mode), "--sha256", self.sum, "-o", self.out, *args, **more)

    def test_silence_is_not_waited_out(self):
        server = self.hostile()
        start = time.monotonic()
        done = self.known(server, "stall", "--stall", "1", "--retries", "0")
        self.is_refused(done)
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(read(self.part), self.data[:self.SIZE // 2])

    def test_limited_ranges_of_a_file_of_unknown_length(self):
        server = self.hostile()
        self.is_whole(self.pull(server.url("limited"), "-o", self.out))
        self.assertEqual(server.ranges[:3], [None, "bytes=50000-", "bytes=100000-"])

    def test_a_weak_tag_is_no_validator(self):
        server = self.hostile()
        self.is_whole(self.pull(server.url("weak"), "-o", self.out), server.server.other)
        self.assertEqual(server.ranges, [None, None])

    def test_a_date_is_one(self):
        server = self.hostile()
        self.is_whole(self.pull(server.url("dated"), "-o", self.out))
        self.assertEqual(server.ranges, [None, "bytes=90000-"])
        self.assertEqual(server.if_ranges[1], "Tue, 01 Jul 2025 10:00:00 GMT")

    def test_another_tag_where_if_range_is_not_heeded(self):
        server = self.hostile()
        self.is_whole(self.pull(server.url("tagged"), "-o", self.out), server.server.other)

    def test_compressed_on_the_way(self):
        self.is_refused(self.known(self.hostile(), "gzip"), "compressed")

    def test_a_web_page(self):
        server = self.hostile()
        write(self.part, self.data[:1000])
        self.is_refused(self.known(server, "html"), "web page")
        self.assertEqual(read(self.part), self.data[:1000])  # what was there is kept

    def test_an_endless_error_page(self):
        server = self.hostile()
        self.is_refused(self.known(server, "bomb"), "404", "no such file")
        self.assertTrue(server.wait_for(lambda s: s.bomb_cut))

    def test_senseless_headers(self):
        server = self.hostile()
        self.is_whole(self.known(server, "headers"))

    def test_waits_as_long_as_the_server_asks(self):
        start = time.monotonic()
        self.is_whole(self.known(self.hostile(), "retry"))
        self.assertGreater(time.monotonic() - start, 1.9)

    def test_forbidden_is_not_tried_again(self):
        server = self.hostile()
        self.is_refused(self.known(server, "forbidden"), "403", "token")
        self.assertEqual(len(server.server.seen), 1)

    def test_only_http(self):
        self.assertEqual(self.pull("file:///etc/hostname", "-o", self.out).code, 1)
        self.is_refused(self.known(self.hostile(), "farther"))
        self.assertEqual(self.pull("http://me:secret@127.0.0.1/x.gguf", "-o", self.out).code, 1)

    def test_nobody_there(self):
        self.is_refused(self.pull("http://127.0.0.1:1/x.gguf", "-o", self.out, "--retries", "1"))
        self.assertFalse(os.path.exists(self.part))


class Entries(PullCase):
    """Registry files: lengths, chunks, mirrors, the disk."""

    def hostile(self):
        return Hostile(self, self.data, content(self.SIZE, seed=2))

    def test_a_wrong_chunk_is_fetched_again_and_nothing_else(self):
        server = self.hostile()
        self.is_whole(self.pull(self.entry([server.url("mended")], CHUNK), "-o", self.out))
        self.assertEqual(server.ranges, [None, f"bytes={CHUNK}-"])

    def test_a_wrong_byte_in_the_part_is_found_before_anything_is_fetched(self):
        server = self.hostile()
        write(self.part, self.data[:190000])
        flip(self.part, 70000)
        self.is_whole(self.pull(self.entry([server.url("ok")], CHUNK), "-o", self.out))
        self.assertEqual(server.ranges, [f"bytes={CHUNK}-"])

    def test_a_wrong_byte_in_an_unfinished_chunk_costs_that_chunk(self):
        server = self.hostile()
        write(self.part, self.data[:190000])
        flip(self.part, 140000)
        self.is_whole(self.pull(self.entry([server.url("ok")], CHUNK), "-o", self.out))
        self.assertEqual(server.ranges, ["bytes=190000-", f"bytes={2 * CHUNK}-"])

    def test_a_chunk_that_stays_wrong(self):
        server = self.hostile()
        sums = [sum_of(self.data[i:i + CHUNK]) for i in range(0, self.SIZE, CHUNK)]
        sums[1] = "0" * 64
        done = self.pull(self.entry([server.url("ok")], CHUNK, chunks=sums), "-o", self.out, "--retries", "1")
        self.is_refused(done, "chunk 2", "wrong hash")
        self.assertEqual(read(self.part), self.data[:CHUNK])

    def test_another_length_is_refused_before_it_is_fetched(self):
        server = self.hostile()
        done = self.pull(self.entry([server.url("ok")], bytes=self.SIZE + 1), "-o", self.out)
        self.is_refused(done, str(self.SIZE), str(self.SIZE + 1))
        self.assertEqual(len(server.server.seen), 1)

    def test_another_file_of_the_same_length(self):
        server = self.hostile()
        self.is_refused(self.pull(self.entry([server.url("ok")], sha256="0" * 64), "-o", self.out), "another file")
        self.assertFalse(os.path.exists(self.part))
        self.assertEqual(len(server.server.seen), 2)

    def test_mirrors_are_tried_in_turn_and_continue_each_other(self):
        first, second = self.serve(), self.hostile()
        entry = self.entry([first.url("e404"), first.url("short"), second.url("ok")])
        done = self.pull(entry, "-o", self.out, "--retries", "0")
        self.is_whole(done)
        self.assertEqual(second.ranges[-1], f"bytes={self.SIZE - 1}-")
        self.assertIn("trying the next address", done.message)

    def test_space_is_looked_at_first(self):
        server = self.hostile()
        done = self.pull(self.entry([server.url("ok")], bytes=1 << 45), "-o", self.out)
        self.is_refused(done, "not enough space", "free")
        self.assertEqual(server.server.seen, [])

    def test_a_full_disk(self):
        server = self.hostile()
        script = """trap '' XFSZ; ulimit -f 100; exec "$0" "$@\""""  # files of at most 51,200 or 102,400 bytes
        done = subprocess.run(["sh", "-c", script, os.environ["MICA_BIN"], "pull", server.url("ok"), "-o", self.out],
                              env=self.env(), capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"cannot write", done.stderr)
        kept = read(self.part)
        self.assertEqual(kept, self.data[:len(kept)])
        self.is_whole(self.pull(server.url("ok"), "-o", self.out))

    def test_by_name_from_the_users_registry(self):
        server = self.hostile()
        folder = self.path("data/mica/registry")
        os.makedirs(folder)
        shutil.move(self.entry([server.url("ok")], description="A tiny one", licence="MIT"), os.path.join(folder, "tiny.json"))
        known = self.ok(self.mica("models", "known")).text
        self.assertRegex(known, rf"(?m)^tiny +{self.SIZE}  A tiny one$")
        done = self.ok(self.pull("tiny"))
        self.assertIn("licence: MIT", done.message)
        self.assertEqual(done.text, os.path.join(self.models, "tiny.gguf") + "\n")
        self.fails(self.pull("nothing"), "nothing", "mica models known")

    def test_an_entry_that_the_script_made(self):
        server = self.hostile()
        script = os.path.join(Registry.ROOT, "scripts", "registry-entry")
        file = write(self.path("mine.gguf"), self.data)
        text = subprocess.run([script, file, server.url("mended"), "--chunk-bytes", str(CHUNK), "--licence", "MIT"], check=True,
                              capture_output=True).stdout
        self.assertEqual(json.loads(text)["name"], "mine")
        self.is_whole(self.pull(write(self.path("mine.json"), text), "-o", self.out))
        self.assertEqual(server.ranges, [None, f"bytes={CHUNK}-"])

    def test_words(self):
        entry = self.entry(["http://127.0.0.1:1/x"])
        self.fails(self.pull(entry, "--sha256", self.sum), "--sha256", code=2)
        self.fails(self.pull(entry, "--name", "x"), "--name", code=2)
        self.fails(self.pull("http://127.0.0.1:1/x", "--sha256", "F" * 64), "hexadecimal")
        self.fails(self.pull("http://127.0.0.1:1/x", "--token-file", self.path("none")), "none")
        self.fails(self.pull("a b"), "a b", code=2)
        self.fails(self.pull(self.path("none.json")), "none.json")
        self.fails(self.pull(write(self.path("bad.json"), b"{]")), "line 1")


class Network(PullCase):
    """Proxies and TLS."""

    def test_proxy_of_the_environment(self):
        proxy = self.serve()  # takes whatever it is asked for
        address = f"http://127.0.0.1:{proxy.port}"
        url = "http://host.invalid/ok/name.gguf"
        self.is_whole(self.pull(url, "--sha256", self.sum, "-o", self.out, env=self.env(http_proxy=address)))
        self.assertEqual(proxy.log()[0]["path"], url)
        os.unlink(self.out)
        env = self.env(http_proxy=address, no_proxy="host.invalid")
        self.is_refused(self.pull(url, "--sha256", self.sum, "-o", self.out, "--retries", "0", env=env))
        env = self.env(HTTP_PROXY=address)  # may come from a request's header
        self.is_refused(self.pull(url, "--sha256", self.sum, "-o", self.out, "--retries", "0", env=env))
        self.assertEqual(len(proxy.log()), 1)

    def certificate(self):
        key, cert = self.path("key.pem"), self.path("cert.pem")
        try:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                            "-keyout", key, "-out", cert,
                            "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                           check=True, capture_output=True)
        except FileNotFoundError:
            self.skipTest("no openssl here")
        return cert, key

    def test_tls(self):
        cert, key = self.certificate()
        server, plain = Hostile(self, self.data, tls=(cert, key)), self.serve()
        args = ("--sha256", self.sum, "-o", self.out)
        self.is_refused(self.pull(server.url("ok"), *args))  # nobody has signed it
        self.assertEqual(server.server.seen, [])
        env = self.env(SSL_CERT_FILE=cert, MICA_PULL_TOKEN="secret")
        self.is_whole(self.pull(server.url("ok"), *args, env=env))
        self.assertEqual(server.server.seen[0][1]["Authorization"], "Bearer secret")
        os.unlink(self.out)
        server.server.other_url = plain.url("ok")  # dl-06: from https to http
        self.is_refused(self.pull(server.url("down"), *args, env=env), "from https to http")
        self.assertEqual(plain.log(), [])


class Registry(PullCase):
    """The files that come with the program."""

    ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    FOLDER = os.path.join(ROOT, "share", "mica", "registry")

    def entries(self):
        for name in sorted(os.listdir(self.FOLDER)):
            with open(os.path.join(self.FOLDER, name), encoding="utf-8") as f:
                yield name, json.load(f)

    def test_files_are_called_by_their_names_and_read(self):
        shutil.copytree(self.FOLDER, self.path("data/mica/registry"))
        known = self.ok(self.mica("models", "known")).text
        names = [name for name, _ in self.entries()]
        self.assertGreater(len(names), 0)
        for name, entry in self.entries():
            self.assertEqual(name, entry["name"] + ".json")
            self.assertIn(entry["name"], known)

    def test_sums_are_those_that_the_tests_models_have(self):
        with open(os.path.join(self.ROOT, "scripts", "models.sha256"), encoding="utf-8") as f:
            sums = {name: digest for digest, name in (line.split() for line in f)}
        for _, entry in self.entries():
            self.assertEqual(sums.get(entry["name"] + ".gguf"), entry["sha256"])

    def test_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not there")
        with open(os.path.join(self.ROOT, "share", "mica", "schemas", "registry.schema.json"), encoding="utf-8") as f:
            validator = jsonschema.Draft202012Validator(json.load(f))
        for _, entry in self.entries():
            validator.validate(entry)
        with open(self.entry(["http://127.0.0.1:1/x"], CHUNK), encoding="utf-8") as f:
            good = json.load(f)
        validator.validate(good)
        for change in ({"schema": 2}, {"extra": 1}, {"name": "../x"}, {"name": ""}, {"name": "x" * 128}, {"urls": []},
                       {"urls": ["ftp://x"]}, {"urls": ["http://a b"]}, {"urls": ["http://x"] * 9},
                       {"bytes": 0}, {"bytes": 1.5}, {"bytes": 1 << 47},
                       {"sha256": "A" * 64}, {"sha256": "0" * 63}, {"chunk_bytes": 65535}, {"chunks": []},
                       {"chunks": ["x"] * 4},
                       {"description": "x" * 400}, {"licence": 5}):
            bad = dict(good, **change)
            self.assertFalse(validator.is_valid(bad), change)
            done = self.pull(write(self.path("bad.json"), json.dumps(bad).encode()), "-o", self.out)
            self.assertEqual(done.code, 1, change)
            self.assertIn("bad.json: ", done.message, change)


if __name__ == "__main__":
    main()
