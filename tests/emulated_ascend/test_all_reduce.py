"""Sums over ranks. That real ranks gather each other's parts: tests/llm/test_runner_ranks.py."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

from msx_sdk.mindspore import collectives
from tests.emulated_ascend import all_reduce, inputs
from tests.emulated_ascend.all_reduce import AllReduce, one_shot, ring
from tests.emulated_ascend.calls import ALONE
from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.inputs import numbers
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.test_attention import BOTH, STEP

pytestmark = pytest.mark.mindspore


def parts_of(count: int, dtype: Any, shape: tuple[int, int] = (5, 7)) -> list[Any]:
    return [floats(numbers(*shape, dtype=dtype, seed=seed)) for seed in range(count)]


@BOTH
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_each_addition_is_rounded_once(dtype: Any, ranks: int) -> None:
    """Within as many roundings of partial sums as there are additions."""
    parts = parts_of(ranks, dtype)
    exact = np.sum(np.stack(parts, dtype=np.float64), axis=0)
    bound = (ranks - 1) * STEP[dtype] * np.abs(np.stack(parts)).sum(axis=0) + 1e-6
    for found in (ring(parts, dtype), *(one_shot(parts, own, dtype) for own in range(ranks))):
        assert (np.abs(found - exact) <= bound).all()
        np.testing.assert_array_equal(found, floats(tensor(found, dtype)))


def test_of_two_ranks_no_order_matters() -> None:
    parts = parts_of(2, ms.float16)
    rounded = floats(tensor(parts[0] + parts[1], ms.float16))
    for found in (ring(parts, ms.float16), one_shot(parts, 0, ms.float16), one_shot(parts, 1, ms.float16)):
        np.testing.assert_array_equal(found, rounded)


def test_small_messages_are_added_from_the_own_part_on() -> None:
    """In float16 the numbers from 2048 on are even: 2048 + 1 is 2048."""
    parts = [np.full((1, 1), value, np.float32) for value in (2048, 1, 1, 1)]
    assert [one_shot(parts, own, ms.float16).item() for own in range(4)] == [2048, 2052, 2052, 2048]


def test_pieces_of_large_messages_begin_at_different_ranks() -> None:
    parts = [np.full((1, 4), value, np.float32) for value in (2048, 1, 1, 1)]
    assert ring(parts, ms.float16).tolist() == [[2048, 2052, 2052, 2048]]


def test_what_is_too_large_for_float16_is_infinite() -> None:
    parts = [np.full((1, 2), 40000, np.float32)] * 2
    assert np.isinf(ring(parts, ms.float16)).all()
    assert np.isfinite(ring(parts, ms.bfloat16)).all()


@pytest.mark.parametrize(("tokens", "by"), [(1, "one_shot"), (100, "ring")])
def test_the_size_of_a_message_decides(tokens: int, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, taken = numbers(tokens, 64), list[str]()
    monkeypatch.setattr(collectives, "members", lambda group: (4, 6))
    monkeypatch.setattr(all_reduce, "_rank", lambda: 6)
    monkeypatch.setattr(all_reduce, "_gathered", lambda own, group, ranks: [own] * ranks)

    def note(name: str, parts: Any) -> Any:
        taken.append(name)
        return parts[0]

    monkeypatch.setattr(all_reduce, "one_shot", lambda parts, own, dtype: note("one_shot", parts))
    monkeypatch.setattr(all_reduce, "ring", lambda parts, dtype: note("ring", parts))
    AllReduce(**ALONE)(x)
    assert taken == [by]


def test_one_rank_has_the_sum() -> None:
    given = inputs.reduced()
    np.testing.assert_array_equal(floats(AllReduce(**ALONE)(**given)), floats(given["x"]))


def test_a_part_of_another_tensor_is_refused() -> None:
    with pytest.raises(Refused, match="contiguous"):
        AllReduce(**ALONE)(numbers(64, 64).transpose(1, 0))
