"""A native object and who uses it now. It is freed by the last one after close(), so that a close() beside a running call is safe, and a
use after it an exception."""
import threading
from typing import Any, Callable, List

from .errors import Closed


class Handle:
    def __init__(self, what: str, pointer: Any, free: Callable[[Any], None], keep: Any = None) -> None:
        self._what, self._pointer, self._free = what, pointer, free
        self._keep = keep  # what the native object refers to: callbacks, strings, the handles below it
        self._lock = threading.Lock()
        self._users, self._closed = 0, False

    def __enter__(self) -> Any:
        with self._lock:
            if self._closed:
                raise Closed(f"{self._what} is closed")
            self._users += 1
        return self._pointer

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._users -= 1
            last = self._closed and self._users == 0
        if last:
            self._end()

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            last = self._users == 0
        if last:
            self._end()

    def _end(self) -> None:
        pointer, self._pointer = self._pointer, None
        self._free(pointer)
        self._keep = None

    def __del__(self) -> None:
        self.close()


class Owner:
    """What has a handle: a context manager with close()."""
    _handle: Handle

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """Frees what it holds, as soon as nobody uses it any more. Twice is fine."""
        self._handle.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Raised:
    """Carries the first exception of a callback over the C code that called it."""

    def __init__(self) -> None:
        self.errors: List[BaseException] = []

    def add(self, error: BaseException) -> None:
        self.errors.append(error)

    def check(self) -> None:
        if self.errors:
            raise self.errors[0]
