"""mica threads plan (cases thr-*) and mica kv plan (case ctx-04) without real models."""
import json

from climica import CASES, SCRIPTED, TestCase, case, case_json, main, mica


def plan(name, tree, *args):
    done = mica("threads", "plan", "--root", case(name, tree), "--json", *args)
    return json.loads(done.out) if done.code == 0 else None


class Threads(TestCase):
    def test_quota(self):
        """Case thr-01."""
        for tree, threads in (("tree", 4), ("max", 8), ("half", 1)):
            got = plan("thr-01-cgroup2-quota", tree)
            self.assertEqual(got["threads"], threads, tree)
            self.assertEqual("cpu.max" in got["reason"], tree != "max", got)
            self.assertLessEqual(got["default"]["threads"], threads)

    def test_big_little(self):
        """Case thr-03."""
        got = {tree: plan("thr-03-big-little", tree) for tree in ("tree", "freq_only", "flat", "bg")}
        self.assertIn(got["tree"]["threads"], (3, 4))
        self.assertLessEqual(set(got["tree"]["cpus"]), {4, 5, 6, 7})
        self.assertLessEqual(set(got["tree"]["default"]["cpus"]), {4, 5, 6, 7})
        self.assertIn(got["freq_only"]["threads"], range(2, 7))
        self.assertEqual(len(set(got["freq_only"]["cpus"][:2])), 2)
        self.assertIn(got["flat"]["threads"], range(4, 9))
        self.assertLessEqual(got["bg"]["threads"], 4)
        self.assertLessEqual(set(got["bg"]["cpus"]), {0, 1, 2, 3})

    def test_smt(self):
        """Case thr-05."""
        name = "thr-05-smt-siblings"
        for tree, low, high in (("pairs", 4, 4), ("adjacent", 4, 4), ("masked", 3, 3), ("hybrid", 2, 6)):
            got = plan(name, tree)
            self.assertTrue(low <= got["threads"] <= high, (tree, got))
            cores = set()
            for cpu in got["cpus"]:
                siblings = case(name, tree, f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
                with open(siblings, encoding="utf-8") as f:
                    cores.add(f.read().strip())
            self.assertEqual(len(cores), len(got["cpus"]), (tree, got))

    def test_text(self):
        done = self.ok(mica("threads", "plan", "--sysroot", case("thr-03-big-little", "tree")))
        lines = done.text.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^most +4 threads on CPUs [4-7](,[4-7]){3}: ")
        self.assertRegex(lines[1], r"^default +\d threads? ")
        self.fails(mica("threads", "plan", "--root", "/nowhere"), "/nowhere")

    def test_sysroot_reaches_the_session(self):
        """run and inspect take their threads, and their memory, from the given root."""
        for tree, threads in (("tree", 2), ("half", 1)):
            root = case("thr-01-cgroup2-quota", tree)
            info = json.loads(self.ok(mica("inspect", SCRIPTED, "--json", "--sysroot", root)).out)
            self.assertEqual(info["memory"]["n_threads"], threads)
            done = self.ok(mica("run", "-m", SCRIPTED, "-p", "E", "--temp", "0", "--sysroot", root))
            self.assertIn(f";threads={threads};", done.message)
            self.assertIn(";peak_rss=-1;", done.message)


class Kv(TestCase):
    def test_shapes(self):
        """Case ctx-04, shapes without a model."""
        count = 0
        for entry in case_json("ctx-04-kv-size", "plan.json"):
            if "shape_only" not in entry:
                continue
            shape = entry["shape_only"]
            done = mica("kv", "plan", "--layers", shape["layers"], "--kv-heads", shape["kv_heads"],
                        "--head-dim", shape["head_dim"], "--ctx", entry["ctx"], "--json")
            if "f16" in entry:
                self.assertEqual(json.loads(self.ok(done).out)["bytes"], entry["f16"])
                for kind in ("q8_0", "q4_0"):
                    done = mica("kv", "plan", "--layers", shape["layers"], "--kv-heads", shape["kv_heads"], "--head-dim",
                                shape["head_dim"], "--ctx", entry["ctx"], "--type-k", kind, "--type-v", kind, "--json")
                    if kind in entry:
                        self.assertEqual(json.loads(self.ok(done).out)["bytes"], entry[kind])
            else:
                self.fails(done, "64 bits")
            count += 1
        self.assertEqual(count, 4)

    def test_model(self):
        done = mica("kv", "plan", "-m", SCRIPTED, "--ctx", "100", "--type-k", "f16", "--type-v", "f16", "--json")
        got = json.loads(self.ok(done).out)
        self.assertEqual((got["bytes"], got["n_ctx"], got["layers"], got["kv_heads"], got["head_dim"], got["windowed_layers"]),
                         (4 * 128 * 100, 100, 1, 4, 32, []))
        self.assertIn("51200 bytes", self.ok(mica("kv", "plan", "-m", SCRIPTED, "--ctx", "100")).text)

    def test_windowed_layers(self):
        """The tiny models know their own windows."""
        import os
        path = os.path.join(os.path.dirname(CASES), "tiny", "gemma3.gguf")
        if not os.path.exists(path):
            self.skipTest("no tiny models")
        got = json.loads(self.ok(mica("kv", "plan", "-m", path, "--json")).out)
        self.assertGreater(got["window"], 0)
        self.assertTrue(0 < len(got["windowed_layers"]) <= got["layers"], got)
        got = json.loads(self.ok(mica("kv", "plan", "-m", path, "--ctx", "2048", "--json")).out)
        windowed = len(got["windowed_layers"])
        slots = (got["layers"] - windowed) * 2048 + windowed * got["window_ctx"]
        self.assertEqual(got["bytes"], slots * got["kv_heads"] * got["head_dim"] * 4)
        self.assertTrue(got["window"] < got["window_ctx"] < 2048, got)
        self.assertIn(f"keep {got['window_ctx']} positions", self.ok(mica("kv", "plan", "-m", path, "--ctx", "2048")).text)

    def test_refusals(self):
        self.fails(mica("kv", "plan", "-m", SCRIPTED, "--type-k", "q5_1"), "--type-k", "q5_1", "f16", code=2)
        done = mica("kv", "plan", "-m", SCRIPTED, "--ctx", "100", "--type-k", "q8_0", "--type-v", "q4_0", "--json")
        self.assertEqual(json.loads(self.ok(done).out)["bytes"], 128 * 100 * (34 + 18) // 32)
        self.fails(mica("kv", "plan", "--layers", "1", "--kv-heads", "1", "--head-dim", "8", "--ctx", "5", "--type-k", "q8_0"), "32")
        self.fails(mica("kv", "plan", "--layers", "3", "--ctx", "5"), "--head-dim", code=2)
        self.fails(mica("kv", "plan", "-m", SCRIPTED, "--ctx", "4294967295"))


if __name__ == "__main__":
    main()
