"""The quantised matrices of a layer's experts."""

from collections.abc import Iterator

import numpy as np

from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix
from msx_llm.models.quantised.matrix import ArrangedTensors, read_matrix


def expert_matrices(
    files: ArrangedTensors,
    form: LinearFormat,
    experts: list[str],
    layers: tuple[str, ...],
    own: tuple[slice, slice],
) -> Iterator[QuantisedMatrix]:
    """One for each of the experts with these names: its `layers` side by side; `own`: the rank's part of the in and of
    the out of each layer. Raises HandlerLoadError."""
    for expert in experts:
        yield side_by_side([read_matrix(files, form, f"{expert}.{layer}", *own) for layer in layers])


def side_by_side(matrices: list[QuantisedMatrix]) -> QuantisedMatrix:
    """Join matrices of the same inputs into one."""
    codes, scales = (np.concatenate([getattr(it, kind) for it in matrices], axis=1) for kind in ("codes", "scales"))
    zeros = [it.zeros for it in matrices if it.zeros is not None]
    return QuantisedMatrix(codes, scales, np.concatenate(zeros, axis=1) if zeros else None)
