"""scripts/demo-router from end to end, with a model of a few kilobytes in place of both: all rungs in turn, the queue, the log."""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from rungs import BIN, SCRIPTED, RoutingTest, main  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts", "demo-router")


class Demo(RoutingTest):
    def test_one_conversation_over_all_rungs(self):
        large = shutil.copy(SCRIPTED, os.path.join(self.dir, "large.gguf"))
        with open(large, "ab") as f:
            f.write(bytes(4096))  # the larger one, as far as files tell
        p = subprocess.run([sys.executable, "-B", SCRIPT, "--mica", BIN, "--small", SCRIPTED, "--large", large, "--keep", self.dir],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment(), timeout=120, check=False)
        self.assertEqual(p.returncode, 0, p)
        with open(os.path.join(self.dir, "decisions.jsonl"), encoding="utf-8") as f:
            records = [json.loads(line) for line in f]
        self.assertEqual([r["outcome"].get("rung", "") for r in records], ["small", "larger", "server", "", "server"])
        self.assertEqual([a["result"] for a in records[3]["outcome"]["attempts"]], ["no_connection", "held"])
        for said in ("-> small", "-> larger", "-> server", "waits in the queue as number 1", "1 answered, 0 waiting"):
            self.assertIn(said, p.stdout)
        log = json.dumps(records)
        self.assertNotIn("ada@example.org", log)  # texts are not in the log unless the policy says so


if __name__ == "__main__":
    main()
