"""mica: run small language models on the device at hand.

    import mica

    model = mica.Model("model.gguf")
    for piece in model.generate("The capital of France is", max_tokens=24):
        print(piece, end="", flush=True)

docs/python.md shows the rest. The engine is libmica, which the wheel has inside.
"""
from ._library import lib as _lib
from .batch import Batch, BatchReply, generate_batch
from .constraint import Constraint
from .device import Battery, Device, DeviceState, Thermal, Throttle, Trim
from .errors import (BadFile, BadKernels, BadTemplate, BadText, Busy, Cancelled, Closed, ContextFull, InvalidArgument, IOFailure,
                     MicaError, NonFinite, OutOfMemory, OverBudget, Refused, Status, TooHot, Unsupported)
from .events import ContextTrimmed, Done, Event, Result, Text, Token, ToolCall, ToolError
from .model import Model, ModelInfo
from .options import Options
from .session import MemoryPlan, Session, TokenScore
from .stream import AsyncStream, Stream
from .tools import Tools

__version__: str = _lib.mica_version().decode()
numerics_version: int = _lib.mica_numerics_version()

__all__ = [
    "AsyncStream", "BadFile", "BadKernels", "BadTemplate", "BadText", "Batch", "BatchReply", "Battery", "Busy", "Cancelled", "Closed",
    "Constraint", "ContextFull", "ContextTrimmed", "Device", "DeviceState", "Done", "Event", "IOFailure", "InvalidArgument",
    "MemoryPlan", "MicaError", "Model", "ModelInfo", "NonFinite", "Options", "OutOfMemory", "OverBudget", "Refused", "Result",
    "Session", "Status", "Stream", "Text", "Thermal", "Throttle", "Token", "TokenScore", "TooHot", "ToolCall", "ToolError", "Tools",
    "Trim", "Unsupported", "generate_batch", "numerics_version",
]
