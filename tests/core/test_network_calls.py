"""Arguments with which a handler calls a network. MindSpore itself is not needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_sdk.mindspore import Network

np = pytest.importorskip("numpy")

ONE = Network([TensorSpec("x", "float32", (-1, 4))], [], print)
TWO = Network([TensorSpec("x", "float32", (-1, 4)), TensorSpec("mask", "int64", DYNAMIC_RANK)], [], print)


@pytest.mark.parametrize(
    ("network", "given", "words"),
    [
        (ONE, np.zeros((1, 4)), "network([x: float32[n, 4]]), and was given a single array of shape [1, 4]"),
        (ONE, [], "network([x: float32[n, 4]]), and was given 0 in a list"),
        (ONE, {"x": 1}, "and was given dict"),
        (TWO, [np.zeros((1, 4))], "network([x: float32[n, 4], mask: int64 of any shape]), and was given 1 in a list"),
        (TWO, np.zeros((2, 4)), "and was given a single array of shape [2, 4]"),
    ],
)
def test_what_is_not_a_list_of_one_array_for_each_input(network: Network, given: Any, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        network(given)
    assert words in str(caught.value)
    assert str(caught.value).startswith("the network takes a list with one array for each input, ")
