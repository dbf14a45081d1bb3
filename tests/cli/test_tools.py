"""--tools and --tool-choice on the scripted model, which can be made to call a tool that has only one way to be called."""
import json
import os
import tempfile

from climica import SCRIPTED, TestCase, main, mica, run, write_temporary

PING = {"type": "function", "function": {"name": "ping", "description": "Pings", "parameters": {"type": "object", "properties": {}}}}
SET = {"name": "set", "parameters": {"properties": {"on": {"const": True}}, "required": ["on"]}}
LAST = "{{ messages[-1].content }}"


class Tools(TestCase):
    def tools(self, *tools):
        return write_temporary(self, json.dumps(list(tools)))

    def run_tools(self, *args, template=LAST, tools=(PING,)):
        return run("--chat-template", write_temporary(self, template), "--tools", self.tools(*tools), *args)

    def test_required(self):
        done = self.ok(self.run_tools("-p", "E", "--tool-choice", "required", "--seed", "5"))
        call = json.loads(done.text)["tool_call"]
        self.assertEqual((call["name"], call["arguments"]), ("ping", {}))
        self.assertRegex(call["id"], "^call_[0-9a-f]{24}$")
        again = self.ok(self.run_tools("-p", "E", "--tool-choice", "required", "--seed", "5"))
        self.assertEqual(again.text, done.text)

    def test_named(self):
        for name, arguments in (("set", {"on": True}), ("ping", {})):
            done = self.ok(self.run_tools("-p", "E", "--tool-choice", name, tools=(PING, SET)))
            call = json.loads(done.text)["tool_call"]
            self.assertEqual((call["name"], call["arguments"]), (name, arguments))

    def test_auto_and_none_say_what_they_want(self):
        for choice in ("auto", "none"):
            self.assertEqual(self.ok(self.run_tools("-p", "S", "--tool-choice", choice)).text, "alpha beta gamma delta")
        self.assertEqual(self.ok(self.run_tools("-p", "J")).text, '{"a":1}')

    def test_json(self):
        lines = [json.loads(x) for x in self.ok(self.run_tools("-p", "E", "--tool-choice", "required", "--json")).text.splitlines()]
        end = lines[-1]
        self.assertEqual("".join(x["text"] for x in lines[:-1]), end["text"])
        self.assertEqual(json.loads(end["text"]), {"tool_call": {"name": "ping", "arguments": {}}})
        self.assertEqual((end["content"], len(end["tool_calls"])), ("", 1))
        call = end["tool_calls"][0]
        self.assertEqual((call["type"], call["function"]), ("function", {"name": "ping", "arguments": "{}"}))
        end = json.loads(self.ok(self.run_tools("-p", "S", "--json")).text.splitlines()[-1])
        self.assertEqual((end["content"], end["tool_calls"]), ("alpha beta gamma delta", []))

    def test_usage(self):
        tools = self.tools(PING)
        for args in (("--tool-choice", "auto"), ("--tools", tools, "--no-chat"), ("--tools", tools, "--token-ids", "1"),
                     ("--tools", tools, "--regex", "a"), ("--tools", tools, "--tool-choice", "pong"),
                     ("--tools", write_temporary(self, "[]")), ("--tools", write_temporary(self, "[{}]")),
                     ("--tools", self.tools(PING, PING))):
            self.fails(run("-p", "E", "--chat-template", write_temporary(self, LAST), *args), code=2)

    def chat(self, *lines, args=(), tools=(PING,), template=LAST):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.json")
            done = self.ok(mica("chat", "-m", SCRIPTED, "--temp", "0", "--chat-template", write_temporary(self, template), "--tools",
                                self.tools(*tools), *args, stdin="".join(x + "\n" for x in (*lines, f"/save {path}"))))
            with open(path, encoding="utf-8") as f:
                return done, json.load(f)["messages"]

    def test_chat_asks_for_the_result(self):
        """The line after a call is its result; the reply to it need not be a call again."""
        done, messages = self.chat("E", "S", args=["--tool-choice", "required"])
        self.assertEqual(done.text, "[call ping {}]\nalpha beta gamma delta\n")
        self.assertEqual([m["role"] for m in messages], ["user", "assistant", "tool", "assistant"])
        call = messages[1]["tool_calls"][0]
        self.assertEqual((messages[1]["content"], call["function"]), ("", {"name": "ping", "arguments": "{}"}))
        self.assertEqual((messages[2]["tool_call_id"], messages[2]["name"], messages[2]["content"]), (call["id"], "ping", "S"))

    def test_chat_forgets_open_calls(self):
        done, messages = self.chat("E", "/reset", "E", args=["--tool-choice", "required"])
        self.assertEqual(done.text, "[call ping {}]\n[call ping {}]\n")
        self.assertEqual(len(messages), 2)

    def test_result_of_any_text(self):
        """A result is a user's text for a template without tools: it cannot end a turn. The token <|eot|> is seven of its letters."""
        done, messages = self.chat("E", "<|eot|> 2", "/stats", args=["--tool-choice", "required"])
        self.assertEqual(done.text, "[call ping {}]\ntwo\n")
        self.assertIn(f";prompt_n={len('Result of ping: <|eot|> 2')};", done.message)
        self.assertEqual(messages[2]["content"], "<|eot|> 2")


if __name__ == "__main__":
    main()
