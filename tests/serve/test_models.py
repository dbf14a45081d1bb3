"""The server with real models: replies are those of the model alone, leaving frees a slot, tools, prefixes, time limits."""
import json
import os
import subprocess
import threading
import time
import unittest

from serving import (BIN, ServeTest, Server, case_json, chunks, events, joined, main_with_models, models_dir, post_bytes,
                     wait_until)

SMOLLM = "smollm2-135m-instruct-q4_1.gguf"
QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
CHAT = "/v1/chat/completions"
QUESTIONS = ["What is the capital of France?", "Name three colours.", "Write a haiku about rain.", "What is 2+2?", "Tell me a joke.",
             "Describe a cat.", "Why is the sky blue?", "List two fruits."]


def model(name):
    return os.path.join(models_dir(), name)


class Replies(ServeTest):
    arguments = ("--parallel", 8, "--ctx", 1024)
    model = model(SMOLLM)

    def body(self, i, **more):
        return {"messages": [{"role": "user", "content": QUESTIONS[i]}], "max_tokens": 16, "seed": 100 + i,
                "temperature": 0 if i % 2 else 0.9, **more}

    def test_together_as_alone(self):
        """Eight requests at once, streamed and not, give bit for bit what each gives alone: texts and log-probabilities."""
        def reply(i):
            choice = self.server.chat(self.body(i, logprobs=True, top_logprobs=3)).json()["choices"][0]
            return choice["message"]["content"], choice["logprobs"]["content"], choice["finish_reason"]
        alone = [reply(i) for i in range(8)]
        together, streams = [None] * 8, [None] * 8

        def work(i):
            together[i] = reply(i)

        def stream(i):
            streams[i] = joined(chunks(self.server.chat(self.body(i, stream=True))))
        for target in (work, stream):
            threads = [threading.Thread(target=target, args=(i,)) for i in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(together, alone)
        self.assertEqual(streams, [text for text, _, _ in alone])

    def test_as_the_program(self):
        run = subprocess.run([BIN, "run", "-m", self.model, "-p", QUESTIONS[0], "--temp", "0", "-n", "8"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=True, timeout=120)
        self.assertEqual(self.server.ask(QUESTIONS[0], max_tokens=8), run.stdout.decode().rstrip("\n"))

    def test_text_stays_text(self):
        """A control token that a user spells is text."""
        told = self.server.post("/tokenize", {"content": "<|im_end|>"}).json()["tokens"]
        self.assertEqual(len(told), 1)
        usage = [self.server.chat({"messages": [{"role": "user", "content": text}], "max_tokens": 1}).json()["usage"]["prompt_tokens"]
                 for text in ("a", "a<|im_end|>")]
        self.assertGreater(usage[1] - usage[0], 1)

    def test_prefix(self):
        system = {"role": "system", "content": "You are terse. " * 40}
        used = []
        for question in QUESTIONS[:2]:
            answer = self.server.chat({"messages": [system, {"role": "user", "content": question}], "max_tokens": 2}).json()
            used.append((answer["usage"]["prompt_tokens"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]))
        self.assertGreater(used[1][1], 150)
        self.assertLess(used[1][1], used[1][0])


class Scores(ServeTest):
    arguments = ("--parallel", 2, "--ctx", 1024)
    model = model(SMOLLM)
    text = "Paris is the capital of France. Größe, 日本語 and 🙂🙂 cost 12.50 €."

    def score(self, **more):
        body = {"prompt": self.text, "echo": True, "logprobs": 1, "temperature": 0, "seed": 1, "max_tokens": 0, **more}
        return self.server.post("/v1/completions", body).json()["choices"][0]

    def test_offsets(self):
        """Every token that is text by itself is where text_offset says."""
        told = self.score()["logprobs"]
        whole = [(t, at) for t, at in zip(told["tokens"], told["text_offset"]) if not t.startswith("bytes:")]
        self.assertGreater(len(whole), 15)
        for token, at in whole:
            self.assertEqual(self.text[at:at + len(token)], token)

    def test_as_a_program_that_scores(self):
        """One token more is asked for, and left out; text and ids are the same."""
        want = self.score()["logprobs"]
        for prompt in (self.text, self.server.post("/tokenize", {"content": self.text, "add_special": True}).json()["tokens"]):
            told = self.score(prompt=prompt, max_tokens=1)["logprobs"]
            self.assertEqual([v[:-1] for v in told.values()], list(want.values()))
            self.assertIsNotNone(told["token_logprobs"][-1])
        for own, top in zip(want["token_logprobs"][1:], want["top_logprobs"][1:]):
            self.assertIn(own, top.values())
            self.assertLessEqual(own, max(top.values()))
        paris = self.score(prompt="The capital of France is Paris")["logprobs"]["token_logprobs"][-1]
        rome = self.score(prompt="The capital of France is Rome")["logprobs"]["token_logprobs"][-1]
        self.assertGreater(paris, rome)


class Leaving(unittest.TestCase):
    def test_srv_11_while_the_prompt_is_read(self):
        """A client that leaves frees its slot within one step of the prompt."""
        server = Server("--parallel", 1, "--ctx", 4500, "--chunk", 128, model=model(SMOLLM))
        self.addCleanup(server.stop)
        body = {"messages": [{"role": "user", "content": "a b c d e f g h " * 500}], "max_tokens": 1}
        s = server.socket(post_bytes(CHAT, body))
        self.assertTrue(wait_until(lambda: server.metrics()["mica_steps_total"] >= 1, 60))
        s.close()
        self.assertTrue(wait_until(lambda: server.metrics()["mica_clients_left_total"] == 1))
        steps = server.metrics()["mica_steps_total"]
        self.assertTrue(wait_until(lambda: server.metrics()["mica_running"] == 0, 60))
        self.assertLessEqual(server.metrics()["mica_steps_total"], steps + 2)

    def test_while_the_reply_is_made(self):
        server = Server("--parallel", 1, "--ctx", 1024, model=model(SMOLLM))
        self.addCleanup(server.stop)
        body = {"messages": [{"role": "user", "content": "Tell a story."}], "stream": True, "ignore_eos": True}
        s = server.socket(post_bytes(CHAT, body))
        self.assertIn(b"data: ", s.recv(65536) + s.recv(65536))
        s.close()
        self.assertTrue(wait_until(lambda: server.metrics()["mica_running"] == 0, 60))
        self.assertLess(server.metrics()["mica_generated_tokens_total"], 900)

    def test_keep_alive(self):
        """A stream that waits for a slot says so every 15 s."""
        server = Server("--parallel", 1, "--ctx", 4096, model=model(SMOLLM))
        self.addCleanup(server.stop)
        body = {"messages": [{"role": "user", "content": "Tell a story."}], "stream": True, "ignore_eos": True}
        first = server.socket(post_bytes(CHAT, body))
        self.assertTrue(wait_until(lambda: server.metrics()["mica_running"] == 1))
        begin, waiting, told = time.monotonic(), server.socket(post_bytes(CHAT, body)), b""
        while b": keep-alive\n\n" not in told and time.monotonic() - begin < 60:
            told += waiting.recv(4096)
        self.assertNotIn(b"data: ", told)
        self.assertGreater(time.monotonic() - begin, 14)
        first.close()
        waiting.close()

    def test_time(self):
        server = Server("--parallel", 1, "--ctx", 2048, "--timeout", 1, model=model(SMOLLM))
        self.addCleanup(server.stop)
        body = {"messages": [{"role": "user", "content": "Tell a story."}], "ignore_eos": True}
        begin = time.monotonic()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(server.chat(body))) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(a.status for a in answers), [503, 504], answers)
        self.assertTrue(all(a.json()["error"]["code"] == "timeout" for a in answers))
        self.assertLess(time.monotonic() - begin, 30)
        parts = server.chat({**body, "stream": True}).text
        self.assertIn('"code":"timeout"', parts.rsplit("data: ", 1)[1])
        self.assertEqual(server.metrics()["mica_timeouts_total"], 3)


class Tools(ServeTest):
    arguments = ("--parallel", 2, "--ctx", 1024)
    model = model(QWEN)

    def calls_of(self, parts):
        """Calls joined from deltas, whose shape is checked on the way."""
        calls = []
        for part in parts:
            for call in part["choices"][0]["delta"].get("tool_calls", []):
                if call["index"] == len(calls):
                    self.assertEqual(set(call), {"index", "id", "type", "function"})
                    self.assertEqual((call["type"], call["function"]["arguments"]), ("function", ""))
                    calls.append({"id": call["id"], "type": "function", "function": dict(call["function"])})
                else:
                    self.assertEqual(call["index"], len(calls) - 1)
                    self.assertEqual((set(call), set(call["function"])), ({"index", "function"}, {"arguments"}))
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]
        return calls

    def test_srv_16_tool_call_deltas(self):
        for request in case_json("srv-16-tool-call-deltas"):
            request = {**request, "seed": 1, "max_tokens": 150, "close": True}  # it would go on calling
            parts = chunks(self.server.chat(request))
            calls = self.calls_of(parts)
            self.assertGreaterEqual(len(calls), 1)
            for call in calls:
                arguments = json.loads(call["function"]["arguments"])
                self.assertEqual((call["function"]["name"], set(arguments)), ("add", {"a", "b"}))
                self.assertTrue(all(isinstance(v, int) for v in arguments.values()))
            self.assertEqual(parts[-1]["choices"][0]["finish_reason"], "tool_calls")
            choice = self.server.chat({**request, "stream": False}).json()["choices"][0]
            self.assertEqual(choice["message"]["tool_calls"], calls)
            self.assertIn(choice["message"]["content"], (None, ""))
            self.assertEqual(choice["finish_reason"], "tool_calls")

    def test_back_and_forth(self):
        request = case_json("srv-16-tool-call-deltas")[0]
        request = {**request, "stream": False, "parallel_tool_calls": False}
        message = self.server.chat(request).json()["choices"][0]["message"]
        self.assertEqual(len(message["tool_calls"]), 1)
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "5"}
        answer = self.server.chat({**request, "messages": request["messages"] + [message, result], "tool_choice": "none",
                                   "max_tokens": 20}).json()
        self.assertEqual(answer["choices"][0]["message"].get("tool_calls"), None)
        self.assertTrue(answer["choices"][0]["message"]["content"])

    def test_responses(self):
        """A call and its result in /v1/responses, as in a program that calls functions."""
        chat = case_json("srv-16-tool-call-deltas")[0]
        request = {"input": chat["messages"], "tools": [{"type": "function", **t["function"]} for t in chat["tools"]],
                   "tool_choice": "required", "parallel_tool_calls": False, "seed": 1, "temperature": 0, "max_output_tokens": 150}
        whole = self.server.post("/v1/responses", request).json()
        call, = whole["output"]
        self.assertEqual((whole["status"], call["type"], call["name"]), ("completed", "function_call", "add"))
        arguments = json.loads(call["arguments"])
        told = [e for _, e in events(self.server.post("/v1/responses", {**request, "stream": True}).text)]
        streamed = "".join(e["delta"] for e in told if e["type"] == "response.function_call_arguments.delta")
        self.assertEqual(streamed, call["arguments"])
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": str(arguments["a"] + arguments["b"])}
        after = {**request, "input": chat["messages"] + [call, result], "tool_choice": "auto"}
        answer = self.server.post("/v1/responses", after)
        self.assertEqual(answer.status, 200, answer)
        self.assertIn(answer.json()["output"][-1]["type"], ("message", "function_call"))
        same = self.server.chat({"messages": chat["messages"] + [
            {"role": "assistant", "content": None, "tool_calls": [{"id": call["call_id"], "type": "function", "function": {
                "name": call["name"], "arguments": call["arguments"]}}]},
            {"role": "tool", "tool_call_id": call["call_id"], "content": result["output"]}], "tools": chat["tools"],
            "parallel_tool_calls": False, "seed": 1, "temperature": 0, "max_tokens": 1}).json()
        self.assertEqual(same["usage"]["prompt_tokens"], answer.json()["usage"]["input_tokens"])

    def test_named(self):
        request = {**case_json("srv-16-tool-call-deltas")[0], "stream": False,
                   "tool_choice": {"type": "function", "function": {"name": "add"}}}
        calls = self.server.chat(request).json()["choices"][0]["message"]["tool_calls"]
        self.assertEqual([c["function"]["name"] for c in calls], ["add"])
        request["tool_choice"]["function"]["name"] = "sub"
        self.refused(self.server.chat(request), 400, says="sub")


if __name__ == "__main__":
    main_with_models(SMOLLM, QWEN)
