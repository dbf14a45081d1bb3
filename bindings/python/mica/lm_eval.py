"""lm-evaluation-harness on this engine: the three calls of its models, by probability and by generation.

    import mica.lm_eval                                # registers the model "mica"
    lm_eval.simple_evaluate(model="mica", model_args={"path": "model.gguf"}, tasks=[...])

Works on what lm-eval hands over (objects with `.args`) and needs nothing of it: where it is installed, the class is one of its models.
"""
from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .model import Model
from .session import Session

try:
    from lm_eval.api.model import LM as _Base  # type: ignore[import-not-found,unused-ignore]
    from lm_eval.api.registry import register_model as _register  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    _Base = object
    _register = None


class MicaLM(_Base):  # type: ignore[misc,unused-ignore]
    """`max_length`: the context, 0 for the engine's default. Scores of one text depend on nothing but the text."""

    def __init__(self, path: str, *, max_length: int = 0, max_gen_toks: int = 256, n_threads: int = 0, kv_type: str = "f16",
                 **_: Any) -> None:
        super().__init__()
        self.model = Model(path)
        self.session: Session = self.model.session(n_ctx=int(max_length), n_threads=int(n_threads), kv_type=kv_type)
        self.max_length = self.model.plan(n_ctx=int(max_length)).n_ctx - 1  # one place is kept for the token after
        self.max_gen_toks = int(max_gen_toks)

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: Optional[Mapping[str, Any]] = None) -> "MicaLM":
        """"path=model.gguf,max_length=2048"."""
        pairs = dict(part.split("=", 1) for part in arg_string.split(",") if part)
        return cls(**{**{k: v for k, v in (additional_config or {}).items() if v is not None}, **pairs})

    @property
    def prefix_token(self) -> int:
        """Stands before a text whose first token is scored: the model's BOS, else its end of text."""
        info = self.model.info
        return info.bos_token if info.bos_token >= 0 else info.eos_token

    @property
    def tokenizer_name(self) -> str:
        return self.model.info.name

    def chat_template(self, chat_template: Any = False) -> str:
        return self.model.info.chat_template if chat_template is not False else ""

    def apply_chat_template(self, chat_history: Sequence[Dict[str, str]], add_generation_prompt: bool = True) -> str:
        return self.model.render_chat({"messages": list(chat_history), "add_generation_prompt": add_generation_prompt})

    def tok_encode(self, text: str) -> List[int]:
        """A rendered conversation spells control tokens, and lm-eval has nothing but texts: they are taken as such."""
        return self.model.tokenize(text, add_bos=self.model.info.add_bos, parse_special=True)

    def _pair(self, context: str, continuation: str) -> Tuple[List[int], int]:
        """The tokens of both together, and where the continuation begins. Blanks at the context's end belong to the continuation's first
        token, as the model saw it in training."""
        blanks = len(context) - len(context.rstrip())
        if blanks:
            context, continuation = context[:-blanks], context[-blanks:] + continuation
        if not context:
            begun = [self.prefix_token]
            tokens = self.tok_encode(continuation)
            return (tokens, 1) if tokens[:1] == begun else (begun + tokens, 1)
        return self.tok_encode(context + continuation), len(self.tok_encode(context))

    def _score(self, tokens: List[int], first: int) -> Tuple[float, bool]:
        """The sum over tokens[first:]. What does not fit is cut off on the left, and one token always stays before."""
        cut = max(0, min(len(tokens) - self.max_length - 1, first - 1))
        scores = self.session.score(tokens[cut:], first - cut)
        return sum(s.logprob for s in scores), all(s.greedy for s in scores)

    def loglikelihood(self, requests: Iterable[Any], disable_tqdm: bool = False) -> List[Tuple[float, bool]]:
        """Of each continuation after its context: the logarithm of its probability, and whether greedy decoding would say it."""
        found = []
        for request in requests:
            tokens, first = self._pair(*request.args)
            found.append(self._score(tokens, first) if first < len(tokens) else (0.0, True))
        return found

    def loglikelihood_rolling(self, requests: Iterable[Any], disable_tqdm: bool = False) -> List[float]:
        """Of whole texts: every token is scored once, in windows of the context's length."""
        found = []
        for request in requests:
            tokens = self.tok_encode(request.args[0])
            if tokens[:1] != [self.prefix_token]:
                tokens = [self.prefix_token] + tokens
            found.append(sum(self._score(tokens[a:b], first)[0] for a, first, b in windows(len(tokens), self.max_length)))
        return found

    def generate_until(self, requests: Iterable[Any], disable_tqdm: bool = False) -> List[str]:
        """Replies that end before the first of the texts in "until"."""
        found = []
        for request in requests:
            context, how = request.args
            until = [how["until"]] if isinstance(how.get("until"), str) else list(how.get("until") or [])
            longest = min(int(how.get("max_gen_toks", self.max_gen_toks)), self.max_length - 1)
            tokens = self.tok_encode(context) or [self.prefix_token]
            tokens = tokens[-(self.max_length - longest):]
            sampled = how.get("do_sample", False) or float(how.get("temperature", 0.0)) > 0
            temperature = float(how.get("temperature", 1.0)) if sampled else 0.0
            found.append(self.session.generate(tokens, max_tokens=longest, temperature=temperature, seed=int(how.get("seed", 0)),
                                               stop=[u for u in until if u]).text())
        return found


def windows(n: int, longest: int) -> Iterator[Tuple[int, int, int]]:
    """Cuts n tokens so that each but the first is scored once: (begin, first scored within it, end), as lm-eval cuts them: every window
    after the first is as long as the context allows, the last one too."""
    done = 1
    while done < n:
        end = min(n, done + longest)
        begin = max(0, end - longest - 1)
        yield begin, done - begin, end
        done = end


if _register is not None:
    _register("mica")(MicaLM)
