"""`service_envelope=kservev2`: KServe's second protocol, tensors as JSON lists."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from msx_sdk.errors import InvalidInput
from msx_torchserve.envelopes.base import BaseEnvelope, EntryCounts, body_of, first_error, listed

if TYPE_CHECKING:
    import numpy as np

NUMPY_TYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "BF16": "float32",
    "FP32": "float32",
    "FP64": "float64",
}
DATATYPES = {name: datatype for datatype, name in NUMPY_TYPES.items() if datatype != "BF16"}
BYTES = "BYTES"


class KServev2Envelope(BaseEnvelope):
    """The handler's data is one dict an input, `{name, shape, datatype, data}`, its lists shaped; of BYTES the first.

    It answers with one entry an output; output i bears the name of input i.
    """

    one_per_call = True

    def parse_input(self, data: list[Any]) -> list[Any]:
        bodies = [body_of(row, "inputs") for row in data]
        groups = [[_input(item) for item in listed(body, "inputs")] for body in bodies]
        self._ids = [body.get("id") for body in bodies]
        self._names = [[item["name"] for item in group] for group in groups]
        self._counts = EntryCounts(groups)
        return [item for group in groups for item in group]

    def format_output(self, data: Any) -> list[Any]:
        parts = enumerate(self._counts.split(data))
        return [first_error(part) or self._packed(idx, part) for idx, part in parts]

    def _packed(self, idx: int, part: Any) -> dict[str, Any]:
        if not isinstance(part, list):
            raise ValueError(f"a handler returns a list with one entry an output, not {type(part).__name__}")
        names = self._names[idx]
        return {
            "id": self._ids[idx] or self.context.get_request_id(idx),
            "model_name": self.context.model_name,
            "model_version": self.context.model_version,
            "outputs": [_output(names[n] if n < len(names) else f"output{n}", value) for n, value in enumerate(part)],
        }


def _input(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise InvalidInput(f"'inputs' must be a list of objects, and one is {type(item).__name__}")
    missing = [key for key in ("name", "shape", "datatype", "data") if key not in item]
    if missing:
        raise InvalidInput(f"input {item.get('name', '?')!r} lacks {', '.join(map(repr, missing))}")
    return {**item, "data": _first(item) if item["datatype"] == BYTES else _shaped(item)}


def _first(item: dict[str, Any]) -> Any:
    """The first value of a list, or of the array that the client sent as bytes."""
    data = item["data"] if hasattr(item["data"], "flat") else listed(item, "data")
    if not len(data):
        raise InvalidInput(f"input {item['name']!r} of datatype BYTES has no data")
    return next(iter(data.flat)) if hasattr(data, "flat") else data[0]


def _shaped(item: dict[str, Any]) -> Any:
    from msx_core.number_range import fit, numbers

    name, shape, datatype = item["name"], item["shape"], item["datatype"]
    if datatype not in NUMPY_TYPES:
        raise InvalidInput(f"input {name!r}: datatype {datatype!r} is none of {', '.join([*NUMPY_TYPES, BYTES])}")
    if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise InvalidInput(f"input {name!r}: shape {shape!r} is not a list of sizes")
    try:
        array = fit(numbers(item["data"], NUMPY_TYPES[datatype]), NUMPY_TYPES[datatype])
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"input {name!r}: data is not {datatype}: {error}") from None
    if array.size != math.prod(shape):
        raise InvalidInput(f"input {name!r}: data has {array.size} values, and shape {shape} needs {math.prod(shape)}")
    return array.reshape(shape).tolist()


def _output(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, (bytes, bytearray, dict)):
        return {"name": name, "datatype": BYTES, "data": [_text(value)], "shape": [1]}
    array = _array(value)
    datatype = DATATYPES.get(array.dtype.name, BYTES)
    flat = array.reshape(-1).tolist()
    data = [_text(entry) for entry in flat] if datatype == BYTES else flat
    return {"name": name, "datatype": datatype, "data": data, "shape": list(array.shape)}


def _array(value: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    try:
        return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
    except ValueError:  # rows of different lengths have no shape
        array = np.empty(len(value), dtype=object)
        array[:] = value
        return array


def _text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str) else json.dumps(value)
