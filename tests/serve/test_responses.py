"""/v1/responses: function calls there and back, whole and streamed, and what the response object says. The scripted model says what
it is made to say: the arguments are such that there is no choice."""
import json

from serving import ServeTest, events, main

PATH = "/v1/responses"
SCHEMA = {"type": "object", "properties": {"a": {"const": 1}, "b": {"enum": ["x"]}}, "required": ["a", "b"], "additionalProperties": False}
ADD = {"type": "function", "name": "add", "description": "Adds.", "parameters": SCHEMA, "strict": True}
ASK = {"input": "E", "tools": [ADD], "tool_choice": "required", "max_output_tokens": 200, "close": True, "temperature": 0, "seed": 1}


class Responses(ServeTest):
    def create(self, body):
        answer = self.server.post(PATH, body)
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def stream(self, body):
        """The events, whose numbers must be in order."""
        answer = self.server.post(PATH, {**body, "stream": True})
        self.assertEqual(answer.status, 200, answer)
        told = events(answer.text)
        self.assertEqual([name for name, _ in told], [e["type"] for _, e in told])
        self.assertEqual([e["sequence_number"] for _, e in told], list(range(len(told))))
        return [e for _, e in told]

    def plain(self, items):
        """Items without what is another one in each reply."""
        return [{k: v for k, v in item.items() if k not in ("id", "call_id")} for item in items]

    def test_call(self):
        whole = self.create(ASK)
        self.assertEqual((whole["object"], whole["status"], whole["error"], whole["incomplete_details"]), ("response", "completed", None, None))
        self.assertEqual((whole["tools"], whole["tool_choice"], whole["parallel_tool_calls"]), ([ADD], "required", True))
        call, = whole["output"]
        self.assertEqual(set(call), {"id", "type", "status", "call_id", "name", "arguments"})
        self.assertEqual((call["type"], call["status"], call["name"]), ("function_call", "completed", "add"))
        self.assertEqual(json.loads(call["arguments"]), {"a": 1, "b": "x"})
        self.assertTrue(call["call_id"])
        usage = whole["usage"]
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + usage["output_tokens"])
        self.assertIn("cached_tokens", usage["input_tokens_details"])
        self.assertGreater(whole["mica"]["total_ms"], 0)

    def test_stream_of_a_call(self):
        told = self.stream(ASK)
        names = [e["type"].removeprefix("response.") for e in told]
        deltas = names.count("function_call_arguments.delta")
        self.assertGreaterEqual(deltas, 1)
        self.assertEqual(names, ["created", "in_progress", "output_item.added"] + ["function_call_arguments.delta"] * deltas +
                         ["function_call_arguments.done", "output_item.done", "completed"])
        added, done, final = told[2]["item"], told[-2]["item"], told[-1]["response"]
        self.assertEqual((added["status"], added["arguments"], done["status"]), ("in_progress", "", "completed"))
        self.assertEqual((added["id"], added["call_id"], added["name"]), (done["id"], done["call_id"], "add"))
        inside = [e for e in told if e["type"].startswith("response.function_call_arguments")]
        self.assertTrue(all((e["item_id"], e["output_index"]) == (added["id"], 0) for e in inside))
        self.assertEqual("".join(e["delta"] for e in inside[:-1]), done["arguments"])
        self.assertEqual(inside[-1]["arguments"], done["arguments"])
        self.assertEqual(final["output"], [done])
        self.assertEqual(self.plain(final["output"]), self.plain(self.create(ASK)["output"]))
        self.assertEqual((told[0]["response"]["status"], told[0]["response"]["output"], final["status"]), ("in_progress", [], "completed"))

    def test_cut_call(self):
        """max_output_tokens may cut a call: as far as it came, and marked."""
        body = {**ASK, "close": False, "max_output_tokens": 30}
        whole = self.create(body)
        self.assertEqual((whole["status"], whole["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        self.assertEqual([i["status"] for i in whole["output"]], ["incomplete"])
        told = self.stream(body)
        self.assertEqual(told[-1]["type"], "response.incomplete")
        self.assertEqual(self.plain(told[-1]["response"]["output"]), self.plain(whole["output"]))

    def test_and_back(self):
        call = self.create(ASK)["output"][0]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "E"}
        items = [{"role": "user", "content": "E"}, call, result]
        for choice in ("auto", "none"):
            whole = self.create({**ASK, "input": items + [{"role": "user", "content": "R"}], "tool_choice": choice, "close": False})
            message, = whole["output"]
            self.assertEqual((message["type"], message["role"], message["status"]), ("message", "assistant", "completed"))
            self.assertEqual([p["type"] for p in message["content"]], ["output_text"])
        self.assertEqual(message["content"][0]["text"], "red fox")

    def test_text(self):
        """Without tools: one message, whole and streamed."""
        body = {"input": "E", "temperature": 0, "metadata": {"k": "v"}, "instructions": None}
        whole = self.create(body)
        self.assertEqual(whole["output"][0]["content"][0]["text"], "Hi 🙂!")
        self.assertEqual((whole["metadata"], whole["tools"], whole["tool_choice"], whole["text"]),
                         ({"k": "v"}, [], "auto", {"format": {"type": "text"}}))
        told = self.stream(body)
        text = "".join(e["delta"] for e in told if e["type"] == "response.output_text.delta")
        self.assertEqual(text, "Hi 🙂!")
        self.assertEqual(self.plain(told[-1]["response"]["output"]), self.plain(whole["output"]))
        self.assertEqual(told[-2]["item"], told[-1]["response"]["output"][0])
        empty = self.create({**body, "stop": "Hi"})
        self.assertEqual(empty["output"][0]["content"][0]["text"], "")

    def test_refused(self):
        for more, param in (({"tools": 5}, "tools"), ({"tools": [{"type": "web_search"}]}, "tools"),
                            ({"tools": [{**ADD, "strict": "yes"}]}, "tools[0].strict"), ({"tools": [ADD, ADD]}, "tools"),
                            ({"tool_choice": {"type": "function", "name": "sub"}}, "tools"), ({"tool_choice": 5}, "tool_choice"),
                            ({"tool_choice": {"type": "file_search"}}, "tool_choice"), ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
                            ({"text": {"format": {"type": "json_object"}}}, "text.format"),
                            ({"input": [{"type": "function_call_output", "call_id": 5, "output": ""}]}, "input[0].call_id")):
            with self.subTest(more=more):
                self.refused(self.server.post(PATH, {**ASK, **more}), 400, param)


if __name__ == "__main__":
    main()
