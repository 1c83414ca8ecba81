"""Norms by the root of the mean square, in float32."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import Floats, floats, tensor
from tests.emulated_ascend.operator import HALF, Operator

DTYPES = (*HALF, ms.float32)


class RmsNorm(Operator):
    def __init__(self, epsilon: float = 1e-6) -> None:
        self.epsilon = epsilon

    def compute(self, x: Any, gamma: Any) -> tuple[Tensor, Tensor]:
        """-> y of x's shape, and 1 / root, float32"""
        check_norm(self, "x", x, gamma, self.epsilon)
        y, rstd = norm(floats(x), floats(gamma), self.epsilon)
        return tensor(y, x.dtype), tensor(rstd, ms.float32)


class AddRmsNorm(Operator):
    def compute(self, x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
        """-> y, 1 / root, and x1 + x2, which is rounded before it is normed"""
        check_norm(self, "x1", x1, gamma, epsilon)
        self.tensor("x2", x2, DTYPES)
        self.same_dtype("x2", x2, "x1", x1)
        self.shape("x2", x2, *x1.shape)
        both = tensor(floats(x1) + floats(x2), x1.dtype)
        y, rstd = norm(floats(both), floats(gamma), epsilon)
        return tensor(y, x1.dtype), tensor(rstd, ms.float32), both


def check_norm(operator: Operator, name: str, x: Any, gamma: Any, epsilon: float) -> None:
    operator.tensor(name, x, DTYPES, 2, 3)
    operator.tensor("gamma", gamma, DTYPES, 1)
    operator.same_dtype("gamma", gamma, name, x)
    operator.shape("gamma", gamma, x.shape[-1])
    operator.require(0 < epsilon < 1, "epsilon", epsilon, "it must be between 0 and 1")


def norm(x: Floats, gamma: Floats, epsilon: float) -> tuple[Floats, Floats]:
    rstd = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(epsilon))
    return x * rstd * gamma, rstd
