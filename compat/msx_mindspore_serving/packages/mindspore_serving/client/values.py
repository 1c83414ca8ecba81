"""The way between Python's values and the tensors of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..proto import ms_service_pb2 as messages

if TYPE_CHECKING:
    import numpy as np

_DTYPES = {
    "bool": messages.MS_BOOL,
    "int8": messages.MS_INT8,
    "uint8": messages.MS_UINT8,
    "int16": messages.MS_INT16,
    "uint16": messages.MS_UINT16,
    "int32": messages.MS_INT32,
    "uint32": messages.MS_UINT32,
    "int64": messages.MS_INT64,
    "uint64": messages.MS_UINT64,
    "float16": messages.MS_FLOAT16,
    "float32": messages.MS_FLOAT32,
    "float64": messages.MS_FLOAT64,
}
_NAMES = {number: name for name, number in _DTYPES.items()}


def fill_instance(message: Any, instance: Mapping[str, Any]) -> None:
    """Raises RuntimeError for a value that has no tensor, TypeError for a name that is not a text."""
    if not isinstance(instance, dict):
        raise RuntimeError("instance should be a map")
    for name, value in instance.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of inputs should be str, but actually {type(name)}")
        _fill(message.items[name], value)


def read_instance(message: Any) -> dict[str, Any]:
    return {name: _value(tensor) for name, tensor in message.items.items()}


def _fill(tensor: Any, value: Any) -> None:
    import numpy as np

    if isinstance(value, np.ndarray | np.number):
        _fill_array(tensor, np.asarray(value))
    elif isinstance(value, bool | int | float):
        _fill_array(tensor, np.array((value,)))
    elif isinstance(value, str):
        _fill_bytes(tensor, messages.MS_STRING, value.encode())
    elif isinstance(value, bytes):
        _fill_bytes(tensor, messages.MS_BYTES, value)
    else:
        raise RuntimeError(f"Not support value type {type(value)}")


def _fill_array(tensor: Any, array: np.ndarray[Any, Any]) -> None:
    number = _DTYPES.get(array.dtype.name)
    if number is None or not array.dtype.isnative:
        raise RuntimeError(f"Unknown data type {array.dtype}")
    tensor.shape.dims.extend(array.shape)  # also where that is nothing: a scalar
    tensor.shape.SetInParent()
    tensor.dtype, tensor.data = number, array.tobytes()


def _fill_bytes(tensor: Any, dtype: int, data: bytes) -> None:
    tensor.shape.dims.append(1)
    tensor.dtype = dtype
    tensor.bytes_val.append(data)


def _value(tensor: Any) -> Any:
    if tensor.dtype in (messages.MS_STRING, messages.MS_BYTES):
        values = (
            [one.decode() for one in tensor.bytes_val] if tensor.dtype == messages.MS_STRING else [*tensor.bytes_val]
        )
        return values[0] if len(values) == 1 else values
    import numpy as np

    name = _NAMES.get(tensor.dtype)
    if name is None:
        raise RuntimeError(f"Unknown data type {tensor.dtype}")
    return np.frombuffer(tensor.data, name).reshape(tuple(tensor.shape.dims))
