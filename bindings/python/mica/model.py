"""A model: immutable, shared by any number of threads and sessions."""
from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _abi
from ._handle import Handle, Owner, Raised
from ._library import lib, take_bytes, take_string
from .errors import InvalidArgument, check, new_error, ref
from .floats import Floats
from .options import Options, int32_array
from .session import MemoryPlan, Session, plan_of
from .stream import AsyncStream, Stream
from .tools import Tools

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from .options import GenerateArguments
    from .session import SessionArguments

Message = Mapping[str, Any]
# A text, a conversation (OpenAI's messages), a whole chat request, or tokens.
Prompt = Union[str, Sequence[Message], Mapping[str, Any], Sequence[int]]


@dataclass(frozen=True)
class ModelInfo:
    """mica_model_info. A token that the model does not have is -1."""
    architecture: str
    name: str
    kernels: str
    n_params: int
    weight_bytes: int
    file_bytes: int
    n_layers: int
    n_embd: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_ff: int
    n_vocab: int
    n_ctx_train: int
    sliding_window: int
    bos_token: int
    eos_token: int
    eot_token: int
    pad_token: int
    add_bos: bool
    has_chat_template: bool
    chat_template: str
    load_ms: float
    locked: bool


class Model(Owner):
    """A GGUF file, mapped. `on_warning` gets one line for each oddity of the file; `on_progress` the part done, 0 to 1."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, kernels: Optional[str] = None, chat_template: Optional[str] = None,
                 lock: bool = False, on_progress: Optional[Callable[[float], None]] = None,
                 on_warning: Optional[Callable[[str], None]] = None) -> None:
        self.path = os.fspath(path)
        raised = Raised()

        def progress(_: Any, done: float) -> int:
            return _guarded(raised, on_progress, done)

        def warning(_: Any, message: bytes) -> None:
            _guarded(raised, on_warning, message.decode("utf-8", "replace"))

        o = lib.mica_model_options_default()
        o.kernels = kernels.encode() if kernels else None
        o.chat_template = chat_template.encode() if chat_template else None
        o.lock = lock
        o.on_progress, o.on_warning = _abi.ON_PROGRESS(progress), _abi.ON_WARNING(warning)
        out, error = ctypes.c_void_p(), new_error()
        status = lib.mica_model_open(os.fsencode(self.path), ref(o), ref(out), ref(error))
        if not raised.errors:
            check(status, error)
        self._handle = Handle("the model", out, lib.mica_model_close)
        raised.check()

    @property
    def info(self) -> ModelInfo:
        raw = _abi.ModelInfo()
        with self._handle as native:
            lib.mica_model_get_info(native, ref(raw))
            values: Dict[str, Any] = {name: getattr(raw, name) for name, *_ in raw._fields_}
        for name in ("architecture", "name", "kernels", "chat_template"):
            values[name] = values[name].decode("utf-8", "replace")
        return ModelInfo(**values)

    def metadata(self) -> Dict[str, str]:
        """What the file says about itself, as text; long arrays are shortened."""
        found = {}
        with self._handle as native:
            for i in range(lib.mica_model_metadata_count(native)):
                key, value, error = ctypes.c_void_p(), ctypes.c_void_p(), new_error()
                check(lib.mica_model_metadata(native, i, ref(key), ref(value), ref(error)), error)
                found[take_string(key)] = take_string(value)
        return found

    def explain_kernels(self) -> str:
        out, error = ctypes.c_void_p(), new_error()
        with self._handle as native:
            check(lib.mica_model_explain_kernels(native, ref(out), ref(error)), error)
        return take_string(out)

    # ---- text

    def tokenize(self, text: str, *, add_bos: bool = True, parse_special: bool = False) -> List[int]:
        """`parse_special`: text that spells a control token becomes that token; not for what users type."""
        data = text.encode()
        tokens, n, error = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t(), new_error()
        with self._handle as native:
            check(lib.mica_model_tokenize(native, data, len(data), add_bos | parse_special << 1, ref(tokens), ref(n), ref(error)),
                  error)
        return _take_tokens(tokens, n.value)

    def detokenize_bytes(self, tokens: Sequence[int], *, show_special: bool = False) -> bytes:
        out, n, error = ctypes.c_void_p(), ctypes.c_size_t(), new_error()
        with self._handle as native:
            check(lib.mica_model_detokenize(native, int32_array(tokens), len(tokens), show_special, ref(out), ref(n), ref(error)), error)
        return take_bytes(out, n.value)

    def detokenize(self, tokens: Sequence[int], *, show_special: bool = False) -> str:
        """Half characters become U+FFFD; detokenize_bytes() gives what is there."""
        return self.detokenize_bytes(tokens, show_special=show_special).decode("utf-8", "replace")

    def render_chat(self, chat: Union[Sequence[Message], Mapping[str, Any]]) -> str:
        """The text that the chat template makes of a conversation, for people to read."""
        data, out, n, error = _request(chat), ctypes.c_void_p(), ctypes.c_size_t(), new_error()
        with self._handle as native:
            check(lib.mica_model_chat_render(native, data, len(data), -1, ref(out), ref(n), ref(error)), error)
        return take_bytes(out, n.value).decode("utf-8", "replace")

    def chat_tokens(self, chat: Union[Sequence[Message], Mapping[str, Any]], *, tools: Optional[Tools] = None) -> List[int]:
        """The tokens of a conversation: messages, or a whole request (a dict with "messages", "chat_template_kwargs", ...). What
        messages say stays text: only the template writes control tokens."""
        data, o = _request(chat), lib.mica_chat_options_default()
        tokens, n, error = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t(), new_error()
        with self._handle as native:
            if tools is None:
                check(lib.mica_chat_tokenize(native, data, len(data), ref(o), ref(tokens), ref(n), None, None, ref(error)), error)
            else:
                with tools._handle as listed:
                    o.tools = listed
                    check(lib.mica_chat_tokenize(native, data, len(data), ref(o), ref(tokens), ref(n), None, None, ref(error)), error)
        return _take_tokens(tokens, n.value)

    def prompt_tokens(self, prompt: Prompt, tools: Optional[Tools] = None) -> List[int]:
        """The tokens of any prompt that generate() takes."""
        if isinstance(prompt, str):
            if tools is not None:
                raise InvalidArgument("tools go with messages, not with a text: only the chat template can tell the model of them")
            return self.tokenize(prompt)
        if isinstance(prompt, Mapping):
            return self.chat_tokens(prompt, tools=tools)
        items = list(prompt)
        if items and all(isinstance(m, Mapping) for m in items):
            return self.chat_tokens(items, tools=tools)  # type: ignore[arg-type]
        if all(isinstance(t, int) for t in items):
            return items  # type: ignore[return-value]
        raise InvalidArgument("a prompt is a text, a list of messages, a chat request (a dict) or a list of tokens")

    # ---- replies

    def session(self, **options: "Unpack[SessionArguments]") -> Session:
        """A conversation with memory of its own. The options are those of SessionOptions."""
        return Session(self, **options)

    def plan(self, **options: "Unpack[SessionArguments]") -> MemoryPlan:
        """What such a session will take, before it is made."""
        return plan_of(self, options)

    def generate(self, prompt: Prompt, *, n_ctx: int = 0, **options: "Unpack[GenerateArguments]") -> Stream:
        """One reply, in a session that is made for it. For several turns of a conversation make a session: it remembers."""
        chosen = Options(**options)
        return Stream(self.session(n_ctx=n_ctx), self.prompt_tokens(prompt, chosen.tools), chosen, own_session=True)

    def agenerate(self, prompt: Prompt, *, n_ctx: int = 0, **options: "Unpack[GenerateArguments]") -> AsyncStream:
        """The same for asyncio; call it while a loop runs."""
        chosen = Options(**options)
        return AsyncStream(self.session(n_ctx=n_ctx), self.prompt_tokens(prompt, chosen.tools), chosen, own_session=True)

    def embed(self, texts: Sequence[str], *, pooling: str = "mean", normalise: bool = True, n_ctx: int = 0) -> List[Floats]:
        """An embedding for each text, in one session."""
        if isinstance(texts, str):
            raise InvalidArgument("embed() of a model takes a list of texts; for one text make a list of one")
        with self.session(n_ctx=n_ctx) as session:
            return [session.embed(text, pooling=pooling, normalise=normalise) for text in texts]


def _guarded(raised: Raised, function: Optional[Callable[[Any], Any]], argument: Any) -> int:
    """Calls back; an exception cancels and is raised after the C code has returned."""
    try:
        if function and not raised.errors:
            function(argument)
    except BaseException as e:  # pylint: disable=broad-exception-caught
        raised.add(e)
    return 1 if raised.errors else 0


def _request(chat: Union[Sequence[Message], Mapping[str, Any]]) -> bytes:
    return json.dumps(chat if isinstance(chat, Mapping) else {"messages": list(chat)}).encode()


def _take_tokens(tokens: Any, n: int) -> List[int]:
    try:
        return list(tokens[:n])
    finally:
        lib.mica_free(tokens)


