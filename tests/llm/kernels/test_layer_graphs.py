"""How many layers of a model go into one graph."""

from __future__ import annotations

import pytest

from msx_llm.kernels.cpu.layer_graphs import MOST_OF_PROMPTS, layers_of_a_graph


@pytest.mark.parametrize(
    ("layers", "length"),
    [
        (1, 15),
        (4, 15),
        (16, 8),
        (22, 11),
        (24, 12),
        (28, 14),
        (30, 15),
        (32, 8),
        (36, 12),
        (80, 10),
        (34, 15),
        (61, 15),
    ],
)
def test_no_rest_where_that_is_possible(layers: int, length: int) -> None:
    assert layers_of_a_graph(layers) == length


@pytest.mark.parametrize(("layers", "length"), [(1, 5), (16, 4), (22, 2), (24, 4), (28, 4), (30, 5), (32, 4), (61, 5)])
def test_graphs_of_prompts_are_shorter(layers: int, length: int) -> None:
    """There are more of them, and each layer of one keeps memory."""
    assert layers_of_a_graph(layers, MOST_OF_PROMPTS) == length
