"""How many rows one call of a network takes, and calls with another number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msx_core.mindir import DYNAMIC_RANK, TensorSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

ANY = -1


class RowNetwork(Protocol):
    """A `Network`, or what stands for one."""

    @property
    def inputs(self) -> Sequence[TensorSpec]: ...

    @property
    def outputs(self) -> Sequence[TensorSpec]: ...

    def __call__(self, arrays: Sequence[Array]) -> list[Array]: ...


def batch_axis(network: RowNetwork) -> int | None:
    """How many rows one call takes: `ANY`, a fixed number, or None if axis 0 is not the same for all tensors.

    The outputs of a checkpoint are unknown before its first call: their callers look at them then.
    """
    sizes = {_first(spec) for spec in [*network.inputs, *network.outputs]}
    return sizes.pop() if len(sizes) == 1 else None


def run_rows(network: RowNetwork, arrays: Sequence[Array], axis: int) -> list[Array]:
    """Any number of rows: in one call, or in calls of the fixed size with the last one padded."""
    import numpy as np

    if axis == ANY:
        return network(arrays)
    rows = len(arrays[0])
    parts = [network([_padded(a[at : at + axis], axis) for a in arrays]) for at in range(0, rows, axis)]
    return [np.concatenate(pieces)[:rows] for pieces in zip(*parts, strict=True)]


def _padded(array: Array, rows: int) -> Array:
    import numpy as np

    missing = rows - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array


def _first(spec: TensorSpec) -> int | None:
    if spec.shape == DYNAMIC_RANK:
        return ANY
    return spec.shape[0] if spec.shape else None
