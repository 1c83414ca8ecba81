"""No argument of a call of an NPU's operator may change unnoticed: each one that the models pass, those that stand at
their defaults, too, is changed in dtype, in shape and in the order of its axes, or in value, one at a time. The
emulation refuses the change, or the logits differ by more than the rounding of 16 bits.

The changes that were thought of one by one, of values and of orders, are in `test_flat_calls.py` and
`test_flat_calls_of_families.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.call_changes import Change, as_type, instead, of_first
from tests.llm.flat_models import emulation
from tests.llm.test_flat_calls_of_families import MODELS, scenario_of

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

KINDS = [kind if kind == "qwen3_moe" else pytest.param(kind, marks=pytest.mark.long) for kind in MODELS]
"""CI runs the one with most operators."""
WITHOUT_EFFECT: dict[tuple[str, str, str], str] = {
    ("Cast", "input_x", "dtype"): "the numbers are the same before they are cast",
    ("Gather", "input_indices", "dtype"): "it takes int32 and int64",
    ("MoeGatingTopKSoftmax", "x", "dtype"): "it takes float32, too",
    ("MoeInitRoutingV2", "expert_tokens_before_capacity_flag", "value"): "it counts where rows are dropped",
    ("MoeInitRoutingV2", "expert_num", "value"): "one expert more has no rows, and its count is cut off",
    ("ReshapeAndCache", "key", "shape"): "it takes [T, K*D] and [1, T, K*D]",
    ("ReshapeAndCache", "value", "shape"): "it takes [T, K*D] and [1, T, K*D]",
    ("ReshapeAndCache", "key_cache", "axes"): "one head of 576 and 576 of one are the same memory",
}
"""Changes that are right, too, and why."""
WITHOUT_EFFECT_OF = {"gpt_oss": {("Add", "other", "shape"): "a bias [width] and [1, width] are added alike"}}
"""Changes without effect on one model alone."""


@dataclass
class Passed:
    """A `mutate` that changes nothing, and keeps what is passed in the first call of each operator."""

    values: dict[tuple[str, str], Any]

    def __call__(self, call: Any) -> None:
        for name, value in {**call.attributes, **call.arguments}.items():
            self.values.setdefault((call.operator, name), value)


def changes(value: Any) -> Iterator[tuple[str, Change]]:
    """Possible mistakes in an argument of this value."""
    if isinstance(value, ms.Tensor):
        yield from changes_of_tensor(value)
    elif isinstance(value, list):
        yield from ((what, of_first(change)) for what, change in changes_of_tensor(value[0]))
    else:
        yield "value", instead(other(value))


def changes_of_tensor(tensor: Any) -> Iterator[tuple[str, Change]]:
    yield "dtype", as_type(other_dtype(tensor))
    yield "shape", lambda given: given.expand_dims(0)
    if tensor.ndim > 1 and tensor.shape[-1] != tensor.shape[-2]:
        yield "axes", lambda given: given.swapaxes(-1, -2)


def other_dtype(tensor: Any) -> str:
    others = {ms.float16: "float32", ms.float32: "float16", ms.int32: "int64", ms.int64: "int32"}
    return others.get(tensor.dtype, "int32")


def other(value: Any) -> Any:
    """Another value of the same type; a tensor in the place of none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value[::-1]
    if isinstance(value, tuple):
        return (value[0] + 1, *value[1:])
    return ms.Tensor(np.ones(1, np.float16)) if value is None else ms.int32


@pytest.mark.parametrize("kind", KINDS)
def test_each_argument_is_noticed(kind: str, tmp_path: Path) -> None:
    scenario, passed = scenario_of(kind, tmp_path), Passed({})
    with emulation(passed):
        wanted = scenario.logits()
    made = [(*place, what, change) for place, value in passed.values.items() for what, change in changes(value)]
    unnoticed = {it[:3] for it in made if not noticed(it, lambda: scenario.assert_unchanged(wanted))}
    assert len(made) > 100
    assert unnoticed <= {*WITHOUT_EFFECT, *WITHOUT_EFFECT_OF.get(kind, {})}


def noticed(changed: tuple[str, str, str, Change], check: Callable[[], None]) -> bool:
    from tests.emulated_ascend.registry import Change as ChangeOnce

    operator, name, _, change = changed
    once = ChangeOnce(operator, name, change)
    with emulation(once):
        try:
            check()
        except Exception:
            assert once.done
            return True
    return False
