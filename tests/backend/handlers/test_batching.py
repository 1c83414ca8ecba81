"""Rows joined and handed back, on networks that are plain functions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from msx_backend.handlers._batching import run_all
from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_core.mindspore.joined_rows import ANY, batch_axis
from msx_sdk.mindspore import Network


class Plain(Network):
    """Counts the rows of its calls."""

    def __init__(self, run: Callable[..., Any], *outputs: tuple[int, ...], inputs: Any = ((-1, 2),)) -> None:
        specs = [[TensorSpec("t", "float32", tuple(shape)) for shape in shapes] for shapes in (inputs, outputs)]
        super().__init__(specs[0], specs[1], run)
        object.__setattr__(self, "calls", [])

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        self.calls: list[int]
        self.calls.append(len(arrays[0]))
        return [self.run(*arrays)]


def rows(*lengths: int) -> list[list[Any]]:
    """One request of each length; every row is told apart by its value."""
    values = iter(range(100))
    return [[np.array([[next(values), 0] for _ in range(n)], np.float32)] for n in lengths]


def values(results: Any) -> list[Any]:
    return [np.asarray(result[0]).tolist() for result in results]


@pytest.mark.parametrize(
    ("inputs", "outputs", "axis"),
    [
        ([(-1, 2)], [(-1,)], ANY),
        ([(4, 2)], [(4, 3)], 4),
        ([(-1, 2)], [(4, 3)], None),
        ([(-1, 2), (1, 2)], [(-1, 3)], None),
        ([(-1, 2)], [()], None),
        ([DYNAMIC_RANK], [], ANY),
    ],
)
def test_the_batch_axis_is_what_all_tensors_agree_on(inputs: Any, outputs: Any, axis: int | None) -> None:
    assert batch_axis(Plain(abs, *outputs, inputs=inputs)) == axis


def test_rows_of_a_batch_take_one_call() -> None:
    network = Plain(lambda x: x[:, 0] * 2)
    results = run_all(network, rows(1, 3, 2), ANY)
    assert network.calls == [6]
    assert values(results) == [[0], [2, 4, 6], [8, 10]]


def test_a_fixed_batch_is_filled_up_and_cut_off() -> None:
    network = Plain(lambda x: x[:, 0] * 2)
    results = run_all(network, rows(2, 3, 4), 4)
    assert network.calls == [4, 4, 4]
    assert values(results) == [[0, 2], [4, 6, 8], [10, 12, 14, 16]]


def test_outputs_that_turn_out_to_be_no_rows_are_computed_alone() -> None:
    network = Plain(lambda x: x[:, 0].max())
    assert values(run_all(network, rows(2, 3), ANY)) == [1, 4]
    assert network.calls == [5, 2, 3]


def test_rows_of_different_shapes_are_not_joined() -> None:
    network = Plain(lambda x: x.sum(1))
    wide = [np.ones((1, 3), np.float32)]
    results = run_all(network, [*rows(1), wide, *rows(1)], ANY)
    assert network.calls == [2, 1]
    assert values(results) == [[0], [3], [0]]


def test_without_a_batch_axis_a_failure_is_one_requests_own() -> None:
    def run(x: Any) -> Any:
        if len(x) == 2:
            raise RuntimeError("two")
        return x[:, 0]

    first, second = run_all(Plain(run), rows(1, 2), None)
    assert values([first]) == [[0]]
    assert str(second) == "two"
