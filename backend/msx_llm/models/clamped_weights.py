"""The weights of experts with biases, as gpt-oss has them; the devices' cells compute with them."""

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights
from msx_llm.models.expert_weights import ExpertWeights
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.mxfp4 import unpacked
from msx_sdk.mindspore.parallel import Parallel

BIASES = "gate_up_bias", "down_bias"


class ClampedWeights(ExpertWeights):
    """(up + 1) * gate * sigmoid(alpha * gate), of a gate and an up that `limit` clamps. The bias of the result is on
    the first rank alone: a sum over the ranks follows."""

    def __init__(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, dtype: Any) -> None:
        super().__init__(hidden, experts, parallel, dtype)
        assert experts.clamp is not None
        self.alpha, self.limit = experts.clamp
        self.packed, self.leads = experts.packed, parallel.tp_rank == 0
        kind = ms.float32 if dtype == ms.bfloat16 else dtype  # as GroupedMatmulV4 wants them (CANN)
        zeros = (initializer("zeros", (self.count, width), kind) for width in (2 * self.inner, hidden))
        self.gate_up_bias, self.down_bias = (Parameter(it, name=name) for it, name in zip(zeros, BIASES, strict=True))
        self.least, self.most, self.sigmoid = ops.Minimum(), ops.Maximum(), ops.Sigmoid()

    def gated(self, gate: Any, up: Any) -> Any:
        gate, up = self.least(gate, self.limit), self.most(self.least(up, self.limit), -self.limit)
        return (up + 1) * gate * self.sigmoid(gate * self.alpha)

    def load_shard(self, weights: Weights, name: str) -> None:
        bias = weights.read(f"{name}.gate_up_proj_bias")
        fill(self.gate_up_bias, np.concatenate([bias[:, turn::2][:, self.own] for turn in (0, 1)], 1))
        fill(self.down_bias, weights.read(f"{name}.down_proj_bias") * self.leads)
        up, down = np.empty(self.gate_up.shape, np.float32), np.empty(self.down.shape, np.float32)
        for expert in range(self.count):
            both = self.read(weights, f"{name}.gate_up_proj", expert)
            up[expert] = np.concatenate([both[:, turn::2][:, self.own] for turn in (0, 1)], 1)
            down[expert] = self.read(weights, f"{name}.down_proj", expert)[self.own]
        fill(self.gate_up, up)
        fill(self.down, down)

    def read(self, weights: Weights, name: str, expert: int) -> Any:
        """-> [in, out]"""
        one = slice(expert, expert + 1)
        if not self.packed:
            return weights.read(name, one)[0]
        return unpacked(weights.read(f"{name}_blocks", one)[0], weights.read(f"{name}_scales", one)[0])
