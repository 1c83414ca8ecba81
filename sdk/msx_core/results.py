"""Encodes what a handler returns as bytes."""

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import msgspec

from msx_core.errors import PredictionError
from msx_core.non_finite import finite, non_finite
from msx_core.statuses import PREDICTION_FAILED


@dataclass(frozen=True, slots=True)
class Last:
    """Yielded for a request of a streaming batch: this value is its last, the others go on."""

    value: Any = b""


NOTHING = object()
"""Ends a reply without a last value."""


def encode(value: Any) -> bytes | bytearray:
    """Bytes as they are, text as UTF-8, everything else as JSON indented by two (TorchServe's rule).

    A bytearray is not copied: it stays the handler's, which may change it after its call.
    A torch tensor is what `torch.save` makes of it; inside of lists and dicts it is JSON.
    NumPy arrays and scalars and MindSpore tensors become JSON lists and numbers.
    Raises PredictionError 503 for what has no JSON form.
    """
    if isinstance(value, (bytes, bytearray)):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, memoryview):
        return bytes(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _saved(torch, value)
    return _json(value)


def is_json(value: Any) -> bool:
    """Whether `encode` makes JSON of the value; a text that happens to be JSON does not count."""
    if isinstance(value, (dict, list)):
        return True
    if value is NOTHING or isinstance(value, (bytes, bytearray, str, memoryview)):
        return False
    torch = sys.modules.get("torch")
    return torch is None or not isinstance(value, torch.Tensor)


def _saved(torch: Any, tensor: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(tensor, buffer)
    return buffer.getvalue()


def _json(value: Any) -> bytes:
    try:
        made = msgspec.json.encode(value, enc_hook=plain)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _slow_json(value)
    non_finite.check(made, value)
    return msgspec.json.format(made, indent=2)


def _slow_json(value: Any) -> bytes:
    """Python's encoder accepts values that msgspec does not, such as integers beyond 64 bits."""
    try:
        made = json.dumps(finite(value), indent=2, default=lambda one: finite(plain(one))).encode()
    except (TypeError, ValueError, RecursionError) as error:
        text = f"Unsupported model output data type: {type(value).__name__} ({error})"
        raise PredictionError(PREDICTION_FAILED, text) from None
    non_finite.check(made, value)
    return made


def plain(value: Any) -> Any:
    """A NumPy array or scalar, or a tensor, as lists and numbers. Raises TypeError for anything else."""
    if hasattr(value, "asnumpy"):
        return value.asnumpy().tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form; return bytes, str, numbers, lists or dicts")
