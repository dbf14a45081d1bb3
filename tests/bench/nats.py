"""A NATS server for tests, on a free port with its files in a folder; as much of its protocol as it takes to say something wrong; and what the
tests of many machines share."""
import base64
import binascii
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from climica import BIN, SCRIPTED, environment, mica  # noqa: E402
from test_campaign import CampaignCase  # noqa: E402

MODELS = os.path.dirname(SCRIPTED)

SERVER = shutil.which("nats-server")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """`config`: further lines of its configuration."""

    def __init__(self, folder, config="", jetstream=True):
        self.port = free_port()
        self.folder, self.store = folder, os.path.join(folder, "js")
        self.file = os.path.join(folder, "nats.conf")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(f'listen: "127.0.0.1:{self.port}"\n{config}\n')
            if jetstream:
                f.write('jetstream { store_dir: "%s" }\n' % self.store)
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "nats.log"), "ab") as log:
            self.process = subprocess.Popen([SERVER, "-c", self.file], stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, self.log()
                time.sleep(0.02)

    def log(self):
        with open(os.path.join(self.folder, "nats.log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def lose_disk(self):
        shutil.rmtree(self.store, ignore_errors=True)

    def close(self):
        if self.process.poll() is None:
            self.kill()


class Key:
    """An Ed25519 key in the forms of NATS; openssl computes. `kind`: the letter with which its public form begins."""
    KINDS = {"O": 14 << 3, "A": 0, "U": 20 << 3}

    def __init__(self, folder, kind):
        self.kind, self.seed = self.KINDS[kind], os.urandom(32)
        self.file = os.path.join(folder, f"{kind}-{binascii.hexlify(os.urandom(4)).decode()}.der")
        with open(self.file, "wb") as f:
            f.write(bytes.fromhex("302e020100300506032b657004220420") + self.seed)
        der = self.openssl("pkey", "-inform", "DER", "-in", self.file, "-pubout", "-outform", "DER")
        self.public = self.encode(bytes([self.kind]) + der[-32:])

    @staticmethod
    def openssl(*args, stdin=b""):
        return subprocess.run(["openssl", *args], input=stdin, stdout=subprocess.PIPE, check=True).stdout

    @staticmethod
    def encode(data):
        return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")

    def secret(self):
        return self.encode(bytes([(18 << 3) | (self.kind >> 5), (self.kind & 31) << 3]) + self.seed)

    def sign(self, data):
        with open(self.file + ".data", "wb") as f:
            f.write(data)
        return self.openssl("pkeyutl", "-sign", "-inkey", self.file, "-keyform", "DER", "-rawin", "-in", self.file + ".data")

    def token(self, subject, name, claims):
        """A JWT of this key about another one."""
        def part(data):
            return base64.urlsafe_b64encode(data).rstrip(b"=")

        body = {"jti": name, "iat": int(time.time()), "iss": self.public, "name": name, "sub": subject, "nats": dict(claims, version=2)}
        text = part(b'{"typ":"JWT","alg":"ed25519-nkey"}') + b"." + part(json.dumps(body).encode())
        return (text + b"." + part(self.sign(text))).decode()


def operator(folder):
    """(configuration of a server that trusts one operator, path of a user's credentials file)."""
    limits = {k: -1 for k in ("subs", "data", "payload", "imports", "exports", "conn", "leaf")}
    storage = {k: -1 for k in ("mem_storage", "disk_storage", "streams", "consumer")}
    op, system, account, user = Key(folder, "O"), Key(folder, "A"), Key(folder, "A"), Key(folder, "U")
    tokens = {system.public: op.token(system.public, "SYS", {"type": "account", "limits": dict(limits, wildcards=True)}),
              account.public: op.token(account.public, "mica", {"type": "account", "limits": dict(limits, wildcards=True, **storage)})}
    config = "operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s\n}\n" % (
        op.token(op.public, "op", {"type": "operator", "system_account": system.public}), system.public,
        "\n".join(f"{k}: {v}" for k, v in tokens.items()))
    path = os.path.join(folder, "user.creds")
    with open(path, "w", encoding="utf-8") as f:
        f.write("-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n" % (
            account.token(user.public, "worker", {"type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1}), user.secret()))
    return config, path


class Client:
    """Requests and messages, one at a time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.file = self.socket.makefile("rb")
        self.file.readline()  # INFO
        self.inbox = "_INBOX.test"
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n' + f"SUB {self.inbox}.* 1\r\nPING\r\n".encode())
        while self.file.readline() != b"PONG\r\n":
            pass
        self.n = 0

    def send(self, data):
        self.socket.sendall(data)

    def request(self, subject, data=b""):
        self.n += 1
        self.send(f"PUB {subject} {self.inbox}.{self.n} {len(data)}\r\n".encode() + data + b"\r\n")
        while True:
            line = self.file.readline().split()
            if line[0] == b"PING":
                self.send(b"PONG\r\n")
            elif line[0] in (b"MSG", b"HMSG"):
                body = self.file.read(int(line[-1]) + 2)[:-2]
                return body if line[0] == b"MSG" else None  # HMSG: no responders

    def api(self, name, **body):
        return json.loads(self.request("$JS.API." + name, json.dumps(body).encode()))

    def messages(self, stream):
        """How many the stream has; None: it is not there."""
        return self.api(f"STREAM.INFO.{stream}").get("state", {}).get("messages")

    def close(self):
        self.file.close()
        self.socket.close()


class NatsCase(CampaignCase):
    def setUp(self):
        super().setUp()
        self.processes = []
        self.addCleanup(self.kill_all)

    def serve(self, config="", **more):
        os.makedirs(self.path("server"), exist_ok=True)
        server = Server(self.path("server"), config, **more)
        self.addCleanup(server.close)
        return server

    def kill_all(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.communicate()

    def start(self, name, *args, **more):
        """Its messages go to a file: nobody reads them while it runs."""
        with open(self.path(name + ".log"), "ab") as log:
            p = subprocess.Popen([BIN, *map(str, args)], stdout=log, stderr=log, env=environment(), **more)
        self.processes.append(p)
        return p

    def worker(self, server, name="w", *args, models=MODELS):
        return self.start(name, "worker", "--nats", server.url, "--name", name, "--models", models, "--threads", "1", *args)

    def lead(self, server, manifest, *args, db=None, ack_wait=1):
        return self.start("lead", "campaign", "run", manifest, "--db", db or self.db, "--nats", server.url, "--ack-wait", ack_wait, *args)

    def log(self, name):
        with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait(self, process, seconds=120, code=0, name="lead"):
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.fail(f"{name} does not end:\n" + "".join(self.log(f[:-4])[-1500:] for f in os.listdir(self.folder) if f.endswith(".log")))
        self.assertEqual(process.returncode, code, self.log(name))

    def until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "".join(self.log(f[:-4])[-1500:] for f in os.listdir(self.folder) if f.endswith(".log")))
            time.sleep(0.05)

    def done(self):
        try:
            connection = sqlite3.connect(f"file:{self.db}?mode=ro", uri=True)
            try:
                return connection.execute("SELECT count(*) FROM shard WHERE state = 'done'").fetchone()[0]
            finally:
                connection.close()
        except sqlite3.Error:
            return 0

    def alone(self, manifest):
        """The tokens of the same campaign on one machine, without a queue."""
        self.ok(mica("campaign", "run", manifest, "--db", self.path("alone.db")))
        return [a["tokens"] for s in self.export(self.path("alone.db"))[1] for a in s["answers"]]

    def check(self, manifest):
        head, shards = self.export()
        self.check_whole(head, shards)
        self.assertEqual([a["tokens"] for s in shards for a in s["answers"]], self.alone(manifest))
        return shards

    def assertTidy(self, server):
        client = Client(server.port)
        self.addCleanup(client.close)
        self.assertEqual([client.messages("MICA_" + s) for s in ("WORK", "RESULT", "DATA")], [0, 0, 0])


if __name__ == "__main__":
    print("not a test by itself: test_nats.py and test_nats_losses.py use it")
