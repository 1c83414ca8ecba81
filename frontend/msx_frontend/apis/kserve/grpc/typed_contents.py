"""Tensors as typed fields of a message, which TorchServe's clients read, from their raw bytes (little-endian)."""

import struct
from collections.abc import Sequence
from typing import Any

_FIELDS = {
    "BOOL": ("bool_contents", "?"),
    "INT8": ("int_contents", "b"),
    "INT16": ("int_contents", "h"),
    "INT32": ("int_contents", "i"),
    "INT64": ("int64_contents", "q"),
    "UINT8": ("uint_contents", "B"),
    "UINT16": ("uint_contents", "H"),
    "UINT32": ("uint_contents", "I"),
    "UINT64": ("uint64_contents", "Q"),
    "FP32": ("fp32_contents", "f"),
    "FP64": ("fp64_contents", "d"),
}
"""Member of InferTensorContents, and struct's letter of an item, by datatype."""


def use_typed_contents(response: Any) -> None:
    """Move the raw contents of a ModelInferResponse into typed fields, unless an output has none: FP16 and BF16."""
    if all(output.datatype == "BYTES" or output.datatype in _FIELDS for output in response.outputs):
        for output, raw in zip(response.outputs, response.raw_output_contents, strict=True):
            _fill(output.contents, output.datatype, raw)
        response.ClearField("raw_output_contents")


def _fill(contents: Any, datatype: str, raw: bytes) -> None:
    if datatype == "BYTES":
        contents.bytes_contents.extend(_elements(raw))
    else:
        field, letter = _FIELDS[datatype]
        getattr(contents, field).extend(struct.unpack(f"<{len(raw) // struct.calcsize(f'<{letter}')}{letter}", raw))


def _elements(raw: bytes) -> Sequence[bytes]:
    """Each has its length before it, in four bytes."""
    found, at = [], 0
    while at < len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
        found.append(raw[at + 4 : end])
        at = end
    return found
