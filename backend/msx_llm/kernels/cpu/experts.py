"""Experts in a few operators for a whole step: MindSpore's CPU has no grouped product, and a loop over experts would be
hundreds of small ones."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights
from msx_llm.kernels.cpu.cells import GATES
from msx_llm.models.expert_weights import ExpertWeights
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.routing import ExpertChoice
from msx_sdk.mindspore.parallel import Parallel


class ExpertRouter(nn.Cell):  # type: ignore[misc]
    def __init__(self, hidden: int, experts: ExpertsConfig, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("zeros", (hidden, experts.count), dtype), name="weight")
        self.biased, self.shifted, self.dtype = experts.sigmoid or experts.corrected, experts.clamp is not None, dtype
        if self.biased:
            shape = (1, experts.count) if experts.corrected else (experts.count,)
            self.bias = Parameter(initializer("zeros", shape, ms.float32), name="e_score_correction_bias")
        if self.shifted:
            self.shift = Parameter(initializer("zeros", (experts.count,), dtype), name="shift")
        self.matmul, self.choice, self.add = ops.MatMul(), ExpertChoice(experts), ops.BiasAdd()

    def construct(self, x: Any) -> Any:
        logits = self.matmul(x, self.weight)
        if self.shifted:
            logits = self.add(logits, self.shift)
        weights, chosen = self.choice(logits.astype(ms.float32), self.bias if self.biased else None)
        return weights.astype(self.dtype), chosen

    def load_shard(self, weights: Weights, name: str) -> None:
        fill(self.weight, weights.read(f"{name}.weight").T)
        if self.biased:
            fill(self.bias, weights.read(f"{name}.e_score_correction_bias"))
        if self.shifted:
            fill(self.shift, weights.read(f"{name}.bias"))


class BlockedExperts(ExpertWeights):
    """Rows of tokens lie by expert in blocks of one size, each of which has one expert: a batch of products, for which
    the weights of each block's expert are gathered. With few rows a block is a row. Of `whole` experts a rank computes
    rows for other ranks' experts, too, with weight 0, because a graph's shapes do not follow from its numbers."""

    def __init__(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, dtype: Any, **form: Any) -> None:
        super().__init__(hidden, experts, parallel, dtype, **form)
        self.chosen = experts.chosen
        self.gather, self.pick, self.place = ops.Gather(), ops.GatherD(), ops.TensorScatterUpdate()
        self.product, self.halves, self.gate = ops.BatchMatMul(), ops.Split(-1, 2), GATES[experts.activation]()
        self.add_up, self.sum, self.ceil = ops.CumSum(), ops.ReduceSum(), ops.Ceil()

    def construct(self, x: Any, weights: Any, chosen: Any) -> Any:
        if self.whole:
            chosen = self.from_own(chosen)
            weights = weights * (chosen < self.count).astype(weights.dtype)
            chosen = chosen % self.count
        rows = x.shape[0] * self.chosen
        of_rows, tokens = chosen.reshape((-1,)), self.numbers(rows) // self.chosen
        size = -(-rows // self.count)
        if size == 1:
            made = self.compute(self.gather(x, tokens, 0), of_rows, 1)
        else:
            blocks = (rows + min(self.count, rows) * (size - 1)) // size
            places, of_blocks = self.sorted(of_rows, blocks, size)
            empty = ops.zeros((blocks * size,), ms.int32)
            sources = self.place(empty, ops.expand_dims(places, 1), tokens)
            made = self.gather(self.compute(self.gather(x, sources, 0), of_blocks, size), places, 0)
        weights, made = ops.expand_dims(weights, 1), made.reshape((-1, self.chosen, self.hidden))
        return self.product(weights, made).reshape((-1, self.hidden))

    def sorted(self, of_rows: Any, blocks: int, size: int) -> Any:
        """of_rows [N]: experts -> the place of each row among those of all blocks [N], and the expert of each block;
        in float32, which counts as far as there is memory"""
        hits = (ops.expand_dims(of_rows, 1) == ops.expand_dims(self.numbers(self.count), 0)).astype(ms.float32)
        nth = self.pick(self.add_up(hits, 0), 1, ops.expand_dims(of_rows, 1)).reshape((-1,)) - 1
        ends = self.add_up(self.ceil(self.sum(hits, 0) / size), 0)  # in blocks
        starts = ends - self.ceil(self.sum(hits, 0) / size)
        places = (self.gather(starts, of_rows, 0) * size + nth).astype(ms.int32)
        numbers = ops.expand_dims(self.numbers(blocks).astype(ms.float32), 1)
        before = self.sum((numbers >= ops.expand_dims(ends, 0)).astype(ms.float32), 1)
        return places, ops.minimum(before, self.count - 1).astype(ms.int32)

    def compute(self, x: Any, experts: Any, size: int) -> Any:
        """x [blocks * size, hidden], experts [blocks] -> [blocks * size, hidden]"""
        x = x.reshape((-1, size, self.hidden))
        gate, up = self.halves(self.product(x, self.gather(self.gate_up, experts, 0)))
        made = self.product(self.gate(gate, up), self.gather(self.down, experts, 0))
        return made.reshape((-1, self.hidden))

    def numbers(self, count: int) -> Any:
        return ops.arange(0, count, 1, dtype=ms.int32)


class SharedGate(nn.Cell):  # type: ignore[misc]
    def __init__(self, hidden: int, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("zeros", (1, hidden), dtype), name="weight")
        self.matmul, self.sigmoid, self.tile = ops.MatMul(transpose_b=True), ops.Sigmoid(), ops.Tile()
        self.hidden = hidden

    def construct(self, x: Any, y: Any) -> Any:
        return y * self.tile(self.sigmoid(self.matmul(x, self.weight)), (1, self.hidden))
