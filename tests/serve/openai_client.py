"""What the tests of Python clients share: a server with a key, and the official client of it."""
import os
import unittest

from serving import SCRIPTED, Server, models_dir

KEY = "key"
AUTH = {"Authorization": f"Bearer {KEY}"}
QWEN = os.path.join(models_dir(), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
SMOLLM = os.path.join(models_dir(), "smollm2-135m-instruct-q4_1.gguf")
ADD = {"type": "function", "function": {"name": "add", "description": "Adds two integers.", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"],
    "additionalProperties": False}}}


def user(text):
    return [{"role": "user", "content": text}]


def metric(server, name):
    text = server.get("/metrics", headers=AUTH).text
    return next(float(line.split(" ")[1]) for line in text.splitlines() if line.startswith(name + " "))


class ClientTest(unittest.TestCase):
    """One server a class; `self.url` is what clients are given."""
    model, arguments = SCRIPTED, ("--parallel", 2)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments, model=cls.model, env={"MICA_API_KEY": KEY})
        cls.url = "http://{}:{}/v1".format(*cls.server.address)
        cls.name = cls.server.get("/v1/models", headers=AUTH).json()["data"][0]["id"]

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        assert code == 0, (code, cls.server.log())
