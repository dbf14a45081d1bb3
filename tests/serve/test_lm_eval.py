"""lm-eval's client of the completions route against the scripted model, whose probabilities are known."""
import math

from lm_eval_client import model_of, requests_of
from openai_client import ClientTest
from serving import main

# Context, continuation, its probability under the model, whether each of its tokens is the most probable one. After p1 and "!" the model
# ends the reply, after x it goes on: lm-eval asks for one token more and drops the last entry, which must be that token's in both cases.
SCORED = [("D", "p1", 0.6, True), ("D", "p2", 0.3, False), ("D", "p3", 0.1, False), ("xD", "p2", 0.3, False), ("E", "Hi 🙂!", 1.0, True),
          ("X", "xxx", 1.0, True)]


class Scripted(ClientTest):
    def check(self, lm):
        found = lm.loglikelihood(requests_of("loglikelihood", *(s[:2] for s in SCORED)), disable_tqdm=True)
        self.assertEqual(len(found), len(SCORED))
        for (context, continuation, probability, greedy), (score, is_greedy) in zip(SCORED, found):
            with self.subTest(context=context, continuation=continuation):
                self.assertAlmostEqual(score, math.log(probability), places=5)
                self.assertEqual(is_greedy, greedy)

    def test_one_by_one(self):
        self.check(model_of(self.server, "</s>", max_length=512))

    def test_batches(self):
        self.check(model_of(self.server, "</s>", max_length=512, batch_size=4))

    def test_together(self):
        self.check(model_of(self.server, "</s>", max_length=512, batch_size=2, num_concurrent=4))

    def test_improbable(self):
        """What the model would never say has a score, a finite one."""
        lm = model_of(self.server, "</s>", max_length=512)
        (score, greedy), = lm.loglikelihood(requests_of("loglikelihood", ("X", "p1")), disable_tqdm=True)
        self.assertTrue(math.isfinite(score))
        self.assertLess(score, -20)
        self.assertFalse(greedy)

    def rolling(self, text, max_length):
        lm = model_of(self.server, "</s>", max_length=max_length)
        score, = lm.loglikelihood_rolling(requests_of("loglikelihood_rolling", (text,)), disable_tqdm=True)
        return score

    def test_rolling(self):
        """Whole texts: the first token is scored after the end-of-text token. A text longer than lm-eval's context is scored in
        windows, every token once after the one before it, which is all that this model looks at."""
        first, pair, three = (self.rolling(text, 512) for text in ("D", "Dp2", "Dp2D"))
        self.assertLess(first, -20)
        self.assertAlmostEqual(pair - first, math.log(0.3), places=4)
        long = first + 20 * (pair - first) + 19 * (three - pair)
        for max_length in (512, 17):
            self.assertAlmostEqual(self.rolling("Dp2" * 20, max_length), long, places=2)

    def test_generate(self):
        lm = model_of(self.server, "</s>", max_length=512)
        asked = [("E", {"until": ["!"], "max_gen_toks": 20}), ("R", {"until": ["\n"], "max_gen_toks": 20}),
                 ("X", {"until": [], "max_gen_toks": 5})]
        self.assertEqual(lm.generate_until(requests_of("generate_until", *asked), disable_tqdm=True), ["Hi 🙂", "red fox", "xxxxx"])


if __name__ == "__main__":
    main()
