"""A rung that is another mica serve: with a key, a schema, whole replies."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve")]
import rungs  # noqa: E402
from rungs import RoutingTest, local, policy, remote  # noqa: E402
from serving import Server  # noqa: E402


class Own(RoutingTest):
    def test_mica_serve(self):
        key = self.write("keys", rungs.SECRET + "\n")
        server = Server("--api-key-file", key)
        try:
            url = f"http://{server.address[0]}:{server.address[1]}/v1"
            made = policy(remote("far", url, key_env="TEST_KEY"))
            done = self.ask(made, "S")
            self.assertEqual((done.code, done.out), (0, "alpha beta gamma delta"), done)
            schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
            body = {"messages": [{"role": "user", "content": "J"}], "temperature": 0,
                    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}}
            reply, done = self.ask_body(made, body)
            self.assertEqual((reply["text"], reply["finish"]), ('{"a":1}', "stop"), done)
            self.assertGreater(reply["output_tokens"], 0)
            reply, done = self.ask_json(policy(remote("far", url, stream=False, key_env="TEST_KEY")), "S")
            self.assertEqual(reply["text"], "alpha beta gamma delta", done)
            reply, done = self.ask_json(policy(remote("far", url), local("near"), run={"retries": 0}), "S")
            self.assertEqual(self.results(reply), [("far", "http_401"), ("near", "ok")], done)
        finally:
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    rungs.main()
