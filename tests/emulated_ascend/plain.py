"""Operators that MindSpore's CPU kernels do not have in bfloat16, as an NPU computes them."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

from tests.emulated_ascend.host import Floats, array, floats, tensor
from tests.emulated_ascend.operator import HALF, Operator

DTYPES = (*HALF, ms.float32)


class Add(Operator):
    def compute(self, input: Any, other: Any) -> Tensor:
        pair(self, input, other)
        return tensor(floats(input) + floats(other), input.dtype)


class Mul(Operator):
    def compute(self, input: Any, other: Any) -> Tensor:
        pair(self, input, other)
        return tensor(floats(input) * floats(other), input.dtype)


def pair(operator: Operator, input: Any, other: Any) -> None:
    """`other` is of input's shape, or one that MindSpore spreads over it."""
    operator.tensor("input", input, DTYPES)
    operator.tensor("other", other, DTYPES)
    operator.same_dtype("other", other, "input", input)
    try:
        np.broadcast_shapes(tuple(input.shape), tuple(other.shape))
    except ValueError:
        operator.require(False, "other", other, f"it must fit input's shape, {list(input.shape)}")


class SiLU(Operator):
    def compute(self, input: Any) -> Tensor:
        self.tensor("input", input, DTYPES)
        return tensor(silu(floats(input)), input.dtype)


class GeLU(Operator):
    def compute(self, input: Any) -> Tensor:
        """By the approximation with tanh."""
        self.tensor("input", input, DTYPES)
        return tensor(gelu(floats(input)), input.dtype)


def gelu(x: Floats) -> Floats:
    inner: Floats = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    return x * (1 + inner) / 2


class Swiglu(Operator):
    def compute(self, input: Any, dim: int = -1) -> Tensor:
        """silu(first half) * second half"""
        self.tensor("input", input, HALF, 2, 3)
        self.require(dim in (-1, len(input.shape) - 1), "dim", dim, "it must be the last axis")
        self.require(input.shape[-1] % 2 == 0, "input", input, "its width must be even")
        gate, up = np.split(floats(input), 2, axis=-1)
        return tensor(silu(gate) * up, input.dtype)


def silu(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


class Gather(Operator):
    def __init__(self, batch_dims: int = 0) -> None:
        self.batch_dims = batch_dims

    def compute(self, input_params: Any, input_indices: Any, axis: int) -> Tensor:
        """Rows, or columns; an NPU does not say which index is out of range."""
        self.constant(batch_dims=0)
        self.tensor("input_params", input_params, DTYPES)
        self.require(axis in range(min(len(input_params.shape), 2)), "axis", axis, "it must be 0 or 1")
        self.tensor("input_indices", input_indices, (ms.int32, ms.int64))
        rows, found = input_params.shape[axis], array(input_indices)
        fits = not found.size or (found.min() >= 0 and found.max() < rows)
        self.require(fits, "input_indices", found.tolist(), f"indices must be 0 to {rows - 1}")
        return tensor(np.take(array(input_params), found, axis), input_params.dtype)


class Cast(Operator):
    def compute(self, input_x: Any, dtype: Any) -> Tensor:
        if ms.bfloat16 not in (input_x.dtype, dtype):
            return ops.cast(input_x, dtype)
        values = floats(input_x) if input_x.dtype in DTYPES else array(input_x)
        return tensor(values, dtype)


class SplitWithSize(Operator):
    def compute(self, input: Any, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
        self.tensor("input", input, DTYPES)
        sizes, width = list(split_size), input.shape[dim]
        self.require(sum(sizes) == width, "split_size", sizes, f"they must make input's {width}")
        parts = np.split(array(input), np.cumsum(sizes)[:-1], axis=dim)
        return tuple(tensor(part, input.dtype) for part in parts)


class Tile(Operator):
    def compute(self, input: Any, dims: Any) -> Tensor:
        self.tensor("input", input, DTYPES)
        return tensor(np.tile(array(input), tuple(dims)), input.dtype)
