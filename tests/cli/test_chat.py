"""mica chat on the scripted model: turns, commands, keeping, Ctrl-C; in a terminal too."""
import json
import os
import pty
import select
import signal
import subprocess
import tempfile
import termios
import time

from climica import BIN, SCRIPTED, TestCase, environment, main, mica, write_temporary

# The reply depends on the last character of the prompt only, so the template puts the last message last.
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
LAST = "{{ messages[-1].content }}"


class Chat(TestCase):
    def chat(self, *lines, args=(), template=TEMPLATE):
        path = write_temporary(self, template)
        return mica("chat", "-m", SCRIPTED, "--temp", "0", "--chat-template", path, *args,
                    stdin="".join(x + "\n" for x in lines))

    def saved(self, *lines, **more):
        """The conversation after these lines."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.json")
            done = self.ok(self.chat(*lines, f"/save {path}", **more))
            with open(path, encoding="utf-8") as f:
                return done, json.load(f)["messages"]

    def test_turns(self):
        done, messages = self.saved("E", "", "S", "2")
        self.assertEqual(done.text, "Hi 🙂!\nalpha beta gamma delta\ntwo\n")
        self.assertEqual([(m["role"], m["content"]) for m in messages],
                         [("user", "E"), ("assistant", "Hi 🙂!"), ("user", "S"), ("assistant", "alpha beta gamma delta"),
                          ("user", "2"), ("assistant", "two")])
        self.assertEqual(done.err, b"")

    def test_prefix_is_reused(self):
        """The second turn's prompt is the whole conversation, of which the first turn's prompt is in the cache already."""
        done = self.ok(self.chat("E", "S", "/stats"))
        tokens = len("[user]E[assistant]") + 1 + 1 + 4 + 1 + len("[user]S")  # Hi, blank, four bytes, !
        self.assertIn(f";prompt_n={tokens};", done.message)
        self.assertIn(f"cached_n={len('[user]E')};dropped_n=0;messages=4\n", done.message)

    def test_system_and_reset(self):
        _, messages = self.saved("E", "/system be brief", args=["--system", "first"])
        self.assertEqual([(m["role"], m["content"]) for m in messages][0], ("system", "be brief"))
        self.assertEqual(len(messages), 3)
        _, messages = self.saved("E", "/reset", "S", args=["--system", "first"])
        self.assertEqual([m["content"] for m in messages], ["first", "S", "alpha beta gamma delta"])
        _, messages = self.saved("/system", args=["--system", "first"])
        self.assertEqual(messages, [])

    def test_load(self):
        kept = write_temporary(self, json.dumps({"messages": [{"role": "user", "content": "a"},
                                                              {"role": "assistant", "content": "b"}]}))
        _, messages = self.saved("S", f"/load {kept}", "E")
        self.assertEqual([m["content"] for m in messages], ["a", "b", "E", "Hi 🙂!"])
        for bad in ("{", "[]", '{"messages": [1]}', '{"messages": {"role": "user", "content": "x"}}',
                    '{"messages": [{"role": "user"}]}'):
            done = self.chat("E", f"/load {write_temporary(self, bad)}", "S")
            self.assertEqual((done.code, done.text), (1, "Hi 🙂!\nalpha beta gamma delta\n"), bad)
            self.assertEqual(len(done.message.splitlines()), 1, done)

    def test_commands(self):
        done = self.ok(self.chat("/help", "/stats", "/quit", "E"))
        self.assertEqual(done.text, "")
        for word in ("/save", "/load", "/reset", "/system", "/stats", "/help", "/quit", "no reply yet"):
            self.assertIn(word, done.message)
        done = self.chat("/fly", "/save", "/save /nowhere/x", "/load /nowhere", "//E")
        self.assertEqual((done.code, len(done.message.splitlines())), (1, 4), done)

    def test_failed_turn_leaves_no_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.json")
            done = self.chat("E", "x" * 80, "S", f"/save {path}", args=["--ctx", "64"], template=LAST)
            self.assertEqual((done.code, done.text), (1, "Hi 🙂!\nalpha beta gamma delta\n"), done)
            self.assertIn("64", done.message)
            with open(path, encoding="utf-8") as f:
                self.assertEqual(len(json.load(f)["messages"]), 4)

    def test_invalid_text(self):
        path = write_temporary(self, TEMPLATE)
        done = mica("chat", "-m", SCRIPTED, "--temp", "0", "--chat-template", path, stdin=b"a\xff\nE\n")
        self.assertEqual((done.code, done.text), (1, "Hi 🙂!\n"), done)

    def test_last_line_without_end(self):
        path = write_temporary(self, TEMPLATE)
        done = mica("chat", "-m", SCRIPTED, "--temp", "0", "--chat-template", path, stdin="E")
        self.assertEqual(self.ok(done).text, "Hi 🙂!\n")

    def test_interrupt(self):
        """One Ctrl-C ends the reply; the conversation goes on."""
        path = write_temporary(self, TEMPLATE)
        p = subprocess.Popen([BIN, "chat", "-m", SCRIPTED, "--temp", "0", "--full", "shift", "--chat-template", path],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        p.stdin.write(b"X\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.read(1), b"x")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(b"E\n", timeout=60)
        self.assertEqual(p.returncode, 0, err[-500:])
        self.assertTrue(out.endswith(b"\nHi \xf0\x9f\x99\x82!\n"), out[-100:])
        self.assertIn(b"mica: the reply was stopped\n", err)


class Terminal(TestCase):
    """The same with a person: a pseudo-terminal."""

    def setUp(self):
        self.template = write_temporary(self, TEMPLATE)
        self.seen = b""

    def start(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        env = dict(environment(), TERM="dumb", HOME="/nonexistent")
        command = [BIN, "chat", "-m", SCRIPTED, "--temp", "0", "--full", "shift", "--chat-template", self.template]
        self.p = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True)
        self.addCleanup(lambda: self.p.poll() is None and self.p.kill())
        os.close(slave)
        self.master = master

    def wait_for(self, text):
        end = time.monotonic() + 30
        while text not in self.seen:
            self.assertLess(time.monotonic(), end, (text, self.seen[-300:]))
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 4096)
                except OSError:
                    self.fail((text, self.seen[-300:]))
        self.seen = self.seen[self.seen.index(text) + len(text):]

    def send(self, text):
        """Types, once the editor has the terminal: it writes its prompt a little before. (A build without libedit has none.)"""
        end = time.monotonic() + 2
        while termios.tcgetattr(self.master)[3] & termios.ICANON and time.monotonic() < end:
            time.sleep(0.005)
        os.write(self.master, text)

    def drain(self):
        """What is still written must not block the program."""
        end = time.monotonic() + 30
        while self.p.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    os.read(self.master, 4096)
                except OSError:
                    break
        return self.p.wait(10)

    def test_conversation(self):
        self.start()
        self.wait_for(b"> ")
        self.send(b"E\n")
        self.wait_for("Hi 🙂!".encode())
        self.wait_for(b"> ")
        self.send(b"X\n")
        self.wait_for(b"xxxxx")
        self.p.send_signal(signal.SIGINT)
        self.wait_for(b"the reply was stopped")
        self.wait_for(b"> ")
        self.send(b"/quit\n")
        self.assertEqual(self.drain(), 0)

    def test_two_interrupts_leave(self):
        self.start()
        self.wait_for(b"> ")
        self.p.send_signal(signal.SIGINT)
        self.wait_for(b"Ctrl-C again")
        self.wait_for(b"> ")
        self.send("é".encode() + b"E\n")
        self.wait_for("Hi 🙂!".encode())
        self.wait_for(b"> ")
        self.p.send_signal(signal.SIGINT)
        self.wait_for(b"Ctrl-C again")
        self.p.send_signal(signal.SIGINT)
        self.assertEqual(self.drain(), 130)

    def test_end_of_input(self):
        self.start()
        self.wait_for(b"> ")
        self.send(b"\x04")
        self.assertEqual(self.drain(), 0)


if __name__ == "__main__":
    main()
