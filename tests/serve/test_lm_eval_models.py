"""lm-eval's client with a real model: scores are the log-probabilities that the model has when it writes the same text."""
from lm_eval_client import model_of, requests_of
from openai_client import AUTH, SMOLLM, ClientTest
from serving import main_with_models

CONTEXT = "The capital of France is"
CHOICES = [("The capital of France is", " Paris"), ("The capital of France is", " Berlin"), ("Water is made of hydrogen and", " oxygen"),
           ("Water is made of hydrogen and", " carpets")]


class Real(ClientTest):
    model, arguments = SMOLLM, ("--parallel", 2, "--ctx", 1024)

    def setUp(self):
        self.lm = model_of(self.server, "<|im_end|>", max_length=1024, batch_size=2)

    def scores(self, *pairs):
        return self.lm.loglikelihood(requests_of("loglikelihood", *pairs), disable_tqdm=True)

    def test_as_written(self):
        """A greedy reply's own log-probabilities, and the score of the same tokens after the same prompt."""
        context = self.lm.tokenizer.encode(CONTEXT)
        ask = {"prompt": context, "max_tokens": 12, "temperature": 0, "logprobs": 1}
        choice = self.server.post("/v1/completions", ask, headers=AUTH).json()["choices"][0]
        reply = self.lm.tokenizer.encode(CONTEXT + choice["text"])[len(context):]
        self.assertEqual(len(reply), len(choice["logprobs"]["tokens"]))
        (score, greedy), = self.scores((CONTEXT, choice["text"]))
        self.assertEqual(score, sum(choice["logprobs"]["token_logprobs"]))
        self.assertTrue(greedy)

    def test_choices(self):
        """What a multiple-choice task does: the better ending has the better score."""
        paris, berlin, oxygen, carpets = (score for score, _ in self.scores(*CHOICES))
        self.assertGreater(paris, berlin)
        self.assertGreater(oxygen, carpets)

    def test_together_as_alone(self):
        alone = [self.scores(pair)[0] for pair in CHOICES]
        self.assertEqual(self.scores(*CHOICES), alone)


if __name__ == "__main__":
    main_with_models("smollm2-135m-instruct-q4_1.gguf")
