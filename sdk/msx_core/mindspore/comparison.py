"""Compares the answers of a MindIR file with those of the network that it was exported from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msx_core.context import Context, ModelInfo
from msx_core.mindir import TensorSpec
from msx_core.mindspore.difference import Difference, differ, tolerance_of
from msx_core.mindspore.joined_rows import RowNetwork, batch_axis, run_rows
from msx_core.mindspore.rows import flat, to_array

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

COUNTS = (1, 2, 3)
"""The numbers of rows that are compared: what is wrong for one is often right for another."""

Reference = Callable[[Sequence["Array"]], "Sequence[Array | None]"]
"""The network itself, as a function of arrays; None for an output that is not known."""


class ComparedOutput(NamedTuple):
    """An output of a call with so many rows. `difference` is None where the shapes differ."""

    rows: int
    output: str
    shape: tuple[int, ...]
    wanted_shape: tuple[int, ...]
    difference: Difference | None
    tolerance: float

    @property
    def equal(self) -> bool:
        return self.difference is not None and self.difference.part <= self.tolerance

    def __str__(self) -> str:
        if self.difference is None:
            return (
                f"{self.output} of {self.rows} row(s) has the shape {list(self.shape)}, not {list(self.wanted_shape)}"
            )
        return (
            f"{self.output} of {self.rows} row(s) is {self.difference.given:.4g} where the network gives "
            f"{self.difference.wanted:.4g}: a difference of {self.difference.part:.2g} of its largest value, above "
            f"the tolerance of {self.tolerance:g}"
        )


def compared(
    network: RowNetwork, reference: Reference, rows: Sequence[Array], tolerance: float | None = None
) -> Iterator[ComparedOutput]:
    """Each output of the network beside the reference's, at 1, 2 and 3 rows; at all `rows` where the network takes
    another number of rows in one call, and has no row of an output for each."""
    axis = batch_axis(network)
    if axis is None:
        yield from _outputs(len(rows[0]), network.outputs, network(rows), reference(rows), tolerance)
        return
    for count in COUNTS:
        arrays = [array[:count] for array in rows]
        yield from _outputs(count, network.outputs, run_rows(network, arrays, axis), reference(arrays), tolerance)


def sample_count(network: RowNetwork) -> int | None:
    """How many rows to make up for a comparison; None for each input's own number."""
    return None if batch_axis(network) is None else max(COUNTS)


def _outputs(
    count: int, specs: Sequence[TensorSpec], given: list[Array], wanted: Sequence[Array | None], tolerance: float | None
) -> Iterator[ComparedOutput]:
    for at, (one, other) in enumerate(zip(given, wanted, strict=True)):
        if other is None:
            continue
        spec = specs[at] if at < len(specs) else TensorSpec(f"output_{at}", other.dtype.name, ())
        difference = differ(one, other) if one.shape == other.shape else None
        allowed = tolerance or tolerance_of(spec.dtype)
        yield ComparedOutput(count, spec.name, one.shape, other.shape, difference, allowed)


def plain_context(path: Path, config: dict[str, Any] | None = None) -> Context:
    """The context of a file that is no archive's."""
    manifest = {"model": {"serializedFile": path.name}}
    return Context(ModelInfo(path.stem, model_dir=path.parent, manifest=manifest, config=config or {}))


def eager(cell: Any) -> Callable[[Sequence[Array]], list[Array]]:
    """The network, run operator by operator: what its author sees."""
    import mindspore as ms

    def run(arrays: Sequence[Array]) -> list[Array]:
        import numpy as np

        mode = ms.get_context("mode")
        ms.set_context(mode=ms.PYNATIVE_MODE)
        try:
            return [to_array(tensor) for tensor in flat(cell(*(ms.Tensor(np.ascontiguousarray(a)) for a in arrays)))]
        finally:
            ms.set_context(mode=mode)

    return run
