"""How many layers of a model go into one graph."""

from __future__ import annotations

import pytest

from msx_llm.kernels.cpu.layer_graphs import layers_of_a_graph


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
