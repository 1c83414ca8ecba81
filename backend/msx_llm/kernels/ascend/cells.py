"""Cells of fused operators; each calls one. In shapes, T is the tokens of a whole step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_llm.kernels.ascend import operators


class Norm(nn.Cell):  # type: ignore[misc]
    """`RmsNorm(epsilon)(x, gamma)` -> (y, rstd). The sum before it is an operator of its own: graph passes make both
    one, and still find what they quantise (vllm-mindspore 0.5.1, layers/layernorm.py)."""

    def __init__(self, size: int, eps: float, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("ones", (size,), dtype), name="weight")
        self.norm, self.add = operators.RmsNorm(eps), operators.Add()

    def construct(self, x: Any, residual: Any = None) -> Any:
        """x, residual [T, size] -> (normed, x + residual)"""
        if residual is not None:
            x = self.add(residual, x)
        return self.norm(x, self.weight)[0], x


class FusedHeadNorm(nn.Cell):  # type: ignore[misc]
    """Norms each head: x [T, heads*size] -> the same shape."""

    def __init__(self, size: int, eps: float, dtype: Any) -> None:
        super().__init__()
        self.weight, self.size = Parameter(initializer("ones", (size,), dtype), name="weight"), size
        self.norm = operators.RmsNorm(eps)

    def construct(self, x: Any) -> Any:
        width = x.shape[1]
        return self.norm(x.reshape((-1, width // self.size, self.size)), self.weight)[0].reshape((-1, width))


class FusedSiluGate(nn.Cell):  # type: ignore[misc]
    """silu(gate) * up, in the form that the pass InferenceSwiGLU finds behind a split product."""

    def __init__(self) -> None:
        super().__init__()
        self.silu, self.mul = operators.SiLU(), operators.Mul()

    def construct(self, gate: Any, up: Any) -> Any:
        return self.mul(self.silu(gate), up)


class FusedGeluGate(nn.Cell):  # type: ignore[misc]
    """gelu(gate) * up, by the approximation with tanh, which MindSpore's `GeLU` is. No pass makes both one."""

    def __init__(self) -> None:
        super().__init__()
        self.gelu, self.mul = operators.GeLU(), operators.Mul()

    def construct(self, gate: Any, up: Any) -> Any:
        return self.mul(self.gelu(gate), up)


GATES: Mapping[str, Any] = {"silu": FusedSiluGate, "gelu_tanh": FusedGeluGate}


class FusedRotary(nn.Cell):  # type: ignore[misc]
    """`ApplyRotaryPosEmb(cos_format=2)(query, key, cos, sin, batch_valid_length)`: halves rotate together. cos and sin
    are the whole table where all texts begin, else rows of each token (mindformers 2.1.0, transformer/enums.py)."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.kind = kind
        self.turn = operators.ApplyRotaryPosEmb(2)

    def construct(self, q: Any, k: Any, step: Any) -> Any:
        """q [T, N*D], k [T, K*D] -> the same"""
        _, cos, sin, _, _, lengths = step[:6]
        return self.turn(q, k, cos[self.kind], sin[self.kind], lengths)


class FusedQueryRotary(FusedRotary):
    """Queries in both places: no operator turns them alone."""

    def construct(self, q: Any, step: Any) -> Any:  # type: ignore[override]
        return super().construct(q, q, step)[0]


def causal_triangle(dtype: Any) -> Any:
    """The mask of FlashAttentionScore for texts of any length: 1 above the diagonal in bfloat16, -10000 in float16
    (vllm-mindspore 0.5.1, models/attention_mask.py)."""
    drop = 1.0 if dtype == ms.bfloat16 else DROP
    return ops.triu(ops.ones((TRIANGLE, TRIANGLE), ms.float32), 1).mul(drop).astype(dtype)


TRIANGLE = 128
DROP = -10000.0
"""The value of unseen tokens in PagedAttention's masks, and in FlashAttentionScore's in float16."""
