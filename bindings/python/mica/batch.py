"""Many replies at once: one pass over the weights serves all of them."""
from __future__ import annotations

import collections
import ctypes
import threading
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, List, Optional, Sequence

from . import _abi
from ._handle import Handle, Owner, Raised
from ._library import lib
from .constraint import Constraint
from .errors import Busy, InvalidArgument, MicaError, Status, check, error_of, new_error, ref
from .events import Event, Result, Text, Token, result_of, token_of
from .options import NativeOptions, Options, int32_array
from .session import KV_TYPES, _chosen

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from .model import Prompt
    from .options import GenerateArguments


class BatchReply:
    """One reply of a batch. `text` grows while the batch steps; `done` says that it is over, `error` why it failed."""

    def __init__(self, tokens: List[int], options: Options, on_event: Optional[Callable[[Event], None]]) -> None:
        self.text = ""
        self.result: Optional[Result] = None
        self.error: Optional[BaseException] = None
        self.done = False
        self._prompt, self._options, self._on_event = tokens, options, on_event
        self._constraint: Optional[Constraint] = None
        self._held: List[Handle] = []  # what the running request borrows
        self._native, self._raised = NativeOptions(options), Raised()
        self._session: Any = None
        self._cancelled = False

    def cancel(self) -> None:
        """Ends it in the next step; from any thread."""
        self._cancelled = True

    def _tell(self, event: Event) -> int:
        try:
            if self._on_event:
                self._on_event(event)
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self._raised.add(e)
        return 1 if self._raised.errors or self._cancelled else 0

    def _on_text(self, _: Any, text: Any, length: int) -> int:
        piece = ctypes.string_at(text, length).decode("utf-8", "replace")
        self.text += piece
        return self._tell(Text(piece))

    def _on_token(self, _: Any, event: Any) -> int:
        made: Token = token_of(event.contents, self._options.top_logprobs > 0)
        return self._tell(made)

    def _on_done(self, _: Any, status: int, result: Any, error: Any) -> None:
        if result:
            self.result = result_of(result.contents)
        if self._raised.errors:
            self.error = self._raised.errors[0]
        elif status != Status.OK:
            self.error = error_of(status, error.contents if error else new_error())
        self.done = True


class Batch(Owner):
    """A batch with `max_sessions` replies at a time; more are queued. Belongs to one thread at a time. Every reply is, bit for bit, the
    one that a session alone would give."""

    def __init__(self, model: Any, *, max_sessions: int = 0, n_ctx: int = 0, step_tokens: int = 0, n_threads: int = 0,
                 kv_tokens: int = 0, kv_type: str = "f16", memory_budget: int = 0, constrained: bool = False) -> None:
        self.model = model
        o, out, error = lib.mica_batch_options_default(), ctypes.c_void_p(), new_error()
        plain: Dict[str, int] = {"max_sessions": max_sessions, "n_ctx": n_ctx, "step_tokens": step_tokens, "n_threads": n_threads,
                                 "kv_tokens": kv_tokens, "memory_budget": memory_budget}
        for name, value in plain.items():
            if value:
                setattr(o, name, value)
        o.kv_k = o.kv_v = _chosen("kv_type", kv_type, KV_TYPES)
        o.constrained = constrained
        self._max = max_sessions or 8
        with model._handle as native:
            check(lib.mica_batch_new(native, ref(o), ref(out), ref(error)), error)
        self._handle = Handle("the batch", out, lib.mica_batch_free)
        self._waiting: Deque[BatchReply] = collections.deque()
        self._running: List[BatchReply] = []
        self._lock = threading.Lock()

    def submit(self, prompt: "Prompt", *, on_event: Optional[Callable[[Event], None]] = None,
               **options: "Unpack[GenerateArguments]") -> BatchReply:
        """Queues a reply. `on_event` is told each Text and Token as it is made, in step()."""
        chosen = Options(**options)
        if chosen.tools is not None:
            raise InvalidArgument("a batch has no tools here: give their constraint, or use a session")
        reply = BatchReply(self.model.prompt_tokens(prompt), chosen, on_event)
        reply._constraint = chosen.constraint_of(self.model)
        self._waiting.append(reply)
        return reply

    def step(self) -> int:
        """Computes one step of all replies; returns how many are left, the waiting ones included."""
        if not self._lock.acquire(blocking=False):
            raise Busy("the batch computes already: it belongs to one thread at a time")
        try:
            with self._handle as native:
                self._begin(native)
                for reply in self._running:
                    if reply._cancelled and not reply.done:
                        lib.mica_session_cancel(reply._session)
                if self._running:
                    lib.mica_batch_step(native)
                self._collect()
        finally:
            self._lock.release()
        return len(self._running) + len(self._waiting)

    def run(self) -> None:
        """Steps until all is done."""
        while self.step():
            pass

    def _begin(self, native: Any) -> None:
        while self._waiting and len(self._running) < self._max:
            reply = self._waiting.popleft()
            try:
                self._submit(native, reply)
            except MicaError as e:
                self._end(reply)
                reply.error, reply.done = e, True
            else:
                self._running.append(reply)

    def _submit(self, native: Any, reply: BatchReply) -> None:
        out, error = ctypes.c_void_p(), new_error()
        check(lib.mica_batch_session_new(native, None, ref(out), ref(error)), error)
        reply._session, o = out, reply._native.native
        o.on_text, o.on_token = _abi.ON_TEXT(reply._on_text), _abi.ON_TOKEN(reply._on_token)
        o.on_done = _abi.ON_DONE(reply._on_done)
        if reply._constraint:
            o.constraint = reply._constraint._handle.__enter__()
            reply._held.append(reply._constraint._handle)
        tokens = reply._prompt
        check(lib.mica_batch_submit(out, int32_array(tokens), len(tokens), ref(o), ref(error)), error)

    def _collect(self) -> None:
        for reply in [r for r in self._running if r.done]:
            self._running.remove(reply)
            self._end(reply)

    @staticmethod
    def _end(reply: BatchReply) -> None:
        if reply._session is not None:
            lib.mica_session_free(reply._session)
            reply._session = None
        o = reply._native.native
        o.on_text, o.on_token, o.on_done = _abi.ON_TEXT(), _abi.ON_TOKEN(), _abi.ON_DONE()
        while reply._held:
            reply._held.pop().__exit__()

    def close(self) -> None:
        """Drops what runs: those replies are done, with Cancelled as their error."""
        with self._lock:
            for reply in [*self._running, *self._waiting]:
                self._end(reply)
                reply.done, reply.error = True, error_of(Status.CANCELLED, _cancelled())
            self._running, self._waiting = [], collections.deque()
            super().close()


def _cancelled() -> _abi.Error:
    return _abi.Error(Status.CANCELLED, -1, b"the batch was closed before the reply was over")


def generate_batch(model: Any, prompts: Sequence["Prompt"], *, n_ctx: int = 0, max_sessions: int = 8,
                   **options: "Unpack[GenerateArguments]") -> List[BatchReply]:
    """Replies to all prompts, in their order, at most `max_sessions` at a time."""
    with Batch(model, n_ctx=n_ctx, max_sessions=max_sessions) as batch:
        replies = [batch.submit(prompt, **options) for prompt in prompts]
        batch.run()
    return replies
