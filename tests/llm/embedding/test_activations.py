"""Activations against their definitions."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, pi, sqrt, tanh

import numpy as np
import pytest

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

X = np.concatenate([np.linspace(-12, 12, 4801), [-1e30, -1e5, -40, 40, 1e5, 1e30]]).astype(np.float32)


def tanh_gelu(x: float) -> float:
    return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("name", "definition", "tolerance"),
    [
        ("gelu", lambda x: x * 0.5 * erfc(-x / sqrt(2)), 4e-6),
        ("gelu_new", tanh_gelu, 1e-6),
        ("gelu_pytorch_tanh", tanh_gelu, 1e-6),
        ("relu", lambda x: max(x, 0.0), 0),
        ("silu", lambda x: x / (1 + exp(min(-x, 700))), 1e-6),
    ],
)
def test_definitions(name: str, definition: Callable[[float], float], tolerance: float) -> None:
    from msx_llm.embedding.activations import make_activation

    found = ms.jit(make_activation(name).construct)(ms.Tensor(X)).asnumpy()
    np.testing.assert_allclose(found, [definition(float(x)) for x in X], atol=tolerance, rtol=1e-6)


def test_the_kernel_of_other_devices_agrees() -> None:
    from msx_llm.embedding.activations import Gelu, NativeGelu

    x = ms.Tensor(X[:-6])
    np.testing.assert_allclose(Gelu()(x).asnumpy(), NativeGelu()(x).asnumpy(), atol=4e-6)
