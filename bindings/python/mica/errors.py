"""What goes wrong, as exceptions: one class for each status of the C interface, with its sentence."""
import ctypes
import enum
from typing import Dict, Optional, Type

from . import _abi


class Status(enum.IntEnum):
    """mica_status of mica.h."""
    OK = 0
    INVALID_ARGUMENT = 1
    OUT_OF_MEMORY = 2
    IO_ERROR = 3
    BAD_FILE = 4
    UNSUPPORTED = 5
    CONTEXT_FULL = 6
    CANCELLED = 7
    NON_FINITE = 8
    BAD_TEMPLATE = 9
    BAD_TEXT = 10
    OVER_BUDGET = 11
    BAD_KERNELS = 12
    REFUSED = 13
    TOO_HOT = 14


class MicaError(Exception):
    """A call failed. str() is one sentence that a person can act on; `position` is the byte offset in the input, where that makes
    sense."""
    status: Status = Status.INVALID_ARGUMENT

    def __init__(self, message: str, position: Optional[int] = None, status: Optional[Status] = None) -> None:
        super().__init__(message)
        self.position = position
        if status is not None:
            self.status = status


class InvalidArgument(MicaError, ValueError):
    """An argument or option is out of its range, or does not go with another one."""


class Closed(InvalidArgument):
    """The object was closed."""


class Busy(MicaError):
    """The session computes something already, or a stream of it is open: a session belongs to one thread at a time."""


class OutOfMemory(MicaError, MemoryError):
    status = Status.OUT_OF_MEMORY


class IOFailure(MicaError):
    """A file cannot be opened, read or mapped."""
    status = Status.IO_ERROR


class BadFile(MicaError):
    status = Status.BAD_FILE


class Unsupported(MicaError):
    status = Status.UNSUPPORTED


class ContextFull(MicaError):
    """The tokens do not fit the context; the sentence has both numbers."""
    status = Status.CONTEXT_FULL


class Cancelled(MicaError):
    status = Status.CANCELLED


class NonFinite(MicaError):
    status = Status.NON_FINITE


class BadTemplate(MicaError):
    status = Status.BAD_TEMPLATE


class BadText(MicaError, ValueError):
    status = Status.BAD_TEXT


class OverBudget(MicaError):
    status = Status.OVER_BUDGET


class BadKernels(MicaError):
    status = Status.BAD_KERNELS


class Refused(MicaError):
    status = Status.REFUSED


class TooHot(MicaError):
    status = Status.TOO_HOT


_CLASSES: Dict[int, Type[MicaError]] = {e.status: e for e in (
    InvalidArgument, OutOfMemory, IOFailure, BadFile, Unsupported, ContextFull, Cancelled, NonFinite, BadTemplate, BadText, OverBudget,
    BadKernels, Refused, TooHot)}


def error_of(status: int, error: _abi.Error) -> MicaError:
    """The exception for a status that is not MICA_OK, of the error that the call filled."""
    kind = _CLASSES.get(status, MicaError)
    position = error.position if error.position >= 0 else None
    known = Status(status) if status in Status._value2member_map_ else None
    return kind(error.message.decode("utf-8", "replace"), position, known)


def check(status: int, error: _abi.Error) -> None:
    if status != 0:
        raise error_of(status, error)


def new_error() -> _abi.Error:
    return _abi.Error(0, -1, b"")


ref = ctypes.byref
