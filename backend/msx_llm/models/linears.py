"""The linear layers of a decoder's layer: of numbers as the kernels make them, or quantised as the files say."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.kernels import Kernels, Projection
from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.scheme import Quantisation
from msx_sdk.errors import HandlerLoadError
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
        _check_rows(form, f"{self.layer}.{name}", inputs, parallel)
        return self.kernels.quantised_row(inputs, outputs, parallel, bias, form, sums)

    def experts(self, hidden: int, experts: ExpertsConfig, parallel: Parallel) -> Any:
        """See `Kernels.experts`. They stay integers where all have one format and do not sort their inputs."""
        names = product(range(experts.count), ("gate_proj", "up_proj", "down_proj"))
        form, *others = {self._format(f"mlp.experts.{expert}.{name}") for expert, name in names}
        if form is None or others or form.ordered or experts.clamp is not None:
            return self.kernels.experts(hidden, experts, parallel)
        if not experts.whole:
            _check_rows(form, f"{self.layer}.mlp.experts", experts.inner, parallel)
        return self.kernels.quantised_experts(hidden, experts, parallel, form)

    def _format(self, name: str) -> LinearFormat | None:
        return None if self.quantisation is None else self.quantisation.of(f"{self.layer}.{name}")


def _check_rows(form: LinearFormat, layer: str, inputs: int, parallel: Parallel) -> None:
    """A rank has whole groups. Raises HandlerLoadError."""
    ranks = parallel.tp_size
    if ranks > 1 and form.ordered:
        raise HandlerLoadError(
            f"{layer}: groups of desc_act have inputs of all ranks, so that they cannot be divided over "
            f"tensorParallel: {ranks}; use pipelineStages"
        )
    if form.group is not None and inputs // ranks % form.group:
        raise HandlerLoadError(
            f"{layer}: groups of {form.group} do not divide the {inputs // ranks} inputs that each of "
            f"tensorParallel: {ranks} ranks has; use fewer ranks or pipelineStages"
        )
