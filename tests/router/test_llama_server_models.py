"""A rung that is llama-server, where one is found: MICA_LLAMA_SERVER, the PATH, or an adapter's folder."""
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve")]
from rungs import RoutingTest, main, policy, remote, unused_port  # noqa: E402
from serving import models_dir  # noqa: E402

SMALL = os.path.join(models_dir(), "smollm2-135m-instruct-q4_1.gguf")


def llama_server():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = [os.environ.get("MICA_LLAMA_SERVER") or "", shutil.which("llama-server") or "",
             *glob.glob(os.path.join(cache, "mica", "adapters", "llamacpp", "**", "llama-server"), recursive=True)]
    return next((f for f in found if f and os.path.isfile(f) and os.access(f, os.X_OK)), None)


class Llama(RoutingTest):
    def setUp(self):
        super().setUp()
        self.port = unused_port()
        self.process = subprocess.Popen([PROGRAM, "-m", SMALL, "--port", str(self.port), "-c", "512", "-t", "2"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)

    def end(self):
        self.process.terminate()
        self.process.wait(20)

    def test_loading_then_a_reply(self):
        """The rung is asked before the server listens, then while it answers 503, then it answers."""
        made = policy(remote("far", f"http://127.0.0.1:{self.port}/v1", loading_ms=30000),
                      run={"retries": 10, "retry_budget": 100, "backoff_ms": 200, "backoff_max_ms": 500, "breaker_failures": 1000})
        reply, done = self.ask_json(made, "Say hello.", "-n", 8)
        self.assertEqual((done.code, reply["rung"]), (0, "far"), done)
        self.assertTrue(reply["text"])
        self.assertIn(reply["finish"], ("stop", "length"))
        self.assertGreater(reply["output_tokens"], 0)


PROGRAM = llama_server()

if __name__ == "__main__":
    if not PROGRAM or not os.path.exists(SMALL):
        print(f"skipped: no llama-server, or no model {SMALL}", file=sys.stderr)
        sys.exit(77)
    main()
