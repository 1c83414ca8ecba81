"""Attention over slots, where a number of each query head takes a share of its softmax."""

from typing import Any

import mindspore as ms
from mindspore import Parameter, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights
from msx_llm.kernels.cpu.slots import SlotAttention
from msx_llm.models.kernels import Heads
from msx_sdk.mindspore.parallel import Parallel


class SinkAttention(SlotAttention):
    loads_inner = True

    def __init__(self, heads: Heads, parallel: Parallel, kind: int) -> None:
        super().__init__(heads, kind)
        self.own = heads.own(parallel)
        self.sinks = Parameter(initializer("zeros", (heads.queries,), ms.float32), name="sinks")
        self.join, self.tile = ops.Concat(-1), ops.Tile()

    def shares(self, scores: Any, count: int) -> Any:
        texts = scores.shape[0] // self.kv
        sinks = self.tile(self.sinks.reshape((1, self.kv, -1, 1)), (texts, 1, 1, count))
        whole = self.softmax(self.join((scores, sinks.reshape((scores.shape[0], scores.shape[1], 1)))))
        return whole[:, :, : scores.shape[2]]

    def load_shard(self, weights: Weights, name: str) -> None:
        fill(self.sinks, weights.read(f"{name.rpartition('.')[0]}.sinks", self.own))
