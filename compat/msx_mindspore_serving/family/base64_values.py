"""`{"b64": text, "type": name, "shape": [...]}`: bytes, a text or an array, as base64."""

import binascii
import contextlib
import re
from collections.abc import Sequence
from math import prod
from typing import Any

import msgspec

from msx_core.base64_text import without_white_space
from msx_core.packed import MOST_DIMENSIONS, SIZES, OneBytes, OneText, Tensor
from msx_mindspore_serving.family.errors import ServingError, quoted
from msx_mindspore_serving.family.values import WrongShape, hollow

KEYS = ("b64", "type", "shape")
BYTES, TEXT = "bytes", "str"
DTYPES = {**{name: name for name in SIZES}, "fp16": "float16", "fp32": "float32", "fp64": "float64"}
"""The names of an array's types, and what they are."""

_BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}")


def parse_object(value: dict[str, Any]) -> Any:
    """Raises ServingError."""
    _check_keys(value)
    shape: list[int] = value.get("shape", [])
    name: str = value.get("type", BYTES)
    if name in (BYTES, TEXT):
        if prod(shape) != 1:
            raise ServingError(
                "json object, only support scalar when data type is string or bytes, please check 'type' or 'shape'"
            )
        return shaped(decode(value["b64"]), name, shape)
    return _array(decode(value["b64"]), DTYPES[name], shape)


def decode(text: Any) -> bytes:
    """Raises ServingError."""
    if not isinstance(text, str):
        raise ServingError("get scalar data failed, type is string, but json is not string type")
    for form in (text, without_white_space(text)):
        with contextlib.suppress(binascii.Error):
            if len(form) % 4 == 0 and _BASE64.fullmatch(form):
                return binascii.a2b_base64(form)
    if len(text.encode()) % 4:
        raise ServingError(f"'{quoted(text)}' is illegal b64 encode string")
    raise ServingError("decode base64 failed, size is not matched.")


def shaped(data: bytes, name: str, shape: Sequence[int]) -> Any:
    """A text or bytes of one element. Raises ServingError for a text that is not UTF-8."""
    if len(shape) > 1:
        return WrongShape(shape)
    if name == BYTES:
        return OneBytes(data) if shape else data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ServingError("json object, the value of 'b64' is not UTF-8, but 'type' is 'str': use 'bytes'") from None
    return OneText(text) if shape else text


def _array(data: bytes, dtype: str, shape: list[int]) -> Tensor:
    size, elements = SIZES[dtype], prod(shape)
    if len(data) != elements * size:
        raise ServingError(
            f"size is not matched, decode base64 size:{len(data)}; Given info: type:{dtype}; type size:{size}; "
            f"element nums:{elements}"
        )
    check_dimensions(len(shape))
    return Tensor(dtype, tuple(shape), data)


def check_dimensions(count: int) -> None:
    """Raises ServingError."""
    if count > MOST_DIMENSIONS:
        raise ServingError(f"an array may have {MOST_DIMENSIONS} dimensions, but this one has {count}")


def _check_keys(value: dict[str, Any]) -> None:
    if not value:
        raise ServingError("json object, value is empty")
    if len(value) > len(KEYS):
        raise ServingError("json object, items size is more than 3, only support specified ['b64', 'type', 'shape']")
    for key in sorted(value):
        if key not in KEYS:
            raise ServingError(f"json object, key is not ['b64', 'type', 'shape'], fail key:{quoted(key)}")
        if key == "type":
            _check_type(value[key])
        elif key == "shape":
            _check_shape(value[key])
    if "b64" not in value:
        raise ServingError("json object, 'b64' should be specified only one time")


def _check_type(name: Any) -> None:
    if not isinstance(name, str):
        raise ServingError("json object, key is 'type', value should be string type")
    if name not in DTYPES and name not in (BYTES, TEXT):
        raise ServingError(f"json object, specified type:'{quoted(name)}' is illegal")


def _check_shape(shape: Any) -> None:
    if not isinstance(shape, list):
        raise ServingError("json object, key is 'shape', value should be array type")
    if any(type(size) is not int or size < 0 for size in shape):
        raise ServingError("json object, key is 'shape', array value should be unsigned integer")
    if hollow(shape):
        raise ServingError(f"json object, key is 'shape', invalid shape value {_json(shape)}")
    if any(size >= 1 << 31 for size in shape):
        raise ServingError(
            "json object, key is 'shape', number value should not be negative number, shape value: " + _json(shape)
        )


def _json(shape: list[int]) -> str:
    return quoted(msgspec.json.encode(shape).decode())
