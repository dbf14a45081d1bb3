"""The official Python client with a model that was trained for tools: calls, their results, strict schemas."""
import json

import clients

clients.need_modules("openai", "pydantic")
import openai  # noqa: E402
import pydantic  # noqa: E402

from openai_client import ADD, KEY, QWEN, ClientTest, user  # noqa: E402
from serving import main_with_models  # noqa: E402


class Place(pydantic.BaseModel):
    city: str = pydantic.Field(max_length=20)
    population: int = pydantic.Field(ge=1, le=99999999)


class Tools(ClientTest):
    model, arguments = QWEN, ("--parallel", 2, "--ctx", 1024)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.url, api_key=KEY, max_retries=0)
        cls.ask = {"model": cls.name, "messages": user("What is 2+3? Use the tool."), "tools": [ADD], "tool_choice": "required",
                   "temperature": 0, "parallel_tool_calls": False, "seed": 7}

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        super().tearDownClass()

    def arguments_of(self, call):
        self.assertEqual((call.type, call.function.name), ("function", "add"))
        values = json.loads(call.function.arguments)
        self.assertEqual(set(values), {"a", "b"})
        self.assertTrue(all(isinstance(v, int) for v in values.values()))
        return values

    def test_call_and_its_result(self):
        choice = self.client.chat.completions.create(**self.ask).choices[0]
        self.assertEqual((choice.finish_reason, len(choice.message.tool_calls)), ("tool_calls", 1))
        call = choice.message.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": str(sum(self.arguments_of(call).values()))}
        more = {"messages": [*self.ask["messages"], choice.message, result], "tool_choice": "none", "max_tokens": 24}
        answer = self.client.chat.completions.create(**{**self.ask, **more}).choices[0].message
        self.assertIsNone(answer.tool_calls)
        self.assertTrue(answer.content)

    def test_streamed_call(self):
        call = self.client.chat.completions.create(**self.ask).choices[0].message.tool_calls[0]
        with self.client.chat.completions.stream(**self.ask) as stream:
            final = stream.get_final_completion().choices[0]
        self.assertEqual(final.finish_reason, "tool_calls")
        self.assertEqual(final.message.tool_calls[0].function.arguments, call.function.arguments)

    def test_named_tool(self):
        ask = {**self.ask, "tool_choice": {"type": "function", "function": {"name": "add"}}}
        self.arguments_of(self.client.chat.completions.create(**ask).choices[0].message.tool_calls[0])

    def test_responses(self):
        """The same in OpenAI's newer form, streamed and not."""
        tool = {"type": "function", "name": "add", "parameters": ADD["function"]["parameters"], "strict": True}
        ask = {"model": self.name, "input": self.ask["messages"], "tools": [tool], "tool_choice": "required", "temperature": 0,
               "parallel_tool_calls": False}
        reply = self.client.responses.create(**ask)
        call, = (item for item in reply.output if item.type == "function_call")
        self.assertEqual((call.name, set(json.loads(call.arguments))), ("add", {"a", "b"}))
        with self.client.responses.stream(**ask) as stream:
            deltas = "".join(e.delta for e in stream if e.type == "response.function_call_arguments.delta")
            final, = (item for item in stream.get_final_response().output if item.type == "function_call")
        self.assertEqual((deltas, final.arguments), (call.arguments, call.arguments))
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "5"}
        more = {"input": [*ask["input"], *(item.to_dict() for item in reply.output), result], "tool_choice": "none",
                "max_output_tokens": 24}
        self.assertTrue(self.client.responses.create(**{**ask, **more}).output_text)

    def test_parsed_into_a_class(self):
        reply = self.client.chat.completions.parse(model=self.name, messages=user("Describe Paris as JSON."), temperature=0,
                                                   response_format=Place)
        self.assertIsInstance(reply.choices[0].message.parsed, Place)


if __name__ == "__main__":
    main_with_models("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
