"""One reply as it is made: a thread runs the native call, and the consumer takes events from it.

Invariants:
 1. Nothing runs before the first event is asked for, and nothing after close() has returned.
 2. The native side is at most AHEAD events before the consumer: who stops taking, stops the work.
 3. The session is free again before the consumer sees the last event.
 4. Streams that are open when the interpreter ends are closed first (atexit): the thread must not call into a dying interpreter.
"""
from __future__ import annotations

import asyncio
import atexit
import ctypes
import queue
import threading
import weakref
from typing import Any, AsyncIterator, Callable, Iterator, List, Optional, Union

from . import _abi
from ._handle import Raised
from ._library import lib
from .errors import Cancelled, Status, error_of, new_error, ref
from .events import ContextTrimmed, Done, Event, Result, Text, result_of, token_of
from .options import NativeOptions, Options
from .tools import ToolParser

AHEAD = 16
Deliver = Callable[[Union[Event, BaseException]], None]
_open_jobs: "weakref.WeakSet[Job]" = weakref.WeakSet()


class Job:
    """The producer. `deliver` takes an event, or the exception that ended the reply; it must not refer to the stream, so that a
    stream that nobody holds any more is closed though its thread runs."""

    def __init__(self, session: Any, tokens: List[int], options: Options, deliver: Deliver) -> None:
        self.session, self.tokens, self.options = session, tokens, options
        self.native = NativeOptions(options)
        self.deliver, self.stopped, self.raised = deliver, False, Raised()
        self.result: Optional[Result] = None
        self.room = threading.Semaphore(AHEAD)
        self.thread: Optional[threading.Thread] = None
        self.parser: Optional[ToolParser] = None

    def start(self) -> None:
        self.session._claim(self)
        _open_jobs.add(self)
        self.thread = threading.Thread(target=self._run, name="mica-generate", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """From any thread. The native call returns before its next token or prefill chunk, and the last event is Cancelled (or what
        came before that)."""
        self.stopped = True
        self.session._cancel_native()
        self.room.release()

    def join(self) -> None:
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()

    def put(self, event: Event) -> None:
        if not self.stopped:
            self.room.acquire()
        if not self.stopped:
            self.deliver(event)

    def on_prefill(self) -> int:
        return 1 if self.stopped else 0

    def on_context(self, e: _abi.ContextEvent) -> None:
        self.put(ContextTrimmed(e.dropped_from, e.dropped_count, e.inserted_count))

    def _on_text(self, _: Any, text: Any, length: int) -> int:
        try:
            if self.parser:
                self.parser.feed(text, length)
            else:
                self.put(Text(ctypes.string_at(text, length).decode("utf-8", "replace")))
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self.raised.add(e)
            return 1
        return 1 if self.stopped else 0

    def _on_token(self, _: Any, event: Any) -> int:
        try:
            self.put(token_of(event.contents, self.options.top_logprobs > 0))
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self.raised.add(e)
            return 1
        return 1 if self.stopped else 0

    def _run(self) -> None:
        last: Union[Event, BaseException]
        try:
            last = Done(self._compute())
        except BaseException as e:  # pylint: disable=broad-exception-caught
            last = e
        self.session._release(self)
        try:
            self.deliver(last)  # always, and without waiting for room: somebody may wait for it
        except RuntimeError:
            pass  # an event loop that is closed: nobody does

    def _compute(self) -> Result:
        session, o = self.session, self.native.native
        constraint = self.options.constraint_of(session.model)
        tools = self.options.tools
        self.parser = ToolParser(tools, self.put) if tools else None
        o.on_text, o.on_token = _abi.ON_TEXT(self._on_text), _abi.ON_TOKEN(self._on_token)
        try:
            with session._handle as native:
                session._sync_native(native, self.tokens)
                if constraint:
                    with constraint._handle as compiled:
                        o.constraint = compiled
                        return self._generate(native)
                if tools:
                    with tools._handle as compiled:
                        o.constraint = lib.mica_tools_constraint(compiled)
                        return self._generate(native)
                return self._generate(native)
        finally:
            o.on_text, o.on_token = _abi.ON_TEXT(), _abi.ON_TOKEN()  # they refer to this object
            if self.parser:
                self.parser.close()

    def _generate(self, native: Any) -> Result:
        if self.stopped:
            raise Cancelled("cancelled before the reply began")
        raw, error = _abi.Result(), new_error()
        status = lib.mica_session_generate(native, ref(self.native.native), ref(raw), ref(error))
        self.result = result_of(raw)
        self.raised.check()
        if status != Status.OK:
            raise error_of(status, error)
        if self.parser:
            self.parser.finish()
        return self.result


class Stream(Iterator[str]):
    """A reply. Iterating gives its text, piece by piece; events() gives everything. Closing it (or leaving a `with` block, or dropping
    it) stops the native work before its next token. Use it from one thread at a time; close() from any."""

    def __init__(self, session: Any, tokens: List[int], options: Options, *, own_session: bool = False) -> None:
        self._queue: "queue.SimpleQueue[Union[Event, BaseException]]" = queue.SimpleQueue()
        self._job = Job(session, tokens, options, self._queue.put)
        self._session, self._own_session = session, own_session
        self._started, self._ended = False, False

    @property
    def result(self) -> Optional[Result]:
        """How the reply went; None while it runs. There is one after a close(), too, if a reply had begun."""
        return self._job.result

    def _next_event(self) -> Event:
        if self._ended:
            raise StopIteration
        if not self._started:
            self._started = True
            try:
                self._job.start()
            except BaseException:
                self._end()
                raise
        try:
            item = self._queue.get()
        except BaseException:  # KeyboardInterrupt
            self.close()
            raise
        self._job.room.release()
        if isinstance(item, BaseException):
            self._end()
            raise item
        if isinstance(item, Done):
            self._end()
        return item

    def events(self) -> Iterator[Event]:
        """Text, Token, ToolCall, ToolError and ContextTrimmed in order, and Done at the end."""
        try:
            while True:
                try:
                    event = self._next_event()
                except StopIteration:
                    return
                yield event
        finally:
            self.close()

    def __next__(self) -> str:
        while True:
            event = self._next_event()
            if isinstance(event, Text):
                return event.text

    def __iter__(self) -> "Stream":
        return self

    def text(self) -> str:
        """The rest of the reply, whole."""
        return "".join(self)

    def _end(self) -> None:
        self._ended = True
        self._job.join()
        if self._own_session:
            self._session.close()

    def close(self) -> None:
        """Stops the reply. When it returns, nothing runs any more."""
        if self._ended:
            return
        if self._started:
            self._job.stop()
        self._end()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_ended"):
            self.close()


def _poster(loop: asyncio.AbstractEventLoop, events: "asyncio.Queue[Union[Event, BaseException]]") -> Deliver:
    def post(event: Union[Event, BaseException]) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event)
    return post


class AsyncStream(AsyncIterator[str]):
    """The same for asyncio. Cancelling the task that waits stops the native work; so do aclose() and `async with`."""

    def __init__(self, session: Any, tokens: List[int], options: Options, *, own_session: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: "asyncio.Queue[Union[Event, BaseException]]" = asyncio.Queue()
        self._job = Job(session, tokens, options, _poster(self._loop, self._queue))
        self._session, self._own_session = session, own_session
        self._started, self._ended = False, False

    @property
    def result(self) -> Optional[Result]:
        return self._job.result

    async def _next_event(self) -> Event:
        if self._ended:
            raise StopAsyncIteration
        if not self._started:
            self._started = True
            try:
                self._job.start()
            except BaseException:
                self._finish()
                raise
        try:
            item = await self._queue.get()
        except BaseException:  # asyncio.CancelledError
            await self.aclose()
            raise
        self._job.room.release()
        if isinstance(item, BaseException):
            await self._join()
            raise item
        if isinstance(item, Done):
            await self._join()
        return item

    async def events(self) -> AsyncIterator[Event]:
        try:
            while True:
                try:
                    event = await self._next_event()
                except StopAsyncIteration:
                    return
                yield event
        finally:
            await self.aclose()

    async def __anext__(self) -> str:
        while True:
            event = await self._next_event()
            if isinstance(event, Text):
                return event.text

    def __aiter__(self) -> "AsyncStream":
        return self

    async def text(self) -> str:
        return "".join([piece async for piece in self])

    def _finish(self) -> None:
        self._ended = True
        self._job.join()
        if self._own_session:
            self._session.close()

    async def _join(self) -> None:
        """Waits for the thread beside the loop; a second cancellation does not cut that short."""
        await asyncio.shield(self._loop.run_in_executor(None, self._finish))

    async def aclose(self) -> None:
        if self._ended:
            return
        if self._started:
            self._job.stop()
        await self._join()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_ended") and not self._ended:
            if self._started:
                self._job.stop()
            self._finish()


def _close_all() -> None:
    jobs = list(_open_jobs)
    for job in jobs:
        job.stop()
    for job in jobs:
        job.join()


atexit.register(_close_all)
