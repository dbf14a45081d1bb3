"""A session: one conversation, with its memory reserved when it is made."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Sequence, Union

from . import _abi
from ._handle import Handle, Owner, Raised
from ._library import lib, take_bytes
from .errors import Busy, InvalidArgument, check, new_error, ref
from .floats import Floats, copy_floats, log_probability, view_floats
from .options import Options, int32_array
from .stream import AsyncStream, Stream

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack
    from .model import Prompt
    from .options import GenerateArguments

    class SessionArguments(TypedDict, total=False):
        """mica_session_options. None or 0 is the library's default."""
        n_ctx: int
        n_threads: int
        prefill_chunk: int
        full_policy: str
        keep_first: int
        kv_type: str
        memory_budget: int
        memory_limit: int
        workspace_limit: int
        draft_max: int
        draft_model: Any
        constrained: bool

FULL_POLICIES = {"error": 0, "stop": 1, "shift": 2}
KV_TYPES = {"f16": 0, "q8_0": 1, "q4_0": 2}
POOLING = {"mean": 0, "last": 1}
_PLAIN = ("n_ctx", "n_threads", "prefill_chunk", "keep_first", "memory_budget", "memory_limit", "workspace_limit", "draft_max",
          "constrained")


def _chosen(what: str, value: str, table: Dict[str, int]) -> int:
    if value not in table:
        raise InvalidArgument(f"{what} is {value!r}; it must be one of {', '.join(table)}")
    return table[value]


@dataclass(frozen=True)
class MemoryPlan:
    """mica_memory_plan: what a session takes, to the byte."""
    n_ctx: int
    prefill_chunk: int
    n_threads: int
    window_ctx: int
    weights_bytes: int
    kv_bytes: int
    workspace_bytes: int
    total_bytes: int
    touched_bytes: int
    fixed_bytes: int
    guide_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class TokenScore:
    token: int
    logprob: float
    greedy: bool  # none is more probable


def native_options(options: Mapping[str, Any]) -> _abi.SessionOptions:
    o: _abi.SessionOptions = lib.mica_session_options_default()
    unknown = set(options) - set(_PLAIN) - {"full_policy", "kv_type", "draft_model"}
    if unknown:
        raise TypeError(f"a session has no option {sorted(unknown)[0]!r}")
    for name in _PLAIN:
        if options.get(name):
            setattr(o, name, options[name])
    o.full_policy = _chosen("full_policy", options.get("full_policy", "error"), FULL_POLICIES)
    o.kv_k = o.kv_v = _chosen("kv_type", options.get("kv_type", "f16"), KV_TYPES)
    return o


@contextlib.contextmanager
def _with_draft(o: _abi.SessionOptions, draft: Any) -> Iterator[None]:
    """The draft model is held while the call runs; a session takes a reference of its own."""
    if draft is None:
        yield
        return
    with draft._handle as native:
        o.draft_model = native
        yield


def plan_of(model: Any, options: Mapping[str, Any]) -> MemoryPlan:
    o, raw, error = native_options(options), _abi.MemoryPlan(), new_error()
    with model._handle as native, _with_draft(o, options.get("draft_model")):
        check(lib.mica_session_plan(native, ref(o), ref(raw), ref(error)), error)
    return MemoryPlan(**{name: getattr(raw, name) for name, *_ in raw._fields_})


class _Hooks:
    """What the session's callbacks know; apart from the session, so that the two are no cycle."""

    def __init__(self) -> None:
        self.job: Any = None
        self.stopped = False  # of a call without a job
        self.prefill = _abi.ON_PREFILL(self._on_prefill)
        self.context = _abi.ON_CONTEXT_EVENT(self._on_context)

    def _on_prefill(self, _user: Any, _done: int, _total: int) -> int:
        return int(self.job.on_prefill()) if self.job else int(self.stopped)

    def _on_context(self, _user: Any, event: Any) -> None:
        if self.job:
            self.job.on_context(event.contents)


class Session(Owner):
    """Belongs to one call at a time: a second one, or one while a stream is open, is Busy. cancel() and close() are for any thread."""

    def __init__(self, model: Any, **options: "Unpack[SessionArguments]") -> None:
        self.model = model
        self._hooks, self._lock = _Hooks(), threading.Lock()
        self._owner: Any = None
        o, out, error = native_options(options), ctypes.c_void_p(), new_error()
        o.on_prefill, o.on_context_event = self._hooks.prefill, self._hooks.context
        with model._handle as native, _with_draft(o, options.get("draft_model")):
            check(lib.mica_session_new(native, ref(o), ref(out), ref(error)), error)
        self._handle = Handle("the session", out, lib.mica_session_free, keep=self._hooks)

    # ---- who computes

    def _claim(self, owner: Any) -> None:
        with self._lock:
            if self._owner is not None:
                raise Busy("the session computes already: finish the stream that is open, or close it, or make another session")
            self._owner = owner
            self._hooks.stopped = False
            self._hooks.job = owner if hasattr(owner, "on_prefill") else None

    def _release(self, owner: Any) -> None:
        with self._lock:
            if self._owner is owner:
                self._owner = self._hooks.job = None

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[Any]:
        token = object()
        self._claim(token)
        try:
            with self._handle as native:
                yield native
        finally:
            self._release(token)

    def _cancel_native(self) -> None:
        if not self._handle.closed:
            with self._handle as native:
                lib.mica_session_cancel(native)

    def _sync_native(self, native: Any, tokens: Sequence[int]) -> None:
        error = new_error()
        check(lib.mica_session_sync(native, int32_array(tokens), len(tokens), ref(error)), error)

    def cancel(self) -> None:
        """Stops what runs before its next token or prefill chunk; from any thread. The call, or the stream, raises Cancelled."""
        job = self._owner
        self._hooks.stopped = True
        if hasattr(job, "stop"):
            job.stop()
        else:
            self._cancel_native()

    def close(self) -> None:
        """Stops what runs, and frees the session."""
        job = self._owner
        if hasattr(job, "stop"):
            job.stop()
            job.join()
        elif job is not None:
            self.cancel()
        super().close()

    # ---- replies

    def generate(self, prompt: "Prompt", **options: "Unpack[GenerateArguments]") -> Stream:
        """A reply to a text, messages or tokens. Give the whole conversation each time: what the session has in its memory is not
        computed again. Nothing runs before the first piece is asked for."""
        chosen = Options(**options)
        return Stream(self, self.model.prompt_tokens(prompt, chosen.tools), chosen)

    def agenerate(self, prompt: "Prompt", **options: "Unpack[GenerateArguments]") -> AsyncStream:
        """The same for asyncio; call it while a loop runs."""
        chosen = Options(**options)
        return AsyncStream(self, self.model.prompt_tokens(prompt, chosen.tools), chosen)

    # ---- numbers

    def sync(self, prompt: "Prompt") -> int:
        """Makes the prompt the history, computes what is new of it, and returns how many tokens it has."""
        tokens = self.model.prompt_tokens(prompt)
        with self._exclusive() as native:
            self._sync_native(native, tokens)
        return len(tokens)

    @property
    def tokens(self) -> List[int]:
        """The history."""
        n = ctypes.c_size_t()
        with self._exclusive() as native:
            tokens = lib.mica_session_tokens(native, ref(n))
            return list(tokens[:n.value]) if n.value else []

    def logits(self) -> Floats:
        """After the last token of the history: n_vocab floats, copied."""
        n = self.model.info.n_vocab
        with self._exclusive() as native:
            found = lib.mica_session_logits(native)
            if not found:
                raise InvalidArgument("there are no logits yet: sync() a prompt first")
            return copy_floats(found, n)

    def score(self, tokens: Sequence[int], first: int = 1) -> List[TokenScore]:
        """How probable tokens[first:] are, each after those before it. The history is lost."""
        if not 1 <= first < len(tokens):
            raise InvalidArgument(f"first is {first}; it must be 1..{len(tokens) - 1}: a token before it, and one to score")
        n, raised, error = self.model.info.n_vocab, Raised(), new_error()
        found: List[TokenScore] = []

        def on_logits(_: Any, position: int, logits: int) -> int:
            try:
                token = tokens[position + 1]
                found.append(TokenScore(token, *log_probability(view_floats(logits, n), token)))
            except BaseException as e:  # pylint: disable=broad-exception-caught
                raised.add(e)
                return 1
            return 0

        for token in tokens:
            if not 0 <= token < n:
                raise InvalidArgument(f"there is no token {token}: the vocabulary has {n}")
        with self._exclusive() as native:
            status = lib.mica_session_score(native, int32_array(tokens[:-1]), len(tokens) - 1, first - 1, _abi.ON_LOGITS(on_logits),
                                            None, ref(error))
        raised.check()
        check(status, error)
        return found

    def embed(self, text: Union[str, Sequence[int]], *, pooling: str = "mean", normalise: bool = True) -> Floats:
        """The embedding of a text: n_embd floats. `pooling`: "mean" or "last"."""
        tokens = self.model.prompt_tokens(text)
        how, n, error = _chosen("pooling", pooling, POOLING), self.model.info.n_embd, new_error()
        out = (ctypes.c_float * n)()
        with self._exclusive() as native:
            check(lib.mica_session_embed(native, int32_array(tokens), len(tokens), how, normalise, out, ref(error)), error)
        return copy_floats(out, n)

    # ---- state

    def reset(self) -> None:
        """Makes the history empty."""
        error = new_error()
        with self._exclusive() as native:
            check(lib.mica_session_reset(native, ref(error)), error)

    def set_threads(self, n_threads: int) -> None:
        """From the next call on; 0: as planned. The results are the same bits."""
        error = new_error()
        with self._exclusive() as native:
            check(lib.mica_session_set_threads(native, n_threads, None, ref(error)), error)

    def snapshot(self) -> bytes:
        """The state as bytes: docs/snapshots.md."""
        out, n, error = ctypes.c_void_p(), ctypes.c_size_t(), new_error()
        with self._exclusive() as native:
            check(lib.mica_session_snapshot(native, ref(out), ref(n), ref(error)), error)
        return take_bytes(out, n.value)

    def restore_bytes(self, snapshot: bytes) -> None:
        error = new_error()
        with self._exclusive() as native:
            check(lib.mica_session_restore_memory(native, snapshot, len(snapshot), ref(error)), error)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        error = new_error()
        with self._exclusive() as native:
            check(lib.mica_session_save(native, os.fsencode(path), ref(error)), error)

    def restore(self, path: Union[str, "os.PathLike[str]"]) -> None:
        error = new_error()
        with self._exclusive() as native:
            check(lib.mica_session_restore(native, os.fsencode(path), ref(error)), error)


