"""The weights of a layer's experts, which the devices' cells compute with."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, nn
from mindspore.common.initializer import initializer

from msx_backend.llm.models.experts import ExpertsConfig, read_experts
from msx_sdk.mindspore._loading import fill
from msx_sdk.mindspore._weights import Weights, part
from msx_sdk.mindspore.layers._shards import check_divisible
from msx_sdk.mindspore.parallel import Parallel


class ExpertWeights(nn.Cell):  # type: ignore[misc]
    """This rank's part of each expert, by its inner width: [experts, in, out], gate and up side by side."""

    loads_inner = True

    def __init__(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, dtype: Any) -> None:
        super().__init__()
        check_divisible("moe_intermediate_size", experts.inner, parallel)
        self.count, self.inner = experts.count, experts.inner // parallel.tp_size
        self.own = part(experts.inner, parallel.tp_size, parallel.tp_rank)
        up, down = (self.count, hidden, 2 * self.inner), (self.count, self.inner, hidden)
        self.gate_up = Parameter(initializer("zeros", up, dtype), name="gate_up")
        self.down = Parameter(initializer("zeros", down, dtype), name="down")

    def load_shard(self, weights: Weights, name: str) -> None:
        whole, outputs = slice(None), ("gate_proj", "up_proj")
        fill(self.gate_up, read_experts(weights, name, self.gate_up.shape, outputs, (self.own, whole)))
        fill(self.down, read_experts(weights, name, self.down.shape, ("down_proj",), (whole, self.own)))
