"""Replies in JSON: compact, with sorted keys."""

from base64 import b64encode
from collections.abc import Sequence
from math import prod
from struct import unpack
from typing import Any, NamedTuple

import msgspec

from msx_core.non_finite import NULL, first_place
from msx_core.packed import OneBytes, OneText, Tensor
from msx_frontend.plugins.families import InstanceAnswer
from msx_mindspore_serving.family.answers import Outputs, outputs_of
from msx_mindspore_serving.family.errors import ErrorText, Spec, same_for_all

_LETTERS = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
"""Formats of memory views; none has half precision."""

_NO_OUTPUTS = "Failed to construct the response: reply instance items is empty"
_encoder = msgspec.json.Encoder(order="sorted")


class RestReply(NamedTuple):
    """`non_finite`: a place where JSON has null for NaN or an infinity; None without one."""

    data: bytes
    non_finite: str | None = None


def json_reply(answers: Sequence[InstanceAnswer], spec: Spec) -> RestReply:
    found = [outputs_of(one, spec) for one in answers]
    errors = [one if isinstance(one, ErrorText) else None for one in found]
    if (error := same_for_all(errors)) is not None:
        return RestReply(json_error(error.text))
    if {} in found:
        return RestReply(json_error(_NO_OUTPUTS))
    value = {"instances": [_instance(one) for one in found]}
    data = _encoder.encode(value)
    return RestReply(data, first_place(value) if NULL in data else None)


def json_error(text: str) -> bytes:
    return _encoder.encode({"error_msg": text})


def _instance(outputs: Outputs | ErrorText) -> dict[str, Any]:
    if isinstance(outputs, ErrorText):
        return {"error_msg": outputs.text}
    return {str(name): _value(value) for name, value in outputs.items()}


def _value(value: Any) -> Any:
    """As the encoder takes it, which writes NaN and infinities as null."""
    if isinstance(value, Tensor):
        return _numbers(value)
    if isinstance(value, str):
        return [str(value)] if isinstance(value, OneText) else value
    if isinstance(value, bytes):
        text = {"b64": b64encode(value).decode()}
        return [text] if isinstance(value, OneBytes) else text
    if isinstance(value, list):
        return [_value(one) for one in value]
    return _instance(value) if isinstance(value, dict) else value


def _numbers(tensor: Tensor) -> Any:
    """Numbers of half and single precision become those of double precision that are equal."""
    shape, letter = tensor.shape, _LETTERS.get(tensor.dtype)
    if letter is None or not shape or 0 in shape:
        data = bytes(tensor.data)
        return _nested(unpack(f"<{prod(shape)}{letter or 'e'}", data), shape)
    view: Any = memoryview(tensor.data).cast("B")
    return view.cast(letter, shape).tolist()


def _nested(numbers: Sequence[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return numbers[0]
    if 0 in shape:
        return _empty(shape)
    level: list[Any] = [*numbers]
    for size in reversed(shape[1:]):
        level = [level[at : at + size] for at in range(0, len(level), size)]
    return level


def _empty(shape: Sequence[int]) -> Any:
    """`packed` has seen to it that there are not too many lists."""
    level: list[Any] = []
    for size in reversed(shape[: shape.index(0)]):
        level = [level] * size
    return level
