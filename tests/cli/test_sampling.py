"""The sampling cases (smp-*) through the options of mica run, on the scripted model."""
import collections
import json
import os
import tempfile

from climica import COMMON, SCRIPTED, TestCase, case_json, main, mica, scripted_module

with open(os.path.join(COMMON, "scripted.json"), encoding="utf-8") as f:
    IDS = json.load(f)["ids"]
NAMES = {"max_tokens": "-n", "temperature": "--temp", "top_p": "--top-p", "top_k": "--top-k", "min_p": "--min-p",
         "seed": "--seed", "repeat_penalty": "--repeat-penalty", "frequency_penalty": "--frequency-penalty",
         "presence_penalty": "--presence-penalty", "repeat_last_n": "--penalty-last-n"}


def arguments(request):
    """A request of the chat API as options; what it does not say is off, as there."""
    args = ["-p", request["messages"][-1]["content"]]
    for key, value in dict({"top_k": 0, "min_p": 0, "top_p": 1}, **request).items():
        if key in NAMES and value is not None:
            args += [NAMES[key], str(value)]
    stop = request.get("stop", [])
    for text in stop if isinstance(stop, list) else [stop]:
        args += ["--stop", str(text)]
    bias = request.get("logit_bias", {})
    for key, value in bias.items() if isinstance(bias, dict) else bias:
        args += ["--logit-bias", f"{IDS[key[1:]] if key[0] == '@' else key}={'-inf' if value is False else value}"]
    return args


def answer(request, model=SCRIPTED):
    return mica("run", "-m", model, *arguments(request))


class Sampling(TestCase):
    def test_temperature_zero(self):
        """Case smp-01."""
        for request in case_json("smp-01-temperature-zero", "requests.json"):
            self.assertEqual(self.ok(answer(request)).text, "p1")

    def test_top_p_edges(self):
        """Case smp-02, the first 60 of each kind."""
        counts = collections.defaultdict(collections.Counter)
        for request in case_json("smp-02-top-p-edges", "requests.json"):
            count = counts[request["top_p"]]
            if sum(count.values()) < 60:
                count[self.ok(answer(request)).text] += 1
        self.assertEqual(set(counts), {0, 0.59, 0.61, 1})
        for top_p in (0, 0.59):
            self.assertEqual(set(counts[top_p]), {"p1"})
        self.assertEqual(set(counts[0.61]), {"p1", "p2"})
        self.assertAlmostEqual(counts[0.61]["p2"] / 60, 1 / 3, delta=0.2)
        self.assertEqual(set(counts[1]), {"p1", "p2", "p3"})
        self.assertAlmostEqual(counts[1]["p1"] / 60, 0.6, delta=0.2)

    def test_seed(self):
        """Case smp-04."""
        requests = case_json("smp-04-seed", "requests.json")
        texts = [self.ok(answer(r)).text for r in requests]
        again = [self.ok(answer(r)).text for r in reversed(requests)][::-1]
        for request, a, b in zip(requests, texts, again):
            if request.get("seed", -1) >= 0:
                self.assertEqual(a, b, request)
        self.assertEqual(len(set(texts[:3])), 1)
        self.assertGreater(len(set(texts[2:10])), 1)

    def test_fresh_seed_can_be_repeated(self):
        ends = [json.loads(mica("run", "-m", SCRIPTED, "-p", "D", "--json", "-n", "1").text.splitlines()[-1]) for _ in range(3)]
        self.assertEqual(len({e["seed"] for e in ends}), 3)
        for e in ends:
            self.assertEqual(self.ok(mica("run", "-m", SCRIPTED, "-p", "D", "-n", "1", "--seed", e["seed"])).text, e["text"])

    def test_logit_bias(self):
        """Case smp-05."""
        requests = case_json("smp-05-logit-bias", "requests.json")
        texts = [self.ok(answer(r)).text for r in requests[:5]]
        self.assertEqual(texts, ["p2", "p3", "p2", "p1", "p2"])
        self.fails(answer(requests[5]), "99999999")
        self.fails(answer(requests[6]), "--logit-bias", code=2)
        self.fails(answer(requests[7]), "--logit-bias", code=2)

    def check_non_finite(self, model):
        requests = case_json("smp-07-non-finite-logits", "requests.json")
        for request in requests[:2]:
            done = self.fails(answer(request, model))
            self.assertRegex(done.message, "nan|inf")
            self.assertEqual(done.text, "")
            end = json.loads(mica("run", "-m", model, *arguments(request), "--json").text.splitlines()[-1])
            self.assertEqual((end["ok"], end["stop_reason"]), (False, "error"))
        return requests[2]

    def test_non_finite_logits(self):
        """Case smp-07. In its models every logit of every prompt is NaN, because 0 times NaN is; a model whose embedding of "R"
        alone is NaN shows that other prompts are none the worse."""
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "m.gguf")
            for kind in ({"nan": True}, {"all_inf": True}):
                scripted_module().make(model, **kind)
                self.check_non_finite(model)
            with open(SCRIPTED, "rb") as f:
                data = bytearray(f.read())
            start = len(data) - self.tensor_bytes() + IDS["R"] * 128 * 4  # token_embd.weight comes first
            self.assertEqual(sorted(data[start:start + 512])[:510], [0] * 510)
            data[start:start + 512] = b"\0\0\xc0\x7f" * 128
            with open(model, "wb") as f:
                f.write(data)
            self.assertEqual(self.ok(answer(self.check_non_finite(model), model)).text, "Hi 🙂!")

    def tensor_bytes(self):
        info = json.loads(self.ok(mica("inspect", SCRIPTED, "--json")).out)
        return sum(t["bytes"] for t in info["types"].values())

    def test_penalties(self):
        """Case smp-09; values above 2 are refused, as the chat API does."""
        requests = case_json("smp-09-penalties", "requests.json")
        self.assertEqual(self.ok(answer(requests[0])).text, "xxxxxx")
        self.assertEqual(self.ok(answer(requests[1])).text, "xxxxxx")
        for request in requests[2:5]:
            self.fails(answer(request), "from -2 to 2", code=2)
        self.fails(answer(requests[5]), "--repeat-penalty", code=2)

    def test_out_of_range(self):
        """Case smp-10. A number is a fine stop string; strings beyond the limit are refused."""
        for request in case_json("smp-10-out-of-range", "requests.json"):
            done = answer(request)
            self.assertIn(done.code, (0, 1, 2), done)
            if request.get("stop") == [""] or request.get("temperature", 0) is not None and "temperature" in request:
                self.fails(done, code=2)
            if any(k in request for k in ("top_p", "top_k", "min_p")):
                self.fails(done, code=2)
            if request.get("temperature", 0) is None:
                self.assertIn(self.ok(done).text, ("p1", "p2", "p3"))


if __name__ == "__main__":
    main()
