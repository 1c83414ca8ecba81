"""Roles of inputs: by their usual names, or by the yaml."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msx_llm.mindir.inputs import GraphInputs, TextRow
from msx_llm.mindir.options import InputNames
from msx_sdk.errors import HandlerLoadError
from tests.llm.mindir.fakes import spec

ROWS = [TextRow([7, 8, 9], 0), TextRow([5], 0)]


def arrays(*specs: Any, names: InputNames | None = None, rows: Any = ROWS) -> list[Any]:
    made = GraphInputs("g.mindir", specs, names or InputNames()).arrays(rows, 0)
    return [None if array is None else array.tolist() for array in made]


def test_a_prompts_inputs() -> None:
    made = arrays(
        spec("tokens", 2, 4),
        spec("position", 2),
        spec("cache", 2, 8, dtype="float32"),
        spec("mask", 2, 1, 1, 4, dtype="bool"),
    )
    yes, no = True, False
    assert made == [
        [[7, 8, 9, 0], [5, 0, 0, 0]],
        [2, 0],
        None,
        [[[[yes, yes, yes, no]]], [[[yes, no, no, no]]]],
    ]
    assert arrays(spec("input_ids", 2, 4), spec("position_ids", 2, 4))[1] == [[0, 1, 2, 2], [0, 0, 0, 0]]


def test_a_steps_inputs() -> None:
    made = arrays(
        spec("tokens", 2, 1),
        spec("batch_valid_length", 2),
        spec("position", 2, 1),
        spec("mask", 2, 4, dtype="float32"),
        rows=[TextRow([7], 2), TextRow([8], 0)],
    )
    assert made == [[[7], [8]], [3, 1], [[2], [0]], [[1, 1, 1, 0], [1, 0, 0, 0]]]


def test_one_text_may_have_scalars() -> None:
    assert arrays(spec("tokens", 1, 1), spec("current_index"), rows=[TextRow([4], 3)]) == [[[4]], 3]


def test_names_of_the_yaml() -> None:
    names = InputNames(tokens="x", position="mask", caches=("b", "a"))
    inputs = GraphInputs("g.mindir", [spec("a", 2, 8), spec("x", 2, 1), spec("mask", 2), spec("b", 2, 8)], names)
    assert (inputs.caches, inputs.mask_length) == ([3, 0], None)
    assert [None if one is None else one.tolist() for one in inputs.arrays([TextRow([4], 3), TextRow([5], 1)], 0)] == [
        None,
        [[4], [5]],
        [3, 1],
        None,
    ]


@pytest.mark.parametrize(
    ("specs", "names", "words"),
    [
        (
            [spec("x", 2, 4)],
            {},
            "0 of the inputs 'x' are its tokens, and one must be: name it as textG",
        ),
        ([spec("tokens", 2, 4), spec("input_ids", 2, 4)], {}, "2 of the inputs 'tokens', 'input_ids' are its tokens"),
        ([spec("tokens", 2, -1)], {}, "the input 'tokens' has sizes that vary; export the model with fixed ones"),
        ([spec("tokens", 8)], {}, r"'tokens' must have the shape \[texts, tokens\], not \[8\]"),
        (
            [spec("tokens", 2, 4), spec("mask", 4, 4)],
            {},
            r"'mask' \(mask\) has the shape \[4, 4\]; expected \[te",
        ),
        ([spec("tokens", 2, 4), spec("position", 3)], {}, r"expected \[texts\] or \[texts, tokens\] with 2 texts of 4"),
        ([spec("tokens", 2, 4), spec("valid_length", 2, 4)], {}, r"\(validLength\) has the shape"),
        ([spec("tokens", 2, 4), spec("odd", 2)], {"caches": ("k",)}, "what the input 'odd' means is not said"),
    ],
)
def test_graphs_that_are_refused(specs: Any, names: Any, words: str) -> None:
    with pytest.raises(HandlerLoadError, match=words):
        GraphInputs("g.mindir", specs, InputNames(**names))


def test_arrays_have_the_types_of_the_inputs() -> None:
    inputs = GraphInputs(
        "g.mindir", [spec("tokens", 1, 2, dtype="int64"), spec("mask", 1, 2, dtype="bool")], InputNames()
    )
    assert [one.dtype for one in inputs.arrays([TextRow([1], 0)], 0) if one is not None] == [np.int64, np.bool_]
