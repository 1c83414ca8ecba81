"""Cells of plain operators. Weights lie as [in, out], the transpose of the file: on a CPU that is ten times faster.
Products with one input are not fused, because slices of the result cost more than that saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer
from mindspore.ops.auto_generate import SiLU

from msx_llm.models.kernels import Heads, Projection
from msx_sdk.mindspore.layers import ColumnParallelLinear, VocabParallelEmbedding, VocabParallelHead

FEW = 16
"""Broadcasting pays up to this many rows: on a CPU each kernel that does it keeps four buffers of the result's size.
From 32 on, it takes as long as to repeat the smaller operand first."""


class RMSNorm(nn.Cell):  # type: ignore[misc]
    """Computes squares in float32: in 16 bits they overflow from 256 on."""

    def __init__(self, size: int, eps: float, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("ones", (size,), dtype), name="weight")
        self.eps, self.mean, self.square, self.rsqrt = eps, ops.ReduceMean(keep_dims=True), ops.Square(), ops.Rsqrt()
        self.tile, self.narrow = ops.Tile(), dtype != ms.float32

    def construct(self, x: Any) -> Any:
        weight, kind = self.weight, x.dtype
        if self.narrow:
            x = x.astype(ms.float32)
        scale = self.rsqrt(self.mean(self.square(x), -1) + self.eps)
        if x.shape[0] > FEW:
            scale = self.tile(scale, (*(1,) * (x.ndim - 1), x.shape[-1]))
            weight = self.tile(weight, (*x.shape[:-1], 1))
        x = x * scale
        if self.narrow:
            x = x.astype(kind)
        return x * weight


class ResidualNorm(RMSNorm):
    def construct(self, x: Any, residual: Any = None) -> Any:
        if residual is not None:
            x = residual + x
        return super().construct(x), x


class HeadNorm(RMSNorm):
    def construct(self, x: Any) -> Any:
        return super().construct(x.reshape((x.shape[0], -1, self.weight.shape[0])))


class SeparateLinears(nn.Cell):  # type: ignore[misc]
    loads_inner = True

    def __init__(self, inputs: int, outputs: Mapping[str, Projection], bias: bool, dtype: Any) -> None:
        super().__init__()
        self.names = tuple(outputs)
        self.linears = nn.CellList(
            [ColumnParallelLinear(inputs, it.outputs, it.parallel, bias=bias, dtype=dtype) for it in outputs.values()]
        )

    def construct(self, x: Any) -> Any:
        results: Any = ()
        for linear in self.linears:
            results = (*results, linear(x))
        return results

    def load_shard(self, weights: Any, name: str) -> None:
        for own, linear in zip(self.names, self.linears, strict=True):
            linear.load_shard(weights, f"{name.rpartition('.')[0]}.{own}")


class SiluGate(nn.Cell):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.silu = SiLU()

    def construct(self, gate: Any, up: Any) -> Any:
        return self.silu(gate) * up


class SigmoidGate(nn.Cell):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.sigmoid = ops.Sigmoid()

    def construct(self, x: Any, gate: Any) -> Any:
        return x * self.sigmoid(gate)


class GeluGate(nn.Cell):  # type: ignore[misc]
    """MindSpore's GeLU is the approximation by tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.gelu = ops.GeLU()

    def construct(self, gate: Any, up: Any) -> Any:
        return self.gelu(gate) * up


GATES: Mapping[str, Any] = {"silu": SiluGate, "gelu_tanh": GeluGate}


class HalfTurn(nn.Cell):  # type: ignore[misc]
    """x [T, N, D], cos and sin [T, N, D] -> x, whose halves turned together; the first half of `sin` is negated, once
    for all layers"""

    def __init__(self) -> None:
        super().__init__()
        self.halves, self.join = ops.Split(-1, 2), ops.Concat(-1)

    def construct(self, x: Any, angles: Any) -> Any:
        cos, sin = angles
        first, second = self.halves(x)
        return x * cos + self.join((second, first)) * sin


class Rotary(nn.Cell):  # type: ignore[misc]
    def __init__(self, heads: Heads, kind: int) -> None:
        super().__init__()
        self.kind = kind
        self.queries, self.keys, self.size = heads.queries, heads.keys, heads.size
        self.turn = HalfTurn()

    def construct(self, q: Any, k: Any, step: Any) -> Any:
        """-> q [T, N, D], k [T, K, D]"""
        of_queries, of_keys = step[0][self.kind][0]
        q, k = q.reshape((-1, self.queries, self.size)), k.reshape((-1, self.keys, self.size))
        return self.turn(q, of_queries), self.turn(k, of_keys)


class QueryRotary(nn.Cell):  # type: ignore[misc]
    """q [T, N, D] -> the same"""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.kind, self.turn = kind, HalfTurn()

    def construct(self, q: Any, step: Any) -> Any:
        return self.turn(q, step[0][self.kind][0][0])


class CpuEmbedding(VocabParallelEmbedding):
    """The embedding; with a `tied` head it has that one's weight, [width, vocabulary]: gathered by columns, 512 tokens
    1024 wide take 15 ms more, single ones nothing."""

    tied = False

    def lookup(self, ids: Any) -> Any:
        if self.tied:
            return ops.gather(self.weight, ids, 1).transpose((1, 0))
        return ops.gather(self.weight, ids, 0)


class WholeEmbedding(CpuEmbedding):
    """The embedding on one rank, which has all ids."""

    def construct(self, ids: Any) -> Any:
        return self.lookup(ids)


class Float32Head(VocabParallelHead):
    def construct(self, x: Any) -> Any:
        return super().construct(x).astype(ms.float32)
