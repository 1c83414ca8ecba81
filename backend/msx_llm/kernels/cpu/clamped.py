"""Experts with biases whose gate and up are clamped, on a CPU."""

from typing import Any

from mindspore import ops

from msx_llm.kernels.cpu.experts import BlockedExperts
from msx_llm.models.clamped_weights import ClampedWeights
from msx_llm.models.experts import ExpertsConfig
from msx_sdk.mindspore.parallel import Parallel


class ClampedExperts(ClampedWeights, BlockedExperts):
    def __init__(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, dtype: Any) -> None:
        super().__init__(hidden, experts, parallel, dtype)
        self.tile = ops.Tile()

    def compute(self, x: Any, experts: Any, size: int) -> Any:
        x = x.reshape((-1, size, self.hidden))
        made = self.product(x, self.gather(self.gate_up, experts, 0)) + self.bias(self.gate_up_bias, experts, size)
        gate, up = self.halves(made)
        made = self.product(self.gated(gate, up), self.gather(self.down, experts, 0)) + self.bias(
            self.down_bias, experts, size
        )
        return made.reshape((-1, self.hidden))

    def bias(self, weight: Any, experts: Any, size: int) -> Any:
        return self.tile(ops.expand_dims(self.gather(weight, experts, 0), 1), (1, size, 1))
