"""The default of network handlers: one row for each request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msx_core.errors import InvalidInput
from msx_core.handler import Data

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def stack_rows(data: Data) -> Array:
    """Each request's `body` (or `data`), JSON numbers, as one row: [requests, …] float32.

    Raises InvalidInput naming the request whose row is not an array of numbers, or differs in shape from the first one.
    """
    import numpy as np

    rows = [_row(item, idx) for idx, item in enumerate(data)]
    for idx, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise InvalidInput(f"request {idx}: shape {list(row.shape)}, but request 0 has {list(rows[0].shape)}")
    return np.stack(rows)


def split_rows(outputs: Any, requests: int) -> list[Any]:
    """One entry a request: its row, or a list of its rows when the network has several outputs."""
    if isinstance(outputs, tuple):
        return [[output[idx] for output in outputs] for idx in range(requests)]
    return [outputs[idx] for idx in range(requests)]


def to_tensors(inputs: Any) -> tuple[Any, ...]:
    """An array or tensor, or a tuple or list of them, as MindSpore tensors."""
    import mindspore as ms

    arrays = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    return tuple(array if isinstance(array, ms.Tensor) else ms.Tensor(array) for array in arrays)


def to_arrays(outputs: Any) -> Any:
    """Tensors as arrays, bfloat16 as float32; a tuple stays one unless it holds a single tensor."""
    tensors = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    arrays = tuple(to_array(tensor) for tensor in tensors)
    return arrays[0] if len(arrays) == 1 else arrays


def _row(item: dict[str, Any], idx: int) -> Array:
    import numpy as np

    from msx_core.number_range import OutOfRangeError, fit, numbers

    value = item["data"] if "data" in item and "body" not in item else item["body"]
    try:
        row = fit(numbers(value), np.float32)
    except OutOfRangeError as error:
        raise InvalidInput(f"request {idx}: {error}") from None
    except (TypeError, ValueError):
        row = np.zeros(0, np.float32)
    if not row.size or value is None or isinstance(value, (bytes, bytearray, str)):
        raise InvalidInput(f"request {idx}: expected a JSON array of numbers")
    return row


def to_array(tensor: Any) -> Array:
    """NumPy has no bfloat16: it becomes float32."""
    import mindspore as ms

    array: Array = (tensor.astype(ms.float32) if tensor.dtype == ms.bfloat16 else tensor).asnumpy()
    return array


def flat(value: Any) -> Iterator[Any]:
    """The tensors that a graph returns, without its tuples."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from flat(item)
    else:
        yield value
