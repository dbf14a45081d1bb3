"""mica campaign run --nats and mica worker, with a real server on this machine: what is computed, what is refused, who may come in."""
import glob
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import SCRIPTED, main, mica  # noqa: E402
from nats import SERVER, Client, NatsCase, free_port, operator  # noqa: E402


class Running(NatsCase):
    def test_workers_compute_a_campaign(self):
        server, manifest = self.serve(), self.manifest(tokens=6000)
        workers = [self.worker(server, f"w{i}", "--idle-exit", "2") for i in range(3)]
        self.wait(self.lead(server, manifest))
        shards = self.check(manifest)
        self.assertTrue(all(s["samples"] and s["head"]["runtime"] == "mica" for s in shards))
        names = [s["head"]["worker"] for s in shards]
        for i, w in enumerate(workers):
            self.wait(w, name=f"w{i}")
            self.assertIn(f"worker w{i}: {names.count(f'w{i}')} shards", self.log(f"w{i}"))
        self.assertRegex(self.log("lead"), r"mica: shard \d+ done in .*\n(.*\n)*test  100\.0 %  done\n")
        self.assertTidy(server)

    def test_it_goes_on_alone_and_together(self):
        """One database: begun by workers, stopped, and ended without them."""
        server, manifest = self.serve(), self.manifest(tokens=30000, shards={"tokens": 1500})
        lead = self.lead(server, manifest, "--ahead", "4")
        worker = self.worker(server)
        self.until(lambda: self.done() >= 3)
        lead.send_signal(signal.SIGINT)
        self.wait(lead, code=130)
        self.assertIn("stopped; the same command goes on from here", self.log("lead"))
        worker.send_signal(signal.SIGINT)
        self.wait(worker, code=130, name="w")
        self.ok(mica("campaign", "run", manifest, "--db", self.db))
        self.check(manifest)

    def test_measured_shards(self):
        """Without a size, shards grow with what the slowest worker did."""
        server, manifest = self.serve(), self.manifest(tokens=20000, shards={"seconds": 0.5})
        self.worker(server)
        self.wait(self.lead(server, manifest))
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertGreater(max(s["planned"] for s in shards), 2 * shards[0]["planned"])

    def test_small_messages(self):
        """Prompts and results in parts: the server takes messages of 4 KiB at most."""
        server, manifest = self.serve("max_payload: 4096"), self.manifest(tokens=9000, shards={"tokens": 3000})
        self.worker(server)
        self.wait(self.lead(server, manifest))
        self.check(manifest)
        self.assertTidy(server)

    def test_two_campaigns(self):
        server = self.serve()
        first, second = self.manifest("a.json", tokens=4000), self.manifest("b.json", tokens=5000, seed=9)
        self.worker(server)
        leads = [self.lead(server, m, db=self.path(f"{i}.db")) for i, m in enumerate((first, second))]
        for lead in leads:
            self.wait(lead)
        self.assertEqual([self.status(db=self.path(f"{i}.db"))["tokens"] for i in range(2)], [4000, 5000])


class Wrong(NatsCase):
    def test_forged_results(self):
        """What is no result, or that of another shard, is refused and said; the campaign is whole all the same."""
        server, manifest = self.serve(), self.manifest(tokens=6000, shards={"tokens": 1000})
        lead = self.lead(server, manifest)
        client = Client(server.port)
        self.addCleanup(client.close)
        self.until(lambda: (client.messages("MICA_WORK") or 0) >= 5)
        tag = next(iter(client.api("STREAM.INFO.MICA_WORK", subjects_filter="mica.work.>")["state"]["subjects"])).split(".")[2]
        for i, data in enumerate((b"", b"{}", b"mica-shard-result 1\n\xff\xff\xff\xff{}", os.urandom(900),
                                  b'{"sha256": "%s", "bytes": 99, "parts": 1}' % (b"0" * 64))):
            self.assertIn(b'"seq"', client.request(f"mica.result.{tag}.{i}", data))
        self.until(lambda: self.log("lead").count("a result was refused") == 5)
        self.worker(server)
        self.wait(lead)
        self.check(manifest)
        self.assertIn("5 were refused", self.log("lead"))

    def test_what_a_worker_cannot_compute_it_leaves(self):
        server, manifest = self.serve(), self.manifest()
        os.makedirs(self.path("empty"))
        os.makedirs(self.path("poor/proc"))
        self.put("poor/proc/meminfo", "MemTotal: 900 kB\nMemFree: 300 kB\nMemAvailable: 300 kB\n")
        lead = self.lead(server, manifest)
        workers = [self.worker(server, "none", "--idle-exit", "3", models=self.path("empty")),
                   self.worker(server, "poor", "--idle-exit", "3", "--sysroot", self.path("poor"))]
        for w, name, why in zip(workers, ("none", "poor"), ("is not here", "are free")):
            self.wait(w, name=name)
            self.assertRegex(self.log(name), f"mica: not campaign [0-9a-f]{{16}}: .*{why}")
            self.assertIn("0 shards", self.log(name))
        self.assertEqual(self.done(), 0)
        shutil.copy(SCRIPTED, self.path("empty/renamed.gguf"))  # by its hash, under whatever name
        self.worker(server, models=self.path("empty"))
        self.wait(lead)
        self.check(manifest)

    def test_a_runtime_is_a_name(self):
        """A manifest must not make workers run a path of its choice."""
        server = self.serve()
        self.lead(server, self.manifest(runtime="./fake"))
        worker = self.worker(server, "w", "--idle-exit", "2")
        self.wait(worker, name="w")
        self.assertIn("is no name of an adapter", self.log("w"))

    def test_an_adapter_that_fails(self):
        for mode in ("dying", "good"):
            self.put(f"{mode}/fake/manifest.json", '{"name": "fake", "protocol": 1, "command": ["%s", "-B", "%s", "%s"]}' % (
                sys.executable, os.path.join(HERE, "fake_adapter.py"), mode))
        server, manifest = self.serve(), self.manifest(runtime="fake", tokens=500, shards={"tokens": 200})
        lead = self.lead(server, manifest)
        bad = self.worker(server, "bad", "--adapters", self.path("dying"), "--idle-exit", "20")
        self.until(lambda: "could not be computed" in self.log("bad"))
        self.until(lambda: "a worker could not compute shard" in self.log("lead"))
        bad.kill()
        bad.wait()
        self.worker(server, "fine", "--adapters", self.path("good"))
        self.wait(lead)
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertEqual({s["head"]["worker"] for s in shards}, {"fine"})

    def test_command_line(self):
        self.fails(mica("worker"), "--nats URL is missing", code=2)
        nowhere = f"nats://127.0.0.1:{free_port()}"
        self.fails(mica("campaign", "run", self.manifest(), "--db", self.db, "--nats", nowhere, "--format", "json"), "no connection to the NATS server")
        done = mica("worker", "--nats", nowhere)
        self.assertEqual(done.code, 1)
        self.assertIn("no connection to the NATS server", done.message)
        self.fails(mica("worker", "--nats", nowhere, "--name", "a b"), "--name", code=2)
        self.fails(mica("worker", "--nats", nowhere, "--nats-user", "u", "--nats-creds", "c"), "three ways", code=2)
        self.fails(mica("worker", "--nats", nowhere, "--nats-token-file", self.path("none")), "none")

    def test_a_server_without_jetstream(self):
        server = self.serve(jetstream=False)
        done = mica("campaign", "run", self.manifest(), "--db", self.db, "--nats", server.url)
        self.assertEqual(done.code, 1)
        self.assertIn("is JetStream on?", done.message)


class Copies(NatsCase):
    def setUp(self):
        super().setUp()
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        self.assertIn("--postgres", mica("help", "campaign").text)
        if not bins:
            self.skipTest("PostgreSQL is not there")
        self.bin = os.path.dirname(bins[-1])
        self.data = tempfile.mkdtemp(prefix="mica-pg-")
        self.addCleanup(shutil.rmtree, self.data, True)
        self.user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []  # it refuses root
        if self.user:
            shutil.chown(self.data, "nobody")
        subprocess.run([*self.user, f"{self.bin}/initdb", "-D", f"{self.data}/db", "-A", "trust", "-U", "mica", "-N"], check=True,
                       stdout=subprocess.DEVNULL, cwd=self.data)
        self.database = self.start_postgres()

    def start_postgres(self):
        p = subprocess.Popen([*self.user, f"{self.bin}/postgres", "-D", f"{self.data}/db", "-k", self.data, "-c", "listen_addresses=", "-F"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.data)
        self.addCleanup(p.wait)
        self.addCleanup(p.send_signal, signal.SIGQUIT)
        self.until(lambda: subprocess.run([f"{self.bin}/pg_isready", "-h", self.data, "-q"]).returncode == 0)
        return p

    def query(self, sql):
        return subprocess.run([f"{self.bin}/psql", "-h", self.data, "-U", "mica", "-d", "postgres", "-Atc", sql], check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout.strip()

    def test_results_in_postgresql(self):
        """All of them, once, with the sums and bytes of the SQLite database; after a second run, which has nothing to do, the same."""
        server, manifest = self.serve(), self.manifest(tokens=4000)
        url = f"postgresql://mica@/postgres?host={self.data}"
        self.worker(server)
        for _ in range(2):
            self.wait(self.lead(server, manifest, "--postgres", url))
        shards = self.check(manifest)
        self.assertEqual(self.query("SELECT count(*), sum(prompt_tokens + reply_tokens) FROM mica_shard"), f"{len(shards)}|4000")
        connection = sqlite3.connect(self.db)
        columns = "seq, id, input, planned, wall_ns, length(answers), length(times), length(tokens), length(samples)"
        rows = connection.execute(f"SELECT {columns} FROM shard ORDER BY seq").fetchall()
        self.assertEqual(self.query(f"SELECT {columns} FROM mica_shard ORDER BY seq"), "\n".join("|".join(map(str, r)) for r in rows))
        self.assertEqual(self.query("SELECT name, tokens FROM mica_campaign"), "test|4000")
        blob = connection.execute("SELECT hex(tokens) FROM shard WHERE seq = 1").fetchone()[0].lower()
        self.assertEqual(self.query("SELECT encode(tokens, 'hex') FROM mica_shard WHERE seq = 1"), blob)
        connection.close()

    def test_a_database_that_is_away(self):
        server, manifest = self.serve(), self.manifest(tokens=3000)
        self.database.send_signal(signal.SIGQUIT)
        self.database.wait()
        url = f"postgresql://mica@/postgres?host={self.data}"
        lead = self.lead(server, manifest, "--postgres", url)
        self.wait(lead, code=1)
        self.assertIn("the PostgreSQL database: ", self.log("lead"))


class Locked(NatsCase):
    def campaign_with(self, server, *args, **more):
        manifest = self.manifest()
        worker = self.worker(server, "w", "--idle-exit", "2", *args)
        self.wait(self.lead(server, manifest, *args, **more))
        self.check(manifest)
        self.wait(worker, name="w")

    def refused(self, server, *args):
        done = mica("worker", "--nats", server.url, "--idle-exit", "1", *args)
        self.assertEqual(done.code, 1, done)
        self.assertIn("no connection to the NATS server", done.message)

    def test_user_and_password(self):
        self.put("password", "tr0ub4dor&3\n")
        self.put("wrong", "other\n")
        server = self.serve('authorization { user: "mica", password: "tr0ub4dor&3" }')
        self.refused(server)
        self.refused(server, "--nats-user", "mica", "--nats-password-file", self.path("wrong"))
        self.campaign_with(server, "--nats-user", "mica", "--nats-password-file", self.path("password"))

    def test_token(self):
        self.put("token", "s3cr3t")
        server = self.serve('authorization { token: "s3cr3t" }')
        self.refused(server)
        self.campaign_with(server, "--nats-token-file", self.path("token"))

    def test_credentials(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not there")
        for name in ("server", "other"):
            os.makedirs(self.path(name))
        config, file = operator(self.path("server"))
        _, other = operator(self.path("other"))
        server = self.serve(config)
        self.refused(server)
        self.refused(server, "--nats-creds", other)
        self.campaign_with(server, "--nats-creds", file)

    def certificate(self, name, subject, *more, ca=None):
        signer = ["-CA", self.path(ca + ".pem"), "-CAkey", self.path(ca + ".key")] if ca else []
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", subject,
                        "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem"), *signer, *more],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def test_tls(self):
        """Both sides show certificates; a server of another authority, or for another host, is refused."""
        if not shutil.which("openssl"):
            self.skipTest("openssl is not there")
        self.certificate("ca", "/CN=ours")
        self.certificate("other", "/CN=not ours")
        leaf = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext"]
        self.certificate("server", "/CN=server", *leaf, "subjectAltName=IP:127.0.0.1", ca="ca")
        self.certificate("elsewhere", "/CN=elsewhere", *leaf, "subjectAltName=DNS:elsewhere.example", ca="ca")
        self.certificate("client", "/CN=client", *leaf, "extendedKeyUsage=clientAuth", ca="ca")
        config = 'tls { cert_file: "%s", key_file: "%s", ca_file: "%s", verify: true }'
        server = self.serve(config % (self.path("server.pem"), self.path("server.key"), self.path("ca.pem")))
        ours = ["--nats-cert", self.path("client.pem"), "--nats-key", self.path("client.key")]
        self.refused(server, *ours, "--nats-ca", self.path("other.pem"))
        self.refused(server, "--nats-ca", self.path("ca.pem"))
        self.campaign_with(server, *ours, "--nats-ca", self.path("ca.pem"))
        server.kill()
        server = self.serve(config % (self.path("elsewhere.pem"), self.path("elsewhere.key"), self.path("ca.pem")))
        self.refused(server, *ours, "--nats-ca", self.path("ca.pem"))


if __name__ == "__main__":
    if not SERVER:
        print("skipped: nats-server is not there", file=sys.stderr)
        sys.exit(77)
    main()
