"""The linear layers of a decoder's layer: of numbers as the kernels make them, or quantised as the files say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.kernels import Kernels, Projection
from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.scheme import Quantisation, format_of_experts
from msx_sdk.mindspore.parallel import Parallel


@dataclass(frozen=True)
class LayerLinears:
    """Makes the cells of the layer with this name in the files."""

    kernels: Kernels
    quantisation: Quantisation | None
    layer: str

    def projections(self, where: str, inputs: int, outputs: Mapping[str, Projection], bias: bool) -> Any:
        """See `Kernels.projections`; `where` is the place of the linear layers in the layer."""
        formats = {name: self._format(f"{where}.{name}") for name in outputs}
        if not any(formats.values()):
            return self.kernels.projections(inputs, outputs, bias)
        return self.kernels.quantised_projections(inputs, outputs, bias, formats)

    def row(self, name: str, inputs: int, outputs: int, parallel: Parallel, bias: bool, sums: bool = True) -> Any:
        """See `Kernels.row_linear`."""
        if (form := self._format(name)) is None:
            return self.kernels.row_linear(inputs, outputs, parallel, bias, sums)
        return self.kernels.quantised_row(inputs, outputs, parallel, bias, form, sums)

    def experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel) -> Any:
        """See `Kernels.experts`. They stay integers where all have one format and do not sort their inputs."""
        form = None if self.quantisation is None else format_of_experts(self.quantisation, self.layer, experts)
        if form is None:
            return self.kernels.experts(hidden, experts, parallel)
        return self.kernels.quantised_experts(hidden, experts, parallel, form)

    def _format(self, name: str) -> LinearFormat | None:
        return None if self.quantisation is None else self.quantisation.of(f"{self.layer}.{name}")
