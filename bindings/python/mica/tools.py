"""Tools that a model may call: docs/tools.md. The calls come as events of the stream."""
import ctypes
import json
from typing import Any, Callable, List, Mapping, Optional, Sequence

from . import _abi
from ._handle import Handle, Owner
from ._library import lib
from .errors import InvalidArgument, check, new_error, ref
from .events import Event, Text, ToolCall, ToolError

_CHOICES = {"auto": 0, "none": 1, "required": 2}


class Tools(Owner):
    """OpenAI's "tools". `choice`: "auto", "none", "required", or the name of the one to call."""

    def __init__(self, model: Any, tools: Sequence[Mapping[str, Any]], *, choice: str = "auto", parallel: bool = True,
                 lenient: bool = False) -> None:
        data, out, error = json.dumps(list(tools)).encode(), ctypes.c_void_p(), new_error()
        o = lib.mica_tools_options_default()
        o.choice, o.parallel, o.lenient = _CHOICES.get(choice, 3), parallel, lenient
        if choice not in _CHOICES:
            o.name = choice.encode()
        with model._handle as native:
            check(lib.mica_tools_new(native, data, len(data), ref(o), ref(out), ref(error)), error)
        self._handle = Handle("the list of tools", out, lib.mica_tools_free)

    @property
    def format(self) -> str:
        """How the model writes calls: "hermes", "llama3", ..., "generic"."""
        with self._handle as native:
            return str(lib.mica_tools_format(native).decode())


class ToolParser:
    """The calls out of one reply's text. Used by the stream, on the thread that generates."""

    def __init__(self, tools: Tools, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._callback = _abi.ON_TOOL_EVENT(self._on_event)
        self._failed: List[BaseException] = []
        out, error = ctypes.c_void_p(), new_error()
        self._tools = tools._handle
        with self._tools as native:
            check(lib.mica_tool_parser_new(native, -1, self._callback, None, ref(out), ref(error)), error)
        self._handle = Handle("the parser", out, lib.mica_tool_parser_free, keep=self._tools)

    def _on_event(self, _: Any, event: Any) -> int:
        try:
            made = tool_event(event.contents)
            if made is not None:
                self._deliver(made)
            return 0
        except BaseException as e:  # pylint: disable=broad-exception-caught
            self._failed.append(e)
            return 1

    def _call(self, status: int, error: _abi.Error) -> None:
        if self._failed:
            raise self._failed[0]
        check(status, error)

    def feed(self, text: Any, length: int) -> None:
        error = new_error()
        with self._handle as native:
            self._call(lib.mica_tool_parser_feed(native, text, length, ref(error)), error)

    def finish(self) -> None:
        error = new_error()
        with self._handle as native:
            self._call(lib.mica_tool_parser_finish(native, ref(error)), error)

    def close(self) -> None:
        self._handle.close()


def tool_event(e: _abi.ToolEvent) -> Optional[Event]:
    """None for the events that the binding joins: a call is told when it is whole."""
    text = ctypes.string_at(e.text, e.length).decode("utf-8", "replace") if e.length else ""
    if e.kind == _abi.CONSTANTS["MICA_TOOL_TEXT"]:
        return Text(text)
    if e.kind == _abi.CONSTANTS["MICA_TOOL_CALL_END"]:
        return ToolCall(e.index, e.id.decode(), e.name.decode("utf-8", "replace"), json.loads(text))
    if e.kind == _abi.CONSTANTS["MICA_TOOL_ERROR"]:
        return ToolError(text, e.message.decode("utf-8", "replace"))
    if e.kind not in (_abi.CONSTANTS["MICA_TOOL_CALL_BEGIN"], _abi.CONSTANTS["MICA_TOOL_ARGUMENTS"]):
        raise InvalidArgument(f"the library told an event {e.kind} that this package does not know")
    return None
