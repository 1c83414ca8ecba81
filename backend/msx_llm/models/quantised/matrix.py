"""The quantised matrix of one of the engine's linear layers, wherever it lies in the files."""

from typing import Protocol

from msx_llm.models.arrangement import TensorSource
from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix, Tensors
from msx_llm.models.quantised.stored import WEIGHT


class ArrangedTensors(Tensors, Protocol):
    def source(self, name: str) -> TensorSource:
        """Where the engine's tensor of this name is."""

    @property
    def stored(self) -> Tensors:
        """The tensors as they are in the files, by their names there."""


def read_matrix(
    files: ArrangedTensors, form: LinearFormat, name: str, inputs: slice, outputs: slice
) -> QuantisedMatrix:
    """`outputs` are whole heads where the file has the numbers of a head in another order; they may be rows of a layer
    that holds several. Raises HandlerLoadError."""
    source = files.source(name + WEIGHT)
    matrix = form.read(files.stored, source.name.removesuffix(WEIGHT), inputs, source.rows(outputs))
    return matrix if source.order is None else matrix.with_heads(source.order)
