"""Finds and opens libmica: the one in the package, unless MICA_LIBRARY names another. What does not fit is refused at the import."""
import ctypes
import os
from typing import Any, List

from . import _abi

NAME = "libmica.so.0"  # the number is that of the C interface


def candidates() -> List[str]:
    """A path that the user names is the only one: a typo must not run another engine."""
    chosen = os.environ.get("MICA_LIBRARY")
    if chosen:
        return [chosen]
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libmica.so")
    return [inside, NAME] if os.path.exists(inside) else [NAME]


def open_library() -> Any:
    path = candidates()[0]
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"libmica cannot be loaded ({e}); install the wheel, install libmica, or set MICA_LIBRARY to the path of "
                          f"libmica.so") from e
    for name, result, arguments in _abi.FUNCTIONS:
        try:
            function = getattr(library, name)
        except AttributeError as e:
            raise ImportError(f"{path} has no {name}: it is of another version than this package") from e
        function.restype, function.argtypes = result, arguments
    for name, structure in _abi.STRUCTURES:
        if name.endswith("_options"):
            size = getattr(library, name + "_default")().struct_size
            if size != ctypes.sizeof(structure):
                raise ImportError(f"{path} is of another version than this package: {name} has {size} bytes there and "
                                  f"{ctypes.sizeof(structure)} here")
    return library


lib = open_library()


def take_bytes(pointer: ctypes.c_void_p, length: int) -> bytes:
    """Copies what a function handed over, and frees it."""
    try:
        return ctypes.string_at(pointer, length)
    finally:
        lib.mica_free(pointer)


def take_string(pointer: ctypes.c_void_p) -> str:
    """The same for a terminated text."""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        lib.mica_free(pointer)
