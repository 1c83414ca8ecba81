"""Exports a network as MindIR, and compares the file's answers with the network's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msx_core.mindir import answers_beside
from msx_core.mindir_indices import index_limits
from msx_core.mindspore.comparison import compared, eager, plain_context, sample_count
from msx_core.mindspore.difference import differ, tolerance_of
from msx_core.mindspore.network import load_mindir_file
from msx_core.mindspore.rows import to_array
from msx_core.mindspore.sample_rows import sample_rows
from msx_core.mindspore.stored_rows import StoredRows

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def export(net: Any, inputs: Any, file: str | Path, *, rows: int | None = None, tolerance: float | None = None) -> Path:
    """Write the MindIR of an `nn.Cell`, and beside it rows with the cell's answers, which servers compare at warm-up.

    `inputs`: an array or tensor with one row or more for each argument of `construct`; for `Tensor(shape=[None, …])`
    values are made up. `rows`: how many rows one call of the file takes; None: any number. `tolerance`: how far a
    number may be off, as a part of the largest value of its output; 1e-3, and 3e-2 for 16 bits. The cell is exported
    for inference (`set_train(False)`), and is afterwards as it was.

    Returns the path of the MindIR. Raises ValueError where its answers to 1, 2 or 3 rows are not the cell's; the file
    is removed then. With any number of rows that is so for some operators of MindSpore 2.10.
    """
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    training = net.training
    net.set_train(False)
    try:
        path = _write(net, given, Path(file), rows)
        _compare(net, given, path, tolerance)
    finally:
        net.set_train(training)
    return path


def _write(net: Any, given: Sequence[Any], file: Path, rows: int | None) -> Path:
    import mindspore as ms

    stem = file.with_name(file.name.removesuffix(".mindir")).absolute()
    stem.parent.mkdir(parents=True, exist_ok=True)
    whole, divided = stem.with_name(f"{stem.name}.mindir"), stem.with_name(f"{stem.name}_graph.mindir")
    for old in (whole, divided, answers_beside(whole)):
        old.unlink(missing_ok=True)
    tensors = [_example_tensor(ms, one, rows) for one in given]
    ms.export(net, *tensors, file_name=str(stem), file_format="MINDIR")
    return whole if whole.is_file() else divided


def _example_tensor(ms: Any, given: Any, rows: int | None) -> Any:
    tensor = given if isinstance(given, ms.Tensor) else ms.Tensor(given)
    if not tensor.shape:
        raise ValueError("export compares rows, and an input without an axis has none: call mindspore.export")
    shape = [rows, *(None if size is None or size < 0 else size for size in tensor.shape[1:])]
    return ms.Tensor(shape=shape, dtype=tensor.dtype) if None in shape else ms.ops.zeros(tuple(shape), tensor.dtype)


def _compare(net: Any, given: Sequence[Any], path: Path, tolerance: float | None) -> None:
    """Raises ValueError."""
    network, reference = load_mindir_file(path, plain_context(path)), eager(net)
    if len(network.inputs) != len(given):
        path.unlink()
        raise ValueError(f"the file has {len(network.inputs)} inputs: give an array for each, not {len(given)}")
    values = {spec.name: _values(one) for spec, one in zip(network.inputs, given, strict=True)}
    rows = sample_rows(network.inputs, sample_count(network), index_limits(path), values)
    wanted = reference(rows)
    for one, again in zip(wanted, reference(rows), strict=True):
        if differ(again, one).part > (tolerance or tolerance_of(one.dtype.name)):
            raise ValueError("the network is random: it answers the same rows differently, and cannot be compared")
    wrong = [output for output in compared(network, reference, rows, tolerance) if not output.equal]
    if wrong:
        path.unlink()
        raise ValueError(
            f"{path.name} does not answer as the network, and was removed: {wrong[0]}. Export it with a fixed number "
            "of rows (rows=8), or serve the network by --handler checkpoint (docs/wrong-answers.md)"
        )
    StoredRows(rows, wanted).write(path)


def _values(given: Any) -> Any:
    """The values of a tensor; None where it has a shape alone."""
    shape = given.shape
    if any(size is None or size < 0 for size in shape):
        return None
    return to_array(given) if hasattr(given, "asnumpy") else given
