"""Who waits for a slot gets it by priority, and else in turn: one client's many requests do not keep another one waiting."""
import json
import os
import select
import socket
import tempfile
import threading
import unittest

from serving import ServeTest, Server, main, post_bytes, read_all, wait_until

CHAT = "/v1/chat/completions"
E = {"messages": [{"role": "user", "content": "E"}], "temperature": 0}
X = {"messages": [{"role": "user", "content": "X"}], "temperature": 0, "max_tokens": 480}
MANY = {**X, "n": 16}


def is_silent(s):
    return not select.select([s], [], [], 0)[0]


def finish(s):
    """The number of choices of an answer that comes with Connection: close."""
    return len(json.loads(read_all(s).split(b"\r\n\r\n", 1)[1])["choices"])


class Priority(ServeTest):
    arguments = ("--parallel", 1)

    def test_the_higher_one_first(self):
        busy = self.server.socket(post_bytes(CHAT, {**MANY, "priority": 100}, "Connection: close"))
        self.assertTrue(wait_until(lambda: self.server.metrics()["mica_running"] == 1))
        ended = []

        def ask(name, body):
            answer = self.server.chat(body)
            ended.append((name, answer.status))
        threads = [threading.Thread(target=ask, args=("low", {**X, "n": 4, "priority": -1})),
                   threading.Thread(target=ask, args=("usual", {**X, "n": 4})),
                   threading.Thread(target=ask, args=("high", {**X, "n": 4, "priority": 5}))]
        for i, t in enumerate(threads):
            t.start()
            self.assertTrue(wait_until(lambda i=i: self.server.metrics()["mica_queue_length"] == i + 1))
        self.assertTrue(is_silent(busy), "all waited while it ran")
        for t in threads:
            t.join()
        self.assertEqual(ended, [("high", 200), ("usual", 200), ("low", 200)])
        self.assertEqual(finish(busy), 16)


class Turns(unittest.TestCase):
    """Two slots, and a client whose 16 replies would take both of them until it is done."""

    def check(self, server, hog, other, same):
        """`other`, which comes later, is answered before `hog` is; `same`, which counts as the hog itself, is not."""
        busy = hog()
        self.addCleanup(busy.close)
        self.assertTrue(wait_until(lambda: server.metrics_as() == 1))
        behind = same()
        self.addCleanup(behind.close)
        self.assertTrue(wait_until(lambda: server.waiting() == 1))
        first = other()
        self.addCleanup(first.close)
        self.assertEqual(finish(first), 1)
        self.assertTrue(is_silent(busy), "the hog was done before the other one")
        self.assertEqual(finish(busy), 16)
        self.assertEqual(finish(behind), 1)

    def start(self, *args, headers=()):
        server = Server("--parallel", 2, *args)
        self.addCleanup(server.stop)

        def metric(name):
            lines = server.get("/metrics", headers=headers).text.splitlines()
            return next(float(line.split()[-1]) for line in lines if line.startswith(name))
        server.metrics_as = lambda: metric("mica_running")
        server.waiting = lambda: metric("mica_queue_length")
        return server

    def test_users(self):
        server = self.start()

        def ask(body, user):
            return lambda: server.socket(post_bytes(CHAT, {**body, "user": user}, "Connection: close"))
        self.check(server, ask(MANY, "a"), ask(E, "b"), ask(E, "a"))

    def test_addresses(self):
        server = self.start()

        def ask(body, address):
            def connect():
                s = socket.create_connection(server.address, timeout=60, source_address=(address, 0))
                s.sendall(post_bytes(CHAT, body, "Connection: close"))
                return s
            return connect
        self.check(server, ask(MANY, "127.0.0.1"), ask(E, "127.0.0.2"), ask(E, "127.0.0.1"))

    def test_keys(self):
        """A key is a client, whatever user it names."""
        with tempfile.NamedTemporaryFile("w", delete=False) as f:
            f.write("key-a\nkey-b\n")
        self.addCleanup(os.unlink, f.name)
        server = self.start("--api-key-file", f.name, headers={"Authorization": "Bearer key-a"})

        def ask(body, key, user):
            return lambda: server.socket(post_bytes(CHAT, {**body, "user": user}, "Connection: close",
                                                    f"Authorization: Bearer {key}"))
        self.check(server, ask(MANY, "key-a", "u"), ask(E, "key-b", "u"), ask(E, "key-a", "v"))


if __name__ == "__main__":
    main()
