"""Activations of encoders, by their names in config.json."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import nn, ops

_PROBIT = (1.59565627, 7.29375738e-2, -2.49717747e-4, -6.11631406e-5, 2.23823094e-6)
"""The log-odds of the normal distribution function, divided by x, as a polynomial in x²."""


class Gelu(nn.Cell):  # type: ignore[misc]
    """x Φ(x), within 4e-6. MindSpore's kernel takes three times as long on a CPU: it computes erf number by number."""

    def construct(self, x: Any) -> Any:
        square = x * x
        odds: Any = _PROBIT[-1]
        for coefficient in _PROBIT[-2::-1]:
            odds = odds * square + coefficient
        return x * ops.sigmoid(x * odds)


class NativeGelu(nn.Cell):  # type: ignore[misc]
    def construct(self, x: Any) -> Any:
        return ops.gelu(x, approximate="none")


class TanhGelu(nn.Cell):  # type: ignore[misc]
    """(1 + tanh u) / 2 is the sigmoid of 2u, whose kernel is ten times as fast as that of GeLU."""

    def construct(self, x: Any) -> Any:
        return x * ops.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


class Silu(nn.Cell):  # type: ignore[misc]
    def construct(self, x: Any) -> Any:
        return x * ops.sigmoid(x)


def make_activation(name: str) -> Any:
    if name == "gelu":
        return Gelu() if ms.get_context("device_target") == "CPU" else NativeGelu()
    return {"gelu_new": TanhGelu, "gelu_pytorch_tanh": TanhGelu, "relu": nn.ReLU, "silu": Silu}[name]()
