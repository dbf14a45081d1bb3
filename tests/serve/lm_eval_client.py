"""lm-eval's client of the completions route, set up for the server: what `lm_eval --model local-completions` talks through."""
import functools
import logging
import os

import clients

os.environ.setdefault("TQDM_DISABLE", "1")
clients.need_modules("lm_eval.models.openai_completions", "aiohttp", "tenacity")
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.models.openai_completions import LocalCompletionsAPI  # noqa: E402
from lm_eval.utils import RemoteTokenizer  # noqa: E402

from openai_client import AUTH, KEY  # noqa: E402

logging.getLogger("lm_eval").setLevel(logging.ERROR)


class Tokenizer(RemoteTokenizer):
    """lm-eval's tokenizer over HTTP, with this server's routes: its own way is another server's. The other tokenizers that it can
    use come from a model hub."""

    def __init__(self, server, eos):  # pylint: disable=super-init-not-called
        self.server, self.eos = server, eos

    def post(self, path, body):
        answer = self.server.post(path, body, headers=AUTH)
        assert answer.status == 200, answer
        return answer.json()

    @property
    def tokenizer_info(self):
        return {"eos_token": self.eos}

    def encode(self, text):
        return self.post("/tokenize", {"content": text})["tokens"]

    def decode(self, tokens):
        return self.post("/detokenize", {"tokens": tokens})["content"]


class LocalCompletions(LocalCompletionsAPI):
    @functools.cached_property
    def api_key(self):
        return KEY


def model_of(server, eos, **more):
    host, port = server.address
    lm = LocalCompletions(model="any", base_url=f"http://{host}:{port}/v1/completions", tokenizer_backend=None, max_retries=1, **more)
    lm.tokenizer, lm.tokenizer_backend, lm.tokenized_requests = Tokenizer(server, eos), "remote", True
    return lm


def requests_of(kind, *arguments):
    return [Instance(kind, {}, args, i) for i, args in enumerate(arguments)]
