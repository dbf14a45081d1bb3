"""Rows of numbers out of the engine: numpy arrays where numpy is installed, else array.array("f"), which has the same bytes."""
import array
import ctypes
import math
from typing import Any, Sequence, Tuple, Union

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment,unused-ignore]

Floats = Any  # numpy.ndarray of float32, or array.array("f")


def copy_floats(pointer: Any, n: int) -> Floats:
    data = ctypes.string_at(pointer, 4 * n)
    if numpy is not None:
        return numpy.frombuffer(data, dtype=numpy.float32).copy()
    return array.array("f", data)


def view_floats(pointer: Any, n: int) -> Floats:
    """Without a copy: valid as long as the memory is."""
    view = memoryview((ctypes.c_float * n).from_address(pointer)).cast("B")
    return numpy.frombuffer(view, dtype=numpy.float32) if numpy is not None else view.cast("f")


def log_probability(logits: Union[Floats, Sequence[float]], token: int) -> Tuple[float, bool]:
    """The natural logarithm of the token's probability under softmax, and whether none is more probable (ties go to the lowest id, as
    in greedy replies). In double precision in both ways."""
    if numpy is not None:
        row = numpy.asarray(logits, dtype=numpy.float64)
        best = int(row.argmax())
        top = float(row[best])
        return float(row[token]) - top - math.log(float(numpy.exp(row - top).sum())), best == token
    return log_probability_plain(logits, token)


def log_probability_plain(logits: Union[Floats, Sequence[float]], token: int) -> Tuple[float, bool]:
    top = max(logits)
    total = math.fsum(math.exp(x - top) for x in logits)
    first = next(i for i, x in enumerate(logits) if x == top)
    return logits[token] - top - math.log(total), first == token
