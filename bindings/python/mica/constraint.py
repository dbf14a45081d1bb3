"""Constraints: replies that are valid by construction. docs/structured.md says what is enforced."""
import ctypes
import json
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _abi
from ._handle import Handle, Owner
from ._library import lib
from .errors import InvalidArgument, check, new_error, ref

_KINDS = {"json_schema": 0, "json": 1, "gbnf": 2, "regex": 3, "choices": 4}


class Constraint(Owner):
    """A compiled JSON Schema, grammar, regular expression or list of choices. Immutable; any number of sessions and threads may use it
    at the same time. Without a model it serves only for match()."""

    def __init__(self, model: Any, kind: str, text: str = "", *, lenient: bool = False, whitespace: bool = False,
                 on_warning: Optional[Callable[[str], None]] = None) -> None:
        if kind not in _KINDS:
            raise InvalidArgument(f"there is no constraint {kind!r}; there are {', '.join(_KINDS)}")
        data = text.encode()
        warnings: List[str] = []
        o = lib.mica_constraint_options_default()
        o.kind, o.text, o.length, o.lenient, o.whitespace = _KINDS[kind], data, len(data), lenient, whitespace
        o.on_warning = _abi.ON_WARNING(lambda _, message: warnings.append(message.decode("utf-8", "replace")))
        out, error = ctypes.c_void_p(), new_error()
        if model is None:
            check(lib.mica_constraint_new(None, ref(o), ref(out), ref(error)), error)
        else:
            with model._handle as native:
                check(lib.mica_constraint_new(native, ref(o), ref(out), ref(error)), error)
        self._handle = Handle("the constraint", out, lib.mica_constraint_free)
        for message in warnings if on_warning else ():
            assert on_warning
            on_warning(message)

    @classmethod
    def json_schema(cls, model: Any, schema: Any, *, lenient: bool = False, whitespace: bool = False) -> "Constraint":
        """`schema`: a dict (or bool), or its text."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return cls(model, "json_schema", text, lenient=lenient, whitespace=whitespace)

    @classmethod
    def json(cls, model: Any) -> "Constraint":
        """Any JSON value."""
        return cls(model, "json")

    @classmethod
    def regex(cls, model: Any, pattern: str) -> "Constraint":
        return cls(model, "regex", pattern)

    @classmethod
    def choices(cls, model: Any, choices: Sequence[str]) -> "Constraint":
        return cls(model, "choices", json.dumps(list(choices)))

    @classmethod
    def gbnf(cls, model: Any, grammar: str) -> "Constraint":
        return cls(model, "gbnf", grammar)

    def match(self, text: str) -> Tuple[bool, int]:
        """Whether the whole text is allowed, and how many of its bytes (UTF-8) some allowed text begins with."""
        data, matches, prefix, error = text.encode(), ctypes.c_bool(), ctypes.c_size_t(), new_error()
        with self._handle as native:
            check(lib.mica_constraint_match(native, data, len(data), ref(matches), ref(prefix), ref(error)), error)
        return matches.value, len(data) if matches.value else prefix.value
