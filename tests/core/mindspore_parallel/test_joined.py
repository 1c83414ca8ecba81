"""Ranks' gathered parts, which lie below each other, side by side: in one kernel, with open shapes, too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")


def gathering(size: int) -> Any:
    from msx_sdk.mindspore.layers import AllGather

    alone = SimpleNamespace(tp_size=1, tp_rank=0, tp_group="g", world_group="g", target="CPU")
    cell = AllGather(alone)  # type: ignore[arg-type]
    cell.size = size
    return cell


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("shape", [(3, 5), (1, 2), (2, 3, 4)])
def test_eagerly(size: int, shape: tuple[int, ...]) -> None:
    parts = np.random.default_rng(0).standard_normal((size, *shape)).astype(np.float32)
    below = ms.Tensor(parts.reshape(size * shape[0], *shape[1:]))
    found = gathering(size).side_by_side(below, shape)
    assert np.array_equal(found.asnumpy(), np.concatenate([*parts], -1))


def test_a_transposition_moves_them_alone() -> None:
    """Where parts are split and joined again, an NPU starts a kernel for each."""
    used: list[str] = []

    class Noted:
        def __init__(self, real: Any) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            made = getattr(self.real, name)
            return lambda *given, **options: noted(name, made(*given, **options))

    def noted(name: str, operator: Any) -> Any:
        def call(*given: Any) -> Any:
            used.append(name)
            return operator(*given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msx_core.mindspore.layers.collectives.ops", Noted(ms.ops))
        gathering(2).side_by_side(ms.Tensor(np.zeros((4, 3), np.float32)), (2, 3))
    assert used == ["Reshape", "Transpose", "Reshape"]


def test_in_a_graph_with_open_shapes() -> None:
    class Gathered(ms.nn.Cell):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.gather = gathering(2)

        def construct(self, x: Any) -> Any:
            return self.gather.side_by_side(ms.ops.concat((x, x + 1), 0), x.shape)

    cell = Gathered()
    cell.set_inputs(ms.Tensor(shape=[None, 4], dtype=ms.float32))
    call = ms.jit(function=cell)
    for rows in (1, 3, 7):
        x = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        assert np.array_equal(call(ms.Tensor(x)).asnumpy(), np.concatenate([x, x + 1], -1))
