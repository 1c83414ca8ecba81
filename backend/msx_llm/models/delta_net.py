"""A gated delta net in the place of attention; the devices' cells hold the state."""

from __future__ import annotations

from typing import Any

from mindspore import nn

from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta import DeltaConfig
from msx_llm.models.kernels import Kernels, Projection
from msx_llm.models.linears import LayerLinears
from msx_sdk.mindspore.parallel import Parallel

PLACE = "linear_attn"


class GatedDeltaNet(nn.Cell):  # type: ignore[misc]
    """Heads are divided over the ranks by their keys."""

    def __init__(
        self, config: DecoderConfig, delta: DeltaConfig, kernels: Kernels, linears: LayerLinears, parallel: Parallel
    ) -> None:
        super().__init__()
        sizes = {"q": delta.queries, "k": delta.queries, "v": delta.values, "z": delta.values}
        sizes |= {"b": delta.value_heads, "a": delta.value_heads}
        outputs = {f"in_proj_{name}": Projection(size, parallel) for name, size in sizes.items()}
        self.inputs = linears.projections(PLACE, config.hidden_size, outputs, False)
        self.attend = kernels.delta_state(delta, parallel, config.norm_eps)
        self.out_proj = linears.row(f"{PLACE}.out_proj", delta.values, config.hidden_size, parallel, False)

    def construct(self, x: Any, step: Any) -> Any:
        q, k, v, z, b, a = self.inputs(x)
        return self.out_proj(self.attend((q, k, v), z, b, a, step))
