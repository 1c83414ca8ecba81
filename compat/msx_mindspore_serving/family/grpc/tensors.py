"""The way between the tensors of messages and values."""

from array import array
from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

from msx_core.packed import MOST_DIMENSIONS, SIZES, OneBytes, OneText, Tensor
from msx_mindspore_serving.family.errors import SYSTEM_ERROR, ServingError
from msx_mindspore_serving.family.values import TEXT_SHAPE, InvalidTensor, hollow, shown
from msx_net.grpc.messages import message_class

MESSAGE = message_class("mindspore.serving.proto.Tensor")
_ENUM = MESSAGE.DESCRIPTOR.fields_by_name["dtype"].enum_type
_NAMES = {value.number: value.name.removeprefix("MS_").lower() for value in _ENUM.values}
_NUMBERS = {name: number for number, name in _NAMES.items()}
TEXT, BYTES = _NUMBERS["string"], _NUMBERS["bytes"]

_LIST_TYPES = {bool: ("bool", "b"), int: ("int64", "q"), float: ("float64", "d")}
"""Types of numbers in plain lists, as a servable's functions return them."""


def read_tensor(tensor: Any) -> Any:
    """The value. Raises InvalidTensor."""
    if tensor.dtype in (TEXT, BYTES):
        return _read_bytes(tensor)
    shape = tuple(tensor.shape.dims)
    if hollow(shape) or any(size < 0 for size in shape):
        raise InvalidTensor(f"Tensor check failed: input  shape {shown(shape)} invalid")
    if (size := SIZES.get(name := _NAMES.get(tensor.dtype, ""))) is None:
        raise InvalidTensor("Tensor check failed: input data type proto::MS_UNKNOWN invalid")
    if tensor.HasField("shm_data"):
        raise InvalidTensor(
            "Tensor check failed: shared memory is not served here: send the numbers in the message itself (data)"
        )
    data = tensor.data
    if len(data) != prod(shape) * size:
        raise InvalidTensor(f"Tensor check failed: input data size {len(data)} invalid")
    if len(shape) > MOST_DIMENSIONS:
        raise InvalidTensor(f"Tensor check failed: input has {len(shape)} dimensions, more than {MOST_DIMENSIONS}")
    return Tensor(name, shape, data)


def _read_bytes(tensor: Any) -> Any:
    if len(tensor.bytes_val) != 1:
        raise InvalidTensor("Instance tensor check failed: bytes or string type shape batch size can only be 1")
    shape = [*tensor.shape.dims]
    if shape not in ([], [1]):
        raise InvalidTensor(f"{TEXT_SHAPE} {shown(shape)}")
    data = tensor.bytes_val[0]
    if tensor.dtype == BYTES:
        return OneBytes(data) if shape else data
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidTensor(f"Instance tensor check failed: a string is not UTF-8: {error}") from None
    return OneText(text) if shape else text


def fill_tensor(message: Any, value: Any) -> None:
    """Raises ServingError for what has no tensor."""
    message.shape.SetInParent()
    if isinstance(value, str | bytes):
        message.dtype = TEXT if isinstance(value, str) else BYTES
        message.bytes_val.append(value.encode() if isinstance(value, str) else value)
        if isinstance(value, OneText | OneBytes):
            message.shape.dims.append(1)
        return
    tensor = value if isinstance(value, Tensor) else _numbers(value)
    message.dtype, message.data = _NUMBERS[tensor.dtype], bytes(tensor.data)
    message.shape.dims.extend(tensor.shape)


def _numbers(value: Any) -> Tensor:
    """Tensor of a number, or of a list of numbers. Raises ServingError."""
    shape, leaves = _flat(value)
    kinds = {*map(type, leaves)}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in _LIST_TYPES:
        raise _illegal(value)
    dtype, letter = _LIST_TYPES[kind]
    try:
        return Tensor(dtype, tuple(shape), array(letter, leaves).tobytes())
    except OverflowError:
        raise _illegal(value) from None


def _flat(value: Any) -> tuple[list[int], Sequence[Any]]:
    """Raises ServingError for lists of different lengths."""
    shape: list[int] = []
    level = [value]
    while level and isinstance(level[0], list):
        sizes = {len(one) if isinstance(one, list) else -1 for one in level}
        if len(sizes) != 1:
            raise _illegal(value)
        shape.append(sizes.pop())
        level = [*chain.from_iterable(level)]
    return shape, level


def _illegal(value: Any) -> ServingError:
    return ServingError(f"Get illegal result data with type {type(value)}", SYSTEM_ERROR)
