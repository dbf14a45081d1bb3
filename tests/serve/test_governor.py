"""mica serve --governor: replies stay the same whatever it does; in severe heat long ones are refused, and short ones are not."""
import json
import os
import tempfile

from serving import DATA, Server, ServeTest, main

TINY = os.path.join(DATA, "tiny", "llama.gguf")
PATH = "/v1/completions"
BODY = {"prompt": "abc", "temperature": 0, "max_tokens": 40, "ignore_eos": True}


class Governor(ServeTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def ask(self, *args, **more):
        server = Server(*args, model=TINY, env={"XDG_DATA_HOME": self.folder.name})
        try:
            return server.post(PATH, dict(BODY, **more))
        finally:
            server.stop()

    def policy(self, **members):
        return self.write("policy.json", json.dumps({"version": 1, "objective": "sustained", **members}))

    def test_same_text(self):
        want = self.ask()
        self.assertEqual(want.status, 200, want)
        have = self.ask("--governor", self.policy(period_s=0.05, probe_s=0.1, trial_s=0.5, yield_us=3000, hot_chunk=1))
        self.assertEqual(have.status, 200, have)
        self.assertEqual(have.json()["choices"], want.json()["choices"])

    def test_severe_heat(self):
        for name, text in (("type", "cpu-thermal"), ("trip_point_0_type", "hot"), ("trip_point_0_temp", "90000"), ("temp", "95000")):
            self.write("tree/sys/class/thermal/thermal_zone0/" + name, text + "\n")
        args = ("--sysroot", os.path.join(self.folder.name, "tree"), "--governor", self.policy(severe_refuse=30, severe_max_tokens=5))
        answer = self.ask(*args)
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("device_too_hot", answer.text)
        self.assertIn("40 tokens", answer.text)
        answer = self.ask(*args, max_tokens=30)
        self.assertEqual((answer.status, answer.json()["usage"]["completion_tokens"]), (200, 5), answer)


if __name__ == "__main__":
    main()
