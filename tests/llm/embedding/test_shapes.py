"""Which shapes there are, and which texts share one."""

from __future__ import annotations

import pytest

from msx_llm.embedding.shapes import BatchShape, BatchShapes, shapes_of

SHAPES = BatchShapes((1, 4, 8, 32), (32, 128, 512), 2048)


def test_a_shape_has_no_more_tokens_than_the_limit() -> None:
    assert list(SHAPES) == [(1, 32), (4, 32), (8, 32), (32, 32), (1, 128), (4, 128), (8, 128), (1, 512), (4, 512)]


def test_one_text_alone_may_be_longer_than_the_limit() -> None:
    assert list(BatchShapes((1, 4), (512,), 100)) == [(1, 512)]


def test_the_longest_text_and_a_lone_one_have_a_shape() -> None:
    shapes = shapes_of((8, 2), (512, 64, 128), 100, 4096)
    assert (shapes.rows, shapes.lengths) == ((1, 2, 8), (64, 100))


@pytest.mark.parametrize(("tokens", "length"), [(1, 32), (32, 32), (33, 128), (512, 512)])
def test_a_text_gets_the_shortest_length_that_holds_it(tokens: int, length: int) -> None:
    assert SHAPES.length_of(tokens) == length


@pytest.mark.parametrize(
    ("count", "chosen", "rows"),
    [
        (1, 1, 1),
        (2, 1, 1),
        (3, 3, 4),
        (4, 4, 4),
        (5, 4, 4),
        (6, 6, 8),
        (9, 8, 8),
        (23, 8, 8),
        (24, 24, 32),
        (50, 32, 32),
    ],
)
def test_at_most_a_quarter_of_the_rows_is_empty(count: int, chosen: int, rows: int) -> None:
    assert SHAPES.choose([10] * count) == (list(range(chosen)), BatchShape(rows, 32))


def test_the_oldest_text_decides_and_others_of_its_length_join() -> None:
    assert SHAPES.choose([100, 10, 90, 500, 33, 65]) == ([0, 2, 4, 5], BatchShape(4, 128))


def test_shorter_texts_take_the_rows_that_would_be_empty_the_longest_first() -> None:
    assert SHAPES.choose([400, 5, 90, 300, 410, 20]) == ([0, 3, 4, 2], BatchShape(4, 512))


def test_the_limit_of_tokens_bounds_the_rows() -> None:
    assert SHAPES.choose([200] * 40) == ([0, 1, 2, 3], BatchShape(4, 512))
