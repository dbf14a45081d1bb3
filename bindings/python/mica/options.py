"""How a reply is made. None is the library's default, which include/mica/mica.h has; nothing is repeated here."""
from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _abi
from .constraint import Constraint
from .errors import InvalidArgument
from ._library import lib
from .tools import Tools

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class GenerateArguments(TypedDict, total=False):
        """The fields of Options, as keyword arguments."""
        max_tokens: Optional[int]
        temperature: Optional[float]
        top_k: Optional[int]
        top_p: Optional[float]
        min_p: Optional[float]
        typical_p: Optional[float]
        repeat_penalty: Optional[float]
        frequency_penalty: Optional[float]
        presence_penalty: Optional[float]
        penalty_last_n: Optional[int]
        dry_multiplier: Optional[float]
        seed: Optional[int]
        logit_bias: Optional[Mapping[int, float]]
        stop: Union[str, Sequence[str]]
        stop_tokens: Sequence[int]
        ignore_eos: bool
        top_logprobs: int
        speculate: str
        json_schema: Union[str, Mapping[str, Any], bool, None]
        constraint: Optional[Constraint]
        tools: Optional[Tools]
        close_json: bool
        token_healing: bool

_SPECULATE = {"off": 0, "lookup": 1, "model": 2, "both": 3}
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_penalty", "frequency_penalty", "presence_penalty",
             "penalty_last_n", "dry_multiplier", "seed")


@dataclass(frozen=True)
class Options:
    max_tokens: Optional[int] = None  # None: until the context is full
    temperature: Optional[float] = None  # 0: greedy
    top_k: Optional[int] = None
    top_p: Optional[float] = None
    min_p: Optional[float] = None
    typical_p: Optional[float] = None
    repeat_penalty: Optional[float] = None
    frequency_penalty: Optional[float] = None
    presence_penalty: Optional[float] = None
    penalty_last_n: Optional[int] = None
    dry_multiplier: Optional[float] = None
    seed: Optional[int] = None
    logit_bias: Optional[Mapping[int, float]] = None  # by token; -inf bans it
    stop: Union[str, Sequence[str]] = ()
    stop_tokens: Sequence[int] = ()
    ignore_eos: bool = False
    top_logprobs: int = 0
    speculate: str = "off"  # "lookup", "model", "both": a session with draft_max > 0
    json_schema: Union[str, Mapping[str, Any], bool, None] = None  # the reply is JSON that this schema allows
    constraint: Optional[Constraint] = None
    tools: Optional[Tools] = None
    close_json: bool = False  # with a constraint: a reply that max_tokens cuts is completed in time
    token_healing: bool = False

    def constraint_of(self, model: Any) -> Optional[Constraint]:
        """The one constraint of the reply, compiled if it is a schema."""
        named = [n for n in ("json_schema", "constraint", "tools") if getattr(self, n) is not None]
        if len(named) > 1:
            raise InvalidArgument(f"{' and '.join(named)} cannot be combined: a reply has one constraint")
        if self.json_schema is not None:
            text = self.json_schema if isinstance(self.json_schema, str) else json.dumps(self.json_schema)
            return Constraint(model, "json_schema", text)
        return self.constraint


class NativeOptions:
    """mica_generate_options with what its pointers point to."""

    def __init__(self, options: Options) -> None:
        native = lib.mica_generate_options_default()
        if options.max_tokens is not None:
            native.max_tokens = _int32("max_tokens", options.max_tokens)
        for name in _SAMPLING:
            value = getattr(options, name)
            if value is not None:
                setattr(native.sampling, name, value)
        if options.speculate not in _SPECULATE:
            raise InvalidArgument(f"speculate is {options.speculate!r}; it must be one of {', '.join(_SPECULATE)}")
        native.speculate = _SPECULATE[options.speculate]
        native.ignore_eos, native.close, native.token_healing = options.ignore_eos, options.close_json, options.token_healing
        native.top_logprobs = _int32("top_logprobs", options.top_logprobs)
        self.native: _abi.GenerateOptions = native
        self.kept: List[Any] = []
        self._lists(options)

    def _lists(self, options: Options) -> None:
        native = self.native
        stop = [options.stop] if isinstance(options.stop, str) else list(options.stop)
        texts = (ctypes.c_char_p * max(1, len(stop)))(*[s.encode() for s in stop])
        native.stop, native.n_stop = texts, len(stop)
        tokens = int32_array(options.stop_tokens)
        native.stop_tokens, native.n_stop_tokens = tokens, len(options.stop_tokens)
        bias: Dict[int, float] = dict(options.logit_bias or {})
        rows = (_abi.LogitBias * max(1, len(bias)))(*[_abi.LogitBias(_int32("a token of logit_bias", t), b) for t, b in bias.items()])
        native.sampling.logit_bias, native.sampling.n_logit_bias = rows, len(bias)
        self.kept += [texts, tokens, rows]


def _int32(name: str, value: int) -> int:
    """ctypes would cut off the upper bits without a word."""
    if not -(1 << 31) <= value < 1 << 31:
        raise InvalidArgument(f"{name} is {value}; it must fit 32 bits")
    return value


def int32_array(values: Sequence[int]) -> Any:
    return (ctypes.c_int32 * max(1, len(values)))(*[_int32("a token", v) for v in values])
