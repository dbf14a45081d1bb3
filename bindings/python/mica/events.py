"""What a stream tells, and how a reply went."""
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple, Union

from . import _abi


@dataclass(frozen=True)
class Result:
    """mica_result. Times in milliseconds. peak_rss_bytes is None where the system does not tell it."""
    stop_reason: str  # "eos", "stop", "length", "context", "cancelled", "error"
    prompt_n: int
    cached_n: int
    gen_n: int
    dropped_n: int
    needed_n: int
    load_ms: float
    ttft_ms: float
    tpot_ms: float
    tpot_p50_ms: float
    tpot_p95_ms: float
    prefill_ms: float
    prefill_tps: float
    decode_tps: float
    peak_rss_bytes: Optional[int]
    seed: int
    kernels: str
    n_threads: int
    drafted_n: int
    accepted_n: int
    forced_n: int


def result_of(r: _abi.Result) -> Result:
    values: Dict[str, Any] = {name: getattr(r, name) for name, *_ in r._fields_}
    values["stop_reason"] = (r.stop_reason or b"error").decode()
    values["kernels"] = (r.kernels or b"").decode()
    values["peak_rss_bytes"] = r.peak_rss_bytes if r.peak_rss_bytes >= 0 else None
    return Result(**values)


@dataclass(frozen=True)
class Text:
    """A piece of the reply: whole characters."""
    text: str


@dataclass(frozen=True)
class Token:
    """A token as it was chosen. `logprob` and `top` (token, logprob; most probable first) with top_logprobs > 0."""
    token: int
    index: int
    logprob: Optional[float]
    top: Tuple[Tuple[int, float], ...]
    time_ns: int


def token_of(e: _abi.TokenEvent, with_logprobs: bool) -> Token:
    top = tuple((e.top_tokens[i], e.top_logprobs[i]) for i in range(e.n_top))
    return Token(e.token, e.index, e.logprob if with_logprobs else None, top, e.time_ns)


@dataclass(frozen=True)
class ToolCall:
    """The model calls a tool."""
    index: int
    id: str
    name: str
    arguments: Dict[str, Any]


@dataclass(frozen=True)
class ToolError:
    """A call that the model wrote wrongly, as it wrote it."""
    text: str
    message: str


@dataclass(frozen=True)
class ContextTrimmed:
    """The context was full, and the session's policy dropped tokens."""
    dropped_from: int
    dropped_count: int
    inserted_count: int


@dataclass(frozen=True)
class Done:
    """Always the last event, and the only one of its kind."""
    result: Result


Event = Union[Text, Token, ToolCall, ToolError, ContextTrimmed, Done]
