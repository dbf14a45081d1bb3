"""Tool calls through LangChain's OpenAI client, with a model that was trained for tools."""
import clients

clients.need_modules("langchain_openai")
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

from openai_client import KEY, QWEN, ClientTest  # noqa: E402
from serving import main_with_models  # noqa: E402


@tool
def add(a: int, b: int) -> int:
    """Adds two integers."""
    return a + b


class Tools(ClientTest):
    model, arguments = QWEN, ("--parallel", 2, "--ctx", 1024)

    def test_tool_call(self):
        """Asked, called, answered; streamed the call is the same."""
        model = ChatOpenAI(model=self.name, base_url=self.url, api_key=KEY, temperature=0, seed=7, max_retries=0)
        caller = model.bind_tools([add], tool_choice="any", parallel_tool_calls=False)
        question = HumanMessage("What is 2+3? Use the tool.")
        reply = caller.invoke([question])
        call, = reply.tool_calls
        self.assertEqual((call["name"], set(call["args"])), ("add", {"a", "b"}))
        result = add.invoke(call)
        self.assertIsInstance(result, ToolMessage)
        self.assertEqual(result.content, str(sum(call["args"].values())))
        whole = None
        for part in caller.stream([question]):
            whole = part if whole is None else whole + part
        self.assertEqual([(c["name"], c["args"]) for c in whole.tool_calls], [(call["name"], call["args"])])
        answer = model.bind(max_tokens=24).invoke([question, reply, result])
        self.assertIsInstance(answer, AIMessage)
        self.assertTrue(answer.content)


if __name__ == "__main__":
    main_with_models("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
